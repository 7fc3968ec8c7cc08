/* emit.h - what emitters share: spans, blocks, signals to everyone */
#ifndef DTN_COLL_EMIT_H
#define DTN_COLL_EMIT_H

#include "coll/coll.h"

/* Part of a space, in bytes. */
struct dtn_range {
    size_t offset;
    size_t bytes;
};

static inline struct dtn_span dtn_at(int rank, enum dtn_space space,
                                     size_t offset)
{
    return (struct dtn_span){ rank, space, offset };
}

/* Position `me` + `distance` around the group; distance > -n. */
static inline int dtn_around(const struct dtn_call *call, int distance)
{
    return (call->me + distance + call->n) % call->n;
}

/* Part i of n of `bytes`, cut on cache lines as evenly as they allow, the
 * longest first: 148 bytes in two are 128 and 20.
 */
struct dtn_range dtn_cut(size_t bytes, int n, int i);

/* Block r: as given for ALLGATHER and REDUCE_SCATTER, else dtn_cut(). */
struct dtn_range dtn_block(const struct dtn_call *call, int r);

/* Blocks first .. first+count-1, which lie one after another. */
struct dtn_range dtn_blocks(const struct dtn_call *call, int first, int count);

/* ALL_TO_ALL: what rank i sends to rank j, where it lies in i's IN and where
 * in j's OUT.
 */
struct dtn_range dtn_sent(const struct dtn_call *call, int i, int j);
struct dtn_range dtn_received(const struct dtn_call *call, int i, int j);

/* Initialise the schedule with the sizes of IN and OUT of the call. */
void dtn_emit_begin(struct dtn_sched *sched, const char *name,
                    const struct dtn_call *call);

/* Finish it; nothing is left behind on failure. */
int dtn_emit_end(struct dtn_sched *sched, struct dtensor_error *err);

/* To and from everyone else, beginning with the next position so that not all
 * go for the same rank first.
 */
void dtn_emit_signal_all(struct dtn_sched *sched, const struct dtn_call *call,
                         enum dtn_tag tag);
void dtn_emit_wait_all(struct dtn_sched *sched, const struct dtn_call *call,
                       enum dtn_tag tag);

/* Divide OUT, `range` of it, if the reduction is AVG. */
void dtn_emit_average(struct dtn_sched *sched, const struct dtn_call *call,
                      struct dtn_range range);

/* The emitters: carry.c */
dtn_emit_f dtn_emit_allreduce_carry, dtn_emit_reduce_carry,
    dtn_emit_broadcast_carry, dtn_emit_allgather_carry,
    dtn_emit_reduce_scatter_carry, dtn_emit_all_to_all_carry,
    dtn_emit_barrier_direct;

/* direct.c */
dtn_emit_f dtn_emit_allreduce_direct, dtn_emit_reduce_direct,
    dtn_emit_broadcast_direct, dtn_emit_allgather_direct,
    dtn_emit_reduce_scatter_direct, dtn_emit_all_to_all_direct;

/* spread.c */
dtn_emit_f dtn_emit_allreduce_put, dtn_emit_allgather_put,
    dtn_emit_reduce_scatter_put, dtn_emit_all_to_all_put;

/* ring.c */
dtn_emit_f dtn_emit_allreduce_ring, dtn_emit_reduce_ring,
    dtn_emit_broadcast_ring, dtn_emit_allgather_ring,
    dtn_emit_reduce_scatter_ring;

/* tree.c */
dtn_emit_f dtn_emit_allreduce_tree, dtn_emit_reduce_tree,
    dtn_emit_broadcast_tree, dtn_emit_allgather_tree,
    dtn_emit_reduce_scatter_tree, dtn_emit_barrier_tree;

/* hierarchy_buffer.c, hierarchy_blocks.c */
dtn_emit_f dtn_emit_allreduce_hierarchical, dtn_emit_reduce_hierarchical,
    dtn_emit_broadcast_hierarchical, dtn_emit_allgather_hierarchical,
    dtn_emit_reduce_scatter_hierarchical, dtn_emit_barrier_hierarchical;

#endif
