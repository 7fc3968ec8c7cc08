/* tree.c - collectives in log2(n) hops, for small messages
 *
 * Binomial tree over positions v counted from the root: the parent of v is v
 * without its lowest set bit, so the children of v are v+1, v+2, v+4, ...
 * below that bit.  Over 6 ranks:
 *
 *     0 -> 1, 2, 4      2 -> 3      4 -> 5
 *
 * A broadcast goes down (to 4 first: the largest subtree), a reduction up:
 * children put into slots of the parent's TMP, which are added in a fixed
 * order.  Allreduce is a reduction to rank 0 and a broadcast from there, so
 * that all ranks have the very same bits.  Up to 4 KiB go with the signal.
 *
 * All-gather and barrier have no root: in step d = 1, 2, 4, ... rank r tells
 * r+d all it knows, which are the blocks r, r-1, .. r-d+1.
 */
#include "coll/emit.h"

#define TREE_CHILDREN_MAX 31

struct tree {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    int me;
    int parent;                   /* -1: this is the root                      */
    int rank_in_parent;           /* its child 0, 1, 2, ..                     */
    int nchildren;
    int child[TREE_CHILDREN_MAX];
    size_t bytes;                 /* of the message                            */
    bool carry;                   /* it goes with a signal                       */
};

static struct tree tree_make(const struct dtn_call *call, int root,
                             size_t bytes, struct dtn_sched *sched)
{
    int n = call->n, v = (call->me - root + n) % n;
    struct tree tree = { .sched = sched, .call = call, .me = call->me,
                         .parent = -1, .bytes = bytes,
                         .carry = bytes <= DTN_CARRY_MAX };

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

/* Where the sum so far is: IN, and in the first slot as soon as there are
 * children's terms to add to it.
 */
static struct dtn_span tree_sum(const struct tree *tree)
{
    return dtn_at(tree->me, tree->nchildren > 0 ? DTN_TMP : DTN_IN, 0);
}

/* Take the children's sums and add the own IN. */
static void tree_collect(const struct tree *tree)
{
    struct dtn_sched *sched = tree->sched;

    for (int k = 0; !tree->carry && k < tree->nchildren; k++)
        dtn_sched_signal(sched, tree->child[k], DTN_TAG_READY);
    for (int k = 0; k < tree->nchildren; k++) {
        struct dtn_span slot = dtn_at(tree->me, DTN_TMP,
                                      (size_t)k * tree->bytes);

        if (tree->carry)
            dtn_sched_catch(sched, tree->child[k], slot, tree->bytes);
        else
            dtn_sched_wait(sched, tree->child[k], DTN_TAG_DATA);
        dtn_sched_reduce(sched, tree_sum(tree),
                         k > 0 ? slot : dtn_at(tree->me, DTN_IN, 0),
                         tree->bytes);
    }
}

/* Reduce toward the root, which finds the result in tree_sum(). */
static void tree_reduce(const struct tree *tree)
{
    struct dtn_sched *sched = tree->sched;
    struct dtn_span slot = dtn_at(tree->parent, DTN_TMP,
                                  (size_t)tree->rank_in_parent * tree->bytes);

    sched->bytes[DTN_TMP] = (size_t)tree->nchildren * tree->bytes;
    sched->exposed[DTN_TMP] = tree->nchildren > 0 && !tree->carry;
    tree_collect(tree);
    if (tree->parent < 0)
        return;
    if (tree->carry) {
        dtn_sched_carry(sched, tree->parent, tree_sum(tree), tree->bytes);
        return;
    }
    dtn_sched_wait(sched, tree->parent, DTN_TAG_READY);
    dtn_sched_put(sched, tree->parent, slot, tree_sum(tree), tree->bytes);
    dtn_sched_signal(sched, tree->parent, DTN_TAG_DATA);
    dtn_sched_flush(sched, tree->parent);
}

/* What the root has in `from`, everyone else gets in OUT. */
static void tree_broadcast(const struct tree *tree, struct dtn_span from)
{
    struct dtn_sched *sched = tree->sched;
    struct dtn_span out = dtn_at(tree->me, DTN_OUT, 0);

    if (tree->parent >= 0 && tree->carry) {
        dtn_sched_catch(sched, tree->parent, out, tree->bytes);
    } else if (tree->parent >= 0) {
        sched->exposed[DTN_OUT] = true;
        dtn_sched_signal(sched, tree->parent, DTN_TAG_READY);
        dtn_sched_wait(sched, tree->parent, DTN_TAG_DATA);
    }
    if (tree->parent >= 0)
        from = out;
    for (int k = tree->nchildren - 1; k >= 0; k--) {
        int child = tree->child[k];

        if (tree->carry) {
            dtn_sched_carry(sched, child, from, tree->bytes);
            continue;
        }
        dtn_sched_wait(sched, child, DTN_TAG_READY);
        dtn_sched_put(sched, child, dtn_at(child, DTN_OUT, 0), from,
                      tree->bytes);
        dtn_sched_signal(sched, child, DTN_TAG_DATA);
    }
    for (int k = tree->nchildren - 1; !tree->carry && k >= 0; k--)
        dtn_sched_flush(sched, tree->child[k]);
}

int dtn_emit_reduce_tree(const struct dtn_call *call, struct dtn_sched *sched,
                         struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct tree tree = tree_make(call, call->root, bytes, sched);

    dtn_emit_begin(sched, "reduce tree", call);
    tree_reduce(&tree);
    if (tree.parent < 0) {
        dtn_sched_copy(sched, dtn_at(call->me, DTN_OUT, 0), tree_sum(&tree),
                       bytes);
        dtn_emit_average(sched, call, (struct dtn_range){ 0, bytes });
    }
    return dtn_emit_end(sched, err);
}

int dtn_emit_broadcast_tree(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct tree tree = tree_make(call, call->root, bytes, sched);

    dtn_emit_begin(sched, "broadcast tree", call);
    tree_broadcast(&tree, dtn_at(call->me, DTN_IN, 0));
    if (tree.parent < 0)
        dtn_sched_copy(sched, dtn_at(call->me, DTN_OUT, 0),
                       dtn_at(call->me, DTN_IN, 0), bytes);
    return dtn_emit_end(sched, err);
}

int dtn_emit_allreduce_tree(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    struct tree tree = tree_make(call, 0, bytes, sched);
    struct dtn_span out = dtn_at(call->me, DTN_OUT, 0);

    dtn_emit_begin(sched, "allreduce tree", call);
    tree_reduce(&tree);
    if (tree.parent < 0) {
        dtn_sched_copy(sched, out, tree_sum(&tree), bytes);
        dtn_emit_average(sched, call, (struct dtn_range){ 0, bytes });
    }
    tree_broadcast(&tree, out);
    return dtn_emit_end(sched, err);
}

/* Blocks of the subtree under child k of the rank, as it lies in the buffer.
 * Trees from rank 0 only.
 */
static struct dtn_range tree_subtree(const struct tree *tree, int k)
{
    int first = tree->child[k], count = 1 << k;

    if (first + count > tree->call->n)
        count = tree->call->n - first;
    return dtn_blocks(tree->call, first, count);
}

/* Reduce everything to rank 0, then hand each subtree its blocks, which lie
 * in TMP as they do in IN.
 */
int dtn_emit_reduce_scatter_tree(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    size_t bytes = dtn_blocks(call, 0, call->n).bytes;
    struct dtn_range mine = dtn_block(call, call->me);
    struct tree tree = tree_make(call, 0, bytes, sched);
    enum dtn_space space = call->n > 1 ? DTN_TMP : DTN_IN;

    dtn_emit_begin(sched, "reduce_scatter tree", call);
    tree_reduce(&tree);
    if (tree.parent >= 0) {
        sched->exposed[DTN_TMP] = true;
        if (sched->bytes[DTN_TMP] < bytes)
            sched->bytes[DTN_TMP] = bytes;
        dtn_sched_signal(sched, tree.parent, DTN_TAG_READY);
        dtn_sched_wait(sched, tree.parent, DTN_TAG_DATA);
    }
    for (int k = tree.nchildren - 1; k >= 0; k--) {
        struct dtn_range part = tree_subtree(&tree, k);
        int child = tree.child[k];

        dtn_sched_wait(sched, child, DTN_TAG_READY);
        dtn_sched_put(sched, child, dtn_at(child, DTN_TMP, part.offset),
                      dtn_at(call->me, DTN_TMP, part.offset), part.bytes);
        dtn_sched_signal(sched, child, DTN_TAG_DATA);
    }
    dtn_sched_copy(sched, dtn_at(call->me, DTN_OUT, 0),
                   dtn_at(call->me, space, mine.offset), mine.bytes);
    dtn_emit_average(sched, call, (struct dtn_range){ 0, mine.bytes });
    for (int k = tree.nchildren - 1; k >= 0; k--)
        dtn_sched_flush(sched, tree.child[k]);
    return dtn_emit_end(sched, err);
}

/* ---------------------------------------------------------------- rootless */

/* Put blocks first .. first+count-1 of the own OUT to where they belong. */
static void spread_put(struct dtn_sched *sched, const struct dtn_call *call,
                       int peer, int first, int count)
{
    struct dtn_range range = dtn_blocks(call, first, count);

    dtn_sched_put(sched, peer, dtn_at(peer, DTN_OUT, range.offset),
                  dtn_at(call->me, DTN_OUT, range.offset), range.bytes);
}

/* Tell `peer` the `count` blocks up to the own, which may wrap around. */
static void spread_blocks(struct dtn_sched *sched, const struct dtn_call *call,
                          int peer, int count)
{
    int first = call->me - count + 1;

    if (first < 0) {
        spread_put(sched, call, peer, first + call->n, -first);
        first = 0;
    }
    spread_put(sched, call, peer, first, call->me - first + 1);
}

int dtn_emit_allgather_tree(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    int n = call->n, me = call->me;
    struct dtn_range mine = dtn_block(call, me);

    dtn_emit_begin(sched, "allgather tree", call);
    sched->exposed[DTN_OUT] = true;
    for (int d = 1; d < n; d *= 2)
        dtn_sched_signal(sched, dtn_around(call, -d), DTN_TAG_READY);
    dtn_sched_copy(sched, dtn_at(me, DTN_OUT, mine.offset),
                   dtn_at(me, DTN_IN, 0), mine.bytes);
    for (int d = 1; d < n; d *= 2)
        dtn_sched_wait(sched, dtn_around(call, d), DTN_TAG_READY);
    for (int d = 1; d < n; d *= 2) {
        int peer = dtn_around(call, d);

        spread_blocks(sched, call, peer, d < n - d ? d : n - d);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
        dtn_sched_wait(sched, dtn_around(call, -d), DTN_TAG_DATA);
    }
    for (int d = 1; d < n; d *= 2)
        dtn_sched_flush(sched, dtn_around(call, d));
    return dtn_emit_end(sched, err);
}

int dtn_emit_barrier_tree(const struct dtn_call *call, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    dtn_emit_begin(sched, "barrier tree", call);
    for (int d = 1; d < call->n; d *= 2) {
        dtn_sched_carry(sched, dtn_around(call, d),
                        dtn_at(call->me, DTN_IN, 0), 0);
        dtn_sched_catch(sched, dtn_around(call, -d),
                        dtn_at(call->me, DTN_OUT, 0), 0);
    }
    return dtn_emit_end(sched, err);
}
