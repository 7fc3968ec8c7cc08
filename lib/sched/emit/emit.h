/* emit.h - what emitters share: spans, blocks, signals to everyone */
#ifndef DTN_COLL_EMIT_H
#define DTN_COLL_EMIT_H

#include "sched/call.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

struct dtn_call;
struct dtn_sched;

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

/* The least range that holds both; one of no bytes does not count. */
static inline struct dtn_range dtn_range_hull(struct dtn_range a,
                                              struct dtn_range b)
{
    size_t begin = a.offset < b.offset ? a.offset : b.offset;
    size_t a_end = a.offset + a.bytes, b_end = b.offset + b.bytes;

    if (a.bytes == 0 || b.bytes == 0)
        return a.bytes == 0 ? b : a;
    return (struct dtn_range){ begin, (a_end > b_end ? a_end : b_end) - begin };
}

/* Part i of n of `bytes`, cut on cache lines as evenly as they allow, the
 * longest first: 148 bytes in two are 128 and 20.
 */
struct dtn_range dtn_split(size_t bytes, int n, int i);

/* Block r: as given for ALLGATHER and REDUCE_SCATTER, else dtn_split(). */
struct dtn_range dtn_call_block(const struct dtn_call *call, int r);

/* The least range that holds all blocks but the own one. */
struct dtn_range dtn_others(const struct dtn_call *call);

/* Blocks first .. first+count-1, which lie one after another. */
struct dtn_range dtn_call_blocks(const struct dtn_call *call, int first, int count);

/* Bytes of `count` blocks from `first` on, around: first > -n, count <= n. */
size_t dtn_around_bytes(const struct dtn_call *call, int first, int count);

/* ALL_TO_ALL: what this rank sends to another and where it lies in IN; what it
 * gets of another and where in OUT.
 */
struct dtn_range dtn_sent(const struct dtn_call *call, int to);
struct dtn_range dtn_received(const struct dtn_call *call, int from);

/* Where the term of rank `from` lies in the TMP of rank `to`, for a
 * dtn_sched_fold_with() there.
 */
static inline struct dtn_span dtn_term_slot(int to, int from, size_t bytes)
{
    return dtn_at(to, DTN_TMP, (size_t)(from - (from > to)) * bytes);
}

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
void dtn_emit_flush_all(struct dtn_sched *sched, const struct dtn_call *call);

/* The own block of OUT into that of everyone else, and theirs into ours. */
void dtn_emit_put_all(struct dtn_sched *sched, const struct dtn_call *call);

/* The own term as a partial result that a peer can take: `own` itself if there
 * is no difference, else a copy at `room`, in ACC, which takes
 * dtn_emit_term_bytes() of it.
 */
struct dtn_span dtn_emit_term(struct dtn_sched *sched, struct dtn_span own,
                              struct dtn_span room, size_t bytes);
size_t dtn_emit_term_bytes(const struct dtn_sched *sched, size_t bytes);

/* Memory that `bytes` of ACC take: what counts for DTN_EAGER_MAX. */
size_t dtn_emit_partial_bytes(const struct dtn_sched *sched, size_t bytes);

/* OUT becomes the reduction of all INs, loaded by this rank alone: of a group
 * of one, or of ranks that map.
 */
void dtn_emit_alone(struct dtn_sched *sched);

/* n halved, rounding up, until it is 1: over 5 ranks 5, 3, 2, 1.  Whoever has s
 * blocks of all and gets those of the rank s before it has next those of
 * skip[k] for skip[k+1] = s, whatever n is.
 */
struct dtn_skips {
    int rounds;
    int skip[33];                 /* [rounds + 1]                              */
};
struct dtn_skips dtn_skips(int n);

/* An all-gather in OUT by these distances, the shortest first.  Everyone has
 * its block in place, and READY from those it puts to.
 */
void dtn_emit_gather(struct dtn_sched *sched, const struct dtn_call *call,
                     const struct dtn_skips *skips);

/* The emitters: carry.c */
dtn_emit_f dtn_emit_allreduce_eager, dtn_emit_reduce_eager,
    dtn_emit_broadcast_eager, dtn_emit_allgather_eager,
    dtn_emit_reduce_scatter_eager, dtn_emit_barrier_direct;

/* direct.c */
dtn_emit_f dtn_emit_allreduce_direct, dtn_emit_reduce_direct,
    dtn_emit_broadcast_direct, dtn_emit_allgather_direct,
    dtn_emit_reduce_scatter_direct;

/* spread.c */
dtn_emit_f dtn_emit_allreduce_put, dtn_emit_reduce_put, dtn_emit_allgather_put,
    dtn_emit_reduce_scatter_put;

/* pairs.c */
dtn_emit_f dtn_emit_all_to_all_direct, dtn_emit_all_to_all_put,
    dtn_emit_gather_put, dtn_emit_scatter_direct, dtn_emit_scatter_put,
    dtn_emit_pairs_put;

/* ring.c */
dtn_emit_f dtn_emit_allreduce_ring, dtn_emit_reduce_ring,
    dtn_emit_broadcast_ring, dtn_emit_allgather_ring,
    dtn_emit_reduce_scatter_ring;

/* tree.c */
dtn_emit_f dtn_emit_allreduce_tree, dtn_emit_reduce_tree,
    dtn_emit_broadcast_tree, dtn_emit_reduce_scatter_tree,
    dtn_emit_barrier_tree;

/* twotree.c */
dtn_emit_f dtn_emit_allreduce_twotree, dtn_emit_reduce_twotree,
    dtn_emit_broadcast_twotree;

/* doubling.c, halving.c, pairwise.c, bruck.c */
dtn_emit_f dtn_emit_allreduce_doubling, dtn_emit_allreduce_halving,
    dtn_emit_reduce_scatter_halving, dtn_emit_all_to_all_pairwise,
    dtn_emit_allgather_bruck, dtn_emit_all_to_all_bruck;

/* hierarchy_buffer.c, hierarchy_blocks.c */
dtn_emit_f dtn_emit_allreduce_hierarchical, dtn_emit_reduce_hierarchical,
    dtn_emit_broadcast_hierarchical, dtn_emit_allgather_hierarchical,
    dtn_emit_reduce_scatter_hierarchical, dtn_emit_barrier_hierarchical;

/* The value of a block on which two ranks must agree, if it is not in the call.
 */
uint64_t dtn_emit_match_bits(const struct dtn_call *call, size_t bytes);

#endif
