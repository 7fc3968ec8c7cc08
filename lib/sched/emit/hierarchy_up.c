/* hierarchy_up.c - reduce by trees of hosts, in chunks
 *
 * Over trees of H levels a host at depth d sends chunk c in tick c + H - d.
 * The owner of a rail folds the chunk over its host, adds the sums of its
 * children, and puts it to its parent; on the root's host it puts the result to
 * the root.
 *
 * ACC of an owner, for each tree and for chunks of even and of odd number:
 *
 *     own sum   |   sum of child 0   |   sum of child 1
 */
#include "base/compiler.h"
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/emit/hierarchy_trees.h"
#include "sched/emit/trees.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* The number of the chunk that this host sends in a tick. */
static int up_number(const struct dtn_trees *tr, int t, int tick)
{
    return tick - tr->height + tr->tree[t].depth;
}

static struct dtn_range up_chunk(const struct dtn_trees *tr, int t, int tick)
{
    return dtn_trees_chunk(tr, tr->h.local, t, up_number(tr, t, tick));
}

/* The place in the ACC of the owner on a host for the sums of chunk c: 0 its
 * own, 1 + i that of child i.
 */
static struct dtn_span up_slot(const struct dtn_trees *tr, int host, int t,
                               int c, int i)
{
    const int n = tr->h.nhosts;
    const int before = t == 0 ? 0
        : 2 * (1 + dtn_tree_make(n, tr->root_host, host, 0).nchildren);
    const int each = 1 + dtn_tree_make(n, tr->root_host, host, t).nchildren;

    return dtn_span_at(dtn_trees_peer(tr, host), DTN_ACC, tr->chunk_bytes
                       * (size_t)(before + c % 2 * each + i));
}

/* READY: locals to owners, the root to those of its host; parents to children.
 */
static void up_meet(const struct dtn_trees *tr)
{
    const struct dtn_hierarchy *h = &tr->h;

    for (int t = 0; t < 2; t++)
        for (int i = 0; i < dtn_trees_children(tr, t); i++)
            dtn_sched_signal(tr->sched, dtn_trees_child(tr, t, i),
                             DTN_TAG_READY);
    dtn_local_signal(h, DTN_TAG_READY, DTN_PAIRS_TO_OWNER);
    dtn_local_wait(h, DTN_TAG_READY, DTN_PAIRS_TO_OWNER);
    for (int t = 0; t < 2; t++)
        if (dtn_trees_parent(tr, t) >= 0)
            dtn_sched_wait(tr->sched, dtn_trees_parent(tr, t), DTN_TAG_READY);
}

/* Fold the chunk of this tick over the host. */
static void up_fold(const struct dtn_trees *tr, int t, int tick)
{
    const struct dtn_range chunk = up_chunk(tr, t, tick);

    dtn_sched_fold(tr->sched, up_slot(tr, tr->h.host, t,
                                      up_number(tr, t, tick) & 1, 0),
                   dtn_span_at(-1, DTN_IN, chunk.offset), chunk.bytes);
}

/* Flush what was put in the last tick: its place is needed in the next one.
 * Both trees put to the root in the same tick.
 */
static void up_flush(const struct dtn_trees *tr, int t, int tick)
{
    const int parent = dtn_trees_parent(tr, t), root = tr->h.call->root;

    if (up_chunk(tr, t, tick - 1).bytes == 0)
        return;
    if (parent >= 0)
        dtn_sched_flush(tr->sched, parent);
    else if (t == 0 && tr->h.call->me != root)
        dtn_sched_flush(tr->sched, root);
}

/* A parent may be a child in the other tree, to which it sends DATA in the same
 * tick as READY: then DATA is enough.
 */
static bool up_told(const struct dtn_trees *tr, int t, int child, int tick)
{
    return tr->tree[1 - t].parent == tr->tree[t].child[child]
        && up_chunk(tr, 1 - t, tick).bytes > 0;
}

static bool up_hears(const struct dtn_trees *tr, int t, int tick)
{
    bool hears = false;

    for (int i = 0; i < dtn_trees_children(tr, 1 - t); i++)
        hears = hears || tr->tree[1 - t].child[i] == tr->tree[t].parent;
    return hears && up_chunk(tr, 1 - t, tick).bytes > 0;
}

/* Receive the READY that the parent has sent in the last tick. */
static void up_permit(const struct dtn_trees *tr, int t, int tick)
{
    if (up_chunk(tr, t, tick).bytes > 0 && up_number(tr, t, tick) >= 2
        && dtn_trees_parent(tr, t) >= 0 && !up_hears(tr, t, tick))
        dtn_sched_wait(tr->sched, dtn_trees_parent(tr, t), DTN_TAG_READY);
}

/* Receive what the children have put in the last tick. */
static void up_receive(const struct dtn_trees *tr, int t, int tick)
{
    for (int i = 0; i < dtn_trees_children(tr, t); i++)
        if (up_chunk(tr, t, tick).bytes > 0)
            dtn_sched_wait(tr->sched, dtn_trees_child(tr, t, i), DTN_TAG_DATA);
}

/* Add the sums of the children, whose places are then free for the chunk after
 * the next.
 */
static void up_add(const struct dtn_trees *tr, int t, int tick)
{
    const struct dtn_range chunk = up_chunk(tr, t, tick);
    const int c = up_number(tr, t, tick), host = tr->h.host;

    for (int i = 0; chunk.bytes > 0 && i < dtn_trees_children(tr, t); i++) {
        dtn_sched_reduce(tr->sched, up_slot(tr, host, t, c, 0),
                         up_slot(tr, host, t, c, 1 + i), chunk.bytes);
        if (dtn_trees_chunk(tr, tr->h.local, t, c + 2).bytes > 0
            && !up_told(tr, t, i, tick))
            dtn_sched_signal(tr->sched, dtn_trees_child(tr, t, i),
                             DTN_TAG_READY);
    }
}

/* On the root's host the sum is the result: store it, or put it to the root. */
static void up_deliver(const struct dtn_trees *tr, int t, int c,
                       struct dtn_range chunk)
{
    const int me = tr->h.call->me, root = tr->h.call->root;
    const struct dtn_span out = dtn_span_at(root, DTN_OUT, chunk.offset);
    const struct dtn_span sum = up_slot(tr, tr->h.host, t, c, 0);
    const struct dtn_span result = dtn_span_at(me, DTN_TMP,
                                               tr->chunk_bytes * (size_t)t);

    if (me == root) {
        dtn_sched_copy(tr->sched, out, sum, chunk.bytes);
        return;
    }
    dtn_sched_copy(tr->sched, result, sum, chunk.bytes);
    dtn_sched_put(tr->sched, root, out, result, chunk.bytes);
}

static void up_send(const struct dtn_trees *tr, int t, int tick)
{
    const struct dtn_range chunk = up_chunk(tr, t, tick);
    const int c = up_number(tr, t, tick), parent = dtn_trees_parent(tr, t);

    if (chunk.bytes == 0)
        return;
    if (parent < 0) {
        up_deliver(tr, t, c, chunk);
        return;
    }
    dtn_sched_put(tr->sched, parent,
                  up_slot(tr, tr->tree[t].parent, t, c,
                          1 + tr->tree[t].child_number),
                  up_slot(tr, tr->h.host, t, c, 0), chunk.bytes);
    dtn_sched_signal(tr->sched, parent, DTN_TAG_DATA);
}

typedef void up_stage_f(const struct dtn_trees *tr, int t, int tick);

/* In a tick both trees do the first of these, then both the second, ... */
static up_stage_f *const up_stages[] = {
    up_fold, up_flush, up_permit, up_receive, up_add, up_send
};

static void up_tick(const struct dtn_trees *tr, int tick)
{
    for (size_t i = 0; i < DTN_COUNT(up_stages); i++)
        for (int t = 0; t < 2; t++)
            up_stages[i](tr, t, tick);
}

/* Owners tell the locals that their IN is read, and the root on their host that
 * the results are there.
 */
static void up_finish(const struct dtn_trees *tr)
{
    const struct dtn_hierarchy *h = &tr->h;
    const int root = h->call->root;

    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        const int p = dtn_local_after(h, i);

        if (h->owner)
            dtn_sched_signal(tr->sched, p,
                             p == root ? DTN_TAG_DATA : DTN_TAG_DONE);
    }
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        const int p = dtn_local_after(h, i);

        if (dtn_is_owner(h, p))
            dtn_sched_wait(tr->sched, p, h->call->me == root ? DTN_TAG_DATA
                                                             : DTN_TAG_DONE);
    }
}

static void up_room(const struct dtn_trees *tr)
{
    struct dtn_sched *sched = tr->sched;
    const bool passes = dtn_trees_near(tr)
                     && tr->h.call->me != tr->h.call->root;
    int slots = 0, trees = 0;

    for (int t = 0; t < 2; t++)
        if (dtn_trees_active(tr, t)) {
            slots += 2 * (1 + tr->tree[t].nchildren);
            trees++;
        }
    sched->bytes[DTN_ACC] = (size_t)slots * tr->chunk_bytes;
    sched->bytes[DTN_TMP] = passes ? (size_t)trees * tr->chunk_bytes : 0;
    sched->exposed[DTN_IN] = true;
    sched->exposed[DTN_OUT] = tr->h.call->me == tr->h.call->root;
    sched->exposed[DTN_ACC] = slots > 0;
}

int dtn_emit_reduce_rail_twotree(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    struct dtn_trees tr;
    int rc = dtn_trees_begin(&tr, "reduce rail-twotree", call, sched, err);

    if (rc != 0)
        return rc;
    up_room(&tr);
    up_meet(&tr);
    for (int tick = 0; tr.h.owner && tick < tr.chunks + tr.height + 1; tick++)
        up_tick(&tr, tick);
    up_finish(&tr);
    return dtn_hierarchy_end(&tr.h, err);
}
