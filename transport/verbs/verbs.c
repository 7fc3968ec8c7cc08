/* verbs.c - ranks of different hosts, by RDMA writes
 *
 * Everything is a one-sided write over a reliable connection: bytes go into
 * registered memory of the peer, signals into the lane of 16 lines that the
 * peer keeps for this rank.
 *
 * A write to a stopped process succeeds, and one to a dead host vanishes.  Only
 * a write that is not acknowledged shows that a peer is gone.  So a rank that
 * waits writes a beat to its peers ten times a second, and a peer that is gone
 * is detected two seconds later.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/sparse.h"
#include "base/units.h"
#include "base/wait.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/exporter.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/events.h"
#include "transport/verbs/fail.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/probe.h"
#include "transport/verbs/put.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/readback.h"
#include "transport/verbs/signal.h"
#include "transport/verbs/words.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERBS_MAGIC UINT64_C(0x6474656e76723031)     /* "dtenvr01" */

enum {
    ACK_NS = 1000000,             /* between acknowledgements while waiting   */
    TURNS_PER_LOOK = 64,
    BEAT_NS = 100000000,
    CLOSE_NS = 1000000000         /* for the last signals to leave            */
};

/* ------------------------------------------------------- open and close --- */

static int verbs_open_memory(struct dtn_verbs *verbs, struct dtensor_error *err)
{
    struct dtn_arena *arena = verbs->args.arena;
    const struct dtn_verbs_rail *rail = &verbs->rail[0];

    verbs->memory.arena = arena;
    verbs->memory.rails = verbs->rail;
    verbs->memory.nrails = verbs->nrails;
    verbs->stage = dtn_arena_alloc(arena, DTN_VERBS_STAGE_BYTES);
    if (!verbs->stage)
        return dtn_arena_fail(arena, "verbs", DTN_VERBS_STAGE_BYTES, err);
    verbs->stage_mr = ibv_reg_mr(rail->pd, verbs->stage, DTN_VERBS_STAGE_BYTES,
                                 IBV_ACCESS_LOCAL_WRITE);
    if (!verbs->stage_mr)
        return dtn_verbs_fail_register(&rail->device, DTN_VERBS_STAGE_BYTES,
                                       errno, err);
    arena->backing.pinned = true;
    return dtn_verbs_keys_init(&verbs->memory, err);
}

static void verbs_close(struct dtn_transport *tp);

static int verbs_open(const struct dtn_open_args *args,
                      struct dtn_transport **tpp, struct dtensor_error *err)
{
    struct dtn_verbs *verbs = calloc(1, sizeof *verbs);
    int rc;

    if (verbs)
        verbs->peers = dtn_sparse_new((size_t)args->nranks,
                                      sizeof verbs->peers[0]);
    if (!verbs || !verbs->peers) {
        free(verbs);
        return dtn_fail_nomem(err, "verbs", sizeof *verbs);
    }
    verbs->base.ops = &dtn_verbs_ops;
    verbs->args = *args;
    rc = dtn_verbs_rails_open(verbs, err);
    if (rc == 0)
        rc = verbs_open_memory(verbs, err);
    if (rc == 0)
        rc = dtn_verbs_meet_open(verbs, err);
    if (rc != 0) {
        verbs_close(&verbs->base);
        return rc;
    }
    *tpp = &verbs->base;
    return 0;
}

/* Tell a peer that this rank leaves, on each queue behind all that was posted.
 * These writes ask for completions, which tell that all has left.
 */
static void close_tell(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer)
{
    struct dtn_verbs_lane *lane = peer->lane;

    lane->out_left = 1;
    for (int q = 0; q < peer->nqueues; q++) {
        verbs->chain.tells = true;
        dtn_verbs_lane_write(verbs, peer, q,
                             offsetof(struct dtn_verbs_lane, left),
                             &lane->out_left, sizeof lane->out_left);
    }
}

/* Has all that was posted to a peer left, or does nobody wait for it?  A peer
 * that has left acknowledges nothing.
 */
static bool close_told(const struct dtn_verbs_peer *peer)
{
    bool done = true;

    for (int q = 0; q < peer->nqueues; q++)
        done = done && peer->queue[q].completed == peer->queue[q].posted;
    return done || peer->error
        || atomic_load_explicit(&peer->lane->left, memory_order_acquire) != 0;
}

/* Wait until the posted writes have left, unless the peer is gone. */
static void verbs_drain(struct dtn_verbs *verbs)
{
    struct dtn_wait wait;

    dtn_verbs_release(verbs);
    for (int i = 0; i < verbs->nmet; i++)
        if (verbs->met[i]->joined && !verbs->met[i]->error)
            close_tell(verbs, verbs->met[i]);
    dtn_wait_init(&wait, CLOSE_NS, false);
    for (int i = 0; i < verbs->nmet; i++)
        while (verbs->met[i]->joined && !close_told(verbs->met[i])
               && dtn_wait_pause(&wait) != DTN_WAIT_EXPIRED)
            if (dtn_verbs_poll(verbs) != 0)
                return;
}

static void verbs_close(struct dtn_transport *tp)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);

    verbs_drain(verbs);
    for (int i = 0; i < verbs->nmet; i++)
        for (int q = 0; q < verbs->met[i]->nqueues; q++)
            ibv_destroy_qp(verbs->met[i]->queue[q].qp);
    dtn_verbs_meet_close(verbs);
    for (int i = 0; i < verbs->nmet; i++) {
        dtn_verbs_lane_close(verbs, verbs->met[i]);
        free(verbs->met[i]);
    }
    free(verbs->met);
    if (verbs->stage_mr)
        ibv_dereg_mr(verbs->stage_mr);
    dtn_verbs_memory_fini(&verbs->memory);
    dtn_verbs_keys_fini(&verbs->memory);
    dtn_arena_free(verbs->args.arena, verbs->stage);
    dtn_verbs_rails_close(verbs);
    dtn_sparse_free(verbs->peers, (size_t)verbs->args.nranks,
                    sizeof verbs->peers[0]);
    free(verbs);
}

static void verbs_address(const struct dtn_transport *tp, struct dtn_blob *blob)
{
    const struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_address address = {
        .magic = VERBS_MAGIC, .datagram_qpn = verbs->datagram->qp_num,
        .nrails = (uint32_t)verbs->nrails
    };

    memcpy(address.key, verbs->key, sizeof address.key);
    for (int k = 0; k < verbs->nrails; k++)
        dtn_verbs_device_end(&verbs->rail[k].device, &address.end[k]);
    memcpy(blob->bytes, &address, sizeof address);
    blob->size = sizeof address;
    blob->fd = -1;
}

/* Can each rail talk to the peer's rail of the same number? */
static int connect_check(const struct dtn_verbs *verbs, int rank,
                         const struct dtn_verbs_address *address,
                         struct dtensor_error *err)
{
    static const char *const link[] = { "InfiniBand", "RoCE" };

    if (address->magic != VERBS_MAGIC)
        return dtn_fail_rank(err, DTENSOR_ESYS, rank, "verbs: the address of "
                             "rank %d is not one of verbs", rank);
    if (address->nrails != (uint32_t)verbs->nrails)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, rank, "verbs: rank %d has "
                             "%u rails, this rank %d (hca gives every rank as "
                             "many, joined by +)", rank, address->nrails,
                             verbs->nrails);
    for (int k = 0; k < verbs->nrails; k++) {
        const struct dtn_verbs_device *device = &verbs->rail[k].device;
        const struct dtn_verbs_end *end = &address->end[k];

        if (!end->ethernet != !device->ethernet)
            return dtn_fail_rank(err, DTENSOR_ENODEV, rank, "verbs: rank %d "
                                 "has %s on %s, this rank %s on %s (one fabric "
                                 "must carry both: see hca)", rank,
                                 link[end->ethernet != 0], end->device,
                                 link[device->ethernet], device->name);
    }
    return 0;
}

static int verbs_connect(struct dtn_transport *tp, int peer,
                         const struct dtn_blob *blob,
                         struct dtensor_error *err)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_peer *p = dtn_verbs_met(verbs, peer);
    int rc;

    if (!p)
        return dtn_fail_nomem(err, "verbs", sizeof *p);
    if (p->joined)
        return dtn_verbs_probe(verbs, peer, err);
    if (!p->called) {
        memcpy(&p->address, blob->bytes, sizeof p->address);
        rc = connect_check(verbs, peer, &p->address, err);
        if (rc != 0)
            return rc;
        p->called = true;
    }
    rc = dtn_verbs_meet(verbs, peer, err);
    return rc == 0 ? dtn_verbs_probe(verbs, peer, err) : rc;
}

/* --------------------------------------------------------------- memory --- */

/* In words, why memory of the device could not be registered. */
static void verbs_words(const struct dtn_verbs *verbs, int sys_errno,
                        char *buf, size_t size)
{
    const struct dtn_verbs_memory *memory = &verbs->memory;
    char dmabuf[240];

    errno = memory->dmabuf_errno;
    if (memory->unexported)
        snprintf(dmabuf, sizeof dmabuf, "%s",
                 memory->exporter->why(memory->exporter));
    else
        snprintf(dmabuf, sizeof dmabuf, "%m");
    errno = sys_errno;
    snprintf(buf, size, "%s cannot register memory of %s: as dma-buf: %s; as "
             "peer memory: %m", memory->refused->device.name,
             memory->exporter->name, dmabuf);
}

/* What is known to be wrong with memory of the program's own, or NULL. */
static const char *verbs_flaw(const struct dtn_verbs *verbs, const void *mem)
{
    const struct dtn_exporter *exporter = verbs->memory.exporter;

    return exporter->flaw ? exporter->flaw(exporter, mem) : NULL;
}

/* Device memory could not be registered: the caller stages it. */
static int verbs_refused(struct dtn_verbs *verbs, const void *mem, size_t size,
                         int sys_errno)
{
    struct dtn_verbs_memory *memory = &verbs->memory;
    const char *flaw = NULL;

    if (!dtn_arena_contains(memory->exporter->arena, mem, size))
        flaw = verbs_flaw(verbs, mem);
    verbs->base.unreached = memory->device_refused ? memory->why_refused
        : flaw ? flaw : "the card does not know this memory (take that of "
          "dtensor_alloc_on, or dtensor_register it)";
    if (memory->device_refused
        || !dtn_arena_contains(memory->exporter->arena, mem, size))
        return DTENSOR_EINVAL;
    memory->device_refused = true;
    verbs_words(verbs, sys_errno, memory->why_refused,
                sizeof memory->why_refused);
    verbs->base.unreached = memory->why_refused;
    dtn_log(verbs->args.log, DTN_LOG_WARN, "verbs: %s; from now on it is "
            "copied through host memory (use the GPU's open kernel modules and "
            "Linux 5.12, or modprobe nvidia-peermem)", memory->why_refused);
    return DTENSOR_EINVAL;
}

static int verbs_reg(struct dtn_transport *tp, void *mem, size_t size,
                     struct dtn_remote *remote)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_region *region;
    struct dtensor_error why;
    int rc;

    region = dtn_verbs_memory_get(&verbs->memory, mem, size);
    if (!region && dtn_verbs_memory_on_device(&verbs->memory, mem, size))
        return verbs_refused(verbs, mem, size, errno);
    if (!region && errno == EFAULT
        && !dtn_arena_contains(verbs->args.arena, mem, size))
        return DTENSOR_EINVAL;
    if (!region) {
        rc = dtn_verbs_fail_register(&verbs->memory.refused->device, size,
                                     errno, &why);
        dtn_log(verbs->args.log, DTN_LOG_WARN, "%s", why.text);
        return rc;
    }
    if (region->on_device && verbs->reads_back
        && dtn_verbs_readback_open(verbs, &why) != 0) {
        dtn_log(verbs->args.log, DTN_LOG_WARN, "%s", why.text);
        verbs->base.unreached = "the card cannot read it back";
        return DTENSOR_EINVAL;
    }
    region->names++;
    remote->addr = (uintptr_t)mem;
    remote->key = dtn_verbs_keys_name(region)
                | (region->on_device ? DTN_KEY_DEVICE : 0);
    return 0;
}

static void verbs_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
    dtn_verbs_memory_forget(&dtn_verbs_of(tp)->memory, remote);
}

/* Memory of the device that the program wants to register cannot be. */
static int verbs_unadopted(const struct dtn_verbs *verbs, const void *mem,
                           size_t size, int sys_errno,
                           struct dtensor_error *err)
{
    const char *flaw = verbs_flaw(verbs, mem);
    char words[500], bytes[32];

    verbs_words(verbs, sys_errno, words, sizeof words);
    return dtn_fail(err, DTENSOR_EINVAL, "register: %s at %p: %s%s%s (without "
                    "the registration it is staged)",
                    dtn_format_size(size, bytes, sizeof bytes), mem, words,
                    flaw ? "; " : "", flaw ? flaw : "");
}

static int verbs_adopt(struct dtn_transport *tp, void *mem, size_t size,
                       struct dtensor_error *err)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    const bool on_device = dtn_verbs_memory_on_device(&verbs->memory, mem,
                                                      size);
    int rc = on_device ? 0 : dtn_verbs_limits_more(verbs, size, err);

    if (rc != 0 || dtn_verbs_memory_adopt(&verbs->memory, mem, size))
        return rc;
    return on_device ? verbs_unadopted(verbs, mem, size, errno, err)
         : dtn_verbs_fail_register(&verbs->memory.refused->device, size, errno,
                                   err);
}

static void verbs_disown(struct dtn_transport *tp, void *mem, size_t size)
{
    dtn_verbs_memory_disown(&dtn_verbs_of(tp)->memory, mem, size);
}

static void verbs_attach(struct dtn_transport *tp,
                         const struct dtn_exporter *exporter)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);

    verbs->memory.exporter = exporter;
    verbs->reads_back = dtn_verbs_readback_needed(
        verbs->args.conf, exporter->ordered, verbs->nrails);
    dtn_log(verbs->args.log, DTN_LOG_DEBUG, "verbs: memory of %s: a signal "
            "behind puts into it %s", exporter->name, verbs->reads_back
            ? "waits until it was read back" : "counts at once");
}

/* Post what was held back.  Once in a millisecond acknowledge all signals that
 * were read, even a single one: the peer may be waiting for that line.
 */
static int verbs_progress(struct dtn_transport *tp)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    int64_t now;
    int rc = dtn_verbs_release(verbs);

    if (rc != 0 || ++verbs->turns % TURNS_PER_LOOK != 0)
        return rc;
    rc = dtn_verbs_poll(verbs);
    if (rc == 0)
        rc = dtn_verbs_meet_progress(verbs);
    now = dtn_now_ns();
    if (rc != 0 || now < verbs->next_ack_ns)
        return rc;
    verbs->next_ack_ns = now + ACK_NS;
    for (int i = 0; i < verbs->nmet; i++)
        if (verbs->met[i]->joined)
            dtn_verbs_acknowledge(verbs, verbs->met[i], 1);
    return 0;
}

/* ------------------------------------------------------ death and abort --- */

static int verbs_health(struct dtn_transport *tp, int peer, int *culprit,
                        int *code)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);
    uint64_t word;
    int64_t now = dtn_now_ns();

    dtn_verbs_poll(verbs);
    if (dtn_verbs_events_poll(verbs) != 0)
        return DTENSOR_ENODEV;
    word = p && p->lane ? atomic_load_explicit(&p->lane->aborted,
                                          memory_order_acquire) : 0;
    if (word & DTN_VERBS_ABORT_SET) {
        *culprit = (int)(uint32_t)word;
        *code = -(int)(word >> 32 & 0xff);
        return DTENSOR_EABORT;
    }
    if (p && p->error)
        return p->narrow ? DTENSOR_ESYS : DTENSOR_EPEER;
    if (p && p->joined && now >= p->next_beat_ns) {
        dtn_verbs_lane_write(verbs, p, 0, offsetof(struct dtn_verbs_lane, beat),
                             &p->lane->out_beat, sizeof p->lane->out_beat);
        p->next_beat_ns = now + BEAT_NS;
    }
    return 0;
}

static void verbs_abort(struct dtn_transport *tp, int culprit, int code)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    uint64_t word = DTN_VERBS_ABORT_SET | (uint64_t)(-code & 0xff) << 32
                  | (uint32_t)culprit;

    dtn_verbs_events_poll(verbs); /* for the log: it may come late */
    for (int i = 0; i < verbs->nmet; i++) {
        struct dtn_verbs_peer *p = verbs->met[i];

        if (!p->joined)
            continue;
        p->lane->out_aborted = word;
        dtn_verbs_lane_write(verbs, p, 0,
                             offsetof(struct dtn_verbs_lane, aborted),
                             &p->lane->out_aborted, sizeof word);
    }
}

static void verbs_why(const struct dtn_transport *tp, int peer, char *buf,
                      size_t size)
{
    dtn_verbs_words(dtn_verbs_of(tp), peer, buf, size);
}

const struct dtn_transport_ops dtn_verbs_ops = {
    .name = "rc",
    .open = verbs_open,
    .close = verbs_close,
    .address = verbs_address,
    .connect = verbs_connect,
    .reg = verbs_reg,
    .unreg = verbs_unreg,
    .adopt = verbs_adopt,
    .disown = verbs_disown,
    .attach = verbs_attach,
    .put = dtn_verbs_put,
    .put_rows = dtn_verbs_put_rows,
    .flush = dtn_verbs_flush,
    .signal = dtn_verbs_signal,
    .peek = dtn_verbs_peek,
    .kept_max = DTN_VERBS_ALONG,
    .kept = dtn_verbs_kept,
    .consume = dtn_verbs_consume,
    .progress = verbs_progress,
    .health = verbs_health,
    .abort = verbs_abort,
    .why = verbs_why,
};
