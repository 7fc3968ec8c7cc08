/* init.c - dtensor_init() and dtensor_fini(): the rooms in their order
 *
 * The context is opened by the net room; meshes, plans and redistributes are
 * hung on it by the rooms above, and come off in the opposite order, since
 * plans hold memory of the context's arena.
 */
#include "tensor/tensor.h"

int dtensor_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = NULL;
    int rc = dtn_ctx_open(path, &ctx, err);

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
        rc = dtn_meshes_init(ctx, err);
    if (rc != 0)
        dtensor_fini(ctx);
    else
        *ctxp = ctx;
    return rc;
}

void dtensor_fini(struct dtensor_ctx *ctx)
{
    if (!ctx)
        return;
    dtensor_generator_destroy(ctx->generator);
    dtn_redists_destroy(ctx->redists);
    dtn_coll_fini(ctx);
    dtn_meshes_destroy(ctx->meshes);
    dtn_lengths_destroy(ctx->lengths);
    dtn_ctx_close(ctx);
}
