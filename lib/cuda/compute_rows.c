/* compute_rows.c - from a function on rows of lib/math to kernels
 *
 * A softmax is seven launches: the largest of each row, their sums, the rest.
 */
#include "cuda/compute_rows.h"
#include "cuda/compute.h"
#include "cuda/grids.h"
#include "base/dtype.h"
#include "math/strips.h"
#include "dtensor.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------- reductions --- */

/* The total of a reduction that is one; false: it has two, or no kernel. */
static bool total_of(enum dtn_reduction_kind kind, double p,
                     struct dtn_row_total *total)
{
    const bool root = kind == DTN_REDUCE_NORM;

    switch (kind) {
    case DTN_REDUCE_SUM: total->kind = DTN_TOTAL_SUM; return true;
    case DTN_REDUCE_MEAN:
        total->kind = DTN_TOTAL_SUM;
        total->end = DTN_END_MEAN;
        return true;
    case DTN_REDUCE_PROD: total->kind = DTN_TOTAL_PROD; return true;
    case DTN_REDUCE_MAX: total->kind = DTN_TOTAL_MAX; return true;
    case DTN_REDUCE_MIN: total->kind = DTN_TOTAL_MIN; return true;
    case DTN_REDUCE_ANY: case DTN_REDUCE_ALL:
        total->is_truth = true;
        total->end = kind == DTN_REDUCE_ALL ? DTN_END_ALL : DTN_END_ANY;
        return true;
    case DTN_REDUCE_POWSUM: case DTN_REDUCE_NORM:
        total->kind = p == 0 ? DTN_TOTAL_COUNT : p == 1 ? DTN_TOTAL_ABS
                    : p == 2 ? DTN_TOTAL_SQUARES
                    : p > 0 ? DTN_TOTAL_MOST : DTN_TOTAL_LEAST;
        total->end = root && p == 2 ? DTN_END_ROOT : DTN_END_AS_IT_IS;
        return p == 0 || p == 1 || p == 2 || (root && isinf(p));
    default:
        return false;
    }
}

/* The mean, or the largest element, and then the total around it. */
static void reduce_twice(struct dtn_totals *rows, enum dtn_reduction_kind kind,
                         const struct dtn_array *out, double p)
{
    double *middle = dtn_rows_take(rows, rows->count);
    const bool logs = kind == DTN_REDUCE_LOGSUMEXP;

    dtn_rows_total(rows, &(struct dtn_row_total){
        .kind = logs ? DTN_TOTAL_MAX : DTN_TOTAL_SUM,
        .end = logs ? DTN_END_AS_IT_IS : DTN_END_MEAN, .result = middle });
    dtn_rows_total(rows, &(struct dtn_row_total){
        .kind = logs ? DTN_TOTAL_EXP : DTN_TOTAL_SQUARES,
        .end = logs ? DTN_END_LOGSUMEXP
             : kind == DTN_REDUCE_STD ? DTN_END_STD : DTN_END_VARIANCE,
        .middle = middle, .out = out, .p = p });
}

bool dtn_launch_reduce(enum dtn_reduction_kind kind,
                       const struct dtn_array *out, const struct dtn_array *in,
                       double p, void *memory, struct dtn_launches *launches)
{
    const bool twice = kind >= DTN_REDUCE_LOGSUMEXP;
    const struct dtn_array arrays[] = { dtn_array_expanded(out, in), *in };
    struct dtn_row_total total = { .out = out };
    struct dtn_totals rows;

    if (dtn_dtype_kind(in->dtype) == DTN_DTYPE_COMPLEX ||
        (!twice && !total_of(kind, p, &total)))
        return false;
    rows = dtn_rows_of(arrays, 2, dtn_strips_reduced(out), memory, launches);
    if (twice)
        reduce_twice(&rows, kind, out, p);
    else
        dtn_rows_total(&rows, &total);
    return true;
}

void dtn_launch_extreme(bool largest, const struct dtn_array *value,
                        const struct dtn_array *index,
                        const struct dtn_array *in, int dim, void *memory,
                        struct dtn_launches *launches)
{
    const struct dtn_array arrays[] = { dtn_array_expanded(index, in), *in };
    struct dtn_totals rows = dtn_rows_of(arrays, 2, 1u << dim, memory,
                                         launches);
    double *extreme = dtn_rows_take(&rows, rows.count);

    dtn_rows_total(&rows, &(struct dtn_row_total){
        .kind = largest ? DTN_TOTAL_MAX : DTN_TOTAL_MIN, .result = extreme });
    dtn_rows_total(&rows, &(struct dtn_row_total){
        .kind = DTN_TOTAL_MIN, .term = DTN_TERM_PLACE, .middle = extreme,
        .out = index });
    if (value)
        dtn_launch_gather(value, in, dim, index, 0,
                          &launches->launch[launches->n++]);
}

/* ------------------------------------------------------ softmax, losses --- */

void dtn_launch_softmax(bool logarithm, const struct dtn_array *out,
                        const struct dtn_array *in, int dim, void *memory,
                        struct dtn_launches *launches)
{
    const struct dtn_array arrays[] = { *out, *in };
    struct dtn_totals rows = dtn_rows_of(arrays, 2, 1u << dim, memory,
                                         launches);
    double *most = dtn_rows_take(&rows, rows.count);
    double *sum = dtn_rows_take(&rows, rows.count);

    dtn_rows_total(&rows, &(struct dtn_row_total){ .kind = DTN_TOTAL_MAX,
                                       .result = most });
    dtn_rows_total(&rows, &(struct dtn_row_total){
        .kind = DTN_TOTAL_EXP, .middle = most, .result = sum,
        .end = logarithm ? DTN_END_LOG : DTN_END_INVERSE });
    dtn_rows_finish(&rows, &(struct dtn_finish_args){
        .by = { most, sum },
        .how = logarithm ? DTN_FINISH_LOG : DTN_FINISH_EXP }, out);
}

/* A number of each row as f64, in memory of the rows. */
static struct dtn_array numbers(struct dtn_totals *rows,
                                const struct dtn_array *known)
{
    const struct dtn_array each = dtn_array_packed(
        dtn_rows_take(rows, rows->count), DTENSOR_F64, known->ndim,
        known->shape);

    dtn_launch_cast(&each, known, &rows->to->launch[rows->to->n++]);
    return each;
}

void dtn_launch_softmax_finish(const struct dtn_array *out,
                               const struct dtn_array *in,
                               const struct dtn_array *most,
                               const struct dtn_array *sum, int dim,
                               void *memory, struct dtn_launches *launches)
{
    const struct dtn_array arrays[] = { *out, *in };
    struct dtn_totals rows = dtn_rows_of(arrays, 2, 1u << dim, memory,
                                         launches);
    const struct dtn_array from = numbers(&rows, most);
    const struct dtn_array by = numbers(&rows, sum);

    dtn_launch_pointwise(DTN_RECIPROCAL, &by,
                         (const struct dtn_array *const[]){ &by }, NULL,
                         &launches->launch[launches->n++]);
    dtn_rows_finish(&rows, &(struct dtn_finish_args){
        .by = { from.data, by.data }, .how = DTN_FINISH_EXP }, out);
}

/* A total of which `out`, which may be NULL, has an element of each row. */
static void total_put(struct dtn_totals *rows, const struct dtn_row_loss *of,
                      const struct dtn_array *out, struct dtn_row_total *total)
{
    const struct dtn_array arrays[] = {
        dtn_array_expanded(out ? out : of->loss, of->in), *of->in };
    const struct dtn_kernel_grid outer = rows->outer;
    struct dtn_strips strips;

    dtn_strips_begin(&strips, arrays, 2, 1u << of->dim);
    rows->outer = dtn_grid_of(&strips.outer);
    total->out = out;
    dtn_rows_total(rows, total);
    rows->outer = outer;
}

void dtn_launch_cross_entropy(const struct dtn_row_loss *of, void *memory,
                              struct dtn_launches *launches)
{
    const struct dtn_array arrays[] = {
        dtn_array_expanded(of->loss, of->in), *of->in,
        dtn_array_expanded(of->target, of->in) };
    struct dtn_totals rows = dtn_rows_of(arrays, 3, 1u << of->dim, memory,
                                         launches);
    double *most = dtn_rows_take(&rows, rows.count);

    total_put(&rows, of, of->most, &(struct dtn_row_total){
        .kind = DTN_TOTAL_MAX, .result = most });
    if (of->sum)
        total_put(&rows, of, of->sum, &(struct dtn_row_total){
            .kind = DTN_TOTAL_EXP, .middle = most });
    dtn_rows_total(&rows, &(struct dtn_row_total){
        .kind = DTN_TOTAL_EXP, .end = DTN_END_LOSS, .middle = most,
        .with = of->target->data, .out = of->loss, .same = of->sum != NULL,
        .index_bytes = dtn_dtype_size(of->target->dtype) });
}

/* `array` as it lies along the rows, without their elements. */
static const struct dtn_array *one_each(const struct dtn_array *array,
                                        const struct dtn_norm *norm,
                                        struct dtn_array *view)
{
    if (!array)
        return NULL;
    *view = *array;
    for (int d = norm->in->ndim - norm->dims; d < norm->in->ndim; d++)
        view->shape[d] = 1;
    return view;
}

/* Where an element of each row goes, beside the rows themselves. */
static void rows_put(struct dtn_totals *rows, const struct dtn_norm *norm,
                     const struct dtn_array *array, struct dtn_row_total *total)
{
    struct dtn_kernel_grid outer = rows->outer;
    struct dtn_array view, like[2];
    struct dtn_loop loop;

    total->out = one_each(array, norm, &view);
    if (total->out) {
        like[0] = view;
        like[1] = *norm->in;
        memcpy(like[1].shape, view.shape, sizeof like[1].shape);
        dtn_loop_begin(&loop, like, 2);
        rows->outer = dtn_grid_of(&loop);
    }
    dtn_rows_total(rows, total);
    rows->outer = outer;
}

static struct dtn_array or_in(const struct dtn_array *array,
                              const struct dtn_array *in)
{
    return array ? dtn_array_expanded(array, in) : *in;
}

void dtn_launch_norm(const struct dtn_norm *norm, void *memory,
                     struct dtn_launches *launches)
{
    const struct dtn_array *in = norm->in;
    const struct dtn_array arrays[] = {
        *norm->out, *in, or_in(norm->weight, in), or_in(norm->bias, in),
        or_in(norm->mean, in), or_in(norm->rstd, in) };
    const unsigned dims = ((1u << norm->dims) - 1) << (in->ndim - norm->dims);
    struct dtn_totals rows = dtn_rows_of(arrays, 6, dims, memory, launches);
    double *mean = norm->centred ? dtn_rows_take(&rows, rows.count) : NULL;
    double *rstd = dtn_rows_take(&rows, rows.count);

    if (norm->centred)
        rows_put(&rows, norm, norm->mean, &(struct dtn_row_total){
            .kind = DTN_TOTAL_SUM, .end = DTN_END_MEAN, .result = mean });
    rows_put(&rows, norm, norm->rstd, &(struct dtn_row_total){
        .kind = DTN_TOTAL_SQUARES, .end = DTN_END_RSTD, .middle = mean,
        .result = rstd, .epsilon = norm->epsilon });
    dtn_rows_finish(&rows, &(struct dtn_finish_args){
        .weight = norm->weight ? norm->weight->data : NULL,
        .bias = norm->bias ? norm->bias->data : NULL,
        .by = { mean, rstd }, .how = DTN_FINISH_NORM }, norm->out);
}
