/* ring.c - collectives in which each rank puts only to the next rank
 *
 * All ranks work all the time, and every link carries each byte once, for any
 * n: the best algorithm for large messages over a network.  Reduce-scatter of
 * blocks 0..3 over 4 ranks; in step s rank r sends block r-1-s to the next
 * rank:
 *
 *     step      rank 0       rank 1       rank 2       rank 3
 *       0       3: own       0: own       1: own       2: own
 *       1       2: +own      3: +own      0: +own      1: +own
 *       2       1: +own      2: +own      3: +own      0: +own
 *
 * Then each rank has its block, summed over all four.  An all-gather forwards
 * the finished blocks in the same way, and an allreduce is both: 2 (n-1) steps
 * of 1/n of the message.  The terms of a block are added in an order that
 * depends only on its number, and one rank's result goes to all.
 *
 * Partial sums arrive in two slots of ACC, used in turn.  The first READY to
 * the left neighbour says that both are free.  Each later READY says that one
 * more is free: its content was sent and flushed.
 *
 * Blocks travel in up to 4 chunks, so that adding one chunk overlaps with
 * moving the next.  Broadcast and reduce use the ring as a chain, with more
 * chunks.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

#define RING_CHUNK_BYTES ((size_t)128 << 10)
#define RING_CHUNKS_MAX 4
#define CHAIN_CHUNK_BYTES ((size_t)64 << 10)
#define CHAIN_CHUNKS_MAX 64

struct ring {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    int n;
    int me;
    int left;
    int right;
    int chunks;                   /* chunks of each block                     */
    size_t slot_bytes;            /* bytes of the largest block               */
};

static int chunk_count(size_t bytes, size_t chunk_bytes, int max)
{
    size_t count = bytes / chunk_bytes;

    return count < 1 ? 1 : count > (size_t)max ? max : (int)count;
}

static struct ring ring_make(const struct dtn_call *call,
                             struct dtn_sched *sched)
{
    struct ring ring = { .sched = sched, .call = call, .n = call->n,
                         .me = call->me, .left = dtn_neighbour(call, -1),
                         .right = dtn_neighbour(call, 1) };

    for (int r = 0; r < call->n; r++)
        if (dtn_call_block(call, r).bytes > ring.slot_bytes)
            ring.slot_bytes = dtn_call_block(call, r).bytes;
    ring.chunks = chunk_count(ring.slot_bytes, RING_CHUNK_BYTES,
                              RING_CHUNKS_MAX);
    return ring;
}

/* Chunk c of block b; offsets are in the buffer. */
static struct dtn_range ring_chunk(const struct ring *ring, int b, int c)
{
    struct dtn_range block = dtn_call_block(ring->call, b);
    struct dtn_range chunk = dtn_range_split(block.bytes, ring->chunks, c);

    return (struct dtn_range){ block.offset + chunk.offset, chunk.bytes };
}

/* The place of a chunk of block b in slot s of `rank`. */
static struct dtn_span ring_slot(const struct ring *ring, int rank, int s,
                                 struct dtn_range chunk, int b)
{
    return dtn_span_at(rank, DTN_ACC, (size_t)s * ring->slot_bytes
                       + chunk.offset - dtn_call_block(ring->call, b).offset);
}

/* Step s of the reduce-scatter: add this rank's part to block me-1-s, which
 * arrived in step s-1, and send it on.
 */
static void ring_reduce_step(const struct ring *ring, int s)
{
    struct dtn_sched *sched = ring->sched;
    int b = (ring->me - 1 - s + 2 * ring->n) % ring->n;

    if (s != 1)
        dtn_sched_wait(sched, ring->right, DTN_TAG_READY);
    for (int c = 0; c < ring->chunks; c++) {
        struct dtn_range chunk = ring_chunk(ring, b, c);
        struct dtn_span own = dtn_span_at(ring->me, DTN_IN, chunk.offset);
        struct dtn_span sum;

        if (s > 0) {
            sum = ring_slot(ring, ring->me, (s - 1) % 2, chunk, b);
            dtn_sched_wait(sched, ring->left, DTN_TAG_DATA);
            dtn_sched_reduce(sched, sum, own, chunk.bytes);
        } else {
            sum = dtn_emit_term(sched, own, ring_slot(ring, ring->me, 2, chunk,
                                                      b), chunk.bytes);
        }
        dtn_sched_put(sched, ring->right,
                      ring_slot(ring, ring->right, s % 2, chunk, b), sum,
                      chunk.bytes);
        dtn_sched_signal(sched, ring->right, DTN_TAG_DATA);
    }
    if (s > 0 && s + 2 < ring->n) {           /* the left rank needs it again */
        dtn_sched_flush(sched, ring->right);
        dtn_sched_signal(sched, ring->left, DTN_TAG_READY);
    }
}

/* Store this rank's reduced block at `out_offset` of OUT.  `gather`: an
 * all-gather in OUT follows.  In place OUT is IN, and the left rank first puts
 * to where step 0 put from, so it needs a READY sent after that flush.  With
 * four or more ranks the READY of step 1 is such a READY; with fewer, one more
 * is sent.
 */
static void ring_reduce_scatter(const struct ring *ring, size_t out_offset,
                                bool gather)
{
    struct dtn_sched *sched = ring->sched;
    int me = ring->me, n = ring->n;
    struct dtn_range mine = dtn_call_block(ring->call, me);

    if (n == 1) {
        dtn_emit_alone(sched);
        return;
    }
    sched->bytes[DTN_ACC] = 2 * ring->slot_bytes
                          + dtn_emit_term_bytes(sched, ring->slot_bytes);
    sched->exposed[DTN_ACC] = true;
    dtn_sched_signal(sched, ring->left, DTN_TAG_READY);
    dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, out_offset),
                   dtn_span_at(me, DTN_IN, mine.offset), mine.bytes);
    for (int s = 0; s < n - 1; s++)
        ring_reduce_step(ring, s);
    if (!gather || n < 4)
        dtn_sched_flush(sched, ring->right);
    if (gather && n < 4)
        dtn_sched_signal(sched, ring->left, DTN_TAG_READY);
    for (int c = 0; c < ring->chunks; c++) {
        struct dtn_range chunk = ring_chunk(ring, me, c);

        dtn_sched_wait(sched, ring->left, DTN_TAG_DATA);
        dtn_sched_reduce(
            sched,
            dtn_span_at(me, DTN_OUT, out_offset + chunk.offset - mine.offset),
            ring_slot(ring, me, (n - 2) % 2, chunk, me), chunk.bytes);
    }
}

/* All-gather around the ring.  The chunks of the last step are not forwarded,
 * so one DATA for all of them is enough.
 */
static void ring_allgather(const struct ring *ring)
{
    struct dtn_sched *sched = ring->sched;
    int me = ring->me, n = ring->n;

    sched->exposed[DTN_OUT] = true;
    for (int s = 0; s < n - 1; s++)
        for (int c = 0; c < ring->chunks; c++) {
            struct dtn_range chunk = ring_chunk(ring, (me - s + n) % n, c);

            if (s > 0)
                dtn_sched_wait(sched, ring->left, DTN_TAG_DATA);
            dtn_sched_put(sched, ring->right,
                          dtn_span_at(ring->right, DTN_OUT, chunk.offset),
                          dtn_span_at(me, DTN_OUT, chunk.offset), chunk.bytes);
            if (s < n - 2 || c == ring->chunks - 1)
                dtn_sched_signal(sched, ring->right, DTN_TAG_DATA);
        }
    if (n > 1) {
        dtn_sched_wait(sched, ring->left, DTN_TAG_DATA);
        dtn_sched_flush(sched, ring->right);
    }
}

int dtn_emit_allreduce_ring(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    struct ring ring = ring_make(call, sched);

    dtn_emit_begin(sched, "allreduce ring", call);
    ring_reduce_scatter(&ring, dtn_call_block(call, call->me).offset, true);
    if (call->n > 1 && call->n < 4)
        dtn_sched_wait(sched, ring.right, DTN_TAG_READY);
    ring_allgather(&ring);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_scatter_ring(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    struct ring ring = ring_make(call, sched);

    dtn_emit_begin(sched, "reduce_scatter ring", call);
    ring_reduce_scatter(&ring, 0, false);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allgather_ring(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    struct ring ring = ring_make(call, sched);
    struct dtn_range mine = dtn_call_block(call, call->me);

    dtn_emit_begin(sched, "allgather ring", call);
    if (call->n > 1)
        dtn_sched_signal(sched, ring.left, DTN_TAG_READY);
    dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, mine.offset),
                   dtn_span_at(call->me, DTN_IN, 0), mine.bytes);
    if (call->n > 1)
        dtn_sched_wait(sched, ring.right, DTN_TAG_READY);
    ring_allgather(&ring);
    return dtn_emit_end(sched, err);
}

/* ------------------------------------------------------------------ chains */

/* A chain from the root around the ring to the rank before the root.  That rank
 * forwards nothing, so it needs one DATA for all chunks.  Of two ranks none
 * forwards, and one chunk is enough: each is a message of its own.
 */
int dtn_emit_broadcast_ring(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    int me = call->me, before = dtn_neighbour(call, -1);
    int after = dtn_neighbour(call, 1);
    bool first = me == call->root, last = after == call->root;
    bool to_last = dtn_neighbour(call, 2) == call->root;
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    int chunks = call->n == 2 ? 1
               : chunk_count(bytes, CHAIN_CHUNK_BYTES, CHAIN_CHUNKS_MAX);

    dtn_emit_begin(sched, "broadcast ring", call);
    sched->exposed[DTN_OUT] = !first;
    if (!first)
        dtn_sched_signal(sched, before, DTN_TAG_READY);
    if (!last)
        dtn_sched_wait(sched, after, DTN_TAG_READY);
    for (int c = 0; c < chunks; c++) {
        struct dtn_range chunk = dtn_range_split(bytes, chunks, c);

        if (!first && (!last || c == chunks - 1))
            dtn_sched_wait(sched, before, DTN_TAG_DATA);
        if (last)
            continue;
        dtn_sched_put(sched, after, dtn_span_at(after, DTN_OUT, chunk.offset),
                      dtn_span_at(me, first ? DTN_IN : DTN_OUT, chunk.offset),
                      chunk.bytes);
        if (!to_last || c == chunks - 1)
            dtn_sched_signal(sched, after, DTN_TAG_DATA);
    }
    if (first)
        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, 0),
                       dtn_span_at(me, DTN_IN, 0), bytes);
    if (!last)
        dtn_sched_flush(sched, after);
    return dtn_emit_end(sched, err);
}

/* One rank's place in the chain of a reduction. */
struct link {
    int from;                     /* previous rank; -1: the chain begins here */
    int to;                       /* next rank; -1: this is the root          */
    size_t slot_bytes;
    int chunks;
};

/* Chunk c: add this rank's part and send it on toward the root. */
static void chain_reduce(struct dtn_sched *sched, const struct link *link,
                         struct dtn_range chunk, int c)
{
    int me = sched->me;
    size_t slot = (size_t)(c % 2) * link->slot_bytes;
    struct dtn_span own = dtn_span_at(me, DTN_IN, chunk.offset);
    struct dtn_span sum = dtn_span_at(me, DTN_ACC, slot);

    if (link->from >= 0) {
        dtn_sched_wait(sched, link->from, DTN_TAG_DATA);
        if (link->to < 0)
            dtn_sched_reduce(sched, dtn_span_at(me, DTN_OUT, chunk.offset), sum,
                             chunk.bytes);
        else
            dtn_sched_reduce(sched, sum, own, chunk.bytes);
    } else {
        sum = dtn_emit_term(sched, own, sum, chunk.bytes);
    }
    if (link->to >= 0) {
        if (c != 1)
            dtn_sched_wait(sched, link->to, DTN_TAG_READY);
        dtn_sched_put(sched, link->to, dtn_span_at(link->to, DTN_ACC, slot),
                      sum, chunk.bytes);
        dtn_sched_signal(sched, link->to, DTN_TAG_DATA);
        if (c + 1 == link->chunks
            || (sum.space == DTN_ACC && c + 2 < link->chunks))
            dtn_sched_flush(sched, link->to);
    }
    if (link->from >= 0 && c + 2 < link->chunks)
        dtn_sched_signal(sched, link->from, DTN_TAG_READY);
}

int dtn_emit_reduce_ring(const struct dtn_call *call, struct dtn_sched *sched,
                         struct dtensor_error *err)
{
    int me = call->me, before = dtn_neighbour(call, -1);
    int after = dtn_neighbour(call, 1);
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct link link = {
        .from = after == call->root ? -1 : after,
        .to = me == call->root ? -1 : before,
        .chunks = chunk_count(bytes, CHAIN_CHUNK_BYTES, CHAIN_CHUNKS_MAX)
    };

    link.slot_bytes = dtn_range_split(bytes, link.chunks, 0).bytes;
    dtn_emit_begin(sched, "reduce ring", call);
    if (call->n == 1) {
        dtn_emit_alone(sched);
        return dtn_emit_end(sched, err);
    }
    sched->bytes[DTN_ACC] = link.from >= 0 ? 2 * link.slot_bytes
                          : dtn_emit_term_bytes(sched, 2 * link.slot_bytes);
    sched->exposed[DTN_ACC] = link.from >= 0;
    if (link.from >= 0)
        dtn_sched_signal(sched, link.from, DTN_TAG_READY);
    if (link.to < 0)
        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, 0),
                       dtn_span_at(me, DTN_IN, 0), bytes);
    for (int c = 0; c < link.chunks; c++)
        chain_reduce(sched, &link, dtn_range_split(bytes, link.chunks, c), c);
    return dtn_emit_end(sched, err);
}
