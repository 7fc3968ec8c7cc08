/* execs.h - private to the coll room: an LRU cache of executables by call */
#ifndef DTN_EXECS_H
#define DTN_EXECS_H

#include "base/lru.h"
#include "coll/exec.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "job/last_plan.h"
#include "sched/fingerprint.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

struct dtn_call;
struct dtn_group;

struct dtn_cached_exec {
    struct dtn_lru_entry entry;   /* bytes: scratch; holders: requests        */
    struct dtn_exec *exec;        /* the executable of the call               */
    uint64_t fingerprint;         /* of the call, without its number          */
    char text[DTN_LAST_PLAN];     /* what it does, for dtensor_last_plan()    */
};

/* Run it as the call with that number. */
static inline int dtn_cached_run(const struct dtn_cached_exec *cached,
                                 const void *in, void *out, uint32_t number,
                                 struct dtensor_error *err)
{
    return dtn_exec_run(cached->exec, in, out,
                        dtn_fingerprint_numbered(cached->fingerprint, number),
                        err);
}

/* A call that was found earlier is made again. */
static inline void dtn_cached_touch(struct dtensor_ctx *ctx,
                                    struct dtn_cached_exec *cached)
{
    dtn_lru_touch(&dtn_coll_of(ctx)->execs, &cached->entry);
    dtn_last_plan_is(&ctx->last_plan, cached->text);
}

/* Run it. */
static inline int dtn_cached_again(struct dtensor_ctx *ctx,
                                   struct dtn_cached_exec *cached,
                                   const void *in, void *out, uint32_t number,
                                   struct dtensor_error *err)
{
    dtn_cached_touch(ctx, cached);
    return dtn_cached_run(cached, in, out, number, err);
}

/* A fingerprint of what all ranks of the call know, without the number of the
 * call.  For messages the match bits of the edges contain it.
 */
uint64_t dtn_call_fingerprint(const struct dtn_group *group,
                              const struct dtn_call *call);

/* The executable of this call; it is made if it is new.  It is valid until the
 * next call of this function, or while it has holders.
 */
int dtn_execs_get(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_cached_exec **cachedp, struct dtensor_error *err);

/* Make the schedule and the executable of a call, with n and me filled in, that
 * is not in the cache: the caller destroys made->exec; made->entry is not set.
 */
int dtn_execs_make(const struct dtn_group *group, const struct dtn_call *call,
                   struct dtn_cached_exec *made, struct dtensor_error *err);

/* The cached executable of a call, if a quick check shows that the buffers are
 * good: they are there, and they do not overlap.  NULL: do the full checks.
 */
struct dtn_cached_exec *dtn_execs_again(const struct dtn_group *group,
                                        const struct dtn_call *call,
                                        const void *in, const void *out);

void dtn_execs_clear(struct dtn_lru *execs);

#endif
