/* halving.c - reduce-scatter by halving, and Rabenseifner's allreduce
 *
 * A rank is responsible for all n blocks of the buffer at first, and for its
 * own block at the end.  In each round it sends half of its blocks to the rank
 * that many positions before it, and receives half from the rank as far behind
 * it.  Over 5 ranks it is responsible for 5, 3, 2 and 1 blocks: the last ones
 * up to its own.
 *
 *     rank 4 has 0 1 2 3 4    sends 0 1 to rank 1 (3 before), which then has
 *                             4 0 1; receives 3 4 from rank 2 (3 behind)
 *                2 3 4        sends 2 to rank 2, receives 4 from rank 1
 *                3 4          sends 3 to rank 3, receives 4 from rank 0
 *
 * For n a power of two this is recursive halving.  For any other n all ranks
 * take part as well (Traeff 2024, "Optimal, Non-pipelined Reduce-scatter and
 * Allreduce Algorithms").  In ceil(log2 n) hops each rank sends n-1 blocks, the
 * minimum.  An all-gather by the same distances in reverse order (bruck.c)
 * makes an allreduce: twice as many hops, where the ring needs 2 (n-1) hops for
 * the same bytes.
 *
 * The blocks of round k arrive in their own part of ACC.  This rank's term, or
 * the sums of earlier rounds, are added to them.  A block is summed in an order
 * that depends only on n and its number, and one rank has the result in the
 * end: all ranks have the same bits.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

struct halving {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    struct dtn_skips skips;
    bool apart;                   /* OUT is never IN, as in a rail            */
};

/* Blocks that a rank receives in round k: those up to its own. */
static int halving_count(const struct halving *h, int k)
{
    return h->skips.skip[k] - h->skips.skip[k + 1];
}

/* The place of round k in the ACC of a rank. */
static size_t halving_region(const struct halving *h, int rank, int k)
{
    size_t bytes = 0;

    for (int j = 0; j < k; j++)
        bytes += dtn_call_blocks_bytes(h->call, rank - halving_count(h, j) + 1,
                                       halving_count(h, j));
    return bytes;
}

/* The place of the sum of a block when round k begins: where the last round
 * that brought it stored it, or in IN.
 */
static struct dtn_span halving_sum(const struct halving *h, int k, int block)
{
    int me = h->call->me, n = h->call->n, before = (me - block + n) % n, count;

    while (--k >= 0) {
        count = halving_count(h, k);
        if (before < count)
            return dtn_span_at(me, DTN_ACC, halving_region(h, me, k)
                               + dtn_call_blocks_bytes(h->call, me - count + 1,
                                                       count - 1 - before));
    }
    return dtn_span_at(me, DTN_IN, dtn_call_block(h->call, block).offset);
}

/* A run of blocks whose sums are contiguous. */
struct run {
    struct dtn_span src;
    size_t bytes;
    int blocks;
};

static struct run halving_run(const struct halving *h, int k, int first,
                              int most)
{
    int n = h->call->n;
    struct run run = { .blocks = 0 };

    for (int i = 0; i < most; i++) {
        int block = (first + i + 2 * n) % n;
        struct dtn_span src = halving_sum(h, k, block);

        if (run.bytes == 0)
            run.src = src;
        else if (src.space != run.src.space
                 || src.offset != run.src.offset + run.bytes)
            break;
        run.bytes += dtn_call_block(h->call, block).bytes;
        run.blocks++;
    }
    return run;
}

/* The sums of a run as partial results; terms still in IN are converted into
 * ACC after the part of the last round.
 */
static struct dtn_span halving_term(const struct halving *h, struct run run)
{
    struct dtn_span room = dtn_span_at(h->call->me, DTN_ACC,
                                       halving_region(h, h->call->me,
                                                      h->skips.rounds));

    if (run.src.space == DTN_ACC)
        return run.src;
    room.offset += run.src.offset;
    return dtn_emit_term(h->sched, run.src, room, run.bytes);
}

static void halving_round(const struct halving *h, int k)
{
    int n = h->call->n, me = h->call->me, count = halving_count(h, k);
    int to = dtn_neighbour(h->call, -h->skips.skip[k + 1]);
    int from = dtn_neighbour(h->call, h->skips.skip[k + 1]);
    struct dtn_span dst = dtn_span_at(to, DTN_ACC, halving_region(h, to, k));
    struct dtn_span sum = dtn_span_at(me, DTN_ACC, halving_region(h, me, k));
    struct run run;

    for (int i = 0; i < count; i += run.blocks) {
        run = halving_run(h, k, to - count + 1 + i + n, count - i);
        dtn_sched_put(h->sched, to, dst, halving_term(h, run), run.bytes);
        dst.offset += run.bytes;
    }
    dtn_sched_signal(h->sched, to, DTN_TAG_DATA);
    dtn_sched_wait(h->sched, from, DTN_TAG_DATA);
    for (int i = 0; i < count; i += run.blocks) {
        run = halving_run(h, k, me - count + 1 + i + n, count - i);
        dtn_sched_reduce(h->sched, sum, run.src, run.bytes);
        sum.offset += run.bytes;
    }
}

/* Is the rank behind by the distance of round k the one ahead by that of some
 * round, and met already?  Over 5 ranks 3 behind is 2 ahead.
 */
static bool halving_both(const struct halving *h, int k)
{
    bool both = false;

    for (int j = 0; j < h->skips.rounds; j++)
        both = both
            || h->skips.skip[k + 1] + h->skips.skip[j + 1] == h->call->n;
    return h->apart && both;
}

/* apart: READY for the all-gather, to the ranks behind by the distances. */
static void halving_invite(const struct halving *h)
{
    for (int k = 0; k < h->skips.rounds; k++)
        if (!halving_both(h, k))
            dtn_sched_signal(h->sched,
                             dtn_neighbour(h->call, -h->skips.skip[k + 1]),
                             DTN_TAG_READY);
}

/* The same READY from the ranks ahead. */
static void halving_accept(const struct halving *h)
{
    for (int k = 0; k < h->skips.rounds; k++)
        if (!halving_both(h, k))
            dtn_sched_wait(h->sched,
                           dtn_neighbour(h->call, h->skips.skip[k + 1]),
                           DTN_TAG_READY);
}

/* apart: at the end. */
static void halving_flush(const struct halving *h)
{
    for (int k = 0; k < h->skips.rounds; k++)
        if (!halving_both(h, k))
            dtn_sched_flush(h->sched,
                            dtn_neighbour(h->call, -h->skips.skip[k + 1]));
}

/* Store this rank's reduced block at `out_offset` of OUT.  `gather`: an
 * all-gather in OUT follows.  In place OUT is IN, so a rank that will put there
 * gets READY only after the puts from there are flushed; else at once.
 */
static void halving_reduce(const struct halving *h, size_t out_offset,
                           bool gather)
{
    const struct dtn_call *call = h->call;
    struct dtn_sched *sched = h->sched;
    int rounds = h->skips.rounds;
    struct dtn_range mine = dtn_call_block(call, call->me);

    if (call->n == 1) {
        dtn_emit_alone(sched);
        return;
    }
    sched->bytes[DTN_ACC] = halving_region(h, call->me, rounds)
        + dtn_emit_term_bytes(sched, dtn_call_blocks_bytes(call, 0, call->n));
    sched->exposed[DTN_ACC] = true;
    for (int k = 0; k < rounds; k++)
        dtn_sched_signal(sched, dtn_neighbour(call, h->skips.skip[k + 1]),
                         DTN_TAG_READY);
    if (gather && h->apart)
        halving_invite(h);
    for (int k = 0; k < rounds; k++)
        dtn_sched_wait(sched, dtn_neighbour(call, -h->skips.skip[k + 1]),
                       DTN_TAG_READY);
    if (gather && h->apart)
        halving_accept(h);
    for (int k = 0; k < rounds; k++)
        halving_round(h, k);
    for (int k = 0; k < rounds && !h->apart; k++) {
        int to = dtn_neighbour(call, -h->skips.skip[k + 1]);

        dtn_sched_flush(sched, to);
        if (gather)
            dtn_sched_signal(sched, to, DTN_TAG_READY);
    }
    dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, out_offset),
                   halving_sum(h, rounds, call->me), mine.bytes);
}

int dtn_emit_reduce_scatter_halving(const struct dtn_call *call,
                                    struct dtn_sched *sched,
                                    struct dtensor_error *err)
{
    struct halving h = { sched, call, dtn_skips(call->n), false };

    dtn_emit_begin(sched, "reduce_scatter halving", call);
    halving_reduce(&h, 0, false);
    return dtn_emit_end(sched, err);
}

static int halving_allreduce(const struct dtn_call *call, bool apart,
                             struct dtn_sched *sched, struct dtensor_error *err)
{
    struct halving h = { sched, call, dtn_skips(call->n), apart };

    dtn_emit_begin(sched, "allreduce halving", call);
    halving_reduce(&h, dtn_call_block(call, call->me).offset, true);
    if (!apart)
        halving_accept(&h);
    dtn_emit_gather(sched, call, &h.skips);
    if (apart)
        halving_flush(&h);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allreduce_halving(const struct dtn_call *call,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    return halving_allreduce(call, false, sched, err);
}

int dtn_emit_allreduce_halving_apart(const struct dtn_call *call,
                                     struct dtn_sched *sched,
                                     struct dtensor_error *err)
{
    return halving_allreduce(call, true, sched, err);
}
