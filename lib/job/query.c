/* query.c - what a context says of itself */
#include "job/ctx.h"
#include "dtensor.h"

int dtensor_rank(const struct dtensor_ctx *ctx)
{
    return ctx->self.rank;
}

int dtensor_world_size(const struct dtensor_ctx *ctx)
{
    return ctx->self.world_size;
}

int dtensor_local_rank(const struct dtensor_ctx *ctx)
{
    return ctx->self.local_rank;
}

int dtensor_local_size(const struct dtensor_ctx *ctx)
{
    return ctx->cluster->hosts[dtn_ctx_host(ctx, ctx->self.rank)].nranks;
}

const char *dtensor_host(const struct dtensor_ctx *ctx)
{
    return ctx->self.host;
}

const char *dtensor_cluster_name(const struct dtensor_ctx *ctx)
{
    return ctx->cluster->name[0] ? ctx->cluster->name : "local";
}

const char *dtensor_launcher(const struct dtensor_ctx *ctx)
{
    return ctx->self.launcher;
}

uint64_t dtensor_copied_bytes(const struct dtensor_ctx *ctx)
{
    uint64_t bytes = ctx->copied_bytes;

    for (int t = 0; t < ctx->ntransports; t++)
        bytes += ctx->transports[t]->copied_bytes;
    return bytes;
}

const char *dtensor_last_plan(const struct dtensor_ctx *ctx)
{
    return ctx->plan_text;
}
