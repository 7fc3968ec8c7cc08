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

int dtn_buffer_close(struct dtensor_ctx *ctx, const char *what,
                     const struct dtn_memory *memory, int rc,
                     struct dtensor_error *err)
{
    rc = dtn_memory_done(memory, rc);
    if (rc == 0)
        return 0;
    dtn_poison(ctx, rc, ctx->world.rank, "%s in %s memory: %s", what,
               memory->ops->name, memory->ops->why(memory));
    return dtn_ctx_check(ctx, err);
}

/* Begin an operation on two buffers, or one and NULL; *memoryp is its kind.
 * Errors: EINVAL, ENODEV, ETIME
 */
static int buffer_begin(struct dtensor_ctx *ctx, const char *what,
                        const void *one, const void *other,
                        const struct dtn_memory **memoryp,
                        struct dtensor_error *err)
{
    int rc;

    *memoryp = &dtn_host;
    if (!ctx->asks)
        return 0;
    rc = dtn_ctx_check_buffer(ctx, what, one, 1, err);
    if (rc == 0)
        rc = dtn_ctx_check_buffer(ctx, what, other, 1, err);
    if (rc != 0)
        return rc;
    *memoryp = dtn_memory_of(ctx->device, one, other);
    rc = (*memoryp)->ops->begin(*memoryp);
    return rc == DTN_LAUNCHED
         ? 0 : dtn_buffer_close(ctx, what, *memoryp, rc, err);
}

int dtn_buffer_copy(struct dtensor_ctx *ctx, void *dst, const void *src,
                    size_t bytes, struct dtensor_error *err)
{
    const struct dtn_memory *memory;
    int rc = buffer_begin(ctx, "copy", dst, src, &memory, err);

    if (rc != 0)
        return rc;
    rc = memory->ops->copy(memory, dst, src, bytes);
    return dtn_buffer_close(ctx, "copy", memory, rc, err);
}

int dtn_buffer_zero(struct dtensor_ctx *ctx, void *dst, size_t bytes,
                    struct dtensor_error *err)
{
    const struct dtn_memory *memory;
    int rc = buffer_begin(ctx, "set", dst, NULL, &memory, err);

    if (rc != 0)
        return rc;
    rc = memory->ops->set(memory, dst, 0, bytes);
    return dtn_buffer_close(ctx, "set", memory, rc, err);
}

int dtn_buffer_scale(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                     void *array, size_t count, int n,
                     struct dtensor_error *err)
{
    const struct dtn_memory *memory;
    int rc = buffer_begin(ctx, "scale", array, NULL, &memory, err);

    if (rc != 0)
        return rc;
    rc = memory->ops->scale(memory, dtype, array, count, n);
    return dtn_buffer_close(ctx, "scale", memory, rc, err);
}

int dtn_buffer_neutral(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                       enum dtensor_redop op, void *array, size_t count,
                       struct dtensor_error *err)
{
    const struct dtn_memory *memory;
    int rc = buffer_begin(ctx, "fill", array, NULL, &memory, err);

    if (rc != 0)
        return rc;
    rc = memory->ops->neutral(memory, dtype, op, array, count);
    return dtn_buffer_close(ctx, "fill", memory, rc, err);
}

int dtn_buffer_make(struct dtensor_ctx *ctx, const struct dtn_formula *formula,
                    const struct dtn_elements *elements, void *out,
                    const void *const in[], struct dtensor_error *err)
{
    const struct dtn_memory *memory;
    int rc = buffer_begin(ctx, "fill", out, NULL, &memory, err);

    if (rc != 0)
        return rc;
    rc = memory->ops->make(memory, formula, elements, out, in);
    return dtn_buffer_close(ctx, "fill", memory, rc, err);
}

int dtn_buffer_equal(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                     const void *left, const void *right, size_t count,
                     bool *equalp, struct dtensor_error *err)
{
    const struct dtn_memory *memory;
    int rc = buffer_begin(ctx, "equal", left, right, &memory, err);

    if (rc != 0)
        return rc;
    rc = memory->ops->equal(memory, dtype, left, right, count, equalp);
    return dtn_buffer_close(ctx, "equal", memory, rc, err);
}

int dtn_buffer_open(struct dtensor_ctx *ctx, const char *what, const void *mem,
                    const struct dtn_memory **memoryp,
                    struct dtensor_error *err)
{
    return buffer_begin(ctx, what, mem, NULL, memoryp, err);
}
