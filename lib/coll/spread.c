/* spread.c - collectives in which everyone puts straight to everyone
 *
 * Between ranks that do not map, a few of them: one hop for blocks that only
 * move, two where they are reduced.  An allreduce of 48 KiB over 3 ranks: rank
 * 0 puts 16 KiB of its IN into a slot of rank 1's TMP and 16 KiB into one of
 * rank 2's, while theirs come into its own; it adds them to its term of block
 * 0, first rank 2's, then rank 1's, and puts the sum into both OUTs.  A ring
 * carries the same bytes, but waits for a neighbour four times, not twice.
 *
 * A block is added up by one rank, so all have the same bits.  In place OUT is
 * IN: the sum of block 1 is put where rank 0 put its term of block 1 from.  So
 * rank 0 says DATA after the flush.
 */
#include "coll/emit.h"

/* Names to everyone, and everyone's. */
static void spread_ready(struct dtn_sched *sched, const struct dtn_call *call)
{
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
}

static void spread_flush(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 1; i < call->n; i++)
        dtn_sched_flush(sched, dtn_around(call, i));
}

/* The slot of rank `from` in the TMP of rank `to`. */
static struct dtn_span spread_slot(const struct dtn_call *call, int to,
                                   int from, size_t bytes)
{
    int slot = (to - from + call->n) % call->n - 1;

    return dtn_at(to, DTN_TMP, (size_t)slot * bytes);
}

/* Leave the sum of the own block at `out_offset` of OUT. */
static void spread_sum(struct dtn_sched *sched, const struct dtn_call *call,
                       size_t out_offset, bool flushed)
{
    int me = call->me;
    struct dtn_range mine = dtn_block(call, me);
    struct dtn_span out = dtn_at(me, DTN_OUT, out_offset);

    sched->bytes[DTN_TMP] = (size_t)(call->n - 1) * mine.bytes;
    sched->exposed[DTN_TMP] = true;
    spread_ready(sched, call);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, i);
        struct dtn_range block = dtn_block(call, peer);

        dtn_sched_put(sched, peer, spread_slot(call, peer, me, block.bytes),
                      dtn_at(me, DTN_IN, block.offset), block.bytes);
        if (flushed)
            dtn_sched_flush(sched, peer);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_sched_copy(sched, out, dtn_at(me, DTN_IN, mine.offset), mine.bytes);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, -i);

        dtn_sched_wait(sched, peer, DTN_TAG_DATA);
        dtn_sched_reduce(sched, out, spread_slot(call, me, peer, mine.bytes),
                         mine.bytes);
    }
    dtn_emit_average(sched, call, (struct dtn_range){ out_offset, mine.bytes });
}

int dtn_emit_allreduce_put(const struct dtn_call *call,
                           struct dtn_sched *sched, struct dtensor_error *err)
{
    int me = call->me;
    struct dtn_range mine = dtn_block(call, me);

    dtn_emit_begin(sched, "allreduce put", call);
    sched->exposed[DTN_OUT] = true;
    spread_sum(sched, call, mine.offset, true);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, i);

        dtn_sched_put(sched, peer, dtn_at(peer, DTN_OUT, mine.offset),
                      dtn_at(me, DTN_OUT, mine.offset), mine.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
    spread_flush(sched, call);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_scatter_put(const struct dtn_call *call,
                                struct dtn_sched *sched,
                                struct dtensor_error *err)
{
    dtn_emit_begin(sched, "reduce_scatter put", call);
    spread_sum(sched, call, 0, false);
    spread_flush(sched, call);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allgather_put(const struct dtn_call *call,
                           struct dtn_sched *sched, struct dtensor_error *err)
{
    int me = call->me;
    struct dtn_range mine = dtn_block(call, me);

    dtn_emit_begin(sched, "allgather put", call);
    sched->exposed[DTN_OUT] = true;
    spread_ready(sched, call);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, i);

        dtn_sched_put(sched, peer, dtn_at(peer, DTN_OUT, mine.offset),
                      dtn_at(me, DTN_IN, 0), mine.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_sched_copy(sched, dtn_at(me, DTN_OUT, mine.offset),
                   dtn_at(me, DTN_IN, 0), mine.bytes);
    dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
    spread_flush(sched, call);
    return dtn_emit_end(sched, err);
}

int dtn_emit_all_to_all_put(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    int me = call->me;
    struct dtn_range own = dtn_sent(call, me, me);

    dtn_emit_begin(sched, "all_to_all put", call);
    sched->exposed[DTN_OUT] = true;
    spread_ready(sched, call);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, i);
        struct dtn_range from = dtn_sent(call, me, peer);
        size_t to = dtn_received(call, me, peer).offset;

        dtn_sched_put(sched, peer, dtn_at(peer, DTN_OUT, to),
                      dtn_at(me, DTN_IN, from.offset), from.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_sched_copy(sched,
                   dtn_at(me, DTN_OUT, dtn_received(call, me, me).offset),
                   dtn_at(me, DTN_IN, own.offset), own.bytes);
    dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
    spread_flush(sched, call);
    return dtn_emit_end(sched, err);
}
