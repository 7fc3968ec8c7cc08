/* await.c - waiting for a peer without hanging
 *
 * A wait polls for a signal of its peer.  Once a millisecond it checks whether
 * the peer still lives and whether the deadline has passed.  With rank 2 of
 * four dead, rank 1, which waits for it, fails with EPEER; ranks 0 and 3, which
 * wait for rank 1, find that it has given up and fail with EPEER for rank 2
 * within a few milliseconds.
 */
#include "job/await.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "job/eager.h"
#include "job/failure.h"
#include "job/poison.h"
#include "job/stall.h"
#include "job/wire.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define LAST_HERE_NS INT64_C(50000000)

/* Who gave up for a lost rank tells this one over a connection, too, where news
 * over the tree may not come.
 */
static void await_listen(struct dtensor_ctx *ctx)
{
    dtn_ctx_progress(ctx);
    for (int r = 0; r < ctx->world.size; r++) {
        enum dtn_loss loss = DTN_LOSS_NONE;
        int culprit = r, code = 0;

        if (ctx->peers[r].tp && ctx->peers[r].connected
            && dtn_peer_health(ctx, r, &culprit, &code, &loss)
               == DTENSOR_EABORT
            && code == DTENSOR_EPEER)
            dtn_boot_report_peer(ctx->boot, r, culprit, code, loss);
    }
}

static void await_undecided(struct dtensor_ctx *ctx, int rank)
{
    const struct timespec pause = { 0, 1000000 };

    await_listen(ctx);
    while (dtn_boot_undecided(ctx->boot, rank)) {
        nanosleep(&pause, NULL);
        dtn_boot_watch(ctx->boot);
        await_listen(ctx);
    }
}

/* Poison the context because a rank has failed.  The text is the same whether
 * the transport or the tree found it; it ends with what the transport knows:
 * how the rank was reached, and what was seen.
 */
static int await_gone(struct dtensor_ctx *ctx, int rank, const char *how)
{
    enum dtn_loss loss;
    const struct dtn_peer *peer;
    char name[320], why[400] = "", lost[DTN_HOST_MAX * 2 + 96];
    int culprit, other;

    await_undecided(ctx, rank);
    culprit = dtn_boot_agree(ctx->boot, rank, &loss);
    other = culprit == ctx->world.rank ? rank : culprit;
    peer = &ctx->peers[other];
    ctx->failure.loss = loss;
    if (peer->tp)
        peer->tp->ops->why(peer->tp, other, why, sizeof why);
    if (culprit != rank || loss > DTN_LOSS_DIED)
        how = dtn_boot_loss_words(ctx->boot, loss, lost, sizeof lost);
    if (culprit == ctx->world.rank && loss <= DTN_LOSS_DIED)
        how = "has lost its own connections (does the program close file "
              "descriptors that it did not open?)";
    return dtn_poison(ctx, DTENSOR_EPEER, culprit, "%s %s%s%s (see its output)",
                      dtn_world_rank_name(&ctx->world, culprit, name,
                                          sizeof name),
                      how, *why ? ": " : "", why);
}

/* Did a peer that gave up send a mismatch before?  Its other signals are
 * consumed.
 */
static bool await_heard(struct dtensor_ctx *ctx, int peer,
                        struct dtn_mismatch *mismatch)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    const struct dtn_signal *signal;

    while (tp && ctx->peers[peer].connected
           && (signal = tp->ops->peek(tp, peer))) {
        if (dtn_signal_mismatch(signal, mismatch))
            return true;
        dtn_consume(ctx, peer);
    }
    return false;
}

/* A peer gave up because of `culprit`, with `code`.  If that is this rank
 * itself, this rank has lost its connection to the others.
 */
static int await_abort(struct dtensor_ctx *ctx, int peer, int culprit, int code)
{
    char name[320], blamed[320], how[360];
    struct dtn_mismatch mismatch;

    dtn_world_rank_name(&ctx->world, peer, name, sizeof name);
    if (code == DTENSOR_EPEER && culprit == ctx->world.rank) {
        dtn_peer_failure_wait_own(ctx);
        return await_gone(ctx, peer, "gave this rank up, for it got no answer");
    }
    if (code == DTENSOR_EPEER && culprit == peer)
        return await_gone(ctx, peer, "died or left");
    if (code == DTENSOR_EMISMATCH) {
        if (ctx->describer && (await_heard(ctx, peer, &mismatch)
                               || dtn_mismatch_wait(ctx, peer, &mismatch)))
            return dtn_poison_mismatch(ctx, &mismatch);
        return dtn_poison(ctx, code, culprit, "%s and another rank called what "
                          "is not the same (see the message of %s)", name,
                          name);
    }
    if (culprit < 0 || culprit >= ctx->world.size || culprit == peer)
        return dtn_poison(ctx, DTENSOR_EABORT, peer, "%s failed with %s (see "
                          "its message)", name, dtensor_errname(code));
    if (code == DTENSOR_EPEER) {
        snprintf(how, sizeof how, "died or left, %s says", name);
        return await_gone(ctx, culprit, how);
    }
    dtn_world_rank_name(&ctx->world, culprit, blamed, sizeof blamed);
    return dtn_poison(ctx, DTENSOR_EABORT, culprit, "%s gave up with %s on "
                      "account of %s (see the message of %s)", name,
                      dtensor_errname(code), blamed,
                      code == DTENSOR_EABORT ? blamed : name);
}

/* A peer tells all ranks connected to it that it gives up.  This rank tells the
 * others, because it may leave before that news arrives over the tree and is
 * forwarded.  A mismatch comes with more data.
 */
static int await_told(struct dtensor_ctx *ctx, int peer, int culprit, int code,
                      enum dtn_loss loss)
{
    if (code != DTENSOR_EMISMATCH)
        dtn_boot_report_peer(ctx->boot, peer, culprit, code, loss);
    return await_abort(ctx, peer, culprit, code);
}

/* Poison the context because of the peer's health.  A peer that is gone may
 * have told other ranks why.
 */
static int await_blame(struct dtensor_ctx *ctx, int peer, int health,
                       int culprit, int code)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_mismatch mismatch;
    char name[320], why[400];
    int teller;

    if (health == DTENSOR_EPEER) {
        teller = dtn_peer_failure_wait(ctx, peer, &culprit, &code);
        if (teller >= 0)
            return await_abort(ctx, teller, culprit, code);
        if (ctx->describer && dtn_mismatch_known(ctx, &mismatch))
            return dtn_poison_mismatch(ctx, &mismatch);
        return await_gone(ctx, peer, "died or left while this rank waited for "
                          "it");
    }
    tp->ops->why(tp, peer, why, sizeof why);     /* this rank's own failure  */
    return dtn_poison(ctx, health, ctx->world.rank,
                      "%s is out of reach: "
                      "%s%s%s",
                      dtn_world_rank_name(&ctx->world, peer, name, sizeof name),
                      dtensor_errname(health), *why ? ": " : "", why);
}

/* How long the last messages of a dead rank may be on their way, or not be read
 * yet because this rank has computed.  0 if this rank maps the memory that they
 * are in.  On one host messages arrive at once, but the kernel may free memory
 * for half a second before it closes the sockets of a dead process.
 */
static int64_t await_last_ns(const struct dtensor_ctx *ctx, int peer,
                             enum dtn_loss loss)
{
    if (loss != DTN_LOSS_DIED)
        return loss > DTN_LOSS_DIED ? 0 : DTN_FAILURE_NOTICE_NS;
    if (ctx->peers[peer].tp->ops->map)
        return 0;
    return dtn_world_host(&ctx->world, peer)
           == dtn_world_host(&ctx->world, ctx->world.rank)
         ? LAST_HERE_NS : DTN_FAILURE_NOTICE_NS;
}

/* Does the tree know that the peer died or gave up, and the transport does not?
 * A queue pair to a dead process reports nothing until its retries are used up.
 */
static bool await_lost(const struct dtensor_ctx *ctx, int peer,
                       const struct dtn_wait *wait)
{
    const struct dtn_peer_failure *failure = dtn_boot_peer_failure(ctx->boot,
                                                                   peer);
    int64_t since_ns;

    if (failure->order == 0 || failure->code == 0)
        return false;
    since_ns = failure->heard_ns;
    if (wait && wait->start_ns > since_ns)
        since_ns = wait->start_ns;
    return dtn_now_ns() - since_ns >= await_last_ns(ctx, peer, failure->loss);
}

/* A rank between this one and the peer in the tree is lost, so no news of the
 * peer can come.  After dead_after the peer counts as lost, too.
 */
static int await_way(struct dtensor_ctx *ctx, int peer,
                     const struct dtn_wait *wait)
{
    const int lost = dtn_boot_lost_way(ctx->boot, peer);
    const struct dtn_peer_failure *failure;
    int64_t since_ns = wait->start_ns;

    if (lost < 0)
        return 0;
    failure = dtn_boot_peer_failure(ctx->boot, lost);
    if (failure->heard_ns > since_ns)
        since_ns = failure->heard_ns;
    if (dtn_now_ns() - since_ns
        < ctx->world.cluster->transport.dead_after_ns)
        return 0;
    return failure->code == DTENSOR_EPEER
         ? await_gone(ctx, lost, "died or left")
         : await_abort(ctx, lost, failure->culprit, failure->code);
}

/* A peer may send its last signal and leave.  If `listening`, that signal is
 * taken before the peer counts as gone.
 */
int dtn_peer_check(struct dtensor_ctx *ctx, int peer, bool listening,
                   const struct dtn_wait *wait)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_mismatch mismatch;
    enum dtn_loss loss = DTN_LOSS_NONE;
    int culprit = peer, code = 0;
    int health = dtn_peer_health(ctx, peer, &culprit, &code, &loss);

    dtn_boot_watch(ctx->boot);
    if (listening && tp->ops->peek(tp, peer))
        return 0;
    if (ctx->describer && dtn_mismatch_known(ctx, &mismatch))
        return dtn_poison_mismatch(ctx, &mismatch);
    if (health == 0 && await_lost(ctx, peer, wait))
        health = DTENSOR_EPEER;
    if (health == DTENSOR_EABORT)
        return await_told(ctx, peer, culprit, code, loss);
    if (health != 0)
        return await_blame(ctx, peer, health, culprit, code);
    if (!wait)
        return 0;
    dtn_stall_check(ctx, peer, wait->start_ns);
    if (await_way(ctx, peer, wait) != 0)
        return ctx->failure.err.code;
    return dtn_now_ns() - wait->start_ns > DTN_STALL_NS
         ? dtn_mismatch_stalled(ctx) : 0;
}

int dtn_peer_failure_report(struct dtensor_ctx *ctx, int peer)
{
    return await_blame(ctx, peer, DTENSOR_EPEER, peer, DTENSOR_EPEER);
}

/* op_timeout has passed.  If a rank is lost, the peer may wait for it, or for
 * another that waits for it.  So all ranks name the lost one.
 */
int dtn_await_expired(struct dtensor_ctx *ctx, int peer, int64_t since_ns)
{
    const int lost = dtn_boot_first_loss(ctx->boot);
    char name[320], time[32], does[400];

    if (lost >= 0)
        return await_gone(ctx, lost, "died or left");
    dtn_stall_words(ctx, peer, since_ns, does, sizeof does);
    return dtn_poison(
        ctx, DTENSOR_ETIME, peer,
        "waited %s for %s, which is "
        "alive%s (%ssee [transport] op_timeout)",
        dtn_format_time(dtn_now_ns() - since_ns, time, sizeof time),
        dtn_world_rank_name(&ctx->world, peer, name, sizeof name),
        does, *does ? "" : "is it in another call, or stopped? ");
}

int dtn_await_progress(struct dtensor_ctx *ctx, int peer, bool listening,
                       struct dtn_wait *wait)
{
    if (dtn_ctx_progress(ctx))
        dtn_wait_wake(wait);
    switch (dtn_wait_pause(wait)) {
    case DTN_WAIT_POLL:
        return 0;
    case DTN_WAIT_CHECK:
        return dtn_peer_check(ctx, peer, listening, wait);
    case DTN_WAIT_EXPIRED:
        break;
    }
    return dtn_await_expired(ctx, peer, wait->start_ns);
}

int dtn_await_failed(struct dtensor_ctx *ctx, int peer, int rc)
{
    int looked = dtn_peer_check(ctx, peer, false, NULL);

    return looked != 0 ? looked : await_blame(ctx, peer, rc, peer, rc);
}

/* A transport returned `rc`.  0: try again; else the context is poisoned. */
static int await_again(struct dtensor_ctx *ctx, int peer, int rc,
                       struct dtn_wait *wait)
{
    return rc == DTENSOR_EAGAIN ? dtn_await_progress(ctx, peer, false, wait)
                                : dtn_await_failed(ctx, peer, rc);
}

void dtn_ctx_wait(struct dtensor_ctx *ctx, struct dtn_wait *wait)
{
    dtn_wait_init(wait, ctx->world.cluster->transport.op_timeout_ns,
                  ctx->cpus.oversubscribed);
    wait->sharing = &ctx->cpus.shared;
}

int dtn_put(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
            const void *src, size_t size)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    const unsigned char *from = src;
    struct dtn_wait wait;
    size_t done;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    while (size > 0) {
        done = 0;
        rc = tp->ops->put(tp, peer, dst, from, size, &done);
        from += done;
        dst.addr += done;
        size -= done;
        if (rc != 0 && (rc = await_again(ctx, peer, rc, &wait)) != 0)
            return rc;
        if (done > 0)
            dtn_ctx_wait(ctx, &wait);
    }
    return 0;
}

int dtn_fetch(struct dtensor_ctx *ctx, int peer, void *dst,
              struct dtn_remote src, size_t size)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    int rc = tp->ops->fetch(tp, peer, dst, src, size);

    return rc == 0 ? 0 : dtn_await_failed(ctx, peer, rc);
}

int dtn_fetched(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    int culprit, code;

    return tp->ops->health(tp, peer, &culprit, &code) == 0
         ? 0 : dtn_peer_check(ctx, peer, false, NULL);
}

int dtn_flush(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_wait wait;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    while ((rc = tp->ops->flush(tp, peer)) != 0)
        if ((rc = await_again(ctx, peer, rc, &wait)) != 0)
            return rc;
    return 0;
}

int dtn_try_signal(struct dtensor_ctx *ctx, int rank, struct dtn_signal *signal,
                   const void *data)
{
    struct dtn_peer *peer = &ctx->peers[rank];
    struct dtn_eager space;
    const struct dtn_eager *eager = dtn_eager_pack(peer, signal, data, &space);
    const int rc = peer->tp->ops->signal(peer->tp, rank, signal, eager);

    if (rc == 0)
        peer->sent++;
    return rc;
}

/* The transport returned `rc`: try until it takes the signal.  If this and
 * await_signal() were inlined, the usual case would save more registers.
 */
static DTN_NOINLINE int signal_again(struct dtensor_ctx *ctx, int peer,
                                     struct dtn_signal *signal,
                                     const void *data, int rc)
{
    struct dtn_wait wait;

    dtn_ctx_wait(ctx, &wait);
    do {
        if ((rc = await_again(ctx, peer, rc, &wait)) != 0)
            return rc;
    } while ((rc = dtn_try_signal(ctx, peer, signal, data)) != 0);
    return 0;
}

int dtn_signal(struct dtensor_ctx *ctx, int rank, struct dtn_signal *signal,
               const void *data)
{
    const int rc = dtn_try_signal(ctx, rank, signal, data);

    return rc == 0 ? 0 : signal_again(ctx, rank, signal, data, rc);
}

/* There is no signal yet: wait for it. */
static DTN_NOINLINE int await_signal(struct dtensor_ctx *ctx, int peer,
                                     const struct dtn_signal **signalp)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_wait wait;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    do {
        if ((rc = dtn_await_progress(ctx, peer, true, &wait)) != 0)
            return rc;
    } while (!(*signalp = tp->ops->peek(tp, peer)));
    return 0;
}

int dtn_await(struct dtensor_ctx *ctx, int peer,
              const struct dtn_signal **signalp)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;

    *signalp = tp->ops->peek(tp, peer);
    return *signalp ? 0 : await_signal(ctx, peer, signalp);
}

void dtn_consume(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;

    tp->ops->consume(tp, peer);
    ctx->peers[peer].consumed++;
}
