/* backward.c - gradients of norms and losses, on the parts of one rank
 *
 * Where a rank has parts of rows, local/collective.c does it.  What is summed
 * over rows, the gradient of a weight, is a term where ranks have other rows.
 * The mean of a loss is one over all rows, not over those of this rank.
 */
#include "op/local/backward.h"
#include "op/device.h"
#include "op/local/collective.h"
#include "op/local/index.h"
#include "base/dtype.h"
#include "layout/layout.h"
#include "math/norm_backward.h"
#include "math/pointwise.h"
#include "dtensor.h"

#include <string.h>

#define EPSILON 1e-5              /* what eps 0 stands for                    */

/* ---------------------------------------------------------------- norms --- */

static int norm_dims(const struct dtn_parts *parts)
{
    return parts->args->count > 0 ? (int)parts->args->count : 1;
}

size_t dtn_work_norm_backward(const struct dtn_local *local,
                              const struct dtn_parts *parts)
{
    const struct dtn_array *in = &parts->in[1];
    int64_t count = 1;
    unsigned row = 0;

    for (int d = in->ndim - norm_dims(parts); d < in->ndim; d++) {
        count *= in->shape[d];
        row |= 1u << d;
    }
    return 4 * (size_t)count * sizeof(double) + dtn_work_sharded(parts, row);
}

/* The inputs are the gradient, the input and the weight; or the gradient, the
 * input, its mean and rstd, the weight and the bias.
 */
int dtn_local_norm_backward(const struct dtn_local *local,
                            const struct dtn_parts *parts,
                            struct dtensor_error *err)
{
    const bool all = parts->nin > 3;
    const struct dtn_array *weight = all ? &parts->in[4]
                                   : parts->nin > 2 ? &parts->in[2] : NULL;
    const struct dtn_norm_backward norm = {
        .in_grad = &parts->out[0],
        .weight_grad = parts->nout > 1 ? &parts->out[1] : NULL,
        .bias_grad = parts->nout > 2 ? &parts->out[2] : NULL,
        .grad = &parts->in[0], .in = &parts->in[1], .weight = weight,
        .mean = all ? &parts->in[2] : NULL, .rstd = all ? &parts->in[3] : NULL,
        .dims = norm_dims(parts), .centred = local->which,
        .epsilon = parts->args->eps > 0 ? parts->args->eps : EPSILON
    };

    if (parts->among)
        return dtn_norm_backward_sharded(&norm, parts, err);
    dtn_op_norm_backward(parts, &norm);
    return 0;
}

/* --------------------------------------------------------------- losses --- */

/* With one dimension of size 1 more, the last; of one number all are 1. */
static struct dtn_array column(const struct dtn_array *array, int ndim)
{
    int64_t shape[DTENSOR_MAX_DIMS];

    for (int d = 0; d < ndim; d++)
        shape[d] = d < array->ndim ? array->shape[d] : 1;
    return dtn_array_packed(array->data, array->dtype, ndim, shape);
}

static void multiply(const struct dtn_parts *parts, enum dtn_pointwise how,
                     const struct dtn_array *by, double factor)
{
    const struct dtn_array *out = &parts->out[0];
    const double args[] = { factor, 0 };

    dtn_op_pointwise(parts, how, out,
                     (const struct dtn_array *const[]){ out, by }, args);
}

size_t dtn_work_loss_backward(const struct dtn_local *local,
                              const struct dtn_parts *parts)
{
    const struct dtn_parts of = dtn_parts_after(parts);

    return dtensor_dtype_size(parts->out[0].dtype) +
           dtn_work_sharded(&of, 1u << (of.in->ndim - 1));
}

/* Subtract 1 at the targets. */
static void take_one(const struct dtn_parts *parts,
                     const struct dtn_array *target, int dim)
{
    const struct dtn_array *out = &parts->out[0];
    const struct dtn_array one = dtn_array_packed(
        dtn_op_room(parts, dtensor_dtype_size(out->dtype)), out->dtype, 0,
        NULL);
    struct dtn_array ones = *target;

    dtn_op_fill(parts, &one, -1);
    ones.data = one.data;
    ones.dtype = out->dtype;
    memset(ones.stride, 0, sizeof ones.stride);
    dtn_op_scatter(parts, out, dim, target, &ones, true);
}

/* The softmax of rows of which the largest score and the sum are known. */
static void known_softmax(const struct dtn_parts *parts, int dim)
{
    const struct dtn_array most = column(&parts->in[3], dim + 1);
    const struct dtn_array sum = column(&parts->in[4], dim + 1);

    dtn_op_softmax_finish(parts, &parts->out[0], &parts->in[1], &most, &sum,
                          dim);
}

/* softmax - one at the target, or -1 at the target. */
static int loss_slope(const struct dtn_local *local,
                      const struct dtn_parts *parts,
                      const struct dtn_array *target, struct dtensor_error *err)
{
    const struct dtn_array *out = &parts->out[0];
    const struct dtn_parts of = dtn_parts_after(parts);
    const int dim = out->ndim - 1;
    int rc = 0;

    if (!local->which)
        dtn_op_fill(parts, out, 0);
    else if (parts->nin > 3)
        known_softmax(parts, dim);
    else if (parts->among)
        rc = dtn_softmax_sharded(false, &of, 1u << dim, err);
    else
        dtn_op_softmax(parts, false, out, of.in, dim);
    if (rc == 0 && parts->among)
        dtn_take_one_sharded(target, dtn_shard_first(parts, 1), parts);
    else if (rc == 0)
        take_one(parts, target, dim);
    return rc;
}

/* That times g, over n of a mean. */
int dtn_local_loss_backward(const struct dtn_local *local,
                            const struct dtn_parts *parts,
                            struct dtensor_error *err)
{
    const struct dtensor_spec *rows = &parts->want[2];
    const struct dtn_array *in = &parts->in[1];
    const int64_t classes = parts->want[1].shape[in->ndim - 1];
    const double n = (double)dtn_numel(rows->ndim, rows->shape);
    const struct dtn_array target = column(&parts->in[2], in->ndim);
    const struct dtn_array grad = column(&parts->in[0], in->ndim);
    int64_t wrong, at;
    int rc;

    at = dtn_op_index_wrong(parts, &target, classes, &wrong);
    if (at >= 0)
        return dtn_index_fail(parts, 2, at, wrong, classes, err);
    rc = loss_slope(local, parts, &target, err);
    if (rc != 0)
        return rc;
    multiply(parts, DTN_MUL, &grad, 0);
    if (parts->args->reduction == DTENSOR_OP_MEAN && n > 0)
        multiply(parts, DTN_SCALE, NULL, 1 / n);
    return 0;
}
