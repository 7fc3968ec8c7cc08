/* scratch.c - memory for the results between the steps of a plan
 *
 * All redistributes of a context share two buffers, so only one request at a
 * time can use them.  The buffers only grow: a redistribute that needs 4 MiB
 * after one of 1 MiB allocates again; one that needs less does not.
 */
#include "redist/scratch.h"
#include "mesh/mesh.h"
#include "redist/cache.h"
#include "redist/plan.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "dtensor.h"

static int scratch_grow(struct dtn_redists *redists, enum dtn_target which,
                        size_t size, struct dtensor_error *err)
{
    struct dtn_redist_scratch *scratch = &redists->scratch[which];

    if (size <= scratch->size)
        return 0;
    dtn_arena_free(redists->arena, scratch->mem);
    scratch->size = 0;
    scratch->mem = dtn_arena_alloc(redists->arena, size);
    if (!scratch->mem)
        return dtn_arena_fail(redists->arena, "redistribute", size, err);
    scratch->size = size;
    return 0;
}

int dtn_redist_scratch(const struct dtensor_plan *r, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = r->dst.mesh->ctx;
    int rc = dtn_redists_init(ctx, err);

    for (int i = 0; rc == 0 && i < DTN_NTARGETS; i++)
        rc = scratch_grow(dtn_redists_of(ctx), (enum dtn_target)i,
                          r->scratch[i], err);
    return rc;
}

int dtn_redist_hold(const struct dtensor_plan *r, const void *holder,
                    struct dtensor_error *err)
{
    struct dtn_redists *redists = dtn_redists_of(r->dst.mesh->ctx);

    if (r->scratch[DTN_TARGET_EVEN] + r->scratch[DTN_TARGET_ODD] == 0)
        return 0;
    if (redists && redists->holder)
        return DTENSOR_EAGAIN;
    if (dtn_redist_scratch(r, err) != 0)
        return DTENSOR_ENOMEM;
    dtn_redists_of(r->dst.mesh->ctx)->holder = holder;
    return 0;
}

void dtn_redist_release(struct dtensor_ctx *ctx, const void *holder)
{
    struct dtn_redists *redists = dtn_redists_of(ctx);

    if (redists && redists->holder == holder)
        redists->holder = NULL;
}

void *dtn_redist_target(const struct dtensor_plan *r, int i, void *out)
{
    const enum dtn_target target = r->step[i].target;

    return target == DTN_TARGET_OUT ? out
         : dtn_redists_of(r->dst.mesh->ctx)->scratch[target].mem;
}
