/* hierarchy_down.c - broadcast by trees of hosts, in chunks
 *
 * A host at depth d receives chunk c in tick c + d.  All its ranks load the
 * chunk from the owner of its rail as soon as it has arrived, while the next
 * one is on its way.  On the root's host they load from the root.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/emit/hierarchy_trees.h"
#include "sched/emit/trees.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* The chunk that has arrived at this host in a tick. */
static struct dtn_range down_chunk(const struct dtn_trees *tr, int rail, int t,
                                   int tick)
{
    return dtn_trees_chunk(tr, rail, t, tick - tr->tree[t].depth);
}

static bool down_arrives(const struct dtn_trees *tr, int rail, int tick)
{
    return down_chunk(tr, rail, 0, tick).bytes > 0
        || down_chunk(tr, rail, 1, tick).bytes > 0;
}

/* READY: children to parents; owners to their locals, the root to its. */
static void down_meet(const struct dtn_trees *tr)
{
    const struct dtn_hierarchy *h = &tr->h;
    const int root = h->call->root;

    for (int t = 0; t < 2; t++)
        if (dtn_trees_parent(tr, t) >= 0)
            dtn_sched_signal(tr->sched, dtn_trees_parent(tr, t), DTN_TAG_READY);
    if (!dtn_trees_near(tr)) {
        dtn_local_signal(h, DTN_TAG_READY, DTN_PAIRS_FROM_OWNER);
        dtn_local_wait(h, DTN_TAG_READY, DTN_PAIRS_FROM_OWNER);
    }
    for (int i = 1; h->call->me == root && i < dtn_locals(h, h->host); i++)
        dtn_sched_signal(tr->sched, dtn_local_after(h, i), DTN_TAG_READY);
    if (dtn_trees_near(tr) && h->call->me != root)
        dtn_sched_wait(tr->sched, root, DTN_TAG_READY);
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < dtn_trees_children(tr, t); i++)
            dtn_sched_wait(tr->sched, dtn_trees_child(tr, t, i), DTN_TAG_READY);
}

/* Receive the chunk of this tick from the parent, or load it from the root. */
static void down_receive(const struct dtn_trees *tr, int t, int tick)
{
    const struct dtn_call *call = tr->h.call;
    const struct dtn_range chunk = down_chunk(tr, tr->h.local, t, tick);

    if (chunk.bytes == 0)
        return;
    if (!dtn_trees_near(tr))
        dtn_sched_wait(tr->sched, dtn_trees_parent(tr, t), DTN_TAG_DATA);
    else if (call->me != call->root)
        dtn_sched_copy(tr->sched,
                       dtn_span_at(call->me, DTN_OUT, chunk.offset),
                       dtn_span_at(call->root, DTN_IN, chunk.offset),
                       chunk.bytes);
}

static void down_pass(const struct dtn_trees *tr, int t, int tick)
{
    const int me = tr->h.call->me;
    const enum dtn_space space = me == tr->h.call->root ? DTN_IN : DTN_OUT;
    const struct dtn_range chunk = down_chunk(tr, tr->h.local, t, tick);

    for (int i = 0; chunk.bytes > 0 && i < dtn_trees_children(tr, t); i++) {
        const int child = dtn_trees_child(tr, t, i);

        dtn_sched_put(tr->sched, child,
                      dtn_span_at(child, DTN_OUT, chunk.offset),
                      dtn_span_at(me, space, chunk.offset), chunk.bytes);
        dtn_sched_signal(tr->sched, child, DTN_TAG_DATA);
    }
}

/* Load the chunks that have arrived at an owner of this host. */
static void down_load(const struct dtn_trees *tr, int owner, int tick)
{
    for (int t = 0; t < 2; t++) {
        const struct dtn_range chunk =
            down_chunk(tr, dtn_rail_of(&tr->h, owner), t, tick);

        dtn_sched_copy(tr->sched,
                       dtn_span_at(tr->h.call->me, DTN_OUT, chunk.offset),
                       dtn_span_at(owner, DTN_OUT, chunk.offset), chunk.bytes);
    }
}

static void down_share(const struct dtn_trees *tr, int tick)
{
    const struct dtn_hierarchy *h = &tr->h;

    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        const int p = dtn_local_after(h, i);

        if (!dtn_is_owner(h, p) || !down_arrives(tr, dtn_rail_of(h, p), tick))
            continue;
        dtn_sched_wait(tr->sched, p, DTN_TAG_DATA);
        down_load(tr, p, tick);
    }
}

static void down_tick(const struct dtn_trees *tr, int tick)
{
    const struct dtn_hierarchy *h = &tr->h;

    for (int t = 0; h->owner && t < 2; t++)
        down_receive(tr, t, tick);
    for (int t = 0; h->owner && t < 2; t++)
        down_pass(tr, t, tick);
    if (!dtn_trees_near(tr) && h->owner && down_arrives(tr, h->local, tick))
        dtn_local_signal(h, DTN_TAG_DATA, DTN_PAIRS_FROM_OWNER);
    if (!dtn_trees_near(tr))
        down_share(tr, tick);
}

/* On the root's host the rest is loaded from the root. */
static void down_finish(const struct dtn_trees *tr)
{
    const struct dtn_hierarchy *h = &tr->h;
    const int me = h->call->me, root = h->call->root;
    struct dtn_range own = { 0, 0 };

    if (h->owner && me != root)
        own = dtn_rail_block(h, h->local);
    dtn_sched_copy(tr->sched, dtn_span_at(me, DTN_OUT, 0),
                   dtn_span_at(root, DTN_IN, 0), own.offset);
    own.offset += own.bytes;
    dtn_sched_copy(tr->sched, dtn_span_at(me, DTN_OUT, own.offset),
                   dtn_span_at(root, DTN_IN, own.offset),
                   tr->sched->bytes[DTN_OUT] - own.offset);
    if (me != root)
        dtn_sched_signal(tr->sched, root, DTN_TAG_DONE);
    for (int i = 1; me == root && i < dtn_locals(h, h->host); i++)
        dtn_sched_wait(tr->sched, dtn_local_after(h, i), DTN_TAG_DONE);
}

int dtn_emit_broadcast_rail_twotree(const struct dtn_call *call,
                                    struct dtn_sched *sched,
                                    struct dtensor_error *err)
{
    struct dtn_trees tr;
    int rc = dtn_trees_begin(&tr, "broadcast rail-twotree", call, sched, err);

    if (rc != 0)
        return rc;
    sched->exposed[DTN_IN] = call->me == call->root;
    sched->exposed[DTN_OUT] = !dtn_trees_near(&tr) && tr.h.owner;
    down_meet(&tr);
    for (int tick = 0; tick < tr.chunks + tr.height + 1; tick++)
        down_tick(&tr, tick);
    if (dtn_trees_near(&tr)) {
        down_finish(&tr);
    } else {
        dtn_local_signal(&tr.h, DTN_TAG_DONE, DTN_PAIRS_TO_OWNER);
        dtn_local_wait(&tr.h, DTN_TAG_DONE, DTN_PAIRS_TO_OWNER);
    }
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < dtn_trees_children(&tr, t); i++)
            dtn_sched_flush(sched, dtn_trees_child(&tr, t, i));
    return dtn_hierarchy_end(&tr.h, err);
}
