/* direct.c - collectives by loading straight from the peers' memory
 *
 * If every pair of ranks maps, a rank that signals READY lets the others load
 * from its buffers, and no byte is copied that is not also used.  Allreduce of
 * 4 MiB over 4 ranks: rank 2 folds bytes 2 MiB..3 MiB of all four INs into its
 * OUT, signals DATA, and loads the other three blocks from the OUTs of the
 * ranks that folded them.  Each input is read once and each result is written
 * once.
 *
 * Every rank waits for all READY before it writes the first byte of OUT, so a
 * mismatched call is found while OUT is untouched.  No rank returns before
 * those that load from it have signalled DONE.
 *
 * DONE is a third hop.  Up to 2 MiB each rank puts its folded block into every
 * OUT instead: two hops, and 0.88 to 0.92 of the time.  Above that both take as
 * long, and of private memory a rank stages one block instead of n - 1.
 *
 * If OUT is private memory, the sums would have to be staged there.  So for
 * short messages there are other steps, in which each rank folds all terms.
 *
 * In a broadcast the root has nothing to load, so it puts: of 4 MiB over 4
 * ranks it puts 1 MiB to each of the other three, while each of them loads the
 * other 3 MiB.
 *
 * In the first run, peers read private memory by cross-memory attach if they
 * only copy it.  If they reduce it, its owner stages the part that they read,
 * because terms read by cross-memory attach are written and read once more.
 * Later runs use the method that exec/trials.c measured as the fastest.
 *
 * Devices copy and fold on their own, and the host waits for them before it
 * tells peers.  So in the emitters named "device" a rank tells nobody before
 * all its copies and folds are launched.  Allreduce folds this rank's block of
 * all INs and stores it in the OUT of every rank, which one kernel does.  Those
 * named "stream" are the same; there the devices may tell each other.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

#define PUSH_MAX_BYTES ((size_t)2 << 20)
#define ALONE_MAX_BYTES ((size_t)16 << 10)            /* of all peers */
#define FOLD_ALONE_MAX_BYTES ((size_t)32 << 10)      /* of all terms */

/* Load each rank's block from its OUT. */
static void direct_pull(struct dtn_sched *sched, const struct dtn_call *call)
{
    dtn_emit_signal_all(sched, call, DTN_TAG_DATA);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_neighbour(call, -i);
        struct dtn_range block = dtn_call_block(call, peer);

        dtn_sched_wait(sched, peer, DTN_TAG_DATA);
        dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, block.offset),
                       dtn_span_at(peer, DTN_OUT, block.offset), block.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DONE);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
}

/* If some OUT is private: each rank folds all terms.  The sums go to TMP first,
 * because OUT may be IN, which peers load until DONE.
 */
static void allreduce_alone(struct dtn_sched *sched,
                            const struct dtn_call *call)
{
    const size_t bytes = sched->bytes[DTN_OUT];
    const struct dtn_span sums = dtn_span_at(call->me, DTN_TMP, 0);

    sched->bytes[DTN_TMP] = bytes;
    dtn_sched_private(sched);
    dtn_sched_fold(sched, sums, dtn_span_at(-1, DTN_IN, 0), bytes);
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, 0), sums, bytes);
}

int dtn_emit_allreduce_direct(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    struct dtn_range mine = dtn_call_block(call, call->me);
    struct dtn_range others = dtn_call_other_blocks(call);
    bool push, alone;

    dtn_emit_begin(sched, "allreduce direct", call);
    push = sched->bytes[DTN_OUT] <= PUSH_MAX_BYTES;
    alone = sched->bytes[DTN_OUT] > 0
         && sched->bytes[DTN_OUT] * (size_t)(call->n - 1) <= ALONE_MAX_BYTES;
    sched->expose = DTN_EXPOSE_STAGED;
    if (alone) {
        sched->exposed[DTN_IN] = sched->exposed[DTN_OUT] = true;
    } else {
        dtn_sched_expose_range(sched, DTN_IN, others);
        dtn_sched_expose_range(sched, DTN_OUT, push ? others : mine);
    }
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dtn_span_at(call->me, DTN_OUT, mine.offset),
                   dtn_span_at(-1, DTN_IN, mine.offset), mine.bytes);
    if (push)
        dtn_emit_put_all(sched, call);
    else
        direct_pull(sched, call);
    if (alone)
        allreduce_alone(sched, call);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allreduce_device(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    const struct dtn_range mine = dtn_call_block(call, call->me);
    const struct dtn_range others = dtn_call_other_blocks(call);
    const struct dtn_span sum = dtn_span_at(call->me, DTN_OUT, mine.offset);

    dtn_emit_begin(sched, "allreduce device", call);
    sched->expose = DTN_EXPOSE_STAGED;
    dtn_sched_expose_range(sched, DTN_IN, others);
    dtn_sched_expose_range(sched, DTN_OUT, others);
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, sum, dtn_span_at(-1, DTN_IN, mine.offset),
                   mine.bytes);
    for (int i = 1; i < call->n; i++) {
        const int peer = dtn_neighbour(call, i);

        dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, mine.offset),
                      sum, mine.bytes);
    }
    dtn_emit_signal_all(sched, call, DTN_TAG_DATA);
    dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
    dtn_emit_flush_all(sched, call);
    return dtn_emit_end(sched, err);
}

/* The root alone folds all terms. */
static void reduce_alone(struct dtn_sched *sched, const struct dtn_call *call)
{
    if (call->me != call->root) {
        dtn_sched_signal(sched, call->root, DTN_TAG_READY);
        dtn_sched_wait(sched, call->root, DTN_TAG_DONE);
        return;
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_emit_alone(sched);
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
}

/* Each rank folds a block and puts it into the root's OUT.  The root's DONE
 * tells a rank that all others have read its IN: they have told the root.
 */
static void reduce_together(struct dtn_sched *sched,
                            const struct dtn_call *call)
{
    int me = call->me, root = call->root;
    struct dtn_range mine = dtn_call_block(call, me);
    struct dtn_span dst = me == root ? dtn_span_at(me, DTN_OUT, mine.offset)
                                     : dtn_span_at(me, DTN_TMP, 0);

    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dst, dtn_span_at(-1, DTN_IN, mine.offset),
                   mine.bytes);
    if (me == root) {
        dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
        dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
        return;
    }
    sched->bytes[DTN_TMP] = mine.bytes;
    dtn_sched_put(sched, root, dtn_span_at(root, DTN_OUT, mine.offset), dst,
                  mine.bytes);
    dtn_sched_signal(sched, root, DTN_TAG_DATA);
    dtn_sched_flush(sched, root);
    dtn_sched_wait(sched, root, DTN_TAG_DONE);
}

static int reduce_emit(const struct dtn_call *call, const char *name,
                       bool together, struct dtn_sched *sched,
                       struct dtensor_error *err)
{
    dtn_emit_begin(sched, name, call);
    sched->expose = DTN_EXPOSE_STAGED;
    sched->exposed[DTN_IN] = true;
    sched->exposed[DTN_OUT] = call->me == call->root;
    if (!together
        && sched->bytes[DTN_IN] * (size_t)call->n <= FOLD_ALONE_MAX_BYTES)
        reduce_alone(sched, call);
    else
        reduce_together(sched, call);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_direct(const struct dtn_call *call, struct dtn_sched *sched,
                           struct dtensor_error *err)
{
    return reduce_emit(call, "reduce direct", false, sched, err);
}

int dtn_emit_reduce_device(const struct dtn_call *call, struct dtn_sched *sched,
                           struct dtensor_error *err)
{
    return reduce_emit(call, "reduce device", false, sched, err);
}

/* The root puts `part` to all peers, which load the rest at the same time. */
static void broadcast_root(struct dtn_sched *sched,
                           const struct dtn_call *call, struct dtn_range part)
{
    int me = call->me;

    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    for (int i = 1; i < call->n; i++) {
        int peer = dtn_neighbour(call, i);

        dtn_sched_wait(sched, peer, DTN_TAG_READY);
        dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, 0),
                      dtn_span_at(me, DTN_IN, 0), part.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, 0),
                   dtn_span_at(me, DTN_IN, 0), sched->bytes[DTN_IN]);
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    dtn_emit_flush_all(sched, call);
}

typedef void broadcast_root_f(struct dtn_sched *sched,
                              const struct dtn_call *call,
                              struct dtn_range part);

static int broadcast_emit(const struct dtn_call *call, const char *name,
                          broadcast_root_f *root_does, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    int me = call->me, root = call->root;
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct dtn_range part = dtn_range_split(bytes, call->n, 0);
    struct dtn_range rest = { part.bytes, bytes - part.bytes };

    dtn_emit_begin(sched, name, call);
    if (me == root) {
        dtn_sched_expose_range(sched, DTN_IN, rest);
        root_does(sched, call, part);
        return dtn_emit_end(sched, err);
    }
    dtn_sched_expose_range(sched, DTN_OUT, part);
    dtn_sched_signal(sched, root, DTN_TAG_READY);
    dtn_sched_wait(sched, root, DTN_TAG_READY);
    dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, rest.offset),
                   dtn_span_at(root, DTN_IN, rest.offset), rest.bytes);
    dtn_sched_signal(sched, root, DTN_TAG_DONE);
    dtn_sched_wait(sched, root, DTN_TAG_DATA);
    return dtn_emit_end(sched, err);
}

int dtn_emit_broadcast_direct(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    return broadcast_emit(call, "broadcast direct", broadcast_root, sched, err);
}

/* The same in two runs over the peers: all puts, then all signals. */
static void broadcast_root_device(struct dtn_sched *sched,
                                  const struct dtn_call *call,
                                  struct dtn_range part)
{
    const struct dtn_span from = dtn_span_at(call->me, DTN_IN, 0);

    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    for (int i = 1; i < call->n; i++) {
        const int peer = dtn_neighbour(call, i);

        dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, 0), from,
                      part.bytes);
    }
    dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, 0), from,
                   sched->bytes[DTN_IN]);
    dtn_emit_signal_all(sched, call, DTN_TAG_DATA);
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    dtn_emit_flush_all(sched, call);
}

int dtn_emit_broadcast_device(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    return broadcast_emit(call, "broadcast device", broadcast_root_device,
                          sched, err);
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
        int peer = dtn_neighbour(call, -i);
        struct dtn_range block = dtn_call_block(call, peer);

        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, block.offset),
                       dtn_span_at(peer, DTN_IN, 0), block.bytes);
        if (peer != me)
            dtn_sched_signal(sched, peer, DTN_TAG_DONE);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allgather_device(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    const int me = call->me;

    dtn_emit_begin(sched, "allgather device", call);
    sched->exposed[DTN_IN] = true;
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    for (int i = 0; i < call->n; i++) {
        const int peer = dtn_neighbour(call, -i);
        const struct dtn_range block = dtn_call_block(call, peer);

        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, block.offset),
                       dtn_span_at(peer, DTN_IN, 0), block.bytes);
    }
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

static int reduce_scatter_emit(const struct dtn_call *call, const char *name,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    struct dtn_range mine = dtn_call_block(call, call->me);

    dtn_emit_begin(sched, name, call);
    sched->expose = DTN_EXPOSE_STAGED;
    dtn_sched_expose_range(sched, DTN_IN, dtn_call_other_blocks(call));
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    dtn_sched_fold(sched, dtn_span_at(call->me, DTN_OUT, 0),
                   dtn_span_at(-1, DTN_IN, mine.offset), mine.bytes);
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

int dtn_emit_reduce_scatter_direct(const struct dtn_call *call,
                                   struct dtn_sched *sched,
                                   struct dtensor_error *err)
{
    return reduce_scatter_emit(call, "reduce_scatter direct", sched, err);
}

int dtn_emit_reduce_scatter_device(const struct dtn_call *call,
                                   struct dtn_sched *sched,
                                   struct dtensor_error *err)
{
    return reduce_scatter_emit(call, "reduce_scatter device", sched, err);
}

/* --------------------------------------------- devices tell each other --- */

static int stream_end(struct dtn_sched *sched, const char *name, int rc)
{
    if (rc != 0)
        return rc;
    sched->name = name;
    sched->streams = true;
    return 0;
}

int dtn_emit_allreduce_stream(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    return stream_end(sched, "allreduce stream",
                      dtn_emit_allreduce_device(call, sched, err));
}

int dtn_emit_reduce_stream(const struct dtn_call *call, struct dtn_sched *sched,
                           struct dtensor_error *err)
{
    return stream_end(sched, "reduce stream",
                      reduce_emit(call, "reduce stream", true, sched, err));
}

int dtn_emit_broadcast_stream(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    return stream_end(sched, "broadcast stream",
                      dtn_emit_broadcast_device(call, sched, err));
}

int dtn_emit_allgather_stream(const struct dtn_call *call,
                              struct dtn_sched *sched,
                              struct dtensor_error *err)
{
    return stream_end(sched, "allgather stream",
                      dtn_emit_allgather_device(call, sched, err));
}

int dtn_emit_reduce_scatter_stream(const struct dtn_call *call,
                                   struct dtn_sched *sched,
                                   struct dtensor_error *err)
{
    return stream_end(sched, "reduce_scatter stream",
                      dtn_emit_reduce_scatter_device(call, sched, err));
}
