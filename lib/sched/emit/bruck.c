/* bruck.c - all-gather and all-to-all in ceil(log2 n) hops
 *
 * All-gather.  A rank that has the s blocks up to its own receives the blocks
 * before them from the rank s positions before it, which has s blocks too.
 * With 5 ranks, s is 1, 2, 3, and then all 5.
 *
 *     rank 4 has 4            receives 3 from rank 3
 *                3 4          receives 2 from rank 2
 *                2 3 4        receives 0 1 from rank 1
 *
 * Each block arrives once, straight in its place.  If all blocks together have
 * at most 4 KiB they are sent eagerly.  Then TMP holds them in the order 4 3 2
 * 1 0, in which the blocks to forward are contiguous, and they are copied to
 * their places at the end.
 *
 * All-to-all.  The block for the rank j positions ahead travels by the bits of
 * j: in round k every rank forwards all its blocks whose j has bit k set by 2^k
 * positions.  For 64 ranks that is 6 messages instead of 63, but each block
 * travels 3 times on average, so it is faster for short blocks only: with
 * blocks of 8 bytes a round forwards 32 of them in one signal.  All blocks must
 * have the same size, so that all ranks know what they receive.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "sched/units.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>

struct dtn_skips dtn_skips(int n)
{
    struct dtn_skips skips = { .rounds = 0, .skip = { n } };

    for (; n > 1; n = skips.skip[skips.rounds])
        skips.skip[++skips.rounds] = (n + 1) / 2;
    return skips;
}

/* Put blocks first .. first+count-1 of this rank's OUT to their places at a
 * peer.
 */
static void gather_put(struct dtn_sched *sched, const struct dtn_call *call,
                       int peer, int first, int count)
{
    size_t begin = dtn_call_block(call, first).offset;
    struct dtn_range last = dtn_call_block(call, first + count - 1);

    dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, begin),
                  dtn_span_at(call->me, DTN_OUT, begin),
                  last.offset + last.bytes - begin);
}

/* Put the `count` blocks up to this rank's; they may wrap around block 0. */
static void gather_pass(struct dtn_sched *sched, const struct dtn_call *call,
                        int peer, int count)
{
    int first = call->me - count + 1;

    if (first < 0) {
        gather_put(sched, call, peer, first + call->n, -first);
        first = 0;
    }
    gather_put(sched, call, peer, first, call->me - first + 1);
}

void dtn_emit_gather(struct dtn_sched *sched, const struct dtn_call *call,
                     const struct dtn_skips *skips)
{
    sched->exposed[DTN_OUT] = true;
    for (int k = skips->rounds - 1; k >= 0; k--) {
        int s = skips->skip[k + 1], peer = dtn_neighbour(call, s);

        gather_pass(sched, call, peer, skips->skip[k] - s);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
        dtn_sched_wait(sched, dtn_neighbour(call, -s), DTN_TAG_DATA);
    }
    for (int k = 0; k < skips->rounds; k++)
        dtn_sched_flush(sched, dtn_neighbour(call, skips->skip[k + 1]));
}

/* Bytes of the `count` blocks up to that of a rank. */
static size_t gather_bytes(const struct dtn_call *call, int rank, int count)
{
    return dtn_call_blocks_bytes(call, rank - count + 1, count);
}

/* Eager: TMP has this rank's block, the block before it, ... */
static void gather_eager(struct dtn_sched *sched, const struct dtn_call *call,
                         const struct dtn_skips *skips)
{
    int me = call->me, n = call->n;

    sched->bytes[DTN_TMP] = n > 1 ? sched->bytes[DTN_OUT] : 0;
    dtn_sched_copy(sched, dtn_span_at(me, n > 1 ? DTN_TMP : DTN_OUT, 0),
                   dtn_span_at(me, DTN_IN, 0), dtn_call_block(call, me).bytes);
    for (int k = skips->rounds - 1; k >= 0; k--) {
        int s = skips->skip[k + 1], count = skips->skip[k] - s;
        int from = dtn_neighbour(call, -s);

        dtn_sched_send_eager(sched, dtn_neighbour(call, s),
                             dtn_span_at(me, DTN_TMP, 0),
                             gather_bytes(call, me, count));
        dtn_sched_recv_eager(sched, from,
                        dtn_span_at(me, DTN_TMP, gather_bytes(call, me, s)),
                        gather_bytes(call, from, count));
    }
    for (int i = 0; n > 1 && i < n; i++) {
        struct dtn_range block = dtn_call_block(call, dtn_neighbour(call, -i));

        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, block.offset),
                       dtn_span_at(me, DTN_TMP, gather_bytes(call, me, i)),
                       block.bytes);
    }
}

int dtn_emit_allgather_bruck(const struct dtn_call *call,
                             struct dtn_sched *sched,
                             struct dtensor_error *err)
{
    struct dtn_skips skips = dtn_skips(call->n);
    struct dtn_range mine = dtn_call_block(call, call->me);

    dtn_emit_begin(sched, "allgather bruck", call);
    if (sched->bytes[DTN_OUT] <= sched->eager_bytes) {
        gather_eager(sched, call, &skips);
        return dtn_emit_end(sched, err);
    }
    for (int k = 0; k < skips.rounds; k++)
        dtn_sched_signal(sched, dtn_neighbour(call, -skips.skip[k + 1]),
                         DTN_TAG_READY);
    dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, mine.offset),
                   dtn_span_at(call->me, DTN_IN, 0), mine.bytes);
    for (int k = 0; k < skips.rounds; k++)
        dtn_sched_wait(sched, dtn_neighbour(call, skips.skip[k + 1]),
                       DTN_TAG_READY);
    dtn_emit_gather(sched, call, &skips);
    return dtn_emit_end(sched, err);
}

/* -------------------------------------------------------------- all-to-all */

/* All-to-all of blocks of one size in rounds k.  The block for the rank j
 * positions ahead is forwarded in the rounds whose bit is set in j.
 */
struct hops {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    size_t block_bytes;
    int rounds;
};

/* How many blocks j < `most` go in round k. */
static size_t hops_count(int k, int most)
{
    int over = (most & ((2 << k) - 1)) - (1 << k);

    return (size_t)((most >> (k + 1) << k) + (over > 0 ? over : 0));
}

/* Bytes that a rank forwards in round k. */
static size_t hops_bytes(const struct hops *hops, int k)
{
    return hops_count(k, hops->call->n) * hops->block_bytes;
}

static bool hops_eager(const struct hops *hops, int k)
{
    return hops_bytes(hops, k) <= hops->sched->eager_bytes;
}

/* The place in TMP for what arrives in round k; the packing buffer follows
 * after the last round.
 */
static size_t hops_region(const struct hops *hops, int k)
{
    size_t bytes = 0;

    for (int i = 0; i < k; i++)
        bytes += hops_bytes(hops, i);
    return bytes;
}

/* The place of block j when round k begins: it arrived in the round of its
 * highest bit below k.
 */
static struct dtn_span hops_place(const struct hops *hops, int k, int j)
{
    const struct dtn_call *call = hops->call;

    while (--k >= 0)
        if (j >> k & 1)
            return dtn_span_at(call->me, DTN_TMP, hops_region(hops, k)
                               + hops_count(k, j) * hops->block_bytes);
    return dtn_span_at(call->me, DTN_IN,
                       dtn_call_sent(call, dtn_neighbour(call, j)).offset);
}

/* Pack the blocks of round k and forward them. */
static void hops_pass(const struct hops *hops, int k)
{
    int me = hops->call->me, to = dtn_neighbour(hops->call, 1 << k);
    struct dtn_span packed = dtn_span_at(me, DTN_TMP,
                                         hops_region(hops, hops->rounds)),
                    at = packed;
    size_t bytes = hops_bytes(hops, k);

    for (int j = 1 << k; j < hops->call->n; j++) {
        if (!(j >> k & 1))
            continue;
        dtn_sched_copy(hops->sched, at, hops_place(hops, k, j),
                       hops->block_bytes);
        at.offset += hops->block_bytes;
    }
    if (hops_eager(hops, k)) {
        dtn_sched_send_eager(hops->sched, to, packed, bytes);
        return;
    }
    dtn_sched_put(hops->sched, to,
                  dtn_span_at(to, DTN_TMP, hops_region(hops, k)), packed,
                  bytes);
    dtn_sched_signal(hops->sched, to, DTN_TAG_DATA);
}

/* Receive the blocks of round k; then the packing buffer is free again. */
static void hops_take(const struct hops *hops, int k)
{
    int from = dtn_neighbour(hops->call, -(1 << k));
    size_t bytes = hops_bytes(hops, k);

    if (hops_eager(hops, k)) {
        dtn_sched_recv_eager(
            hops->sched, from,
            dtn_span_at(hops->call->me, DTN_TMP, hops_region(hops, k)), bytes);
        return;
    }
    dtn_sched_wait(hops->sched, from, DTN_TAG_DATA);
    dtn_sched_flush(hops->sched, dtn_neighbour(hops->call, 1 << k));
}

/* READY to the ranks that put here, and from the ranks that this rank puts to.
 */
static void hops_meet(const struct hops *hops)
{
    for (int k = 0; k < hops->rounds; k++)
        if (!hops_eager(hops, k))
            dtn_sched_signal(hops->sched, dtn_neighbour(hops->call, -(1 << k)),
                             DTN_TAG_READY);
    for (int k = 0; k < hops->rounds; k++)
        if (!hops_eager(hops, k))
            dtn_sched_wait(hops->sched, dtn_neighbour(hops->call, 1 << k),
                           DTN_TAG_READY);
}

int dtn_emit_all_to_all_bruck(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    struct hops hops = { sched, call, dtn_call_sent(call, 0).bytes, 0 };

    dtn_emit_begin(sched, "all_to_all bruck", call);
    hops.rounds = dtn_levels_of(call->n);
    sched->bytes[DTN_TMP] = hops_region(&hops, hops.rounds)
                          + (call->n > 1 ? hops_bytes(&hops, 0) : 0);
    sched->exposed[DTN_TMP] = true;
    hops_meet(&hops);
    for (int k = 0; k < hops.rounds; k++) {
        hops_pass(&hops, k);
        hops_take(&hops, k);
    }
    for (int j = 0; j < call->n; j++) {
        struct dtn_range to = dtn_call_received(call, dtn_neighbour(call, -j));

        dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, to.offset),
                       hops_place(&hops, hops.rounds, j), to.bytes);
    }
    return dtn_emit_end(sched, err);
}
