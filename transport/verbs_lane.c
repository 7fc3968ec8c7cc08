/* verbs_lane.c - the memory in which two ranks signal to each other
 *
 * Each rank keeps a lane for every peer it has met: 16 places the peer writes
 * its signals into, and as many that our own leave from.  A signal is one
 * write, and up to 1 KiB of the put before it goes in that write, in front of
 * the line, with the address at which it belongs: a message of 512 bytes costs
 * one write of 1184 bytes, not one of 512 and one of 128.
 *
 *     ... 512 bytes | address, key, size | line: 64 bytes and their number
 *
 * Where the device does not promise order, all of it is cut into pieces of
 * four bytes, each beside the number, and the reader waits for the number in
 * every word; where it does, the number stands at the very end.
 */
#include "transport/verbs.h"

#include <errno.h>
#include <string.h>

int verbs_lane_open(struct verbs *verbs, int peer, struct dtensor_error *err)
{
    struct verbs_peer *p = &verbs->peers[peer];

    p->lane = dtn_arena_alloc(verbs->args.arena, sizeof *p->lane);
    if (!p->lane)
        return dtn_fail_nomem(err, "verbs", sizeof *p->lane);
    memset(p->lane, 0, sizeof *p->lane);
    p->lane_mr = ibv_reg_mr(verbs->memory.pd, p->lane, sizeof *p->lane,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return p->lane_mr ? 0 : verbs_fail_register(&verbs->device,
                                                sizeof *p->lane, errno, err);
}

void verbs_lane_close(struct verbs *verbs, struct verbs_peer *peer)
{
    if (peer->lane_mr)
        ibv_dereg_mr(peer->lane_mr);
    dtn_arena_free(verbs->args.arena, peer->lane);
}

/* The chain gets one more write, of our lane to the peer's for us. */
static int lane_post(struct verbs *verbs, struct verbs_peer *peer, int q,
                     size_t offset, const void *from, size_t size)
{
    const struct ibv_mr *mr = size <= (size_t)verbs->device.max_inline ? NULL
                            : peer->lane_mr;

    return verbs_post(verbs, peer, q, peer->greeting.lane + offset,
                      peer->greeting.lane_key, from, size, mr);
}

int verbs_lane_write(struct verbs *verbs, struct verbs_peer *peer, int q,
                     size_t offset, const void *from, size_t size)
{
    int rc = verbs_release(verbs);

    if (peer->error)
        return DTENSOR_EPEER;
    if (rc == 0 && verbs_room(verbs, &peer->queue[q]) < 1)
        return DTENSOR_EAGAIN;
    if (rc == 0)
        rc = lane_post(verbs, peer, q, offset, from, size);
    return rc == 0 ? verbs_ring(verbs) : rc;
}

/* --------------------------------------------------------------- numbered --- */

static void words_fill(_Atomic uint64_t *word, const void *from, size_t size,
                       uint64_t seq)
{
    const unsigned char *at = from;
    uint32_t part = 0;

    for (; size > 0; word++) {
        size_t n = size < sizeof part ? size : sizeof part;

        memcpy(&part, at, n);
        atomic_store_explicit(word, seq << 32 | part, memory_order_relaxed);
        at += n;
        size -= n;
    }
}

/* The last word comes last where anything is in order: look there first. */
static bool words_there(const _Atomic uint64_t *word, size_t size, uint64_t seq)
{
    for (size_t i = (size + 3) / 4; i-- > 0; )
        if (atomic_load_explicit(&word[i], memory_order_acquire) >> 32
            != (uint32_t)seq)
            return false;
    return true;
}

static void words_take(const _Atomic uint64_t *word, void *to, size_t size)
{
    unsigned char *at = to;
    uint32_t part;

    for (; size > 0; word++) {
        size_t n = size < sizeof part ? size : sizeof part;

        part = (uint32_t)atomic_load_explicit(word, memory_order_relaxed);
        memcpy(at, &part, n);
        at += n;
        size -= n;
    }
}

/* ------------------------------------------------------------------ lines --- */

/* Bytes from where a put of `size` begins to the line it goes along with. */
static size_t along_bytes(bool plain, size_t size)
{
    return plain ? size + sizeof(struct verbs_along)
         : 2 * ((size + 3) / 4 * 4 + sizeof(struct verbs_along));
}

/* Write the put in front of the line; how many bytes that makes. */
static size_t along_fill(struct verbs_place *place, uint64_t seq, bool plain,
                         const struct verbs_held *put)
{
    struct verbs_along where = { put->dst.addr, (uint32_t)put->dst.key,
                                 (uint32_t)put->size };
    size_t bytes = along_bytes(plain, put->size);
    unsigned char *at = (unsigned char *)&place->line - bytes;
    unsigned char *there = (unsigned char *)&place->line
                         - along_bytes(plain, 0);

    if (plain) {
        memcpy(at, put->src, put->size);
        memcpy(there, &where, sizeof where);
    } else {
        words_fill((_Atomic uint64_t *)(void *)at, put->src, put->size, seq);
        words_fill((_Atomic uint64_t *)(void *)there, &where, sizeof where,
                   seq);
    }
    return bytes;
}

int verbs_line_send(struct verbs *verbs, struct verbs_peer *peer, uint64_t seq,
                    struct verbs_content *say, const struct verbs_held *put)
{
    size_t at = (seq - 1) % DTN_QUEUE_DEPTH, before = 0;
    struct verbs_place *place = &peer->lane->out[at];
    size_t size = peer->plain ? sizeof place->line.plain
                : sizeof place->line.word;

    say->along = put ? (uint16_t)put->size : 0;
    if (put)
        before = along_fill(place, seq, peer->plain, put);
    if (peer->plain) {
        place->line.plain.content = *say;
        atomic_store_explicit(&place->line.plain.seq, seq,
                              memory_order_relaxed);
    } else {
        words_fill(place->line.word, say, sizeof *say, seq);
    }
    return lane_post(verbs, peer, 0, offsetof(struct verbs_lane, place)
                     + at * sizeof *place + offsetof(struct verbs_place, line)
                     - before, (unsigned char *)&place->line - before,
                     size + before);
}

bool verbs_line_take(const struct verbs_peer *peer, uint64_t seq,
                     struct verbs_content *said)
{
    const union verbs_line *line = &peer->lane->place[(seq - 1)
                                                      % DTN_QUEUE_DEPTH].line;

    if (peer->plain) {
        if (atomic_load_explicit(&line->plain.seq, memory_order_acquire) != seq)
            return false;
        *said = line->plain.content;
        return true;
    }
    if (!words_there(line->word, sizeof *said, seq))
        return false;
    words_take(line->word, said, sizeof *said);
    return true;
}

int verbs_along_take(struct verbs *verbs, const struct verbs_peer *peer,
                     uint64_t seq, const struct verbs_content *said)
{
    struct verbs_place *place = &peer->lane->place[(seq - 1)
                                                   % DTN_QUEUE_DEPTH];
    size_t bytes = along_bytes(peer->plain, said->along);
    unsigned char *at = (unsigned char *)&place->line - bytes;
    unsigned char *there = (unsigned char *)&place->line
                         - along_bytes(peer->plain, 0);
    struct verbs_along where;
    void *dst;

    if (said->along > VERBS_ALONG)
        return DTENSOR_EINVAL;
    if (peer->plain)
        memcpy(&where, there, sizeof where);
    else if (!words_there((_Atomic uint64_t *)(void *)at, bytes / 2, seq))
        return DTENSOR_EAGAIN;
    else
        words_take((_Atomic uint64_t *)(void *)there, &where, sizeof where);
    dst = (void *)(uintptr_t)where.addr;
    if (where.size != said->along
        || !verbs_memory_open(&verbs->memory, dst, where.size, where.key))
        return DTENSOR_EINVAL;
    if (peer->plain)
        memcpy(dst, at, where.size);
    else
        words_take((_Atomic uint64_t *)(void *)at, dst, where.size);
    return 0;
}
