/* verbs.c - ranks of different hosts, by RDMA writes
 *
 * Everything is a one-sided write over a reliable connection: bytes into
 * registered arena memory, signals into the lane of 16 lines the receiver keeps
 * for this sender.
 *
 * Writes to a stopped or dead process succeed or vanish; that a peer is gone
 * shows when one is not answered.  So while a rank waits it writes a beat, ten
 * times a second, and a peer that is gone is known two seconds later.
 */
#include "transport/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERBS_MAGIC UINT64_C(0x6474656e76723031)     /* "dtenvr01" */

enum {
    ACK_NS = 1000000,             /* while waiting: acknowledge all so often   */
    TURNS_PER_LOOK = 64,
    BEAT_NS = 100000000,
    CLOSE_NS = 1000000000         /* for the last signals to leave             */
};

/* -------------------------------------------------------- open and close --- */

static bool verbs_reaches(const struct dtn_place *a, const struct dtn_place *b)
{
    return true;
}

static int verbs_open_memory(struct verbs *verbs, struct dtensor_error *err)
{
    struct dtn_arena *arena = verbs->args.arena;

    verbs->memory.arena = arena;
    verbs->memory.pd = ibv_alloc_pd(verbs->device.context);
    if (!verbs->memory.pd)
        return dtn_fail_sys(err, errno, "verbs: no protection domain on %s: "
                            "%m", verbs->device.name);
    verbs->stage = dtn_arena_alloc(arena, VERBS_STAGE_BYTES);
    if (!verbs->stage)
        return dtn_fail_nomem(err, "verbs", VERBS_STAGE_BYTES);
    verbs->stage_mr = ibv_reg_mr(verbs->memory.pd, verbs->stage,
                                 VERBS_STAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (!verbs->stage_mr)
        return verbs_fail_register(&verbs->device, VERBS_STAGE_BYTES, errno,
                                   err);
    arena->pinned = true;
    return 0;
}

/* Room for every completion that can be on its way: none is ever lost.  Where
 * the device has less, posting waits; then each request must tell of itself,
 * lest the silent ones of many queues fill the room.
 */
static int verbs_open_cq(struct verbs *verbs, struct dtensor_error *err)
{
    int64_t queues = (int64_t)verbs->args.nranks
                   * verbs_queues_wanted(verbs->args.conf);
    int64_t want = queues * VERBS_DEPTH;
    int cqe = want < verbs->device.max_cqe ? (int)want : verbs->device.max_cqe;

    verbs->cqe = cqe;
    verbs->signalled_every = queues * 2 * VERBS_SIGNALLED_EVERY > cqe ? 1
                           : VERBS_SIGNALLED_EVERY;
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
    verbs->base.along_bytes = VERBS_ALONG;
    verbs->args = *args;
    rc = verbs_device_open(args, &verbs->device, err);
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
    *tpp = &verbs->base;
    return 0;
}

static bool queue_done(const struct verbs_queue *queue)
{
    return queue->completed == queue->posted;
}

/* Let what was posted leave, unless the peer is gone: an empty write that asks
 * for a completion goes last.
 */
static void verbs_drain(struct verbs *verbs)
{
    int64_t end = dtn_now_ns() + CLOSE_NS;

    verbs_release(verbs);
    for (int r = 0; r < verbs->args.nranks; r++) {
        struct verbs_peer *peer = &verbs->peers[r];

        for (int q = 0; q < peer->nqueues && peer->joined; q++) {
            struct verbs_queue *queue = &peer->queue[q];

            if (!peer->error && !queue_done(queue)
                && verbs_room(verbs, queue) > 0)
                verbs_post(verbs, peer, q, peer->greeting.lane,
                           peer->greeting.lane_key, verbs->stage, 0,
                           verbs->stage_mr);
            verbs_ring(verbs);
            while (!queue_done(queue) && !peer->error && dtn_now_ns() < end)
                if (verbs_poll(verbs) != 0)
                    return;
        }
    }
}

static void verbs_close(struct dtn_transport *tp)
{
    struct verbs *verbs = verbs_of(tp);

    if (verbs->cq)
        verbs_drain(verbs);
    for (int r = 0; r < verbs->args.nranks; r++)
        for (int q = 0; q < verbs->peers[r].nqueues; q++)
            ibv_destroy_qp(verbs->peers[r].queue[q].qp);
    verbs_meet_close(verbs);
    if (verbs->cq)
        ibv_destroy_cq(verbs->cq);
    for (int r = 0; r < verbs->args.nranks; r++)
        verbs_lane_close(verbs, &verbs->peers[r]);
    if (verbs->stage_mr)
        ibv_dereg_mr(verbs->stage_mr);
    verbs_memory_fini(&verbs->memory);
    if (verbs->memory.pd)
        ibv_dealloc_pd(verbs->memory.pd);
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
    struct dtensor_error why;
    int rc;

    region = verbs_memory_get(&verbs->memory, mem, size);
    if (!region && errno == EFAULT
        && !dtn_arena_contains(verbs->args.arena, mem, size))
        return DTENSOR_EINVAL;
    if (!region) {
        rc = verbs_fail_register(&verbs->device, size, errno, &why);
        dtn_log(verbs->args.log, DTN_LOG_WARN, "%s", why.text);
        return rc;
    }
    remote->addr = (uintptr_t)mem;
    remote->key = region->mr->rkey;
    return 0;
}

static void verbs_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
}

static int verbs_adopt(struct dtn_transport *tp, void *mem, size_t size,
                       struct dtensor_error *err)
{
    struct verbs *verbs = verbs_of(tp);
    int rc = verbs_limits_more(verbs, size, err);

    if (rc == 0 && !verbs_memory_adopt(&verbs->memory, mem, size))
        rc = verbs_fail_register(&verbs->device, size, errno, err);
    return rc;
}

static void verbs_disown(struct dtn_transport *tp, void *mem, size_t size)
{
    verbs_memory_disown(&verbs_of(tp)->memory, mem, size);
}

static void *verbs_map(struct dtn_transport *tp, int peer,
                       struct dtn_remote remote)
{
    return NULL;
}

/* Is the stage free?  Its last user's put must be done. */
static bool verbs_stage_free(struct verbs *verbs)
{
    struct verbs_peer *user = verbs->stage_user;

    if (!user || user->error
        || user->queue[0].completed >= user->queue[0].last_put)
        return true;
    verbs_poll(verbs);
    return user->error || user->queue[0].completed >= user->queue[0].last_put;
}

/* Write by one queue, cut into requests as long as the connection takes; *size
 * becomes what was posted.  The newest put is what flush() waits for.
 */
static int put_one(struct verbs *verbs, struct verbs_peer *peer, int q,
                   struct dtn_remote dst, const unsigned char *src,
                   size_t *size, const struct ibv_mr *mr)
{
    struct verbs_queue *queue = &peer->queue[q];
    size_t at = 0, part;
    int rc;

    do {
        part = *size - at < peer->request_max ? *size - at : peer->request_max;
        rc = verbs_room(verbs, queue) < 2 ? DTENSOR_EAGAIN
           : verbs_post_put(verbs, peer, q, dst, src + at, part, mr);
        at += rc == 0 ? part : 0;
        dst.addr += part;
    } while (rc == 0 && at < *size);
    if (rc != 0 && (rc != DTENSOR_EAGAIN || at == 0))
        return rc;
    *size = at;
    return at >= VERBS_CHAIN_BYTES ? verbs_ring(verbs) : 0;
}

/* A source outside the arena leaves through the stage. */
static int put_staged(struct verbs *verbs, struct verbs_peer *peer,
                      struct dtn_remote dst, const void *src, size_t size,
                      size_t *done)
{
    int rc;

    if (!verbs_stage_free(verbs))
        return DTENSOR_EAGAIN;
    size = size < VERBS_STAGE_BYTES ? size : VERBS_STAGE_BYTES;
    memcpy(verbs->stage, src, size);
    rc = put_one(verbs, peer, 0, dst, verbs->stage, &size, verbs->stage_mr);
    if (rc != 0)
        return rc;
    verbs->base.copied_bytes += size;
    verbs->stage_user = peer;
    *done = size;
    return 0;
}

/* Cut over all queues, in whole pages. */
static int put_striped(struct verbs *verbs, struct verbs_peer *peer,
                       struct dtn_remote dst, const unsigned char *src,
                       size_t size, const struct ibv_mr *mr, size_t *done)
{
    size_t share = (size / (size_t)peer->nqueues + 4095) / 4096 * 4096;
    int rc = 0;

    for (int q = 0; q < peer->nqueues && *done < size && rc == 0; q++) {
        size_t want = size - *done < share ? size - *done : share, part = want;

        rc = put_one(verbs, peer, q, dst, src + *done, &part, mr);
        if (rc != 0)
            break;
        peer->striped |= q > 0;
        dst.addr += part;
        *done += part;
        if (part < want)
            break;
    }
    return *done > 0 ? 0 : rc;
}

/* A small one waits for the signal it may go along with. */
static int put_held(struct verbs *verbs, struct verbs_peer *peer,
                    struct dtn_remote dst, const void *src, size_t size,
                    const struct ibv_mr *mr)
{
    if (verbs_room(verbs, &peer->queue[0]) < 3)
        return DTENSOR_EAGAIN;
    verbs->held = (struct verbs_held){ peer, dst, src, size, mr };
    return 0;
}

static int verbs_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                     const void *src, size_t size, size_t *done)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);
    const struct verbs_region *region = NULL;
    const struct ibv_mr *mr = NULL;
    int rc;

    *done = 0;
    if (p->error)
        return DTENSOR_EPEER;
    rc = verbs_unhold(verbs);
    if (rc != 0)
        return rc;
    if (size > (size_t)verbs->device.max_inline) {
        region = verbs_memory_get(&verbs->memory, src, size);
        if (!region)
            return put_staged(verbs, p, dst, src, size, done);
        mr = region->mr;
    }
    if (p->nqueues > 1 && size >= VERBS_STRIPE_BYTES)
        return put_striped(verbs, p, dst, src, size, mr, done);
    size = size < VERBS_MESSAGE_MAX ? size : VERBS_MESSAGE_MAX;
    rc = size <= VERBS_ALONG && p->request_max >= sizeof(struct verbs_place)
       ? put_held(verbs, p, dst, src, size, mr)
       : put_one(verbs, p, 0, dst, src, &size, mr);
    if (rc == 0)
        *done = size;
    return rc;
}

static int verbs_flush(struct dtn_transport *tp, int peer)
{
    struct verbs_peer *p = verbs_peer(tp, peer);
    int rc = verbs_release(verbs_of(tp));

    if (rc != 0)
        return rc;
    for (int q = 0; q < p->nqueues; q++) {
        if (p->queue[q].completed >= p->queue[q].last_put)
            continue;
        verbs_poll(verbs_of(tp));
        if (p->error)
            return DTENSOR_EPEER;
        if (p->queue[q].completed < p->queue[q].last_put)
            return DTENSOR_EAGAIN;
    }
    return p->error ? DTENSOR_EPEER : 0;
}

/* Post what was held back.  While waiting, every now and then, acknowledge even
 * the last single signal: the peer may be waiting for just that place.
 */
static int verbs_progress(struct dtn_transport *tp)
{
    struct verbs *verbs = verbs_of(tp);
    int64_t now;
    int rc = verbs_release(verbs);

    if (rc != 0 || ++verbs->turns % TURNS_PER_LOOK != 0)
        return rc;
    rc = verbs_poll(verbs);
    if (rc == 0)
        rc = verbs_meet_progress(verbs);
    now = dtn_now_ns();
    if (rc != 0 || now < verbs->next_ack_ns)
        return rc;
    verbs->next_ack_ns = now + ACK_NS;
    for (int r = 0; r < verbs->args.nranks; r++)
        if (verbs->peers[r].joined)
            verbs_acknowledge(verbs, &verbs->peers[r], 1);
    return 0;
}

/* ------------------------------------------------------- death and abort --- */

static int verbs_health(struct dtn_transport *tp, int peer, int *culprit,
                        int *code)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);
    uint64_t word;
    int64_t now = dtn_now_ns();

    verbs_poll(verbs);
    if (verbs_events_poll(verbs) != 0)
        return DTENSOR_ENODEV;
    word = p->lane ? atomic_load_explicit(&p->lane->aborted,
                                          memory_order_acquire) : 0;
    if (word & VERBS_ABORT_SET) {
        *culprit = (int)(uint32_t)word;
        *code = -(int)(word >> 32 & 0xff);
        return DTENSOR_EABORT;
    }
    if (p->error)
        return DTENSOR_EPEER;
    if (p->joined && now >= p->next_beat_ns) {
        verbs_lane_write(verbs, p, 0, offsetof(struct verbs_lane, beat),
                   &p->lane->out_beat, sizeof p->lane->out_beat);
        p->next_beat_ns = now + BEAT_NS;
    }
    return 0;
}

static void verbs_abort(struct dtn_transport *tp, int culprit, int code)
{
    struct verbs *verbs = verbs_of(tp);
    uint64_t word = VERBS_ABORT_SET | (uint64_t)(-code & 0xff) << 32
                  | (uint32_t)culprit;

    for (int r = 0; r < verbs->args.nranks; r++) {
        struct verbs_peer *p = &verbs->peers[r];

        if (!p->joined)
            continue;
        p->lane->out_aborted = word;
        verbs_lane_write(verbs, p, 0, offsetof(struct verbs_lane, aborted),
                   &p->lane->out_aborted, sizeof word);
    }
}

static void verbs_why(const struct dtn_transport *tp, int peer, char *buf,
                      size_t size)
{
    const struct verbs *verbs = verbs_of(tp);

    *buf = '\0';
    if (verbs->peers[peer].error)
        verbs_words(verbs, peer, buf, size);
    else
        verbs_events_words(&verbs->device, buf, size);
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
    .adopt = verbs_adopt,
    .disown = verbs_disown,
    .map = verbs_map,
    .put = verbs_put,
    .flush = verbs_flush,
    .signal = verbs_signal,
    .room = verbs_has_room,
    .peek = verbs_peek,
    .consume = verbs_consume,
    .progress = verbs_progress,
    .health = verbs_health,
    .abort = verbs_abort,
    .why = verbs_why,
};
