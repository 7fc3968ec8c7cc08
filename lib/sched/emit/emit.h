/* emit.h - helpers of all emitters: spans, blocks, signals to all peers */
#ifndef DTN_EMIT_EMIT_H
#define DTN_EMIT_EMIT_H

#include "sched/call.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

static inline struct dtn_span dtn_span_at(int rank, enum dtn_space space,
                                          size_t offset)
{
    return (struct dtn_span){ rank, space, offset };
}

/* Position me + distance around the group; distance > -n. */
static inline int dtn_neighbour(const struct dtn_call *call, int distance)
{
    return (call->me + distance + call->n) % call->n;
}

/* The smallest range that holds both; an empty range does not count. */
static inline struct dtn_range dtn_range_hull(struct dtn_range a,
                                              struct dtn_range b)
{
    size_t begin = a.offset < b.offset ? a.offset : b.offset;
    size_t a_end = a.offset + a.bytes, b_end = b.offset + b.bytes;

    if (a.bytes == 0 || b.bytes == 0)
        return a.bytes == 0 ? b : a;
    return (struct dtn_range){ begin, (a_end > b_end ? a_end : b_end) - begin };
}

/* Part i of n of `bytes`.  Parts begin on cache lines and are as equal as
 * possible, the longest first: 148 bytes in two parts are 128 and 20.
 */
struct dtn_range dtn_range_split(size_t bytes, int n, int i);

/* Block r: as the call gives it for ALLGATHER and REDUCE_SCATTER, else
 * dtn_range_split().
 */
struct dtn_range dtn_call_block(const struct dtn_call *call, int r);

/* The smallest range that holds the blocks of all other ranks. */
struct dtn_range dtn_call_other_blocks(const struct dtn_call *call);

/* Blocks first .. first+count-1, which are contiguous. */
struct dtn_range dtn_call_blocks(const struct dtn_call *call, int first,
                                 int count);

/* Bytes of `count` blocks from `first` on, modulo n: first > -n, count <= n. */
size_t dtn_call_blocks_bytes(const struct dtn_call *call, int first, int count);

/* ALL_TO_ALL: the place in IN of what this rank sends to a peer, and the place
 * in OUT of what it receives.
 */
struct dtn_range dtn_call_sent(const struct dtn_call *call, int to);
struct dtn_range dtn_call_received(const struct dtn_call *call, int from);

/* The place of rank `from`'s term in the TMP of rank `to`, for a
 * dtn_sched_fold_with() there.
 */
static inline struct dtn_span dtn_term_slot(int to, int from, size_t bytes)
{
    return dtn_span_at(to, DTN_TMP, (size_t)(from - (from > to)) * bytes);
}

/* Initialise the schedule with the sizes of IN and OUT of the call. */
void dtn_emit_begin(struct dtn_sched *sched, const char *name,
                    const struct dtn_call *call);

/* Finish the schedule; on failure it is freed. */
int dtn_emit_end(struct dtn_sched *sched, struct dtensor_error *err);

/* Signals to and from all other ranks.  Each rank begins with the next
 * position, so that not all ranks begin with the same peer.
 */
void dtn_emit_signal_all(struct dtn_sched *sched, const struct dtn_call *call,
                         enum dtn_tag tag);
void dtn_emit_wait_all(struct dtn_sched *sched, const struct dtn_call *call,
                       enum dtn_tag tag);
void dtn_emit_flush_all(struct dtn_sched *sched, const struct dtn_call *call);

/* Put this rank's block of OUT into the OUT of all peers. */
void dtn_emit_put_all(struct dtn_sched *sched, const struct dtn_call *call);

/* This rank's term as a partial result that a peer can take.  If elements and
 * partial results have the same type it is `own` itself; else it is converted
 * into `room` in ACC, which takes dtn_emit_term_bytes().
 */
struct dtn_span dtn_emit_term(struct dtn_sched *sched, struct dtn_span own,
                              struct dtn_span room, size_t bytes);
size_t dtn_emit_term_bytes(const struct dtn_sched *sched, size_t bytes);

/* Memory of `bytes` of ACC; compare it with eager_bytes. */
size_t dtn_emit_partial_bytes(const struct dtn_sched *sched, size_t bytes);

/* OUT becomes the reduction of all INs, which this rank loads itself.  For a
 * group of one rank, or for ranks that map.
 */
void dtn_emit_alone(struct dtn_sched *sched);

/* n halved, rounded up, until it is 1: for 5 ranks 5, 3, 2, 1.  The distances
 * of an allgather for any n: a rank that has s = skip[k+1] blocks receives
 * blocks from the rank s positions before it, and then has skip[k] blocks.
 */
struct dtn_skips {
    int rounds;                   /* entries of skip[] after the first        */
    int skip[33];                 /* [rounds + 1] distances                   */
};
struct dtn_skips dtn_skips(int n);

/* An allgather in OUT by these distances, the shortest first.  Before it each
 * rank's block is in its place in OUT, and each rank has READY from those it
 * puts to.
 */
void dtn_emit_gather(struct dtn_sched *sched, const struct dtn_call *call,
                     const struct dtn_skips *skips);

/* The emitters: eager.c */
dtn_emit_f dtn_emit_allreduce_eager, dtn_emit_reduce_eager,
    dtn_emit_broadcast_eager, dtn_emit_allgather_eager,
    dtn_emit_reduce_scatter_eager, dtn_emit_barrier_direct;

/* direct.c */
dtn_emit_f dtn_emit_allreduce_direct, dtn_emit_reduce_direct,
    dtn_emit_broadcast_direct, dtn_emit_allgather_direct,
    dtn_emit_reduce_scatter_direct, dtn_emit_allreduce_device,
    dtn_emit_reduce_device, dtn_emit_broadcast_device,
    dtn_emit_allgather_device, dtn_emit_reduce_scatter_device,
    dtn_emit_allreduce_stream, dtn_emit_reduce_stream,
    dtn_emit_broadcast_stream, dtn_emit_allgather_stream,
    dtn_emit_reduce_scatter_stream;

/* spread.c */
dtn_emit_f dtn_emit_allreduce_put, dtn_emit_reduce_put, dtn_emit_allgather_put,
    dtn_emit_reduce_scatter_put;

/* pairs.c */
dtn_emit_f dtn_emit_all_to_all_direct, dtn_emit_all_to_all_put,
    dtn_emit_all_to_all_device, dtn_emit_all_to_all_stream,
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

/* doubling.c, halving.c, pairwise.c, bruck.c; apart: IN is never OUT */
dtn_emit_f dtn_emit_allreduce_doubling, dtn_emit_allreduce_halving,
    dtn_emit_allreduce_halving_apart,
    dtn_emit_reduce_scatter_halving, dtn_emit_all_to_all_pairwise,
    dtn_emit_allgather_bruck, dtn_emit_all_to_all_bruck;

/* hierarchy_buffer.c, hierarchy_blocks.c */
dtn_emit_f dtn_emit_allreduce_hierarchical, dtn_emit_reduce_hierarchical,
    dtn_emit_broadcast_hierarchical, dtn_emit_allgather_hierarchical,
    dtn_emit_reduce_scatter_hierarchical, dtn_emit_barrier_hierarchical;

/* hierarchy_rails.c */
dtn_emit_f dtn_emit_allreduce_rail_doubling, dtn_emit_allreduce_rail_halving,
    dtn_emit_reduce_scatter_rail_halving, dtn_emit_allgather_rail_bruck,
    dtn_emit_all_to_all_rail_put, dtn_emit_all_to_all_rail_bruck;

/* hierarchy_up.c, hierarchy_down.c */
dtn_emit_f dtn_emit_reduce_rail_twotree, dtn_emit_broadcast_rail_twotree;

/* Match bits: two ranks must agree on the sizes of both blocks between them
 * that the call does not give.  Every signal of the two has those of both, so
 * that each of them finds out, whichever size is wrong.
 */
uint64_t dtn_emit_match_bits(const struct dtn_call *call, int peer);

#endif
