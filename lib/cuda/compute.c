/* compute.c - from a function of lib/math to a kernel: element by element
 *
 * Functions of libm have no kernel, since no GPU has their bits.
 */
#include "cuda/compute.h"
#include "cuda/grids.h"
#include "cuda/launch.h"
#include "base/box.h"
#include "base/dtype.h"
#include "math/block.h"
#include "dtensor.h"

#include <string.h>

/* A launch of `kernel` over the elements of `out`, to which `in` is broadcast.
 */
static struct dtn_kernel_grid launch_over(const struct dtn_array *out,
                                          const struct dtn_array *const in[],
                                          int nin, enum dtn_kernel kernel,
                                          struct dtn_launch *launch)
{
    struct dtn_array arrays[DTN_KERNEL_ARRAYS] = { *out };

    for (int i = 0; i < nin; i++)
        arrays[1 + i] = dtn_array_expanded(in[i], out);
    return dtn_launch_over(arrays, 1 + nin, kernel, launch);
}

/* ----------------------------------------------------------- pointwise --- */

static bool is_of_libm(enum dtn_pointwise op)
{
    return op == DTN_ASINH || op == DTN_ATAN;
}

/* How many fours of neighbours a kernel may load and store at once.  `to`:
 * bytes of an element of the result.
 */
static uint64_t fours_of(const struct dtn_pointwise_args *args, int64_t to)
{
    const enum dtensor_dtype dtype = (enum dtensor_dtype)args->dtype;
    const int64_t size = (int64_t)dtn_dtype_size(dtype);
    const struct dtn_kernel_grid *grid = &args->grid;
    uintptr_t at = (uintptr_t)args->out % (uintptr_t)(4 * to);

    if (grid->ndim != 0 || grid->step[0] != to)
        return 0;
    for (uint32_t i = 0; i < args->nin; i++) {
        if (grid->step[1 + i] != 0 && grid->step[1 + i] != size)
            return 0;
        if (grid->step[1 + i] != 0)
            at |= (uintptr_t)args->in[i] % (uintptr_t)(4 * size);
    }
    return at == 0 ? grid->count / 4 : 0;
}

bool dtn_launch_pointwise(enum dtn_pointwise op, const struct dtn_array *out,
                          const struct dtn_array *const in[],
                          const double args[2], struct dtn_launch *launch)
{
    const enum dtensor_dtype work = dtn_block_type(in[0]->dtype);
    const enum dtn_kernel kernel =
        work == DTENSOR_F32 ? DTN_KERNEL_pointwise_f32
      : work == DTENSOR_F64 ? DTN_KERNEL_pointwise_f64
      : work == DTENSOR_I64 ? DTN_KERNEL_pointwise_i64
      : DTN_KERNEL_pointwise_u64;
    const int nin = dtn_pointwise_operands(op);
    struct dtn_pointwise_args *to = &launch->args.pointwise;
    struct dtn_kernel_grid grid;

    if (work == DTENSOR_C128 || is_of_libm(op))
        return false;
    grid = launch_over(out, in, nin, kernel, launch);
    to->grid = grid;
    to->out = out->data;
    for (int i = 0; i < nin; i++)
        to->in[i] = in[i]->data;
    if (args) {
        dtn_store(work, &to->p, 0, args[0]);
        dtn_store(work, &to->q, 0, args[1]);
    }
    to->op = op;
    to->dtype = in[0]->dtype;
    to->nin = (uint32_t)nin;
    if (kernel == DTN_KERNEL_pointwise_f32) {
        to->fours = fours_of(to, (int64_t)dtn_dtype_size(out->dtype));
        launch->threads = to->fours > 0 ? to->fours : launch->threads;
    }
    return true;
}

void dtn_launch_where(const struct dtn_array *out,
                      const struct dtn_array *condition,
                      const struct dtn_array *yes, const struct dtn_array *no,
                      struct dtn_launch *launch)
{
    const struct dtn_array *const in[] = { condition, yes, no };
    struct dtn_pointwise_args *to = &launch->args.pointwise;
    const struct dtn_kernel_grid grid = launch_over(out, in, 3,
                                                    DTN_KERNEL_where, launch);

    to->grid = grid;
    to->out = out->data;
    for (int i = 0; i < 3; i++)
        to->in[i] = in[i]->data;
    to->dtype = (uint32_t)dtn_dtype_size(out->dtype);
    to->nin = 3;
}

bool dtn_launch_cast(const struct dtn_array *out, const struct dtn_array *in,
                     struct dtn_launch *launch)
{
    const bool is_signed = dtn_dtype_kind(out->dtype) == DTN_DTYPE_SIGNED;
    const int bits = 8 * (int)dtn_dtype_size(out->dtype) - is_signed;
    struct dtn_cast_args *to = &launch->args.cast;
    struct dtn_kernel_grid grid;

    if (dtn_dtype_kind(out->dtype) == DTN_DTYPE_COMPLEX ||
        dtn_dtype_kind(in->dtype) == DTN_DTYPE_COMPLEX)
        return false;
    grid = launch_over(out, &in, 1, DTN_KERNEL_cast, launch);
    *to = (struct dtn_cast_args){
        .out = out->data, .in = in->data, .grid = grid, .to = out->dtype,
        .from = in->dtype, .is_float = dtn_dtype_is_float(out->dtype),
        .was_float = dtn_dtype_is_float(in->dtype),
        .truth = out->dtype == DTENSOR_BOOL
    };
    if (!to->is_float) {
        to->most = UINT64_MAX >> (64 - bits);
        to->least = is_signed ? -(int64_t)to->most - 1 : 0;
    }
    return true;
}

/* --------------------------------------------------------------- index --- */

void dtn_launch_index_check(const struct dtn_array *index, int64_t size,
                            uint32_t *wrong, struct dtn_launch *launch)
{
    const struct dtn_array arrays[] = { *index, *index };
    struct dtn_index_args *to = &launch->args.index;
    const struct dtn_kernel_grid grid =
        dtn_launch_over(arrays, 2, DTN_KERNEL_index_check, launch);

    to->grid = grid;
    to->out = wrong;
    to->index = index->data;
    to->limit = size;
    to->index_bytes = (uint32_t)dtn_dtype_size(index->dtype);
}

void dtn_launch_gather(const struct dtn_array *out, const struct dtn_array *in,
                       int dim, const struct dtn_array *index, int64_t first,
                       struct dtn_launch *launch)
{
    const int64_t bytes = (int64_t)dtn_dtype_size(out->dtype);
    struct dtn_array arrays[3] = { *out, *index, *in };
    struct dtn_index_args *to = &launch->args.index;
    struct dtn_kernel_grid grid;

    for (int d = 0; d < out->ndim; d++)
        arrays[2].shape[d] = out->shape[d];
    arrays[2].stride[dim] = 0;
    grid = dtn_launch_over(arrays, 3, DTN_KERNEL_gather, launch);
    to->grid = grid;
    to->out = out->data;
    to->index = index->data;
    to->table = in->data;
    to->first = first;
    to->limit = in->shape[dim];
    to->stride = in->stride[dim] * bytes;
    to->index_bytes = (uint32_t)dtn_dtype_size(index->dtype);
    to->bytes = (uint32_t)bytes;
}

/* ------------------------------------------------------------- product --- */

bool dtn_launch_matmul(const struct dtn_array *out, const struct dtn_array *a,
                       const struct dtn_array *b, bool adds,
                       struct dtn_launch *launch)
{
    const enum dtensor_dtype work = dtn_block_type(out->dtype);
    const int64_t size = (int64_t)dtn_dtype_size(out->dtype);
    const int r = out->ndim - 2, c = out->ndim - 1;
    struct dtn_array all[3] = { *out, *a, *b };
    struct dtn_product_args *to = &launch->args.product;
    struct dtn_kernel_grid grid;

    if (work != DTENSOR_F32 && work != DTENSOR_F64)
        return false;
    all[0].ndim = all[1].ndim = all[2].ndim = r;
    all[1] = dtn_array_expanded(&all[1], &all[0]);
    all[2] = dtn_array_expanded(&all[2], &all[0]);
    grid = dtn_launch_over(all, 3, work == DTENSOR_F64
                           ? DTN_KERNEL_product_f64 : DTN_KERNEL_product_f32,
                           launch);
    *to = (struct dtn_product_args){
        .out = out->data, .a = a->data, .b = b->data, .batch = grid,
        .m = out->shape[r], .n = out->shape[c], .k = a->shape[c],
        .out_stride = { out->stride[r] * size, out->stride[c] * size },
        .a_stride = { a->stride[r] * size, a->stride[c] * size },
        .b_stride = { b->stride[r] * size, b->stride[c] * size },
        .dtype = out->dtype, .adds = adds
    };
    launch->threads = 0;
    if (to->m == 0 || to->n == 0)
        return true;
    to->across = dtn_divide_by((uint64_t)(to->n - 1) / DTN_KERNEL_TILE + 1);
    to->down = dtn_divide_by((uint64_t)(to->m - 1) / DTN_KERNEL_TILE + 1);
    to->units = grid.count * to->across.by * to->down.by;
    launch->threads = to->units;
    return true;
}

/* --------------------------------------------------------------- moves --- */

void dtn_launch_copy(const struct dtn_array *out, const struct dtn_array *in,
                     struct dtn_launch *launch)
{
    struct dtn_box box = { .ndim = out->ndim };

    for (int d = 0; d < out->ndim; d++) {
        box.size[d] = out->shape[d];
        box.dst_stride[d] = out->stride[d];
        box.src_stride[d] = in->stride[d];
    }
    dtn_launch_copy_box(&box, dtn_dtype_size(out->dtype), out->data, in->data,
                        launch);
}

void dtn_launch_set(const struct dtn_array *out, double value,
                    struct dtn_launch *launch)
{
    _Alignas(16) char element[16];

    dtn_store(out->dtype, element, 0, value);
    dtn_launch_repeat(element, dtn_dtype_size(out->dtype), out->data,
                      (size_t)dtn_array_count(out), launch);
}
