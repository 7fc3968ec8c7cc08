/* hierarchy_trees.c - trees of hosts, one pair of them for each rail
 *
 * The buffer is cut into one block for each rail, as in the other hierarchies.
 * The ranks of a rail are a double binary tree (trees.c), each tree for half of
 * the block, and chunks follow each other through it.  Time is counted in
 * ticks, as in twotree.c: what is sent in one tick is awaited in the next.
 * hierarchy_down.c broadcasts, hierarchy_up.c reduces.
 *
 * Example: 2 MiB over 512 hosts of 8 ranks.  A rail has 256 KiB in two halves
 * of 32 chunks of 4 KiB.  The last one has arrived in tick 41, and the device
 * of a host has sent each byte once, where two trees over all ranks would send
 * it 1.5 times.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/emit/hierarchy_trees.h"
#include "sched/emit/trees.h"
#include "sched/sched.h"
#include "sched/units.h"
#include "dtensor.h"

#include <stdbool.h>

#define CHUNK_BYTES ((size_t)4 << 10)
#define CHUNKS_MAX 64

/* Half t of the block of a rail.  Two hosts have one tree. */
static struct dtn_range trees_half(const struct dtn_trees *tr, int rail, int t)
{
    const struct dtn_range block = dtn_rail_block(&tr->h, rail);
    struct dtn_range half = dtn_range_split(block.bytes,
                                            tr->h.nhosts > 2 ? 2 : 1, t);

    if (t > 0 && tr->h.nhosts <= 2)
        half.bytes = 0;
    half.offset += block.offset;
    return half;
}

/* Chunk c of it; there is none below 0, and none of 0 bytes is sent. */
struct dtn_range dtn_trees_chunk(const struct dtn_trees *tr, int rail, int t,
                                 int c)
{
    const struct dtn_range half = trees_half(tr, rail, t);
    struct dtn_range chunk = { half.offset, 0 };

    if (c < 0 || c >= tr->chunks)
        return chunk;
    chunk = dtn_range_split(half.bytes, tr->chunks, c);
    chunk.offset += half.offset;
    return chunk;
}

int dtn_trees_begin(struct dtn_trees *tr, const char *name,
                    const struct dtn_call *call, struct dtn_sched *sched,
                    struct dtensor_error *err)
{
    const int rc = dtn_hierarchy_begin(&tr->h, name, call, sched, err);
    size_t longest;

    if (rc != 0)
        return rc;
    tr->sched = sched;
    tr->root_host = tr->h.host_of[call->root];
    for (int t = 0; t < 2; t++)
        tr->tree[t] = dtn_tree_make(tr->h.nhosts, tr->root_host, tr->h.host,
                                    t);
    tr->height = dtn_levels_of(tr->h.nhosts);
    longest = trees_half(tr, 0, 0).bytes;
    tr->chunks = 1;
    while (tr->chunks < CHUNKS_MAX
           && longest > (size_t)tr->chunks * CHUNK_BYTES)
        tr->chunks++;
    tr->chunk_bytes = dtn_range_split(longest, tr->chunks, 0).bytes;
    return 0;
}

/* The rank of this rail on a host. */
int dtn_trees_peer(const struct dtn_trees *tr, int host)
{
    return dtn_local_at(&tr->h, host, tr->h.local);
}

/* This owner's part in tree t: none without bytes. */
bool dtn_trees_active(const struct dtn_trees *tr, int t)
{
    return tr->h.owner && trees_half(tr, tr->h.local, t).bytes > 0;
}

int dtn_trees_children(const struct dtn_trees *tr, int t)
{
    return dtn_trees_active(tr, t) ? tr->tree[t].nchildren : 0;
}

int dtn_trees_child(const struct dtn_trees *tr, int t, int i)
{
    return dtn_trees_peer(tr, tr->tree[t].child[i]);
}

/* -1: there is none. */
int dtn_trees_parent(const struct dtn_trees *tr, int t)
{
    return dtn_trees_active(tr, t) && tr->tree[t].parent >= 0
         ? dtn_trees_peer(tr, tr->tree[t].parent) : -1;
}

/* Is the root on this host? */
bool dtn_trees_near(const struct dtn_trees *tr)
{
    return tr->h.host == tr->root_host;
}
