/* device_product.c - products where the tensors are
 *
 * On a GPU cuBLAS makes them, if there is one and `repro` is off; else the own
 * kernels do, with the bits of the CPU's own loops.  Of 2 x 3 x 5 x 7 by
 * 3 x 7 x 4 there are two calls of 3 products each: one for each run of
 * matrices that are the same distance apart.
 */
#include "op/device.h"
#include "base/log.h"
#include "cuda/compute.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "math/blas.h"
#include "math/loop.h"
#include "math/matmul.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Is it a matrix whose rows, or columns, are contiguous? */
static bool matrix_of(const struct dtn_array *array,
                      struct dtn_gemm_matrix *matrix)
{
    const int r = array->ndim - 2, c = array->ndim - 1;
    const int64_t rows = array->shape[r], columns = array->shape[c];
    const int64_t down = rows > 1 ? array->stride[r] : columns;
    const int64_t across = columns > 1 ? array->stride[c] : rows;
    const bool by_row = (across == 1 || columns == 1) && down >= columns;

    if (!by_row && !((down == 1 || rows == 1) && across >= rows))
        return false;
    matrix->transposed = !by_row;
    matrix->stride = (int)(by_row ? down : across);
    return (by_row ? down : across) <= INT_MAX && rows <= INT_MAX
        && columns <= INT_MAX && rows > 0 && columns > 0;
}

/* One product of each run; false: a library cannot do it. */
static bool product_of(const struct dtn_array *out, const struct dtn_array *a,
                       const struct dtn_array *b, unsigned flags,
                       struct dtn_gemm *product)
{
    *product = (struct dtn_gemm){
        .dtype = out->dtype, .adds = flags & DTN_MATMUL_ADD };
    if (!matrix_of(out, &product->out) || product->out.transposed
        || !matrix_of(a, &product->a) || !matrix_of(b, &product->b))
        return false;
    product->m = (int)out->shape[out->ndim - 2];
    product->n = (int)out->shape[out->ndim - 1];
    product->k = (int)a->shape[a->ndim - 1];
    return true;
}

/* The matrices of the run, and how far they are apart. */
static void run_set(const struct dtn_loop *loop, int i,
                    struct dtn_gemm_matrix *matrix)
{
    matrix->data = loop->at[i];
    matrix->apart = loop->step[i];
}

static void library_multiplies(struct dtn_op_device *device,
                               const struct dtn_array *out,
                               const struct dtn_array *a,
                               const struct dtn_array *b,
                               struct dtn_gemm *product)
{
    struct dtn_array all[3] = { *out, *a, *b };
    struct dtn_loop loop;

    all[0].ndim = all[1].ndim = all[2].ndim = out->ndim - 2;
    all[1] = dtn_array_expanded(&all[1], &all[0]);
    all[2] = dtn_array_expanded(&all[2], &all[0]);
    dtn_loop_begin(&loop, all, 3);
    for (bool more = !loop.empty; more && device->rc >= 0;
         more = dtn_loop_next(&loop)) {
        product->batch = (int)loop.run;
        run_set(&loop, 0, &product->out);
        run_set(&loop, 1, &product->a);
        run_set(&loop, 2, &product->b);
        device->rc = device->memory->ops->multiply(device->memory, product);
    }
}

/* Does a library do it here and now? */
static bool library_can(const struct dtn_op_device *device,
                        enum dtensor_dtype dtype, unsigned flags)
{
    const struct dtn_memory *memory = device->memory;

    return !(flags & DTN_MATMUL_REPRO) && memory && device->rc >= 0
        && memory->ops->multiplies && memory->ops->multiplies(memory, dtype);
}

/* Say once in a process what multiplies. */
static void choice_log(struct dtensor_ctx *ctx)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char words[300];

    if (ctx->log.level < DTN_LOG_INFO || atomic_flag_test_and_set(&said))
        return;
    dtn_blas_describe(words, sizeof words);
    dtn_log(&ctx->log, DTN_LOG_INFO, "op: %s", words);
}

void dtn_op_matmul(const struct dtn_parts *parts, const struct dtn_array *out,
                   const struct dtn_array *a, const struct dtn_array *b,
                   unsigned flags)
{
    struct dtn_op_device *device = parts->device;
    struct dtn_gemm product;
    struct dtn_launch launch;

    if (!device) {
        if (!(flags & DTN_MATMUL_REPRO))
            choice_log(parts->want->mesh->ctx);
        dtn_matmul(out, a, b, flags, parts->work);
    } else if (product_of(out, a, b, flags, &product)
             && library_can(device, out->dtype, flags))
        library_multiplies(device, out, a, b, &product);
    else
        dtn_op_launch(device, dtn_launch_matmul(out, a, b,
                                                flags & DTN_MATMUL_ADD,
                                                &launch), &launch);
}
