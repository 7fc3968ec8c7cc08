/* init.c - dtensor_init() and dtensor_fini(): the rooms in their order
 *
 * The context is opened by the net room; meshes, plans and redistributes are
 * hung on it by the rooms above, and come off in the opposite order, since
 * plans hold memory of the context's arena.
 *
 * A tensor needs its mesh and its memory when it is destroyed, so it holds the
 * context, as do plans, batches, requests, persistent calls, reductions,
 * registrations and memory from dtensor_alloc().  dtensor_fini() ends what is
 * under way, leaves the job, and releases the context; the rest goes with the
 * last one that holds it.
 */
#include "coll/message.h"
#include "coll/redops.h"
#include "job/ctx.h"
#include "layout/lengths.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "redist/redist.h"
#include "dtensor.h"

/* Nothing holds the context any more. */
static void init_end(struct dtensor_ctx *ctx)
{
    dtn_generator_fini(ctx);
    dtn_redops_destroy(ctx->redops);
    dtn_meshes_destroy(ctx->meshes);
    dtn_lengths_destroy(ctx->lengths);
}

int dtensor_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = NULL;
    int rc = dtn_ctx_open(path, &ctx, err);

    if (rc == 0)
        ctx->end = init_end;
    if (rc == 0)
        rc = dtn_meshes_init(ctx, err);
    if (rc == 0)
        rc = dtn_generator_init(ctx, err);
    if (rc != 0)
        dtensor_fini(ctx);
    else
        *ctxp = ctx;
    return rc;
}

int dtensor_init_plan(const char *path, int nranks, int per_host,
                      struct dtensor_ctx **ctxp, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = NULL;
    int rc = dtn_ctx_plan(path, nranks, per_host, &ctx, err);

    if (rc == 0)
        ctx->end = init_end;
    if (rc == 0)
        rc = dtn_meshes_init(ctx, err);
    if (rc != 0)
        dtensor_fini(ctx);
    else
        *ctxp = ctx;
    return rc;
}

void dtensor_fini(struct dtensor_ctx *ctx)
{
    if (!ctx || ctx->finished || dtn_ctx_forked(ctx))  /* the parent's     */
        return;
    dtn_ctx_finish(ctx);
    dtn_coll_fini(ctx);
    dtn_redists_destroy(ctx->redists);
    ctx->redists = NULL;
    dtn_ctx_leave(ctx);
    dtn_ctx_release(ctx);
}
