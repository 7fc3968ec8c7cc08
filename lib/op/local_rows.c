/* local_rows.c - operators on the rows of one rank's parts
 *
 * A row is never cut between ranks, so each rank does all of what it has.  The
 * losses of rows become one number in memory to work with: they are found for
 * each row there, then reduced.
 */
#include "op/local_rows.h"
#include "op/words.h"
#include "base/error.h"
#include "math/norm.h"
#include "math/pointwise.h"
#include "math/reduction.h"
#include "math/select.h"
#include "math/softmax.h"
#include "dtensor.h"

#include <inttypes.h>
#include <string.h>

#define EPSILON 1e-5              /* what eps 0 stands for                    */

int dtn_local_softmax(const struct dtn_local *local,
                      const struct dtn_parts *parts, struct dtensor_error *err)
{
    dtn_softmax(local->which, &parts->out[0], &parts->in[0],
                dtn_local_dim(parts, 0, parts->in->ndim));
    return 0;
}

int dtn_local_softmax_backward(const struct dtn_local *local,
                               const struct dtn_parts *parts,
                               struct dtensor_error *err)
{
    dtn_softmax_backward(local->which, &parts->out[0], &parts->in[0],
                         &parts->in[1],
                         dtn_local_dim(parts, 0, parts->in->ndim));
    return 0;
}

int dtn_local_norm(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    const bool centred = local->which;
    const struct dtn_array *mean = centred && parts->nout > 1 ? &parts->out[1]
                                                              : NULL;
    const int rstd = centred ? 2 : 1;
    const int64_t count = parts->args->count;
    const struct dtn_norm norm = {
        .out = &parts->out[0], .in = &parts->in[0],
        .weight = parts->nin > 1 ? &parts->in[1] : NULL,
        .bias = parts->nin > 2 ? &parts->in[2] : NULL, .mean = mean,
        .rstd = parts->nout > rstd ? &parts->out[rstd] : NULL,
        .dims = count > 0 ? (int)count : 1, .centred = centred,
        .epsilon = parts->args->eps > 0 ? parts->args->eps : EPSILON
    };

    dtn_norm(&norm);
    return 0;
}

int dtn_local_cumulate(const struct dtn_local *local,
                       const struct dtn_parts *parts, struct dtensor_error *err)
{
    dtn_cumulate(local->which, &parts->out[0], &parts->in[0],
                 dtn_local_dim(parts, 0, parts->in->ndim));
    return 0;
}

/* --------------------------------------------------------------- losses --- */

/* The array with one dimension of size 1 more, the last. */
static struct dtn_array column(const struct dtn_array *array, void *data)
{
    int64_t shape[DTENSOR_MAX_DIMS];

    memcpy(shape, array->shape, sizeof shape);
    shape[array->ndim] = 1;
    return dtn_array_packed(data, array->dtype, array->ndim + 1, shape);
}

/* The losses of the rows, in the type of the scores. */
static struct dtn_array losses_of(const struct dtn_parts *parts, void *data)
{
    struct dtn_array losses = column(&parts->in[1], data);

    losses.dtype = parts->in[0].dtype;
    return losses;
}

size_t dtn_work_loss(const struct dtn_local *local,
                     const struct dtn_parts *parts)
{
    const struct dtn_array losses = losses_of(parts, NULL);

    return (size_t)dtn_array_count(&losses) * dtensor_dtype_size(losses.dtype);
}

/* One number from the losses of all rows; the second output is how many. */
static void loss_reduce(const struct dtn_parts *parts,
                        const struct dtn_array *losses)
{
    const enum dtensor_op_reduction how = parts->args->reduction;
    int64_t one[DTENSOR_MAX_DIMS];
    struct dtn_array out;

    for (int d = 0; d < losses->ndim; d++)
        one[d] = 1;
    out = dtn_array_packed(parts->out[0].data, parts->out[0].dtype,
                           losses->ndim, one);
    if (how != DTENSOR_OP_NONE)
        dtn_reduce_dims(how == DTENSOR_OP_SUM ? DTN_REDUCE_SUM
                                              : DTN_REDUCE_MEAN, &out, losses,
                        0);
    if (parts->nout > 1)
        dtn_array_fill(&parts->out[1], how == DTENSOR_OP_NONE ? 0
                       : (double)dtn_array_count(losses));
}

int dtn_local_loss(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    const bool each = parts->args->reduction == DTENSOR_OP_NONE;
    const int dim = parts->in[0].ndim - 1;
    const int64_t classes = parts->in[0].shape[dim];
    const struct dtn_array target = column(&parts->in[1], parts->in[1].data);
    const struct dtn_array losses = losses_of(
        parts, each ? parts->out[0].data : parts->work);
    int64_t wrong;

    if (dtn_index_wrong(&target, classes, &wrong) >= 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: target %" PRId64 " (expected "
                        "0 to %" PRId64 ")", parts->op, wrong, classes - 1);
    if (local->which) {
        dtn_cross_entropy(&losses, &parts->in[0], &target, dim);
    } else {
        dtn_array_gather(&losses, &parts->in[0], dim, &target, 0);
        dtn_pointwise(DTN_NEG, &losses,
                      (const struct dtn_array *const[]){ &losses }, NULL);
    }
    loss_reduce(parts, &losses);
    return 0;
}
