/* init.c - dtensor_init() and dtensor_fini(): the rooms in their order
 *
 * The room job opens the context; the rooms above it put what they keep into
 * their slots of the context (job/slot.h).
 *
 * A tensor needs its mesh and its memory when it is destroyed, so it holds the
 * context, as do plans, batches, requests, persistent calls, reductions,
 * registrations and memory from dtensor_alloc().  dtensor_fini() ends what is
 * under way, leaves the job, and releases the context; the rest goes with the
 * last one that holds it.
 */
#include "coll/state.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "dtensor.h"

/* Fill the slots of the rooms that keep something from the beginning, if the
 * context was opened (rc is 0), and hand it over.
 */
static int init_rooms(int rc, struct dtensor_ctx *ctx,
                      struct dtensor_ctx **ctxp, struct dtensor_error *err)
{
    if (rc == 0)
        rc = dtn_meshes_init(ctx, err);
    if (rc == 0)
        rc = dtn_coll_init(ctx, err);
    if (rc == 0)
        rc = dtn_generator_init(ctx, err);
    if (rc != 0)
        dtensor_fini(ctx);
    else
        *ctxp = ctx;
    return rc;
}

int dtensor_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = NULL;
    int rc = dtn_ctx_open(path, &ctx, err);

    return init_rooms(rc, ctx, ctxp, err);
}

int dtensor_init_offline(const char *path, int nranks, int per_host,
                         struct dtensor_ctx **ctxp, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = NULL;
    int rc = dtn_ctx_plan(path, nranks, per_host, &ctx, err);

    return init_rooms(rc, ctx, ctxp, err);
}

void dtensor_fini(struct dtensor_ctx *ctx)
{
    if (!ctx || ctx->finished || dtn_ctx_forked(ctx))  /* the parent's     */
        return;
    dtn_ctx_finish(ctx);
    dtn_slots_finish(ctx);
    dtn_ctx_leave(ctx);
    dtn_ctx_release(ctx);
}
