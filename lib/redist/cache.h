/* cache.h - the plans that a context keeps for redistributes */
#ifndef DTN_REDIST_CACHE_H
#define DTN_REDIST_CACHE_H

#include "base/lru.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "redist/plan.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* What redistributes keep for a context. */
struct dtn_redists {
    struct dtn_lru plans;              /* by specs and root                   */
    uint64_t hits, misses;             /* for dtensor_plan_cache()            */
    struct dtn_arena *arena;           /* of the context                      */
    struct dtn_redist_scratch {        /* results between steps: scratch.c    */
        void *mem;                     /* NULL: none yet                      */
        size_t size;                   /* bytes                               */
    } scratch[DTN_NTARGETS];
    const void *holder;                /* the request that uses it, or NULL   */
};

/* NULL before the first redistribute. */
static inline struct dtn_redists *dtn_redists_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_REDIST].state;
}

/* Make it if the context does not have it.   Errors: ENOMEM */
int dtn_redists_init(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Find the plan for a pair of specs, or make it and make it ready.
 * Errors: EINVAL, ENOMEM
 */
struct dtn_redist_query {
    const struct dtensor_spec *src, *dst; /* before, after                    */
    int root;                          /* of a scatter, else DTN_NO_ROOT      */
};
int dtn_redists_get(struct dtn_redists *redists,
                    const struct dtn_redist_query *query,
                    struct dtensor_plan **rp, struct dtensor_error *err);

#endif
