/* compute_lines.c - from what lib/math does along lines to kernels
 *
 * A scatter along dimension 1 of 8 x 100 has 8 lines of 100 indices.  To give a
 * GPU more to do, up to 64 threads share a line (lines.h).
 */
#include "cuda/compute_lines.h"
#include "cuda/grids.h"
#include "cuda/launch.h"
#include "base/dtype.h"
#include "math/strips.h"
#include "dtensor.h"

#include <string.h>

enum { OUT, INDEX, IN };

enum { ENOUGH = 1 << 18, SHARERS = 64 };     /* threads; those of a line      */

/* A launch over lines of arrays of one shape; `dims` is a bit set of the
 * dimensions of a line.
 */
static struct dtn_line_args *lines_of(const struct dtn_array arrays[3],
                                      unsigned dims, enum dtn_kernel kernel,
                                      struct dtn_launch *launch)
{
    const enum dtensor_dtype dtype = arrays[OUT].dtype;
    const bool is_complex = dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX;
    struct dtn_line_args *args = &launch->args.line;
    struct dtn_strips strips;

    dtn_strips_begin(&strips, arrays, 3, dims);
    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    args->out = arrays[OUT].data;
    args->index = arrays[INDEX].data;
    args->in = arrays[IN].data;
    args->outer = dtn_grid_of(&strips.outer);
    args->line = dtn_grid_of(&strips.row);
    args->units = args->outer.count;
    args->share = 1;
    args->lines = dtn_divide_by(args->units > 0 ? args->units : 1);
    args->index_bytes = (uint32_t)dtn_dtype_size(arrays[INDEX].dtype);
    args->bytes = (uint32_t)dtn_dtype_size(dtype);
    args->parts = is_complex ? 2 : 1;
    args->dtype = !is_complex ? dtype
                : dtype == DTENSOR_C64 ? DTENSOR_F32 : DTENSOR_F64;
    args->is_float = dtn_dtype_is_float(args->dtype);
    launch->threads = args->units;
    return args;
}

/* A table of `limit` rows, `stride` elements apart. */
static void lines_table(struct dtn_launch *launch, int64_t first,
                        int64_t limit, int64_t stride)
{
    struct dtn_line_args *args = &launch->args.line;

    while (args->share < SHARERS && (int64_t)args->share < limit &&
           args->units * args->share < ENOUGH)
        args->share *= 2;
    args->units *= args->share;
    args->first = first;
    args->limit = limit;
    args->stride = stride * (int64_t)args->bytes;
    launch->threads = args->units;
}

void dtn_launch_scatter(const struct dtn_array *out, int dim,
                        const struct dtn_array *index,
                        const struct dtn_array *from, bool adds,
                        struct dtn_launch *launch)
{
    struct dtn_array arrays[3] = { *out, *index, *from };

    for (int d = 0; d < index->ndim; d++)
        arrays[OUT].shape[d] = arrays[IN].shape[d] = index->shape[d];
    arrays[OUT].stride[dim] = 0;
    lines_of(arrays, 1u << dim, DTN_KERNEL_scatter, launch)->how = adds;
    lines_table(launch, 0, out->shape[dim], out->stride[dim]);
}

/* The table has the dimensions of the index with stride 0, and its columns; the
 * index is broadcast to the columns.
 */
void dtn_launch_embedding_backward(const struct dtn_array *table,
                                   const struct dtn_array *grad,
                                   const struct dtn_array *index,
                                   int64_t first, struct dtn_launch *launch)
{
    const int last = grad->ndim - 1;
    struct dtn_array arrays[3] = { *grad, *grad, *grad };

    arrays[OUT].data = table->data;
    arrays[INDEX].data = index->data;
    arrays[INDEX].dtype = index->dtype;
    memset(arrays[OUT].stride, 0, sizeof arrays[OUT].stride);
    arrays[OUT].stride[last] = table->stride[1];
    memcpy(arrays[INDEX].stride, index->stride, sizeof index->stride);
    arrays[INDEX].stride[last] = 0;
    lines_of(arrays, (1u << last) - 1, DTN_KERNEL_scatter, launch)->how = 1;
    lines_table(launch, first, table->shape[0], table->stride[0]);
}

bool dtn_launch_cumulate(bool product, const struct dtn_array *out,
                         const struct dtn_array *in, int dim,
                         struct dtn_launch *launch)
{
    const struct dtn_array arrays[3] = { *out, *in, *in };

    if (dtn_dtype_kind(out->dtype) == DTN_DTYPE_COMPLEX)
        return false;
    lines_of(arrays, 1u << dim, DTN_KERNEL_cumulate, launch)->how = product;
    return true;
}

void dtn_launch_triangle(bool lower, int64_t diagonal,
                         const struct dtn_array *out,
                         const struct dtn_array *in,
                         struct dtn_launch *launch)
{
    const int64_t size = (int64_t)dtn_dtype_size(out->dtype);
    const int r = out->ndim - 2, c = out->ndim - 1;
    const int64_t cells = out->shape[r] * out->shape[c];
    struct dtn_array arrays[2] = { *out, *in };
    struct dtn_kernel_grid grid;

    arrays[0].ndim = arrays[1].ndim = r;
    grid = dtn_launch_over(arrays, 2, DTN_KERNEL_triangle, launch);
    launch->args.triangle = (struct dtn_triangle_args){
        .out = out->data, .in = in->data, .batch = grid,
        .out_stride = { out->stride[r] * size, out->stride[c] * size },
        .in_stride = { in->stride[r] * size, in->stride[c] * size },
        .diagonal = diagonal, .units = grid.count * (uint64_t)cells,
        .bytes = (uint32_t)size, .lower = lower
    };
    launch->threads = launch->args.triangle.units;
    if (launch->threads == 0)
        return;
    launch->args.triangle.cells = dtn_divide_by((uint64_t)cells);
    launch->args.triangle.columns = dtn_divide_by((uint64_t)out->shape[c]);
}
