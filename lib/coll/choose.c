/* choose.c - which emitter for which call
 *
 * One table.  An algorithm may have several rows; the first that can run the
 * call is taken.  So `direct` for an allreduce of 8 bytes over 4 ranks is the
 * carry row; of 8 KiB it is the next one where every pair of ranks maps, and
 * the one after that elsewhere.  There is none such for a broadcast: then the
 * built-in choice is made, the tree.
 */
#include "coll/emit.h"

#define ANY_BYTES SIZE_MAX
#define FLAT_RANKS_MAX 8              /* to signal all others beats a tree     */
#define TREE_BYTES_MAX ((size_t)32 << 10)
#define SPREAD_BYTES_MAX ((size_t)1 << 20)

const struct dtn_emitter dtn_emitters[] = {
    { DTN_COLL_ALLREDUCE, DTN_ALG_DIRECT, DTN_REACH_PUT, DTN_CARRY_MAX,
      dtn_emit_allreduce_carry },
    { DTN_COLL_ALLREDUCE, DTN_ALG_DIRECT, DTN_REACH_MAP, ANY_BYTES,
      dtn_emit_allreduce_direct },
    { DTN_COLL_ALLREDUCE, DTN_ALG_DIRECT, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_allreduce_put },
    { DTN_COLL_ALLREDUCE, DTN_ALG_RING, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_allreduce_ring },
    { DTN_COLL_ALLREDUCE, DTN_ALG_TREE, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_allreduce_tree },
    { DTN_COLL_ALLREDUCE, DTN_ALG_HIERARCHICAL, DTN_REACH_HOST, ANY_BYTES,
      dtn_emit_allreduce_hierarchical },

    { DTN_COLL_REDUCE, DTN_ALG_DIRECT, DTN_REACH_PUT, DTN_CARRY_MAX,
      dtn_emit_reduce_carry },
    { DTN_COLL_REDUCE, DTN_ALG_DIRECT, DTN_REACH_MAP, ANY_BYTES,
      dtn_emit_reduce_direct },
    { DTN_COLL_REDUCE, DTN_ALG_RING, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_reduce_ring },
    { DTN_COLL_REDUCE, DTN_ALG_TREE, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_reduce_tree },
    { DTN_COLL_REDUCE, DTN_ALG_HIERARCHICAL, DTN_REACH_HOST, ANY_BYTES,
      dtn_emit_reduce_hierarchical },

    { DTN_COLL_BROADCAST, DTN_ALG_DIRECT, DTN_REACH_PUT, DTN_CARRY_MAX,
      dtn_emit_broadcast_carry },
    { DTN_COLL_BROADCAST, DTN_ALG_DIRECT, DTN_REACH_MAP, ANY_BYTES,
      dtn_emit_broadcast_direct },
    { DTN_COLL_BROADCAST, DTN_ALG_RING, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_broadcast_ring },
    { DTN_COLL_BROADCAST, DTN_ALG_TREE, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_broadcast_tree },
    { DTN_COLL_BROADCAST, DTN_ALG_HIERARCHICAL, DTN_REACH_HOST, ANY_BYTES,
      dtn_emit_broadcast_hierarchical },

    { DTN_COLL_ALLGATHER, DTN_ALG_DIRECT, DTN_REACH_PUT, DTN_CARRY_MAX,
      dtn_emit_allgather_carry },
    { DTN_COLL_ALLGATHER, DTN_ALG_DIRECT, DTN_REACH_MAP, ANY_BYTES,
      dtn_emit_allgather_direct },
    { DTN_COLL_ALLGATHER, DTN_ALG_DIRECT, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_allgather_put },
    { DTN_COLL_ALLGATHER, DTN_ALG_RING, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_allgather_ring },
    { DTN_COLL_ALLGATHER, DTN_ALG_TREE, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_allgather_tree },
    { DTN_COLL_ALLGATHER, DTN_ALG_HIERARCHICAL, DTN_REACH_HOST, ANY_BYTES,
      dtn_emit_allgather_hierarchical },

    { DTN_COLL_REDUCE_SCATTER, DTN_ALG_DIRECT, DTN_REACH_PUT, DTN_CARRY_MAX,
      dtn_emit_reduce_scatter_carry },
    { DTN_COLL_REDUCE_SCATTER, DTN_ALG_DIRECT, DTN_REACH_MAP, ANY_BYTES,
      dtn_emit_reduce_scatter_direct },
    { DTN_COLL_REDUCE_SCATTER, DTN_ALG_DIRECT, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_reduce_scatter_put },
    { DTN_COLL_REDUCE_SCATTER, DTN_ALG_RING, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_reduce_scatter_ring },
    { DTN_COLL_REDUCE_SCATTER, DTN_ALG_TREE, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_reduce_scatter_tree },
    { DTN_COLL_REDUCE_SCATTER, DTN_ALG_HIERARCHICAL, DTN_REACH_HOST, ANY_BYTES,
      dtn_emit_reduce_scatter_hierarchical },

    { DTN_COLL_ALL_TO_ALL, DTN_ALG_DIRECT, DTN_REACH_PUT, DTN_CARRY_MAX,
      dtn_emit_all_to_all_carry },
    { DTN_COLL_ALL_TO_ALL, DTN_ALG_DIRECT, DTN_REACH_MAP, ANY_BYTES,
      dtn_emit_all_to_all_direct },
    { DTN_COLL_ALL_TO_ALL, DTN_ALG_DIRECT, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_all_to_all_put },

    { DTN_COLL_BARRIER, DTN_ALG_DIRECT, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_barrier_direct },
    { DTN_COLL_BARRIER, DTN_ALG_TREE, DTN_REACH_PUT, ANY_BYTES,
      dtn_emit_barrier_tree },
    { DTN_COLL_BARRIER, DTN_ALG_HIERARCHICAL, DTN_REACH_HOST, ANY_BYTES,
      dtn_emit_barrier_hierarchical },
    { .emit = NULL }
};

const char *dtn_algorithm_name(enum dtn_algorithm algorithm)
{
    static const char *const names[] = {
        [DTN_ALG_AUTO] = "auto", [DTN_ALG_DIRECT] = "direct",
        [DTN_ALG_RING] = "ring", [DTN_ALG_TREE] = "tree",
        [DTN_ALG_HIERARCHICAL] = "hierarchical",
    };

    return (unsigned)algorithm < DTN_COUNT(names) ? names[algorithm] : "?";
}

/* The first row that can run the call, or NULL. */
static const struct dtn_emitter *choose_row(const struct dtn_call *call,
                                            enum dtn_algorithm algorithm,
                                            enum dtn_reach reach)
{
    size_t edge_bytes = dtn_call_edge_bytes(call);

    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++)
        if (e->coll == call->coll && e->algorithm == algorithm
            && reach >= e->needs && edge_bytes <= e->max_bytes)
            return e;
    return NULL;
}

/* What [tuning] says for a size: the last entry that begins at or below it. */
static enum dtn_algorithm choose_tuned(const struct dtn_call *call,
                                       const struct dtn_tuning tuning[])
{
    static const int tuned[DTN_NCOLLS] = {
        [DTN_COLL_ALLREDUCE] = DTN_TUNED_ALLREDUCE,
        [DTN_COLL_REDUCE] = DTN_TUNED_REDUCE,
        [DTN_COLL_BROADCAST] = DTN_TUNED_BROADCAST,
        [DTN_COLL_ALLGATHER] = DTN_TUNED_ALLGATHER,
        [DTN_COLL_REDUCE_SCATTER] = DTN_TUNED_REDUCE_SCATTER,
        [DTN_COLL_ALL_TO_ALL] = DTN_TUNED_ALL_TO_ALL,
        [DTN_COLL_BARRIER] = -1,
        [DTN_COLL_EXCHANGE] = -1,
    };
    const struct dtn_tuning *entries;
    enum dtn_algorithm algorithm = DTN_ALG_AUTO;

    if (!tuning || tuned[call->coll] < 0)
        return DTN_ALG_AUTO;
    entries = &tuning[tuned[call->coll]];
    for (int i = 0; i < entries->n; i++)
        if (entries->entry[i].from_bytes <= dtn_call_bytes(call))
            algorithm = entries->entry[i].algorithm;
    return algorithm;
}

/* Is there an algorithm in which everyone puts to everyone, and is the call
 * small enough that hops count for more than an even use of the links?
 */
static bool choose_spreads(const struct dtn_call *call)
{
    return (call->coll == DTN_COLL_ALLREDUCE
            || call->coll == DTN_COLL_ALLGATHER
            || call->coll == DTN_COLL_REDUCE_SCATTER)
        && dtn_call_bytes(call) <= SPREAD_BYTES_MAX;
}

/* The same on every rank: asks only what all know. */
static enum dtn_algorithm choose_builtin(const struct dtn_call *call,
                                         enum dtn_reach reach)
{
    bool flat = call->n <= FLAT_RANKS_MAX;
    size_t edge_bytes = dtn_call_edge_bytes(call);
    bool tiny = call->coll == DTN_COLL_BARRIER
             || edge_bytes <= DTN_PAYLOAD_MAX;         /* in the line          */
    bool small = tiny || edge_bytes <= DTN_CARRY_MAX;  /* or beside it         */

    if (call->coll == DTN_COLL_ALL_TO_ALL)
        return DTN_ALG_DIRECT;
    if (small && flat)
        return DTN_ALG_DIRECT;
    if (reach == DTN_REACH_HOST)
        return DTN_ALG_HIERARCHICAL;
    if (tiny || (small && reach == DTN_REACH_PUT))
        return DTN_ALG_TREE;
    if (reach == DTN_REACH_MAP || (flat && choose_spreads(call)))
        return DTN_ALG_DIRECT;
    return dtn_call_bytes(call) <= TREE_BYTES_MAX ? DTN_ALG_TREE
                                                  : DTN_ALG_RING;
}

const struct dtn_emitter *dtn_choose(const struct dtn_call *call,
                                     enum dtn_reach reach,
                                     const struct dtn_tuning tuning[])
{
    const struct dtn_emitter *row = choose_row(call, choose_tuned(call, tuning),
                                               reach);

    return row ? row : choose_row(call, choose_builtin(call, reach), reach);
}
