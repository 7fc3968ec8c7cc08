/* compute_backward.c - from the gradients of rows in lib/math to kernels
 *
 * A layer norm of which mean and 1 / deviation are known has two totals, of d
 * and of d x', which are six launches; one for the gradient of the input; and
 * two for those of weight and bias.
 */
#include "cuda/compute_backward.h"
#include "cuda/compute.h"
#include "cuda/grids.h"
#include "cuda/launch.h"
#include "math/backward.h"
#include "math/loop.h"
#include "dtensor.h"

#include <stdint.h>

void dtn_launch_softmax_backward(bool logarithm,
                                 const struct dtn_array *in_grad,
                                 const struct dtn_array *grad,
                                 const struct dtn_array *out, int dim,
                                 void *memory, struct dtn_launches *launches)
{
    const struct dtn_array arrays[] = { *in_grad, *grad, *out };
    struct dtn_totals rows = dtn_rows_of(arrays, 3, 1u << dim, memory,
                                         launches);
    double *sum = dtn_rows_take(&rows, rows.count);

    dtn_rows_total(&rows, &(struct dtn_row_total){
        .kind = DTN_TOTAL_SUM, .result = sum, .with = out->data,
        .term = logarithm ? DTN_TERM_ITSELF : DTN_TERM_PRODUCT });
    dtn_rows_finish(&rows, &(struct dtn_finish_args){
        .weight = out->data, .by = { sum },
        .how = logarithm ? DTN_FINISH_LOG_BACK : DTN_FINISH_SOFTMAX_BACK },
        in_grad);
}

/* ---------------------------------------------------------------- norms --- */

/* What is known of each row, or is computed again. */
struct norm_known {
    const double *mean, *rstd;    /* `mean` NULL: 0                           */
};

/* The number of each row, as f64. */
static double *rows_known(struct dtn_totals *rows,
                          const struct dtn_norm_backward *norm,
                          const struct dtn_array *known)
{
    double *numbers = dtn_rows_take(rows, rows->count);
    struct dtn_array each = dtn_array_packed(numbers, DTENSOR_F64,
                                             norm->in->ndim, norm->in->shape);

    for (int d = each.ndim - norm->dims; d < each.ndim; d++)
        each.shape[d] = 1;
    each = dtn_array_packed(numbers, DTENSOR_F64, each.ndim, each.shape);
    dtn_launch_cast(&each, known, &rows->to->launch[rows->to->n++]);
    return numbers;
}

/* The same as a total of the input, which is array 2 of the rows. */
static double *rows_again(struct dtn_totals *rows,
                          const struct dtn_norm_backward *norm,
                          enum dtn_total kind, const double *middle)
{
    double *numbers = dtn_rows_take(rows, rows->count);
    struct dtn_totals of_in = *rows;

    of_in.in = norm->in->data;
    of_in.outer.step[1] = rows->outer.step[2];
    of_in.row.step[1] = rows->row.step[2];
    for (int64_t d = 0; d < of_in.outer.ndim; d++)
        of_in.outer.dim[d].stride[1] = rows->outer.dim[d].stride[2];
    for (int64_t d = 0; d < of_in.row.ndim; d++)
        of_in.row.dim[d].stride[1] = rows->row.dim[d].stride[2];
    dtn_rows_total(&of_in, &(struct dtn_row_total){
        .kind = kind, .middle = middle, .result = numbers,
        .end = kind == DTN_TOTAL_SUM ? DTN_END_MEAN : DTN_END_RSTD,
        .epsilon = norm->epsilon });
    return numbers;
}

static struct norm_known rows_know(struct dtn_totals *rows,
                              const struct dtn_norm_backward *norm)
{
    struct norm_known known = { NULL, NULL };

    if (norm->centred)
        known.mean = norm->mean ? rows_known(rows, norm, norm->mean)
                   : rows_again(rows, norm, DTN_TOTAL_SUM, NULL);
    known.rstd = norm->rstd ? rows_known(rows, norm, norm->rstd)
               : rows_again(rows, norm, DTN_TOTAL_SQUARES, known.mean);
    return known;
}

/* Where the elements of the two gradients are. */
static struct dtn_kernel_grid columns_grid(const struct dtn_array *weight,
                                           const struct dtn_array *bias)
{
    const struct dtn_array ends[] = { weight ? *weight : *bias,
                                      bias ? *bias : *weight };
    struct dtn_loop loop;

    dtn_loop_begin(&loop, ends, 2);
    return dtn_grid_of(&loop);
}

static void columns_launch(struct dtn_totals *rows,
                           const struct dtn_norm_backward *norm,
                           const struct norm_known *known)
{
    const uint64_t blocks = (rows->count + DTN_NORM_ROWS - 1) / DTN_NORM_ROWS;
    const struct dtn_array *weight = norm->weight_grad;
    const struct dtn_array *bias = norm->bias_grad;
    struct dtn_column_args args = {
        .grad = norm->grad->data, .in = norm->in->data, .mean = known->mean,
        .rstd = known->rstd, .outer = rows->outer, .row = rows->row,
        .blocks = blocks, .rows = rows->count, .dtype = norm->in->dtype
    };

    if ((!weight && !bias) || rows->elements == 0)
        return;
    args.sums = dtn_rows_take(rows, 2 * blocks * rows->elements);
    args.weight = weight ? weight->data : NULL;
    args.bias = bias ? bias->data : NULL;
    args.columns = dtn_divide_by(rows->elements);
    args.units = blocks * rows->elements;
    dtn_rows_launch(rows, DTN_KERNEL_column_blocks, args.units)->args.column =
        args;
    args.row = columns_grid(weight, bias);
    args.units = rows->elements;
    dtn_rows_launch(rows, DTN_KERNEL_column_ends, args.units)->args.column =
        args;
}

void dtn_launch_norm_backward(const struct dtn_norm_backward *norm,
                              void *memory, struct dtn_launches *launches)
{
    const struct dtn_array *in = norm->in;
    const struct dtn_array arrays[] = {
        *norm->in_grad, *norm->grad, *in,
        norm->weight ? dtn_array_expanded(norm->weight, in) : *in };
    const unsigned dims = ((1u << norm->dims) - 1) << (in->ndim - norm->dims);
    struct dtn_totals rows = dtn_rows_of(arrays, 4, dims, memory, launches);
    const struct norm_known known = rows_know(&rows, norm);
    double *part = dtn_rows_take(&rows, rows.count);
    double *part_unit = dtn_rows_take(&rows, rows.count);
    struct dtn_row_total total = {
        .kind = DTN_TOTAL_SUM, .end = DTN_END_MEAN, .with = in->data,
        .weight = norm->weight ? norm->weight->data : NULL,
        .middle = known.mean, .scale = known.rstd };

    total.term = DTN_TERM_NORM;
    total.result = part;
    if (norm->centred)
        dtn_rows_total(&rows, &total);
    total.term = DTN_TERM_NORM_UNIT;
    total.result = part_unit;
    dtn_rows_total(&rows, &total);
    dtn_rows_finish(&rows, &(struct dtn_finish_args){
        .weight = in->data, .bias = total.weight, .how = DTN_FINISH_NORM_BACK,
        .by = { known.mean, known.rstd, norm->centred ? part : NULL,
                part_unit } }, norm->in_grad);
    columns_launch(&rows, norm, &known);
}
