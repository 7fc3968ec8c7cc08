/* call.h - a collective call: what it is and what its buffers hold */
#ifndef DTN_SCHED_CALL_H
#define DTN_SCHED_CALL_H

#include "base/reduce.h"
#include "cluster/cluster.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_redops;
struct dtn_sched;

/* The public collectives, then internal ones without a struct dtensor_call. */
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
    DTN_COLL_PAIRS = DTENSOR_NCOLLECTIVES,         /* sends and receives      */
    DTN_COLL_EXCHANGE,                             /* a step of a             */
                                                   /* redistribute            */
    DTN_NCOLLS
};

/* PAIRS: the data between this rank and one peer.  The struct has no padding,
 * because it is hashed.
 */
struct dtn_edge {
    int32_t peer;                 /* position in the group                    */
    uint32_t sends, receives;     /* 1: there is a message, perhaps of 0      */
                                  /* bytes                                    */
    uint32_t distance;            /* (peer - this rank) modulo the world      */
                                  /* size; edges are sorted by it             */
    uint64_t sent_match, received_match;  /* match bits of both messages      */
    struct dtn_range sent;        /* in IN                                    */
    struct dtn_range received;    /* in OUT                                   */
};

/* A call.  All fields but `me` and those marked private are the same on every
 * rank.  Counts are elements, not bytes.
 */
struct dtn_call {
    enum dtn_coll coll;           /* which collective                         */
    int n;                        /* ranks in the group                       */
    int me;                       /* position of this rank                    */
    int root;                     /* position of the root                     */
    enum dtensor_dtype dtype;     /* of the elements                          */
    enum dtensor_redop redop;     /* of a reducing collective                 */
    const struct dtn_made_redop *made; /* reduction made at run time, or NULL */
    int divisor;                  /* the result is divided by it; 0: by n if  */
                                  /* `redop` is AVG, else by nothing          */
    bool ordered;                 /* fold from the left, in order of the      */
                                  /* ranks                                    */
    bool on_device;               /* the mesh keeps tensors on devices        */
    size_t count;                 /* elements, as in dtensor.h; if counts are */
                                  /* private: the approximate block size      */
    const size_t *counts;         /* [n] elements of block r, one after       */
                                  /* another; NULL: all have `count`.         */
                                  /* ALL_TO_ALL: blocks sent, private         */
    const size_t *recv_counts;    /* [n] ALL_TO_ALL: blocks received, private */
    const size_t *starts;         /* [n + 1] prefix sums of `counts`; NULL:   */
                                  /* they are summed on demand                */
    const size_t *recv_starts;    /* the same of `recv_counts`                */
    const struct dtn_edge *edges;  /* [nedges] PAIRS: one for each peer,      */
                                   /* private                                 */
    int nedges;                   /* peers with messages                      */
    uint32_t number;              /* sequence number of the call over its     */
                                  /* group; 0: unknown                        */
    uint64_t plan;                /* a step of a redistribute: match bits of  */
                                  /* that, which ranks compare; else 0        */
    const char *text;             /* of that redistribute; NULL: no step      */
    size_t eager_bytes;           /* the longest eager message between its    */
                                  /* ranks; 0 means DTN_EAGER_MAX             */
    const int *hosts;             /* [n] host of each position, numbered in   */
                                  /* order of appearance: 0 0 1 0 2; NULL:    */
                                  /* all ranks are on one host                */
};

/* A reduction made at run time. */
struct dtn_made_redop {
    enum dtensor_redop op;        /* its number                               */
    unsigned flags;               /* enum dtensor_redop_flags of a function   */
    uint64_t hash;                /* of what it does: ranks compare it        */
    double factor;                /* factor of a premultiplied sum            */
    dtensor_reduce_f *fn;         /* the caller's function, or NULL           */
    void *arg;                    /* argument of fn                           */
};

struct dtn_reduction dtn_call_reduction(const struct dtn_call *call);

/* Check a call; n and me are filled in, `rank` is this rank in the world.
 * Errors: EINVAL, with a message
 */
int dtn_call_check(const struct dtn_call *call, int rank, const void *in,
                   const void *out, struct dtensor_error *err);

/* The same without its buffers. */
int dtn_call_check_form(const struct dtn_call *call, int rank,
                        struct dtensor_error *err);

/* Emit the schedule of rank call->me into *sched (initialised here). */
typedef int dtn_emit_f(const struct dtn_call *call, struct dtn_sched *sched,
                       struct dtensor_error *err);

/* Which ranks of a group can load from each other.  An emitter that runs with
 * one value also runs with all later values.
 */
enum dtn_reach {
    DTN_REACH_PUT,                /* none need to: data is put                */
    DTN_REACH_HOST,               /* ranks of the same host; there are        */
                                  /* several hosts, some with several ranks   */
    DTN_REACH_MAP,                /* every rank from every rank               */
    DTN_REACH_DEVICE              /* so do their devices, where tensors are   */
};

/* What a buffer of a collective holds: nothing, one block, or one block for
 * each rank.  The table is in call.c.
 */
enum dtn_contents { DTN_HOLDS_NONE, DTN_HOLDS_ONE, DTN_HOLDS_EACH };
struct dtn_coll_info {
    const char *name;             /* "allreduce"                              */
    enum dtn_contents in, out;    /* contents of IN and OUT                   */
    bool in_at_root, out_at_root;   /* only the root has this buffer          */
    bool reduces;                 /* it has a reduction                       */
    bool in_place;                  /* it may be called in place              */
};
extern const struct dtn_coll_info dtn_coll_infos[DTN_NCOLLS];
const char *dtn_coll_name(enum dtn_coll coll);

/* Does some buffer have a block for each rank? */
bool dtn_call_blocked(const struct dtn_call *call);

/* Are the counts private, that is known to this rank only?  Decisions that must
 * be the same on all ranks cannot depend on private counts; this rank's
 * predictions can.
 */
static inline bool dtn_call_private(const struct dtn_call *call)
{
    return (call->coll == DTN_COLL_ALL_TO_ALL && call->counts)
        || call->coll == DTN_COLL_PAIRS;
}

/* Bytes of this rank's IN or OUT; false if the size overflows memory. */
bool dtn_call_bytes_of(const struct dtn_call *call, enum dtn_space space,
                       size_t *bytes);

/* May IN and OUT have these sizes at these addresses?  They must not overlap,
 * or the call must be in place: if one buffer holds all blocks and the other
 * only this rank's block, the small buffer is this rank's block of the large
 * one.
 */
bool dtn_call_fits(const struct dtn_call *call, const void *in, const void *out,
                   const size_t bytes[]);

/* The largest message between two ranks in bytes: `count`, or the largest
 * block; SIZE_MAX if the counts are private.
 */
size_t dtn_call_edge_bytes(const struct dtn_call *call);

/* The longest eager message, if the ranks agree on `bytes`; 0: they have not.
 */
static inline size_t dtn_eager_bytes(size_t bytes)
{
    return bytes > 0 ? bytes : DTN_EAGER_MAX;
}

/* The size of the call for [tuning]: the largest buffer of a rank in bytes.  If
 * the counts are private: the approximate block size of the call times the
 * number of ranks, 0 if the call gives none.
 */
size_t dtn_call_bytes(const struct dtn_call *call);

/* The same, but with private counts the larger buffer of this rank. */
size_t dtn_call_own_bytes(const struct dtn_call *call);

#endif
