/* put.c - puts: over which rails, from where, until when
 *
 * There are three ways for three sizes.  A put of up to 4 KiB is held back for
 * the signal that mostly follows and copied into the write of that signal; the
 * card need not know its source.  A put of up to 64 KiB is one write on the
 * first queue.  A larger one is divided among all queues of all rails in
 * proportion to the rates of the rails, in whole pages: of 1 MiB over 200 and
 * 100 Gb/s the first rail carries 171 of 256 pages.
 *
 * Rows of a box that are shorter than 16 KiB go on the first queue, up to 14 of
 * them gathered in one write if they are adjacent at the peer.
 *
 * A source outside the arena that was not registered is copied through a bounce
 * buffer.  A source or target on a device is not: no CPU may access it.
 */
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/put.h"
#include "transport/verbs/queue.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    CHAIN_BYTES = 1 << 14,        /* a put from here on is posted at once     */
    STRIPE_BYTES = 1 << 16        /* a put from here on uses all rails        */
};

/* Is the bounce buffer free?  The last put from it must be complete. */
static bool verbs_stage_free(struct dtn_verbs *verbs)
{
    struct dtn_verbs_peer *user = verbs->stage_user;

    if (!user || user->error
        || user->queue[0].completed >= user->queue[0].last_put)
        return true;
    dtn_verbs_poll(verbs);
    return user->error || user->queue[0].completed >= user->queue[0].last_put;
}

/* Write by one queue, in requests of at most request_max bytes.  *size becomes
 * the number of bytes that were posted.
 */
static int put_one(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer, int q,
                   struct dtn_remote dst, const unsigned char *src,
                   size_t *size, const struct ibv_mr *mr)
{
    struct dtn_verbs_queue *queue = &peer->queue[q];
    struct dtn_verbs_write write = { .to = dst.addr, .from = src,
                                     .key = (uint32_t)dst.key, .mr = mr };
    size_t at = 0;
    int rc;

    do {
        write.size = *size - at < queue->request_max ? *size - at
                   : queue->request_max;
        rc = dtn_verbs_room(verbs, queue) < 2 ? DTENSOR_EAGAIN
           : dtn_verbs_post_put(verbs, peer, q, &write);
        at += rc == 0 ? write.size : 0;
        write.to += write.size;
        write.from = src + at;
    } while (rc == 0 && at < *size);
    if (rc != 0 && (rc != DTENSOR_EAGAIN || at == 0))
        return rc;
    *size = at;
    return at >= CHAIN_BYTES ? dtn_verbs_ring(verbs) : 0;
}

/* Put from a source that no card knows, through the bounce buffer. */
static int put_staged(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                      struct dtn_remote dst, const void *src, size_t size,
                      size_t *done)
{
    int rc;

    if (!verbs_stage_free(verbs))
        return DTENSOR_EAGAIN;
    size = size < DTN_VERBS_STAGE_BYTES ? size : DTN_VERBS_STAGE_BYTES;
    memcpy(verbs->stage, src, size);
    rc = put_one(verbs, peer, 0, dst, verbs->stage, &size, verbs->stage_mr);
    if (rc != 0)
        return rc;
    verbs->base.copied_bytes += size;
    verbs->stage_user = peer;
    *done = size;
    return 0;
}

/* The share of queue q of `size` bytes over so many rails, in whole pages. */
static size_t put_share(const struct dtn_verbs_peer *peer, int rails, int q,
                        size_t size)
{
    double all = 0;

    for (int i = 0; i < peer->nqueues; i++)
        if (peer->queue[i].rail->number < rails)
            all += peer->queue[i].share;
    return ((size_t)((double)size * peer->queue[q].share / all) + 4095)
           / 4096 * 4096;
}

/* Divide a put among all queues of the rails on which the peer's key is known.
 * The next queue gets what a full one does not take.
 */
static int put_striped(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                       struct dtn_remote dst, const unsigned char *src,
                       size_t size, const struct dtn_verbs_region *region,
                       size_t *done)
{
    uint32_t key[DTN_MAX_RAILS];
    int rails = dtn_verbs_keys_find(verbs, peer, dst.key, key), rc = 0;

    for (int q = 0; q < peer->nqueues && *done < size; q++) {
        int k = peer->queue[q].rail->number;
        size_t part = put_share(peer, rails, q, size), rest = size - *done;

        if (k >= rails)
            continue;
        part = part < rest ? part : rest;
        dst.key = key[k];
        rc = put_one(verbs, peer, q, dst, src + *done, &part, region->mr[k]);
        if (rc != 0 && rc != DTENSOR_EAGAIN)
            return rc;
        part = rc == 0 ? part : 0;
        peer->striped |= q > 0 && part > 0;
        dst.addr += part;
        *done += part;
    }
    return *done > 0 ? 0 : rc;
}

/* May the put wait for a signal that carries it?  It must also be able to go by
 * itself: inline or from the arena.
 */
static bool put_may_wait(const struct dtn_verbs *verbs,
                         const struct dtn_verbs_queue *first, const void *src,
                         size_t size)
{
    return dtn_verbs_line_carries(first, size) &&
           (size <= (size_t)first->rail->device.max_inline ||
            dtn_arena_contains(verbs->args.arena, src, size));
}

static int put_held(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                    struct dtn_remote dst, const void *src, size_t size)
{
    if (dtn_verbs_room(verbs, &peer->queue[0]) < 3)
        return DTENSOR_EAGAIN;
    verbs->held = (struct dtn_verbs_held){ peer, { dst, src, size } };
    return 0;
}

int dtn_verbs_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                  const void *src, size_t size, size_t *done)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);
    const struct dtn_verbs_queue *first = &p->queue[0];
    const struct dtn_verbs_region *region = NULL;
    const struct ibv_mr *mr = NULL;
    bool from_device;
    int rc;

    *done = 0;
    if (p->error)
        return DTENSOR_EPEER;
    rc = dtn_verbs_unhold(verbs);
    if (rc != 0)
        return rc;
    from_device = dtn_verbs_memory_on_device(&verbs->memory, src, size);
    if (dst.key & DTN_KEY_DEVICE) {       /* the peer's CPU cannot place it */
        dst.key &= ~DTN_KEY_DEVICE;
        p->to_device = true;
    } else if (!from_device && put_may_wait(verbs, first, src, size)) {
        rc = put_held(verbs, p, dst, src, size);
        *done = rc == 0 ? size : 0;
        return rc;
    }
    if (from_device || size > (size_t)first->rail->device.max_inline) {
        region = dtn_verbs_memory_get(&verbs->memory, src, size);
        if (!region)
            return from_device ? DTENSOR_EINVAL
                 : put_staged(verbs, p, dst, src, size, done);
        mr = region->mr[0];
    }
    if (region && p->nqueues > 1 && size >= STRIPE_BYTES)
        return put_striped(verbs, p, dst, src, size, region, done);
    size = size < DTN_VERBS_MESSAGE_MAX ? size : DTN_VERBS_MESSAGE_MAX;
    rc = put_one(verbs, p, 0, dst, src, &size, mr);
    if (rc == 0)
        *done = size;
    return rc;
}

/* The memory region of all rows; NULL: they go by put(), one after the other,
 * as rows do that several queues or requests share.
 */
static const struct dtn_verbs_region *
rows_region(struct dtn_verbs *verbs, const struct dtn_verbs_queue *queue,
            const struct dtn_strided *rows)
{
    if (rows->bytes > queue->request_max || rows->bytes >= CHAIN_BYTES
        || rows->bytes == 0 || rows->src_step < (ptrdiff_t)rows->bytes)
        return NULL;
    return dtn_verbs_memory_get(&verbs->memory, rows->src,
                                (rows->n - 1) * (size_t)rows->src_step
                                    + rows->bytes);
}

int dtn_verbs_put_rows(struct dtn_transport *tp, int peer,
                       struct dtn_remote dst, const struct dtn_strided *rows,
                       size_t *done)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);
    struct dtn_verbs_queue *queue = &p->queue[0];
    const struct dtn_verbs_region *region;
    const size_t step = (size_t)rows->src_step;
    const bool adjacent = rows->dst_step == (ptrdiff_t)rows->bytes;
    struct dtn_verbs_write write = { .to = dst.addr, .from = rows->src,
        .key = (uint32_t)(dst.key & ~DTN_KEY_DEVICE), .size = rows->bytes };
    int rc;

    *done = 0;
    if (p->error)
        return DTENSOR_EPEER;
    region = rows_region(verbs, queue, rows);
    if (!region)
        return DTENSOR_EINVAL;
    write.mr = region->mr[0];
    p->to_device |= (dst.key & DTN_KEY_DEVICE) != 0;
    rc = dtn_verbs_unhold(verbs);
    while (rc == 0 && *done < rows->n) {
        const unsigned char *row = rows->src + *done * step;

        if (dtn_verbs_room(verbs, queue) < 2)
            return *done > 0 ? 0 : DTENSOR_EAGAIN;
        write.from = row;
        rc = dtn_verbs_post_put(verbs, p, 0, &write);
        *done += 1;
        if (rc == 0 && adjacent)
            *done += dtn_verbs_post_rows(verbs, row + step, rows->bytes, step,
                                         rows->n - *done);
        write.to = dst.addr + *done * (size_t)rows->dst_step;
    }
    return rc;
}

int dtn_verbs_flush(struct dtn_transport *tp, int peer)
{
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);
    int rc = dtn_verbs_release(dtn_verbs_of(tp));

    if (rc != 0)
        return rc;
    for (int q = 0; q < p->nqueues; q++) {
        if (p->queue[q].completed >= p->queue[q].last_put)
            continue;
        dtn_verbs_poll(dtn_verbs_of(tp));
        if (p->error)
            return DTENSOR_EPEER;
        if (p->queue[q].completed < p->queue[q].last_put)
            return DTENSOR_EAGAIN;
    }
    return p->error ? DTENSOR_EPEER : 0;
}

