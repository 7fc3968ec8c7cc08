/* eager.c - collectives of a few bytes: the signal is the message
 *
 * A signal has room for 44 bytes in its line and up to 4 KiB beside it.  So if
 * no more than that goes from one rank to another, nothing else is sent: no
 * READY, no put, no reply.  An allreduce of 8 bytes over 4 ranks is 3 lines
 * sent and 3 lines received on each rank, all at the same time: one hop.
 *
 * Received data goes to TMP first, and to OUT when everything has arrived, so a
 * peer that made another call leaves OUT untouched.  Data of a single peer goes
 * straight to OUT, because it arrives whole or not at all.  Sums are folded in
 * rank order, the same on all ranks: rank 0 op rank 1 op ...
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"

/* Receive the peers' terms in slots of TMP, and fold them with this rank's
 * term.
 */
static void eager_fold(struct dtn_sched *sched, const struct dtn_call *call,
                       size_t own_offset, size_t bytes)
{
    int me = call->me;

    sched->bytes[DTN_TMP] = (size_t)(call->n - 1) * bytes;
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_neighbour(call, -i);

        dtn_sched_recv_eager(sched, peer, dtn_term_slot(me, peer, bytes),
                             bytes);
    }
    dtn_sched_fold_with(sched, dtn_span_at(me, DTN_OUT, 0),
                        dtn_span_at(me, DTN_TMP, 0), bytes,
                        dtn_span_at(me, DTN_IN, own_offset));
}

int dtn_emit_allreduce_eager(const struct dtn_call *call,
                             struct dtn_sched *sched, struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);

    dtn_emit_begin(sched, "allreduce eager", call);
    for (int i = 1; i < call->n; i++)
        dtn_sched_send_eager(sched, dtn_neighbour(call, i),
                             dtn_span_at(call->me, DTN_IN, 0), bytes);
    eager_fold(sched, call, 0, bytes);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_eager(const struct dtn_call *call, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);

    dtn_emit_begin(sched, "reduce eager", call);
    if (call->me == call->root)
        eager_fold(sched, call, 0, bytes);
    else
        dtn_sched_send_eager(sched, call->root,
                             dtn_span_at(call->me, DTN_IN, 0), bytes);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_scatter_eager(const struct dtn_call *call,
                                  struct dtn_sched *sched,
                                  struct dtensor_error *err)
{
    struct dtn_range mine = dtn_call_block(call, call->me);

    dtn_emit_begin(sched, "reduce_scatter eager", call);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_neighbour(call, i);
        struct dtn_range theirs = dtn_call_block(call, peer);

        dtn_sched_send_eager(sched, peer,
                             dtn_span_at(call->me, DTN_IN, theirs.offset),
                             theirs.bytes);
    }
    eager_fold(sched, call, mine.offset, mine.bytes);
    return dtn_emit_end(sched, err);
}

int dtn_emit_broadcast_eager(const struct dtn_call *call,
                             struct dtn_sched *sched, struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    int me = call->me;

    dtn_emit_begin(sched, "broadcast eager", call);
    if (me == call->root) {
        for (int i = 1; i < call->n; i++)
            dtn_sched_send_eager(sched, dtn_neighbour(call, i),
                                 dtn_span_at(me, DTN_IN, 0), bytes);
        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, 0),
                       dtn_span_at(me, DTN_IN, 0), bytes);
    } else {
        dtn_sched_recv_eager(sched, call->root, dtn_span_at(me, DTN_OUT, 0),
                             bytes);
    }
    return dtn_emit_end(sched, err);
}

int dtn_emit_allgather_eager(const struct dtn_call *call,
                             struct dtn_sched *sched, struct dtensor_error *err)
{
    int n = call->n, me = call->me;
    struct dtn_range mine = dtn_call_block(call, me);
    size_t total = dtn_call_blocks(call, 0, n).bytes;
    enum dtn_space to = n > 2 ? DTN_TMP : DTN_OUT;

    dtn_emit_begin(sched, "allgather eager", call);
    sched->bytes[DTN_TMP] = n > 2 ? total : 0;
    for (int i = 1; i < n; i++)
        dtn_sched_send_eager(sched, dtn_neighbour(call, i),
                             dtn_span_at(me, DTN_IN, 0), mine.bytes);
    for (int i = 1; i < n; i++) {
        int peer = dtn_neighbour(call, -i);
        struct dtn_range theirs = dtn_call_block(call, peer);

        dtn_sched_recv_eager(sched, peer, dtn_span_at(me, to, theirs.offset),
                             theirs.bytes);
    }
    dtn_sched_copy(sched, dtn_span_at(me, to, mine.offset),
                   dtn_span_at(me, DTN_IN, 0), mine.bytes);
    if (to == DTN_TMP)
        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, 0),
                       dtn_span_at(me, DTN_TMP, 0), total);
    return dtn_emit_end(sched, err);
}

int dtn_emit_barrier_direct(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    dtn_emit_begin(sched, "barrier direct", call);
    for (int i = 1; i < call->n; i++)
        dtn_sched_send_eager(sched, dtn_neighbour(call, i),
                             dtn_span_at(call->me, DTN_IN, 0), 0);
    for (int i = 1; i < call->n; i++)
        dtn_sched_recv_eager(sched, dtn_neighbour(call, -i),
                             dtn_span_at(call->me, DTN_OUT, 0), 0);
    return dtn_emit_end(sched, err);
}
