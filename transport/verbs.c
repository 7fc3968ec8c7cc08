/* verbs.c - ranks of different hosts, by RDMA writes
 *
 * Everything is a one-sided write over a reliable connection: bytes into
 * registered arena memory, signals into the lane the receiver keeps for this
 * sender.  A lane is 16 lines of 64 bytes and a counter through which the
 * receiver's peer acknowledges, once in 8 signals, what it consumed of ours.
 *
 * A signal is one inline write of 64 bytes whose last 8 are its number, where
 * the device promises that a write lands in order (ibv_query_qp_data_in_order);
 * elsewhere two, 56 bytes and then the number.  The processor of the receiver
 * is not involved until it looks.
 *
 * Writes to a stopped or dead process succeed or vanish; that a peer is gone
 * shows when one is not answered.  So while a rank waits it writes a beat, ten
 * times a second, and a peer that is gone is known half a second later.
 */
#include "transport/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define VERBS_MAGIC UINT64_C(0x6474656e76723031)     /* "dtenvr01" */

enum {
    ACK_EVERY = DTN_QUEUE_DEPTH / 2,
    TURNS_PER_ACK = 64,
    BEAT_NS = 100000000,
    CLOSE_NS = 1000000000         /* for the last signals to leave             */
};

static struct verbs *verbs_of(const struct dtn_transport *tp)
{
    return (struct verbs *)tp;
}

static struct verbs_peer *verbs_peer(const struct dtn_transport *tp, int peer)
{
    return &verbs_of(tp)->peers[peer];
}

/* -------------------------------------------------------- open and close --- */

static bool verbs_reaches(const struct dtn_place *a, const struct dtn_place *b)
{
    return true;
}

/* Registered memory is locked memory: better to know now than at a gigabyte. */
static void verbs_check_memlock(const struct verbs *verbs)
{
    char have[32];
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0
        && limit.rlim_cur != RLIM_INFINITY
        && limit.rlim_cur < verbs->args.arena->size)
        dtn_log(verbs->args.log, DTN_LOG_WARN, "verbs: only %s of memory may "
                "be locked: larger tensors will fail (see ulimit -l)",
                dtn_format_size(limit.rlim_cur, have, sizeof have));
}

static int verbs_open_memory(struct verbs *verbs, struct dtensor_error *err)
{
    struct dtn_arena *arena = verbs->args.arena;
    size_t lanes = (size_t)verbs->args.nranks * sizeof *verbs->lanes;

    verbs->memory.arena = arena;
    verbs->memory.pd = ibv_alloc_pd(verbs->device.context);
    if (!verbs->memory.pd)
        return dtn_fail_sys(err, errno, "verbs: no protection domain on %s: "
                            "%m", verbs->device.name);
    verbs->lanes = dtn_arena_alloc(arena, lanes);
    verbs->stage = dtn_arena_alloc(arena, VERBS_STAGE_BYTES);
    if (!verbs->lanes || !verbs->stage)
        return dtn_fail_nomem(err, "verbs", lanes + VERBS_STAGE_BYTES);
    memset(verbs->lanes, 0, lanes);
    verbs->lanes_mr = ibv_reg_mr(verbs->memory.pd, verbs->lanes, lanes,
                                 IBV_ACCESS_LOCAL_WRITE
                                 | IBV_ACCESS_REMOTE_WRITE);
    verbs->stage_mr = ibv_reg_mr(verbs->memory.pd, verbs->stage,
                                 VERBS_STAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (!verbs->lanes_mr || !verbs->stage_mr)
        return dtn_fail_sys(err, errno, "verbs: cannot register %zu bytes on "
                            "%s: %m (see ulimit -l)",
                            lanes + VERBS_STAGE_BYTES, verbs->device.name);
    arena->pinned = true;
    return 0;
}

/* Room for every completion that can be on its way: none is ever lost. */
static int verbs_open_cq(struct verbs *verbs, struct dtensor_error *err)
{
    int want = verbs->args.nranks * VERBS_DEPTH;
    int cqe = want < verbs->device.max_cqe ? want : verbs->device.max_cqe;

    verbs->cq = ibv_create_cq(verbs->device.context, cqe, NULL, NULL, 0);
    if (!verbs->cq)
        return dtn_fail_sys(err, errno, "verbs: no completion queue of %d on "
                            "%s: %m (see ulimit -l)", cqe, verbs->device.name);
    return 0;
}

static void verbs_close(struct dtn_transport *tp);

static int verbs_open(const struct dtn_open_args *args,
                      struct dtn_transport **tpp, struct dtensor_error *err)
{
    struct verbs *verbs = calloc(1, sizeof *verbs + (size_t)args->nranks
                                 * sizeof verbs->peers[0]);
    int rc;

    if (!verbs)
        return dtn_fail_nomem(err, "verbs", sizeof *verbs);
    verbs->base.ops = &dtn_verbs_ops;
    verbs->args = *args;
    rc = verbs_device_open(args->device, args->gid_index, args->log,
                           &verbs->device, err);
    if (rc == 0)
        rc = verbs_open_memory(verbs, err);
    if (rc == 0)
        rc = verbs_open_cq(verbs, err);
    if (rc == 0)
        rc = verbs_meet_open(verbs, err);
    if (rc != 0) {
        verbs_close(&verbs->base);
        return rc;
    }
    for (int r = 0; r < args->nranks; r++)
        verbs->peers[r].lane = &verbs->lanes[r];
    verbs_check_memlock(verbs);
    *tpp = &verbs->base;
    return 0;
}

/* Let what was posted leave, unless the peer is gone. */
static void verbs_drain(struct verbs *verbs)
{
    int64_t end = dtn_now_ns() + CLOSE_NS;

    for (int r = 0; r < verbs->args.nranks; r++) {
        struct verbs_peer *peer = &verbs->peers[r];

        if (!peer->joined || peer->error || peer->completed == peer->posted)
            continue;
        verbs_post_mark(verbs, peer);
        while (peer->completed != peer->posted && !peer->error
               && dtn_now_ns() < end && verbs_poll(verbs) == 0)
            ;
    }
}

static void verbs_close(struct dtn_transport *tp)
{
    struct verbs *verbs = verbs_of(tp);

    if (verbs->cq)
        verbs_drain(verbs);
    for (int r = 0; r < verbs->args.nranks; r++)
        if (verbs->peers[r].qp)
            ibv_destroy_qp(verbs->peers[r].qp);
    verbs_meet_close(verbs);
    if (verbs->cq)
        ibv_destroy_cq(verbs->cq);
    if (verbs->lanes_mr)
        ibv_dereg_mr(verbs->lanes_mr);
    if (verbs->stage_mr)
        ibv_dereg_mr(verbs->stage_mr);
    verbs_memory_fini(&verbs->memory);
    if (verbs->memory.pd)
        ibv_dealloc_pd(verbs->memory.pd);
    dtn_arena_free(verbs->args.arena, verbs->lanes);
    dtn_arena_free(verbs->args.arena, verbs->stage);
    verbs_device_close(&verbs->device);
    free(verbs);
}

static void verbs_address(const struct dtn_transport *tp, struct dtn_blob *blob)
{
    const struct verbs *verbs = verbs_of(tp);
    struct verbs_address address = {
        .magic = VERBS_MAGIC, .cookie = verbs->cookie,
        .gid = verbs->device.gid, .datagram_qpn = verbs->datagram->qp_num,
        .lid = verbs->device.lid, .mtu = (uint8_t)verbs->device.mtu,
        .ethernet = verbs->device.ethernet
    };

    memcpy(address.device, verbs->device.name, sizeof address.device);
    memcpy(blob->bytes, &address, sizeof address);
    blob->size = sizeof address;
    blob->fd = -1;
}

static int verbs_connect(struct dtn_transport *tp, int peer,
                         const struct dtn_blob *blob,
                         struct dtensor_error *err)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);

    if (p->joined)
        return 0;
    if (!p->called) {
        if (blob->size != sizeof p->address)
            return dtn_fail_rank(err, DTENSOR_ESYS, peer, "verbs: the address "
                                 "of rank %d is not one of verbs", peer);
        memcpy(&p->address, blob->bytes, sizeof p->address);
        if (p->address.magic != VERBS_MAGIC
            || p->address.ethernet != verbs->device.ethernet)
            return dtn_fail_rank(err, DTENSOR_ENODEV, peer, "verbs: rank %d "
                                 "has %s, this rank %s (one fabric must carry "
                                 "both: see hca)", peer, p->address.ethernet
                                 ? "RoCE" : "InfiniBand",
                                 verbs->device.ethernet ? "RoCE"
                                 : "InfiniBand");
        p->called = true;
    }
    return verbs_meet(verbs, peer, err);
}

/* ---------------------------------------------------------------- memory --- */

static int verbs_reg(struct dtn_transport *tp, void *mem, size_t size,
                     struct dtn_remote *remote)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_region *region;

    if (!dtn_arena_contains(verbs->args.arena, mem, size))
        return DTENSOR_EINVAL;
    region = verbs_memory_get(&verbs->memory, mem, size);
    if (!region)
        return errno == ENOMEM ? DTENSOR_ENOMEM : DTENSOR_ESYS;
    remote->addr = (uintptr_t)mem;
    remote->key = region->mr->rkey;
    return 0;
}

static void verbs_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
}

static void *verbs_map(struct dtn_transport *tp, int peer,
                       struct dtn_remote remote)
{
    return NULL;
}

/* A source outside the arena leaves through the stage, when that is free. */
static int verbs_put_staged(struct verbs *verbs, struct verbs_peer *peer,
                            struct dtn_remote dst, const void *src,
                            size_t size, size_t *done)
{
    int rc;

    if (verbs->stage_user) {
        verbs_poll(verbs);
        if (verbs->stage_user->completed < verbs->stage_user->last_put
            && !verbs->stage_user->error)
            return DTENSOR_EAGAIN;
    }
    size = size < VERBS_STAGE_BYTES ? size : VERBS_STAGE_BYTES;
    memcpy(verbs->stage, src, size);
    rc = verbs_post(verbs, peer, dst.addr, (uint32_t)dst.key, verbs->stage,
                    size, verbs->stage_mr);
    if (rc != 0)
        return rc;
    verbs->copied_bytes += size;
    verbs->stage_user = peer;
    peer->last_put = peer->posted;
    *done = size;
    return 0;
}

static int verbs_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                     const void *src, size_t size, size_t *done)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);
    const struct verbs_region *region = NULL;
    int rc;

    if (size > (size_t)verbs->device.max_inline) {
        region = verbs_memory_get(&verbs->memory, src, size);
        if (!region)
            return verbs_put_staged(verbs, p, dst, src, size, done);
    }
    size = size < VERBS_MESSAGE_MAX ? size : VERBS_MESSAGE_MAX;
    rc = verbs_post(verbs, p, dst.addr, (uint32_t)dst.key, src, size,
                    region ? region->mr : NULL);
    if (rc != 0)
        return rc;
    if (region)
        p->last_put = p->posted;
    *done = size;
    return 0;
}

static int verbs_flush(struct dtn_transport *tp, int peer)
{
    struct verbs_peer *p = verbs_peer(tp, peer);

    if (p->completed >= p->last_put)
        return 0;
    verbs_poll(verbs_of(tp));
    if (p->error)
        return DTENSOR_EPEER;
    return p->completed >= p->last_put ? 0 : DTENSOR_EAGAIN;
}

/* --------------------------------------------------------------- signals --- */

/* Where our lines begin in the peer's memory. */
static uint64_t lane_at(const struct verbs_peer *peer, size_t offset)
{
    return peer->greeting.lane + offset;
}

static int lane_write(struct verbs *verbs, struct verbs_peer *peer,
                      size_t offset, const void *from, size_t size)
{
    return verbs_post(verbs, peer, lane_at(peer, offset),
                      peer->greeting.lane_key, from, size, NULL);
}

static int verbs_signal(struct dtn_transport *tp, int peer,
                        const struct dtn_signal *signal)
{
    const size_t body = DTN_SIGNAL_BODY;
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);
    size_t line = p->sent % DTN_QUEUE_DEPTH * sizeof *signal;
    struct dtn_signal copy;
    uint64_t number = p->sent + 1;
    int rc;

    if (p->sent - atomic_load_explicit(&p->lane->acked, memory_order_acquire)
        >= DTN_QUEUE_DEPTH || p->posted + 2 - p->completed >= VERBS_DEPTH) {
        verbs_poll(verbs);
        if (p->sent - p->lane->acked >= DTN_QUEUE_DEPTH
            || p->posted + 2 - p->completed >= VERBS_DEPTH)
            return p->error ? DTENSOR_EPEER : DTENSOR_EAGAIN;
    }
    memcpy(&copy, signal, body);
    atomic_store_explicit(&copy.seq, number, memory_order_relaxed);
    if (p->in_order) {
        rc = lane_write(verbs, p, line, &copy, sizeof copy);
    } else {
        rc = lane_write(verbs, p, line, &copy, body);
        if (rc == 0)
            rc = lane_write(verbs, p, line + body, &number, sizeof number);
    }
    if (rc == 0)
        p->sent = number;
    return rc;
}

static const struct dtn_signal *verbs_peek(struct dtn_transport *tp, int peer)
{
    struct verbs_peer *p = verbs_peer(tp, peer);
    struct dtn_signal *line = &p->lane->line[p->consumed % DTN_QUEUE_DEPTH];

    if (atomic_load_explicit(&line->seq, memory_order_acquire)
        != p->consumed + 1)
        return NULL;
    return line;
}

/* Tell the peer how many of its signals were read, once that many are new. */
static void verbs_acknowledge(struct verbs *verbs, struct verbs_peer *p,
                              uint64_t least)
{
    if (p->consumed - p->acked_sent >= least
        && lane_write(verbs, p, offsetof(struct verbs_lane, acked),
                      &p->consumed, sizeof p->consumed) == 0)
        p->acked_sent = p->consumed;
}

static void verbs_consume(struct dtn_transport *tp, int peer)
{
    struct verbs_peer *p = verbs_peer(tp, peer);

    p->consumed++;
    verbs_acknowledge(verbs_of(tp), p, ACK_EVERY);
}

/* While waiting, every now and then, acknowledge even the last single signal:
 * the peer may be waiting for just that place.
 */
static int verbs_progress(struct dtn_transport *tp)
{
    struct verbs *verbs = verbs_of(tp);
    int rc = verbs_poll(verbs);

    if (rc == 0)
        rc = verbs_meet_progress(verbs);
    if (++verbs->turns % TURNS_PER_ACK != 0)
        return rc;
    for (int r = 0; rc == 0 && r < verbs->args.nranks; r++)
        if (verbs->peers[r].joined)
            verbs_acknowledge(verbs, &verbs->peers[r], 1);
    return rc;
}

/* ------------------------------------------------------- death and abort --- */

static int verbs_health(struct dtn_transport *tp, int peer, int *culprit,
                        int *code)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);
    uint64_t word, beat = 1;
    int64_t now = dtn_now_ns();

    verbs_poll(verbs);
    word = atomic_load_explicit(&p->lane->aborted, memory_order_acquire);
    if (word & VERBS_ABORT_SET) {
        *culprit = (int)(uint32_t)word;
        *code = -(int)(word >> 32 & 0xff);
        return DTENSOR_EABORT;
    }
    if (p->error)
        return DTENSOR_EPEER;
    if (p->joined && now >= p->next_beat_ns) {
        lane_write(verbs, p, offsetof(struct verbs_lane, beat), &beat,
                   sizeof beat);
        p->next_beat_ns = now + BEAT_NS;
    }
    return 0;
}

static void verbs_abort(struct dtn_transport *tp, int culprit, int code)
{
    struct verbs *verbs = verbs_of(tp);
    uint64_t word = VERBS_ABORT_SET | (uint64_t)(-code & 0xff) << 32
                  | (uint32_t)culprit;

    for (int r = 0; r < verbs->args.nranks; r++)
        if (verbs->peers[r].joined)
            lane_write(verbs, &verbs->peers[r],
                       offsetof(struct verbs_lane, aborted), &word,
                       sizeof word);
}

static void verbs_why(const struct dtn_transport *tp, int peer, char *buf,
                      size_t size)
{
    const struct verbs *verbs = verbs_of(tp);

    *buf = '\0';
    if (verbs->peers[peer].error)
        verbs_words(verbs, peer, buf, size);
}

const struct dtn_transport_ops dtn_verbs_ops = {
    .name = "rc",
    .reaches = verbs_reaches,
    .open = verbs_open,
    .close = verbs_close,
    .address = verbs_address,
    .connect = verbs_connect,
    .reg = verbs_reg,
    .unreg = verbs_unreg,
    .map = verbs_map,
    .put = verbs_put,
    .flush = verbs_flush,
    .signal = verbs_signal,
    .peek = verbs_peek,
    .consume = verbs_consume,
    .progress = verbs_progress,
    .health = verbs_health,
    .abort = verbs_abort,
    .why = verbs_why,
};
