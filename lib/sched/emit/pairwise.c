/* pairwise.c - an all-to-all with one peer at a time
 *
 * In step s rank r puts to r+s, and r-s puts to r: n-1 steps, in each of which
 * every link carries one message in each direction.  Over 4 ranks:
 *
 *     step     rank 0      rank 1      rank 2      rank 3
 *       1      to 1        to 2        to 3        to 0
 *       2      to 2        to 3        to 0        to 1
 *       3      to 3        to 0        to 1        to 2
 *
 * If all ranks put to all at once (incast, spread.c), a switch has n-1 messages
 * for one port and drops or pauses.  Here it has one, and a device has one
 * active queue pair instead of n-1.  READY is sent one step ahead and awaited
 * one step ahead, before the DATA of the current step, in the order in which
 * both are sent; so a step costs one hop.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* READY to the rank that puts here in step s, and from the rank that this rank
 * puts to.  Both sides must mean the same numbers of bytes.
 */
static void pairwise_invite(struct dtn_sched *sched,
                            const struct dtn_call *call, int s)
{
    int from = dtn_neighbour(call, -s);
    struct dtn_range block;

    if (s >= call->n)
        return;
    block = dtn_call_received(call, from);
    dtn_sched_offer(sched, from, dtn_span_at(call->me, DTN_OUT, block.offset),
                    block.bytes);
    dtn_sched_match(sched, dtn_emit_match_bits(call, from), block.bytes, true);
}

static void pairwise_accept(struct dtn_sched *sched,
                            const struct dtn_call *call, int s)
{
    int to = dtn_neighbour(call, s);
    size_t bytes;

    if (s >= call->n)
        return;
    bytes = dtn_call_sent(call, to).bytes;
    dtn_sched_wait(sched, to, DTN_TAG_READY);
    dtn_sched_match(sched, dtn_emit_match_bits(call, to), bytes, false);
}

int dtn_emit_all_to_all_pairwise(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    int me = call->me, n = call->n;
    struct dtn_range own = dtn_call_sent(call, me);

    dtn_emit_begin(sched, "all_to_all pairwise", call);
    sched->exposed[DTN_OUT] = true;
    pairwise_invite(sched, call, 1);
    pairwise_accept(sched, call, 1);
    for (int s = 1; s < n; s++) {
        int to = dtn_neighbour(call, s);
        struct dtn_range block = dtn_call_sent(call, to);

        pairwise_invite(sched, call, s + 1);
        dtn_sched_put(sched, to, dtn_span_at(to, DTN_OUT, 0),
                      dtn_span_at(me, DTN_IN, block.offset), block.bytes);
        dtn_sched_signal(sched, to, DTN_TAG_DATA);
        pairwise_accept(sched, call, s + 1);
        dtn_sched_wait(sched, dtn_neighbour(call, -s), DTN_TAG_DATA);
        dtn_sched_flush(sched, to);
    }
    dtn_sched_copy(sched,
                   dtn_span_at(me, DTN_OUT, dtn_call_received(call, me).offset),
                   dtn_span_at(me, DTN_IN, own.offset), own.bytes);
    return dtn_emit_end(sched, err);
}
