/* device.c - the GPU of a rank
 *
 * It is opened at the start if a mesh of the cluster file keeps tensors there.
 * Otherwise it is opened when the program first asks for it, or first passes an
 * address on a GPU.  From then on the transports that can access its memory in
 * place do so.
 *
 * Only the driver knows whether an address is on a GPU.  If the program has not
 * loaded the driver, it has no such address, and the driver is not asked.
 */
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "transport/transport.h"
#include "dtensor.h"

int dtn_ctx_open_device(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_nodes *nodes = dtn_world_nodes(&ctx->world);
    const struct dtn_cuda_want want = {
        .gpus = nodes->gpus, .ngpus = nodes->ngpus,
        .local_rank = ctx->world.local_rank,
        .local_size = dtensor_local_size(ctx),
        .host = ctx->world.host_name, .log = &ctx->log,
        .timeout_ns = ctx->world.cluster->transport.op_timeout_ns
    };

    int rc;

    if (ctx->device)
        return 0;
    rc = dtn_cuda_open(&want, &ctx->device, err);
    ctx->asks |= rc == 0;
    for (int t = 0; t < ctx->ntransports && rc == 0; t++)
        dtn_ctx_attach_device(ctx, ctx->transports[t]);
    return rc;
}

void dtn_ctx_attach_device(struct dtensor_ctx *ctx, struct dtn_transport *tp)
{
    if (ctx->device && ctx->device->exporter && tp->ops->attach)
        tp->ops->attach(tp, ctx->device->exporter);
}

void dtn_ctx_look_out(struct dtensor_ctx *ctx)
{
    ctx->asks = ctx->asks || dtn_cuda_driver_is_loaded();
}

int dtn_ctx_check_buffer(struct dtensor_ctx *ctx, const char *what,
                         const void *mem, size_t bytes,
                         struct dtensor_error *err)
{
    int rc = 0;

    dtn_ctx_look_out(ctx);
    if (!ctx->asks || bytes == 0)
        return 0;
    if (!ctx->device && dtn_cuda_is_device(mem))
        rc = dtn_ctx_open_device(ctx, err);
    return rc == 0 && ctx->device
         ? ctx->device->ops->check(ctx->device, what, mem, bytes, err) : rc;
}
