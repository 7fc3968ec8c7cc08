/* verbs_lane.c - the memory in which two ranks signal to each other
 *
 * Each rank keeps a lane for every peer it has met: 16 places the peer writes
 * its signals into, and as many that our own leave from.  A signal is one
 * write, and up to 2 KiB of the put before it goes in that write, in front of
 * the line, with the address at which it belongs: a message of 512 bytes costs
 * one write of 664 bytes, not one of 512 and one of 128.
 *
 *     ... 512 bytes | address, key, size, hash | line: 64 bytes, their number
 *
 * Where the device promises order, the number at the very end tells that all
 * is there.  Elsewhere the line is cut into pieces of four bytes, each beside
 * the number, and what goes along is there when its hash is right: it begins
 * with the number, so what lay there before does not match, and of a part of
 * the bytes it would match once in 2^64.
 */
#include "transport/verbs.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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

static void words_fill(_Atomic uint64_t word[16],
                       const struct verbs_content *said, uint64_t seq)
{
    uint32_t part[16];

    memcpy(part, said, sizeof part);
    for (int i = 0; i < 16; i++)
        atomic_store_explicit(&word[i], seq << 32 | part[i],
                              memory_order_relaxed);
}

static bool words_take(const _Atomic uint64_t word[16],
                       struct verbs_content *said, uint64_t seq)
{
    uint32_t part[16];

    for (int i = 15; i >= 0; i--) {
        uint64_t got = atomic_load_explicit(&word[i], memory_order_acquire);

        if (got >> 32 != (uint32_t)seq)
            return false;
        part[i] = (uint32_t)got;
    }
    memcpy(said, part, sizeof part);
    return true;
}

/* ------------------------------------------------------------------ lines --- */

/* Of the bytes that stand in front of `along` and where they belong. */
static uint64_t along_hash(const struct verbs_along *along, uint64_t seq)
{
    const unsigned char *at = (const unsigned char *)along - along->size;

    return XXH64(at, along->size
                                + offsetof(struct verbs_along, hash), seq);
}

/* Write the put in front of the line; how many bytes that makes. */
static size_t along_fill(struct verbs_along *along, uint64_t seq, bool plain,
                         const struct verbs_held *put)
{
    along->addr = put->dst.addr;
    along->key = (uint32_t)put->dst.key;
    along->size = (uint32_t)put->size;
    memcpy((unsigned char *)along - put->size, put->src, put->size);
    along->hash = plain ? 0 : along_hash(along, seq);
    return put->size + sizeof *along;
}

int verbs_line_send(struct verbs *verbs, struct verbs_peer *peer, uint64_t seq,
                    struct verbs_content *say, const struct verbs_held *put)
{
    size_t at = (seq - 1) % DTN_QUEUE_DEPTH;
    struct verbs_place *place = &peer->lane->out[at];
    size_t before = put ? along_fill(&place->along, seq, peer->plain, put) : 0;
    size_t size = peer->plain ? sizeof place->line.plain
                : sizeof place->line.word;

    say->along = put ? (uint16_t)put->size : 0;
    if (peer->plain) {
        place->line.plain.content = *say;
        atomic_store_explicit(&place->line.plain.seq, seq,
                              memory_order_relaxed);
    } else {
        words_fill(place->line.word, say, seq);
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

    if (!peer->plain)
        return words_take(line->word, said, seq);
    if (atomic_load_explicit(&line->plain.seq, memory_order_acquire) != seq)
        return false;
    *said = line->plain.content;
    return true;
}

int verbs_along_take(struct verbs *verbs, const struct verbs_peer *peer,
                     uint64_t seq, const struct verbs_content *said)
{
    const struct verbs_along *along = &peer->lane->place[(seq - 1)
                                                     % DTN_QUEUE_DEPTH].along;
    void *dst = (void *)(uintptr_t)along->addr;

    if (said->along > VERBS_ALONG)
        return DTENSOR_EINVAL;
    if (!peer->plain && (along->size != said->along
                         || along_hash(along, seq) != along->hash))
        return DTENSOR_EAGAIN;
    if (along->size != said->along
        || !verbs_memory_open(&verbs->memory, dst, along->size, along->key))
        return DTENSOR_EINVAL;
    memcpy(dst, (const unsigned char *)along - along->size, along->size);
    return 0;
}
