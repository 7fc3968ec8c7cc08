/* compute_order.c - from dtn_order() to kernels
 *
 * 100 rows of 1000 elements are 13 launches: the keys; ten times runs are
 * merged, between two arrays of entries; the entries that often occur, if they
 * are asked for; what is taken of each row.  Rows that need more memory than
 * MOST_BYTES take turns.
 */
#include "cuda/compute_order.h"
#include "cuda/grids.h"
#include "cuda/launch.h"
#include "base/dtype.h"
#include "math/strips.h"
#include "dtensor.h"

#include <stdint.h>
#include <string.h>

enum { VALUES, INDEX, IN };

#define MOST_BYTES ((int64_t)64 << 20)
/* Two entries for each element. */
#define PAIR_BYTES (2 * (int64_t)sizeof(struct dtn_kernel_entry))

/* How the work is cut. */
struct turns {
    int64_t n, rows;              /* of the input                             */
    int64_t at_once;              /* rows of a turn                           */
    int merges;                   /* of a turn                                */
};

static struct turns turns_of(const struct dtn_order *order,
                             const struct dtn_array *in)
{
    const int64_t n = in->shape[order->dim], count = dtn_array_count(in);
    struct turns turns = { .n = n, .rows = n > 0 ? count / n : 0 };
    const int64_t most = n > 0 ? MOST_BYTES / PAIR_BYTES / n : 1;

    turns.at_once = most < 1 ? 1 : most < turns.rows ? most : turns.rows;
    while ((int64_t)1 << turns.merges < n)
        turns.merges++;
    return turns;
}

size_t dtn_launch_order_bytes(const struct dtn_order *order,
                              const struct dtn_array *in)
{
    const struct turns turns = turns_of(order, in);

    return (size_t)(turns.at_once * turns.n * PAIR_BYTES)
         + (size_t)turns.at_once * sizeof(int64_t);
}

/* What all launches of a turn know. */
static void order_args(const struct dtn_order *order,
                       const struct dtn_array *in, const struct turns *turns,
                       struct dtn_launch *launch)
{
    const struct dtn_array *made = order->values ? order->values : order->index;
    struct dtn_array arrays[3] = { order->values ? *order->values : *made,
                                   order->index ? *order->index : *made, *in };
    struct dtn_order_args *args = &launch->args.order;
    struct dtn_strips strips;

    memset(launch, 0, sizeof *launch);
    args->values = order->values ? order->values->data : NULL;
    args->index = order->index ? order->index->data : NULL;
    args->in = in->data;
    args->n = dtn_divide_by((uint64_t)turns->n);
    args->taken = dtn_divide_by((uint64_t)made->shape[order->dim]);
    for (int i = VALUES; i <= IN; i++) {
        args->step[i] = arrays[i].stride[order->dim]
                      * (int64_t)dtn_dtype_size(arrays[i].dtype);
        arrays[i].shape[order->dim] = turns->n;
    }
    dtn_strips_begin(&strips, arrays, 3, 1u << order->dim);
    args->outer = dtn_grid_of(&strips.outer);
    args->skip = order->first;
    args->bytes = (uint32_t)dtn_dtype_size(in->dtype);
    args->dtype = in->dtype;
    args->is_float = dtn_dtype_is_float(in->dtype);
    args->is_signed = dtn_dtype_kind(in->dtype) == DTN_DTYPE_SIGNED;
    args->down = order->down;
    args->nan = order->nan && args->is_float;
}

/* Step `step` of a turn of `rows` rows; `last` is that which takes. */
static void order_step(const struct dtn_order *order, const struct turns *turns,
                       int64_t rows, int step, int last, void *memory,
                       struct dtn_launch *launch)
{
    struct dtn_order_args *args = &launch->args.order;
    struct dtn_kernel_entry *entries = memory;
    struct dtn_kernel_entry *const half[] = {
        entries, entries ? entries + turns->at_once * turns->n : NULL };
    int64_t *first = entries ? (int64_t *)(void *)(half[1] + turns->at_once
                                                             * turns->n)
                             : NULL;
    const int merged = step <= turns->merges ? step : turns->merges + 1;

    args->from = half[(merged + 1) % 2];
    args->to = half[merged % 2];
    args->first = order->often ? first : NULL;
    args->width = step > 0 && step <= turns->merges ? (int64_t)1 << (step - 1)
                                                    : 0;
    args->units = (uint64_t)(rows * turns->n);
    launch->kernel = step == 0 ? DTN_KERNEL_order_keys
                   : step <= turns->merges ? DTN_KERNEL_order_merge
                   : step < last ? DTN_KERNEL_order_often
                                 : DTN_KERNEL_order_take;
    if (launch->kernel == DTN_KERNEL_order_often)
        args->units = (uint64_t)rows;
    else if (launch->kernel == DTN_KERNEL_order_take)
        args->units = (uint64_t)rows * args->taken.by;
    launch->threads = args->units;
}

bool dtn_launch_order(const struct dtn_order *order, const struct dtn_array *in,
                      void *memory, int number, struct dtn_launch *launch)
{
    const struct dtn_array *made = order->values ? order->values : order->index;
    const struct turns turns = turns_of(order, in);
    const int last = turns.merges + (order->often ? 2 : 1);
    const int64_t row = number / (last + 1) * turns.at_once;
    const int64_t left = turns.rows - row;

    if (left <= 0 || made->shape[order->dim] == 0)
        return false;
    order_args(order, in, &turns, launch);
    launch->args.order.row = (uint64_t)row;
    order_step(order, &turns, left < turns.at_once ? left : turns.at_once,
               number % (last + 1), last, memory, launch);
    return true;
}
