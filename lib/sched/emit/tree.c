/* tree.c - collectives in log2(n) hops, for small messages
 *
 * A binomial tree over positions v counted from the root: the parent of v is v
 * without its lowest set bit, so the children of v are v+1, v+2, v+4, ... below
 * that bit.  Over 6 ranks:
 *
 *     0 -> 1, 2, 4      2 -> 3      4 -> 5
 *
 * A broadcast goes down (to 4 first: the largest subtree).  A reduction goes
 * up: children put into slots of the parent's ACC, which are added in a fixed
 * order.  An allreduce is a reduction to rank 0 and a broadcast from there, so
 * all ranks have the same bits.  Up to 4 KiB are sent eagerly.
 *
 * A barrier has no root: in step d = 1, 2, 4, ... rank r tells r+d that it has
 * heard from r, r-1, .. r-d+1.
 *
 * The allreduce and the reduce_scatter are never the cheapest (0 of 3,248
 * cases).  The cluster file can name them, and the checker proves them.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>

#define TREE_CHILDREN_MAX 31

struct tree {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    int me;
    int parent;                   /* -1: this is the root                     */
    int rank_in_parent;           /* number among the parent's children, from */
                                  /* 0                                        */
    int nchildren;
    int child[TREE_CHILDREN_MAX];
    size_t bytes;                 /* bytes of the message                     */
    bool eager;                   /* the message is eager                     */
};

static struct tree tree_make(const struct dtn_call *call, int root,
                             size_t bytes, struct dtn_sched *sched)
{
    int n = call->n, v = (call->me - root + n) % n;
    struct tree tree = { .sched = sched, .call = call, .me = call->me,
                         .parent = -1, .bytes = bytes };

    tree.eager = dtn_emit_partial_bytes(sched, bytes) <= sched->eager_bytes;

    for (int k = 0; 1 << k < n; k++) {
        if (v & 1 << k) {
            tree.parent = (v - (1 << k) + root) % n;
            tree.rank_in_parent = k;
            break;
        }
        if (v + (1 << k) < n)
            tree.child[tree.nchildren++] = (v + (1 << k) + root) % n;
    }
    return tree;
}

/* Receive the children's sums and add this rank's IN.  The result is in the
 * first slot; without children it is this rank's term.
 */
static struct dtn_span tree_collect(const struct tree *tree)
{
    struct dtn_sched *sched = tree->sched;
    struct dtn_span own = dtn_span_at(tree->me, DTN_IN, 0);
    struct dtn_span sum = dtn_span_at(tree->me, DTN_ACC, 0);

    if (tree->nchildren == 0)
        return dtn_emit_term(sched, own, sum, tree->bytes);

    for (int k = 0; !tree->eager && k < tree->nchildren; k++)
        dtn_sched_signal(sched, tree->child[k], DTN_TAG_READY);
    for (int k = 0; k < tree->nchildren; k++) {
        struct dtn_span slot = dtn_span_at(tree->me, DTN_ACC,
                                           (size_t)k * tree->bytes);

        if (tree->eager)
            dtn_sched_recv_eager(sched, tree->child[k], slot, tree->bytes);
        else
            dtn_sched_wait(sched, tree->child[k], DTN_TAG_DATA);
        dtn_sched_reduce(sched, sum, k > 0 ? slot : own, tree->bytes);
    }
    return sum;
}

/* Reduce toward the root; returns the place of this rank's sum. */
static struct dtn_span tree_reduce(const struct tree *tree)
{
    struct dtn_sched *sched = tree->sched;
    struct dtn_span slot = dtn_span_at(
        tree->parent, DTN_ACC, (size_t)tree->rank_in_parent * tree->bytes);
    struct dtn_span sum = tree_collect(tree);

    sched->bytes[DTN_ACC] = tree->nchildren > 0
                          ? (size_t)tree->nchildren * tree->bytes
                          : dtn_emit_term_bytes(sched, tree->bytes);
    sched->exposed[DTN_ACC] = tree->nchildren > 0 && !tree->eager;
    if (tree->parent >= 0 && tree->eager) {
        dtn_sched_send_eager(sched, tree->parent, sum, tree->bytes);
    } else if (tree->parent >= 0) {
        dtn_sched_wait(sched, tree->parent, DTN_TAG_READY);
        dtn_sched_put(sched, tree->parent, slot, sum, tree->bytes);
        dtn_sched_signal(sched, tree->parent, DTN_TAG_DATA);
        dtn_sched_flush(sched, tree->parent);
    }
    return sum;
}

/* Broadcast `from` of the root into the OUT of all other ranks. */
static void tree_broadcast(const struct tree *tree, struct dtn_span from)
{
    struct dtn_sched *sched = tree->sched;
    struct dtn_span out = dtn_span_at(tree->me, DTN_OUT, 0);

    if (tree->parent >= 0 && tree->eager) {
        dtn_sched_recv_eager(sched, tree->parent, out, tree->bytes);
    } else if (tree->parent >= 0) {
        sched->exposed[DTN_OUT] = true;
        dtn_sched_signal(sched, tree->parent, DTN_TAG_READY);
        dtn_sched_wait(sched, tree->parent, DTN_TAG_DATA);
    }
    if (tree->parent >= 0)
        from = out;
    for (int k = tree->nchildren - 1; k >= 0; k--) {
        int child = tree->child[k];

        if (tree->eager) {
            dtn_sched_send_eager(sched, child, from, tree->bytes);
            continue;
        }
        dtn_sched_wait(sched, child, DTN_TAG_READY);
        dtn_sched_put(sched, child, dtn_span_at(child, DTN_OUT, 0), from,
                      tree->bytes);
        dtn_sched_signal(sched, child, DTN_TAG_DATA);
    }
    for (int k = tree->nchildren - 1; !tree->eager && k >= 0; k--)
        dtn_sched_flush(sched, tree->child[k]);
}

int dtn_emit_reduce_tree(const struct dtn_call *call, struct dtn_sched *sched,
                         struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct dtn_span sum;
    struct tree tree;

    dtn_emit_begin(sched, "reduce tree", call);
    if (call->n == 1) {
        dtn_emit_alone(sched);
        return dtn_emit_end(sched, err);
    }
    tree = tree_make(call, call->root, bytes, sched);
    sum = tree_reduce(&tree);
    if (tree.parent < 0)
        dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, 0), sum, bytes);
    return dtn_emit_end(sched, err);
}

int dtn_emit_broadcast_tree(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct tree tree;

    dtn_emit_begin(sched, "broadcast tree", call);
    tree = tree_make(call, call->root, bytes, sched);
    tree_broadcast(&tree, dtn_span_at(call->me, DTN_IN, 0));
    if (tree.parent < 0)
        dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, 0),
                       dtn_span_at(call->me, DTN_IN, 0), bytes);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allreduce_tree(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct dtn_span out = dtn_span_at(call->me, DTN_OUT, 0), sum;
    struct tree tree;

    dtn_emit_begin(sched, "allreduce tree", call);
    if (call->n == 1) {
        dtn_emit_alone(sched);
        return dtn_emit_end(sched, err);
    }
    tree = tree_make(call, 0, bytes, sched);
    sum = tree_reduce(&tree);
    if (tree.parent < 0)
        dtn_sched_copy(sched, out, sum, bytes);
    tree_broadcast(&tree, out);
    return dtn_emit_end(sched, err);
}

/* The blocks of the subtree under child k of this rank, as a part of the
 * buffer.  Only for trees with root 0.
 */
static struct dtn_range tree_subtree(const struct tree *tree, int k)
{
    int first = tree->child[k], count = 1 << k;

    if (first + count > tree->call->n)
        count = tree->call->n - first;
    return dtn_call_blocks(tree->call, first, count);
}

/* Reduce all blocks to rank 0, then send each subtree its blocks.  ACC has the
 * layout of IN.  Each rank finalises its own block.
 */
int dtn_emit_reduce_scatter_tree(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    size_t bytes = dtn_call_blocks(call, 0, call->n).bytes;
    struct dtn_range mine = dtn_call_block(call, call->me);
    struct dtn_span sum;
    struct tree tree;

    dtn_emit_begin(sched, "reduce_scatter tree", call);
    if (call->n == 1) {
        dtn_emit_alone(sched);
        return dtn_emit_end(sched, err);
    }
    tree = tree_make(call, 0, bytes, sched);
    sum = tree_reduce(&tree);
    if (tree.parent >= 0) {
        sum = dtn_span_at(call->me, DTN_ACC, 0);
        sched->exposed[DTN_ACC] = true;
        if (sched->bytes[DTN_ACC] < bytes)
            sched->bytes[DTN_ACC] = bytes;
        dtn_sched_signal(sched, tree.parent, DTN_TAG_READY);
        dtn_sched_wait(sched, tree.parent, DTN_TAG_DATA);
    }
    for (int k = tree.nchildren - 1; k >= 0; k--) {
        struct dtn_range part = tree_subtree(&tree, k);
        int child = tree.child[k];

        dtn_sched_wait(sched, child, DTN_TAG_READY);
        dtn_sched_put(sched, child, dtn_span_at(child, DTN_ACC, part.offset),
                      dtn_span_at(call->me, DTN_ACC, part.offset), part.bytes);
        dtn_sched_signal(sched, child, DTN_TAG_DATA);
    }
    sum.offset += mine.offset;
    dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, 0), sum, mine.bytes);
    for (int k = tree.nchildren - 1; k >= 0; k--)
        dtn_sched_flush(sched, tree.child[k]);
    return dtn_emit_end(sched, err);
}

/* ----------------------------------------------------------------- barrier */

int dtn_emit_barrier_tree(const struct dtn_call *call, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    dtn_emit_begin(sched, "barrier tree", call);
    for (int d = 1; d < call->n; d *= 2) {
        dtn_sched_send_eager(sched, dtn_neighbour(call, d),
                             dtn_span_at(call->me, DTN_IN, 0), 0);
        dtn_sched_recv_eager(sched, dtn_neighbour(call, -d),
                             dtn_span_at(call->me, DTN_OUT, 0), 0);
    }
    return dtn_emit_end(sched, err);
}
