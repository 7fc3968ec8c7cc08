/* wire.c - opening the transports and connecting to peers
 *
 * [transport] names one wire inside a host and one between hosts.  All ranks
 * compute the wires of the job from the file, open them in the same order, and
 * allgather one address blob for each.  Example: two hosts of four ranks, with
 * shm inside and tcp between, need two allgathers; then rank 0 has ranks 1-3 on
 * shm and 4-7 on tcp.  A pair of ranks connects later, when the first schedule
 * that needs the pair is made.
 */
#include "job/wire.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "cluster/world.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/poison.h"
#include "job/wiring.h"
#include "transport/fault.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const wire_names[] = {
    [DTN_WIRE_SHM] = "shm", [DTN_WIRE_TCP] = "tcp", [DTN_WIRE_RC] = "rc"
};

struct dtn_transport *dtn_wire_to(const struct dtensor_ctx *ctx, int rank)
{
    const struct dtn_host *here = dtn_host_of(ctx->world.cluster,
                                              ctx->world.rank);

    if (rank == ctx->world.rank)
        return NULL;
    return rank >= here->first_rank && rank < here->first_rank + here->nranks
         ? ctx->wiring.inside : ctx->wiring.between;
}

/* Does any pair of ranks of the job use this wire? */
static bool wire_used(const struct dtensor_ctx *ctx, enum dtn_wire wire)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    bool shared_host = false;

    for (int h = 0; h < cluster->nhosts; h++)
        shared_host |= cluster->hosts[h].nranks > 1;
    return (shared_host && cluster->transport.intra_node == wire)
        || (cluster->nhosts > 1 && cluster->transport.inter_node == wire);
}

static const struct dtn_transport_ops *wire_ops(enum dtn_wire wire,
                                                struct dtensor_error *err)
{
    const struct dtn_transport_ops *ops = dtn_transport_find(wire_names[wire]);

    if (!ops)
        dtn_fail(err, DTENSOR_ENODEV, "init: this build has no transport "
                 "\"%s\" (%s; set [transport] intra_node = shm and inter_node "
                 "= tcp)", wire_names[wire], dtensor_build());
    return ops;
}

size_t dtn_wire_eager_bytes(enum dtn_wire wire)
{
    const struct dtn_transport_ops *ops = dtn_transport_find(wire_names[wire]);

    return ops && ops->kept ? ops->kept_max : DTN_EAGER_MAX;
}

/* Inject the faults that DTN_FAULT asks for. */
static int wire_inject(struct dtn_transport *tp, struct dtensor_error *err)
{
    const char *text = getenv("DTN_FAULT");
    struct dtn_fault_plan plan;
    int rc;

    if (!text || !*text)
        return 0;
    rc = dtn_fault_parse(text, &plan, err);
    if (rc == 0)
        rc = dtn_fault_inject(tp, &plan, err);
    return rc;
}

static int wire_open_transport(struct dtensor_ctx *ctx, enum dtn_wire wire,
                               struct dtensor_error *err)
{
    const struct dtn_host *here = dtn_host_of(ctx->world.cluster,
                                              ctx->world.rank);
    const struct dtn_open_args args = {
        .nranks = ctx->world.size, .rank = ctx->world.rank,
        .first = here->first_rank, .nlocal = here->nranks,
        .address = here->address, .arena = &ctx->arena,
        .conf = &ctx->world.cluster->transport, .log = &ctx->log,
        .device = dtn_world_device(&ctx->world),
        .gid_index = dtn_world_nodes(&ctx->world)->gid_index
    };
    const struct dtn_transport_ops *ops = wire_ops(wire, err);
    struct dtn_transport *tp;
    int rc;

    if (!ops)
        return DTENSOR_ENODEV;
    rc = ops->open(&args, &tp, err);
    if (rc != 0)
        return rc;
    ctx->transports[ctx->ntransports++] = tp;
    return wire_inject(tp, err);
}

/* The last opened transport is that of this wire: learn the addresses. */
static int wire_exchange(struct dtensor_ctx *ctx, enum dtn_wire wire,
                         struct dtensor_error *err)
{
    const struct dtn_transport_conf *conf = &ctx->world.cluster->transport;
    const int t = ctx->ntransports - 1;
    struct dtn_transport *tp = ctx->transports[t];
    struct dtn_blob mine;

    if (conf->intra_node == wire)
        ctx->wiring.inside = tp;
    if (conf->inter_node == wire)
        ctx->wiring.between = tp;
    dtn_ctx_attach_device(ctx, tp);           /* before peers connect        */
    memset(&mine, 0, sizeof mine);
    mine.fd = -1;
    tp->ops->address(tp, &mine);
    return dtn_boot_allgather(ctx->boot, &mine, &ctx->wiring.addresses[t], err);
}

int dtn_wire_open(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    int rc = 0;

    for (int w = DTN_WIRE_SHM; rc == 0 && w <= DTN_WIRE_RC; w++) {
        if (!wire_used(ctx, (enum dtn_wire)w))
            continue;
        rc = wire_open_transport(ctx, (enum dtn_wire)w, err);
        if (rc == 0)
            rc = wire_exchange(ctx, (enum dtn_wire)w, err);
    }
    return rc;
}

void dtn_wire_close(struct dtensor_ctx *ctx)
{
    for (int t = 0; t < ctx->ntransports; t++) {
        ctx->copied_bytes += ctx->transports[t]->copied_bytes;
        ctx->transports[t]->ops->close(ctx->transports[t]);
        dtn_table_free(ctx->wiring.addresses[t]);
    }
    ctx->ntransports = 0;
}

/* The transport has connected the peer: only its eager box is not known yet.
 * The peer may have named it, sent all that it had to send, and left.
 */
static bool wire_meets(const struct dtensor_ctx *ctx, int rank)
{
    return ctx->peers[rank].eager.name_sent;
}

/* Continue with the connection to one peer, which takes memory from now on. */
static int wire_connect_one(struct dtensor_ctx *ctx, int rank,
                            struct dtensor_error *err)
{
    struct dtn_peer *peer = &ctx->peers[rank];
    struct dtn_blob address;
    int t = 0, rc = 0;

    if (!peer->tp)
        peer->tp = dtn_wire_to(ctx, rank);
    while (ctx->transports[t] != peer->tp)
        t++;
    if (!wire_meets(ctx, rank)) {
        dtn_table_get(ctx->wiring.addresses[t], rank, &address);
        rc = peer->tp->ops->connect(peer->tp, rank, &address, err);
    }
    if (rc == 0)
        rc = dtn_eager_meet(ctx, rank, err);
    peer->connected = rc == 0;
    return rc;
}

/* Try once to connect to every peer that is not connected.  Returns how many
 * are left, and *waiting is the first of them; or an error, and *waiting is its
 * cause.
 */
static int wire_connect_round(struct dtensor_ctx *ctx, const int ranks[],
                              int n, int *waiting, struct dtensor_error *err)
{
    int left = 0;

    for (int i = 0; i < n; i++) {
        int rc;

        if (ctx->peers[ranks[i]].connected || ranks[i] == ctx->world.rank)
            continue;
        rc = wire_connect_one(ctx, ranks[i], err);
        if (rc != 0 && (rc != DTENSOR_EAGAIN || left++ == 0))
            *waiting = ranks[i];
        if (rc != 0 && rc != DTENSOR_EAGAIN)
            return rc;
    }
    return left;
}

/* An attempt to connect to the peer `waiting` has failed: report it. */
static void wire_connect_failed(struct dtensor_ctx *ctx, int rc, int waiting,
                                const struct dtensor_error *why)
{
    char name[320];
    int culprit, code;

    if (rc == DTENSOR_EPEER
        && (dtn_peer_check(ctx, waiting, false, NULL) != 0
            || (dtn_peer_failure_wait(ctx, waiting, &culprit, &code) >= 0
                && dtn_peer_failure_report(ctx, waiting) != 0)))
        return;
    dtn_poison(ctx, rc, rc == DTENSOR_EPEER ? waiting : ctx->world.rank,
               "cannot connect to %s: %s",
               dtn_world_rank_name(&ctx->world, waiting, name, sizeof name),
               why->text);
}

/* Try once to connect to those of these peers that are not connected.  Returns
 * how many are left, and *waiting is the first of them; or a code, and the
 * context is poisoned.  A peer that is gone is tried again, because it may have
 * joined, sent everything and left.
 */
static int wire_connect_try(struct dtensor_ctx *ctx, const int ranks[], int n,
                            int *waiting)
{
    struct dtensor_error why = { 0 };
    int rc = wire_connect_round(ctx, ranks, n, waiting, &why);
    int failure = rc > 0 ? dtn_peer_failure_first(ctx, ranks, n) : -1;

    if (failure >= 0) {
        dtn_ctx_progress(ctx);
        rc = wire_connect_round(ctx, ranks, n, waiting, &why);
        if (rc > 0 && !ctx->peers[failure].connected)
            return dtn_peer_failure_report(ctx, failure);
    }
    if (rc < 0)
        wire_connect_failed(ctx, rc, *waiting, &why);
    return rc;
}

int dtn_ctx_connect(struct dtensor_ctx *ctx, const int ranks[], int n,
                    struct dtensor_error *err)
{
    struct dtn_wait wait;
    int waiting = -1, rc;

    ctx->wiring.connecting = ranks;
    ctx->wiring.nconnecting = n;
    /* The peer joins when it makes the same call, however long it computes. */
    dtn_wait_init(&wait, ctx->world.cluster->transport.op_timeout_ns,
                  ctx->cpus.oversubscribed);
    while ((rc = wire_connect_try(ctx, ranks, n, &waiting)) > 0)
        if ((rc = dtn_await_progress(ctx, waiting, wire_meets(ctx, waiting),
                                     &wait)) != 0)
            break;
    ctx->wiring.connecting = NULL;
    ctx->wiring.nconnecting = 0;
    return rc == 0 ? 0 : dtn_ctx_check(ctx, err);
}

int dtn_poll_connect(struct dtensor_ctx *ctx, const int ranks[], int n,
                     struct dtn_wait *wait, struct dtensor_error *err)
{
    int waiting = -1, rc;

    ctx->wiring.connecting = ranks;
    ctx->wiring.nconnecting = n;
    dtn_ctx_progress(ctx);
    rc = wire_connect_try(ctx, ranks, n, &waiting);
    if (rc > 0)
        rc = dtn_poll_later(ctx, waiting, wire_meets(ctx, waiting), wait);
    ctx->wiring.connecting = NULL;
    ctx->wiring.nconnecting = 0;
    return rc == 0 || rc == DTENSOR_EAGAIN ? rc : dtn_ctx_check(ctx, err);
}
