/* call.h - a collective call: what it is and what its buffers hold */
#ifndef DTN_SCHED_CALL_H
#define DTN_SCHED_CALL_H

#include "base/reduce.h"
#include "cluster/cluster.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_redops;
struct dtn_sched;

/* The public ones, and those that have no struct dtensor_call. */
enum dtn_coll {
    DTN_COLL_ALLREDUCE = DTENSOR_ALLREDUCE,
    DTN_COLL_REDUCE = DTENSOR_REDUCE,
    DTN_COLL_BROADCAST = DTENSOR_BROADCAST,
    DTN_COLL_ALLGATHER = DTENSOR_ALLGATHER,
    DTN_COLL_REDUCE_SCATTER = DTENSOR_REDUCE_SCATTER,
    DTN_COLL_ALL_TO_ALL = DTENSOR_ALL_TO_ALL,
    DTN_COLL_GATHER = DTENSOR_GATHER,
    DTN_COLL_SCATTER = DTENSOR_SCATTER,
    DTN_COLL_BARRIER = DTENSOR_BARRIER,
    DTN_COLL_PAIRS = DTENSOR_NCOLLECTIVES,         /* sends and receives       */
    DTN_COLL_EXCHANGE,                             /* a step of a redistribute */
    DTN_NCOLLS
};

/* PAIRS: what goes between this rank and another.  No padding: it is hashed. */
struct dtn_edge {
    int32_t peer;
    uint32_t sends, receives;     /* 1: something, be it of 0 bytes            */
    uint32_t distance;            /* (peer - this rank) modulo the world size; */
                                  /* edges are sorted by it                    */
    uint64_t sent_match, received_match;
    struct dtn_range sent;        /* in IN                                     */
    struct dtn_range received;    /* in OUT                                    */
};

/* A call, the same on every rank but for `me`.  Elements, not bytes. */
struct dtn_call {
    enum dtn_coll coll;
    int n;
    int me;
    int root;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;
    const struct dtn_made *made;  /* what it is, if it was made at run time    */
    int divisor;                  /* the result is divided by it; 0: by n if   */
                                  /* `redop` is AVG                            */
    bool repro;                   /* the bits must not depend on the algorithm */
    bool ordered;                 /* fold from the left, in order of the ranks */
    size_t count;                 /* as in dtensor.h; beside counts that only  */
                                  /* this rank knows, approximate block size   */
    const size_t *counts;         /* NULL: all blocks are `count`; else [n] of */
                                  /* block r.  ALL_TO_ALL: of those that this  */
                                  /* rank sends.  They lie one after another   */
    const size_t *recv_counts;    /* ALL_TO_ALL: of those that it gets         */
    const size_t *starts;         /* [n + 1] sums of the counts before each;   */
    const size_t *recv_starts;    /* NULL: added up when asked for             */
    const struct dtn_edge *edges; /* PAIRS: one for each peer                  */
    int nedges;
    uint32_t number;              /* of the call over its group, 0: unknown    */
    const int *hosts;             /* [n] the host of each position, numbered   */
                                  /* as they appear: 0 0 1 0 2; NULL: all one  */
};

/* A reduction made at run time.  `hash` is what ranks compare. */
struct dtn_made {
    enum dtensor_redop op;
    unsigned flags;
    uint64_t hash;
    double factor;                /* of a premultiplied sum                    */
    dtensor_reduce_f *fn;         /* or a function of the caller's             */
    void *arg;
};

struct dtn_reduction dtn_call_reduction(const struct dtn_call *call);

/* Is it a call that can be made?  n and me are filled in; `rank` is the own one
 * in the world.   Errors: EINVAL, in words
 */
int dtn_call_check(const struct dtn_call *call, int rank, const void *in,
                   const void *out, struct dtensor_error *err);

/* The same but for its buffers. */
int dtn_call_check_form(const struct dtn_call *call, int rank,
                        struct dtensor_error *err);

/* Emit the schedule of rank call->me into *sched (initialised here). */
typedef int dtn_emit_f(const struct dtn_call *call, struct dtn_sched *sched,
                       struct dtensor_error *err);

/* Who in a group loads from whom.  What runs at one runs at all that follow. */
enum dtn_reach {
    DTN_REACH_PUT,                /* perhaps nobody                            */
    DTN_REACH_HOST,               /* ranks of one host, of which there are     */
                                  /* several, some with several ranks          */
    DTN_REACH_MAP                 /* everyone from everyone                    */
};

/* What the buffers of a collective hold: call.c. */
enum dtn_holds { DTN_NONE, DTN_ONE, DTN_EACH };
struct dtn_shape {
    const char *name;
    enum dtn_holds in, out;
    bool in_at_root, out_at_root;   /* elsewhere there is none                 */
    bool reduces;
    bool in_place;                  /* may be                                  */
};
extern const struct dtn_shape dtn_shapes[DTN_NCOLLS];
const char *dtn_coll_name(enum dtn_coll coll);

/* Has some buffer a block for each rank? */
bool dtn_call_blocked(const struct dtn_call *call);

/* Are its counts known to this rank only?  Then decisions that must be the same
 * on all ranks cannot depend on them; predictions of this rank may.
 */
static inline bool dtn_call_private(const struct dtn_call *call)
{
    return (call->coll == DTN_COLL_ALL_TO_ALL && call->counts)
        || call->coll == DTN_COLL_PAIRS;
}

/* Bytes of this rank's IN or OUT; false when no memory could hold them. */
bool dtn_call_bytes_of(const struct dtn_call *call, enum dtn_space space,
                       size_t *bytes);

/* May IN and OUT of so many bytes stand there?  Apart, or in place: where one
 * holds all blocks and the other the own one, that is its place among them.
 */
bool dtn_call_fits(const struct dtn_call *call, const void *in, const void *out,
                   const size_t bytes[]);

/* The most that goes from one rank to another: `count`, or the largest block;
 * SIZE_MAX when only this rank knows.
 */
size_t dtn_call_edge_bytes(const struct dtn_call *call);

/* The size of the call for [tuning]: that of the largest buffer of a rank.  If
 * only this rank knows its counts: the approximate block size that the call
 * gives, times the number of ranks; 0 if it gives none.
 */
size_t dtn_call_bytes(const struct dtn_call *call);

/* The same, but in that case the larger buffer of this rank. */
size_t dtn_call_own_bytes(const struct dtn_call *call);

#endif
