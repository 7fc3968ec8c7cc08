/* buffer.c - operations on a buffer of either kind, outside of a run
 *
 * A program's array may be in host memory and its tensor on a device, or the
 * reverse.  Then the device's kind does the operation, because it can access
 * both.
 */
#include "job/buffer.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdbool.h>

/* End an operation that returned `rc`. */
static int buffer_end(struct dtensor_ctx *ctx, const char *what,
                      const struct dtn_memory *memory, int rc,
                      struct dtensor_error *err)
{
    rc = dtn_memory_done(memory, rc);
    if (rc == 0)
        return 0;
    dtn_poison(ctx, rc, ctx->world.rank, "%s: %s in %s memory", what,
               dtensor_errname(rc), memory->ops->name);
    return dtn_ctx_check(ctx, err);
}

int dtn_buffer_copy(struct dtensor_ctx *ctx, void *dst, const void *src,
                    size_t bytes, struct dtensor_error *err)
{
    const struct dtn_memory *memory = dtn_memory_of(ctx->device, dst, src);

    return buffer_end(ctx, "copy", memory,
                      memory->ops->copy(memory, dst, src, bytes), err);
}

int dtn_buffer_set(struct dtensor_ctx *ctx, void *dst, int byte, size_t bytes,
                   struct dtensor_error *err)
{
    const struct dtn_memory *memory = dtn_memory_of(ctx->device, dst, NULL);

    return buffer_end(ctx, "set", memory,
                      memory->ops->set(memory, dst, byte, bytes), err);
}

int dtn_buffer_scale(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                     void *array, size_t count, int n,
                     struct dtensor_error *err)
{
    const struct dtn_memory *memory = dtn_memory_of(ctx->device, array, NULL);

    return buffer_end(ctx, "scale", memory,
                      memory->ops->scale(memory, dtype, array, count, n), err);
}

int dtn_buffer_neutral(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                       enum dtensor_redop op, void *array, size_t count,
                       struct dtensor_error *err)
{
    const struct dtn_memory *memory = dtn_memory_of(ctx->device, array, NULL);

    return buffer_end(ctx, "fill", memory,
                      memory->ops->neutral(memory, dtype, op, array, count),
                      err);
}

int dtn_buffer_make(struct dtensor_ctx *ctx, const struct dtn_formula *formula,
                    const struct dtn_elements *elements, void *out,
                    const void *const in[], struct dtensor_error *err)
{
    const struct dtn_memory *memory = dtn_memory_of(ctx->device, out, NULL);

    return buffer_end(ctx, "fill", memory,
                      memory->ops->make(memory, formula, elements, out, in),
                      err);
}

int dtn_buffer_equal(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                     const void *left, const void *right, size_t count,
                     bool *equalp, struct dtensor_error *err)
{
    const struct dtn_memory *memory = dtn_memory_of(ctx->device, left, right);

    return buffer_end(ctx, "equal", memory,
                      memory->ops->equal(memory, dtype, left, right, count,
                                         equalp), err);
}
