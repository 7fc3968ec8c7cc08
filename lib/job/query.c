/* query.c - queries of a context */
#include "cluster/world.h"
#include "job/ctx.h"
#include "dtensor.h"

int dtensor_rank(const struct dtensor_ctx *ctx)
{
    return ctx->world.rank;
}

int dtensor_world_size(const struct dtensor_ctx *ctx)
{
    return ctx->world.size;
}

int dtensor_local_rank(const struct dtensor_ctx *ctx)
{
    return ctx->world.local_rank;
}

int dtensor_local_size(const struct dtensor_ctx *ctx)
{
    return ctx->world.cluster
        ->hosts[dtn_world_host(&ctx->world, ctx->world.rank)]
        .nranks;
}

const char *dtensor_host(const struct dtensor_ctx *ctx)
{
    return ctx->world.host_name;
}

const char *dtensor_cluster_name(const struct dtensor_ctx *ctx)
{
    return ctx->world.cluster->name[0] ? ctx->world.cluster->name : "local";
}

const char *dtensor_launcher(const struct dtensor_ctx *ctx)
{
    return ctx->world.launcher;
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
    return dtn_path_plan((struct dtensor_ctx *)(uintptr_t)ctx);
}
