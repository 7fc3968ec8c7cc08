/* repeat.h - private to the coll room: calls that repeat */
#ifndef DTN_COLL_REPEAT_H
#define DTN_COLL_REPEAT_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_cached_exec;
struct dtn_coll_state;
struct dtn_group;

/* The number of calls that are kept, a power of two. */
enum { DTN_REPEATS = 64 };

/* A call that was checked, with its arguments and its executable.  A message is
 * one, too: its collective is PAIRS, its root is the peer, and it has only one
 * of both buffers.
 */
struct dtn_repeat {
    const struct dtn_group *group;         /* of the call; NULL: no call      */
    struct dtensor_call call;     /* without lists of counts                  */
    const void *in;               /* its input                                */
    void *out;                    /* its output                               */
    struct dtn_cached_exec *cached;        /* what it runs                    */
};

/* Where a call is kept. */
static inline struct dtn_repeat *dtn_repeat_at(struct dtn_repeat repeats[],
                                               const struct dtensor_call *call,
                                               const void *in, const void *out)
{
    size_t hash = (uintptr_t)in + 3 * (uintptr_t)out + call->count
                + (size_t)call->coll;

    hash ^= hash >> 6 ^ hash >> 12;
    return &repeats[hash % DTN_REPEATS];
}

/* Is it this call, with the same arguments?  Then it needs no check. */
static inline bool dtn_repeat_is(const struct dtn_repeat *repeat,
                                 const struct dtn_group *group,
                                 const struct dtensor_call *call,
                                 const void *in, const void *out)
{
    const struct dtensor_call *kept = &repeat->call;

    return repeat->group == group && repeat->in == in && repeat->out == out
        && kept->count == call->count && kept->coll == call->coll
        && kept->root == call->root && kept->dtype == call->dtype
        && kept->op == call->op && !call->counts && !call->recv_counts;
}

/* forget: the executable is about to be freed.  clear: all calls are to be
 * checked again.
 */
void dtn_repeats_forget(struct dtn_coll_state *coll,
                        const struct dtn_cached_exec *cached);
void dtn_repeats_clear(struct dtn_coll_state *coll);

#endif
