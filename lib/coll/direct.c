/* direct.c - collectives by loading straight from the peers' memory
 *
 * Where every pair of ranks maps, a rank that says READY lets the others load
 * from its buffers, and no byte is copied that is not also used.  Allreduce
 * of 4 MiB over 4 ranks: rank 2 folds bytes 2 MiB..3 MiB of all four INs into
 * its OUT, says DATA, and loads the other three blocks from the OUTs of those
 * who folded them.  Each input is read once and each result written once.
 *
 * Everyone waits for all READY before writing the first byte of OUT, so that
 * a mismatched call is caught with OUT untouched; and nobody returns before
 * those who load from it have said DONE.
 *
 * The last is a third hop.  Up to 64 KiB the folded block is *put* into every
 * OUT instead, which needs none: two hops.  Above that loading wins, since
 * between cores far apart it is faster than storing (2 MiB, two ranks: 161
 * against 220 us).
 */
#include "coll/emit.h"

#define PUSH_MAX_BYTES ((size_t)64 << 10)
#define FOLD_ALONE_MAX_BYTES ((size_t)32 << 10)

/* Put the own block into every OUT. */
static void direct_push(struct dtn_sched *sched, const struct dtn_call *call,
                        struct dtn_range mine)
{
    int me = call->me;

    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, i);

        dtn_sched_put(sched, peer, dtn_at(peer, DTN_OUT, mine.offset),
                      dtn_at(me, DTN_OUT, mine.offset), mine.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
    for (int i = 1; i < call->n; i++)
        dtn_sched_flush(sched, dtn_around(call, i));
}

/* Load everyone's block from its OUT. */
static void direct_pull(struct dtn_sched *sched, const struct dtn_call *call)
{
    dtn_emit_signal_all(sched, call, DTN_TAG_DATA);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_around(call, -i);
        struct dtn_range block = dtn_block(call, peer);

        dtn_sched_wait(sched, peer, DTN_TAG_DATA);
        dtn_sched_copy(sched, dtn_at(call->me, DTN_OUT, block.offset),
                       dtn_at(peer, DTN_OUT, block.offset), block.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DONE);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
}

int dtn_emit_allreduce_direct(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    struct dtn_range mine = dtn_block(call, call->me);

    dtn_emit_begin(sched, "allreduce direct", call);
    sched->exposed[DTN_IN] = sched->exposed[DTN_OUT] = true;
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dtn_at(call->me, DTN_OUT, mine.offset),
                   dtn_at(-1, DTN_IN, mine.offset), mine.bytes);
    dtn_emit_average(sched, call, mine);
    if (sched->bytes[DTN_OUT] <= PUSH_MAX_BYTES)
        direct_push(sched, call, mine);
    else
        direct_pull(sched, call);
    return dtn_emit_end(sched, err);
}

/* The root folds everything itself. */
static void reduce_alone(struct dtn_sched *sched, const struct dtn_call *call)
{
    size_t bytes = sched->bytes[DTN_IN];

    if (call->me != call->root) {
        dtn_sched_signal(sched, call->root, DTN_TAG_READY);
        dtn_sched_wait(sched, call->root, DTN_TAG_DONE);
        return;
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dtn_at(call->me, DTN_OUT, 0), dtn_at(-1, DTN_IN, 0),
                   bytes);
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
    dtn_emit_average(sched, call, (struct dtn_range){ 0, bytes });
}

/* Everyone folds a block and puts it into the root's OUT.  The root's DONE
 * tells each that all the others have read its IN: they said so to the root.
 */
static void reduce_together(struct dtn_sched *sched,
                            const struct dtn_call *call)
{
    int me = call->me, root = call->root;
    struct dtn_range mine = dtn_block(call, me);
    struct dtn_span dst = me == root ? dtn_at(me, DTN_OUT, mine.offset)
                                     : dtn_at(me, DTN_TMP, 0);

    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dst, dtn_at(-1, DTN_IN, mine.offset), mine.bytes);
    if (me == root) {
        dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
        dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
        dtn_emit_average(sched, call,
                         (struct dtn_range){ 0, sched->bytes[DTN_OUT] });
        return;
    }
    sched->bytes[DTN_TMP] = mine.bytes;
    dtn_sched_put(sched, root, dtn_at(root, DTN_OUT, mine.offset), dst,
                  mine.bytes);
    dtn_sched_signal(sched, root, DTN_TAG_DATA);
    dtn_sched_flush(sched, root);
    dtn_sched_wait(sched, root, DTN_TAG_DONE);
}

int dtn_emit_reduce_direct(const struct dtn_call *call, struct dtn_sched *sched,
                           struct dtensor_error *err)
{
    dtn_emit_begin(sched, "reduce direct", call);
    sched->exposed[DTN_IN] = true;
    sched->exposed[DTN_OUT] = call->me == call->root;
    if (sched->bytes[DTN_IN] <= FOLD_ALONE_MAX_BYTES)
        reduce_alone(sched, call);
    else
        reduce_together(sched, call);
    return dtn_emit_end(sched, err);
}

int dtn_emit_broadcast_direct(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    int me = call->me, root = call->root;
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);

    dtn_emit_begin(sched, "broadcast direct", call);
    if (me == root) {
        sched->exposed[DTN_IN] = true;
        dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    } else {
        dtn_sched_wait(sched, root, DTN_TAG_READY);
    }
    dtn_sched_copy(sched, dtn_at(me, DTN_OUT, 0), dtn_at(root, DTN_IN, 0),
                   bytes);
    if (me == root)
        dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    else
        dtn_sched_signal(sched, root, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allgather_direct(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    int me = call->me;

    dtn_emit_begin(sched, "allgather direct", call);
    sched->exposed[DTN_IN] = true;
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    for (int i = 0; i < call->n; i++) {
        int peer = dtn_around(call, -i);
        struct dtn_range block = dtn_block(call, peer);

        dtn_sched_copy(sched, dtn_at(me, DTN_OUT, block.offset),
                       dtn_at(peer, DTN_IN, 0), block.bytes);
        if (peer != me)
            dtn_sched_signal(sched, peer, DTN_TAG_DONE);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_scatter_direct(const struct dtn_call *call,
                                   struct dtn_sched *sched,
                                   struct dtensor_error *err)
{
    struct dtn_range mine = dtn_block(call, call->me);

    dtn_emit_begin(sched, "reduce_scatter direct", call);
    sched->exposed[DTN_IN] = true;
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dtn_at(call->me, DTN_OUT, 0),
                   dtn_at(-1, DTN_IN, mine.offset), mine.bytes);
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
    dtn_emit_average(sched, call, (struct dtn_range){ 0, mine.bytes });
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

int dtn_emit_all_to_all_direct(const struct dtn_call *call,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    int me = call->me;

    dtn_emit_begin(sched, "all_to_all direct", call);
    sched->exposed[DTN_IN] = true;
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    for (int i = 0; i < call->n; i++) {
        int peer = dtn_around(call, -i);
        struct dtn_range to = dtn_received(call, peer, me);

        dtn_sched_copy(sched, dtn_at(me, DTN_OUT, to.offset),
                       dtn_at(peer, DTN_IN, dtn_sent(call, peer, me).offset),
                       to.bytes);
        if (peer != me)
            dtn_sched_signal(sched, peer, DTN_TAG_DONE);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}
