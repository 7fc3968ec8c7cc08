/* rows.c - operators on the rows of one rank's parts
 *
 * A rank does all of the rows that it has; where rows are sharded,
 * local/collective.c does it.  The losses of rows become one number in memory
 * to work with: they are found for each row there, then reduced.
 */
#include "op/local/rows.h"
#include "op/device.h"
#include "op/local/collective.h"
#include "op/local/index.h"
#include "op/words.h"
#include "layout/layout.h"
#include "math/norm.h"
#include "math/pointwise.h"
#include "math/reduction.h"
#include "math/select.h"
#include "math/softmax.h"
#include "dtensor.h"

#include <string.h>

#define EPSILON 1e-5              /* what eps 0 stands for                    */

int dtn_local_softmax(const struct dtn_local *local,
                      const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);

    if (parts->among)
        return dtn_softmax_sharded(local->which, parts, 1u << dim, err);
    dtn_op_softmax(parts, local->which, &parts->out[0], &parts->in[0], dim);
    return 0;
}

size_t dtn_work_softmax(const struct dtn_local *local,
                        const struct dtn_parts *parts)
{
    return dtn_work_sharded(parts,
                            1u << dtn_local_dim(parts, 0, parts->in->ndim));
}

int dtn_local_softmax_backward(const struct dtn_local *local,
                               const struct dtn_parts *parts,
                               struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);

    if (parts->among)
        return dtn_softmax_backward_sharded(local->which, parts, 1u << dim,
                                            err);
    dtn_op_softmax_backward(parts, local->which, &parts->out[0], &parts->in[0],
                            &parts->in[1], dim);
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
        .epsilon = parts->args->eps > 0 ? parts->args->eps : EPSILON,
        .room = parts->room
    };

    if (parts->among)
        return dtn_norm_sharded(&norm, parts, err);
    dtn_op_norm(parts, &norm);
    return 0;
}

size_t dtn_work_norm(const struct dtn_local *local,
                     const struct dtn_parts *parts)
{
    const int64_t count = parts->args->count > 0 ? parts->args->count : 1;
    unsigned row = 0;

    for (int d = parts->in->ndim - (int)count; d < parts->in->ndim; d++)
        row |= 1u << d;
    return dtn_work_sharded(parts, row);
}

int dtn_local_cumulate(const struct dtn_local *local,
                       const struct dtn_parts *parts, struct dtensor_error *err)
{
    dtn_op_cumulate(parts, local->which, &parts->out[0], &parts->in[0],
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

/* What is reduced over ranks comes first in work, then the losses. */
static size_t losses_bytes(const struct dtn_parts *parts)
{
    const struct dtn_array losses = losses_of(parts, NULL);

    return (size_t)dtn_array_count(&losses) * dtensor_dtype_size(losses.dtype);
}

/* One mean of log-probabilities, which is reduced as one row? */
static bool is_mean(const struct dtn_local *local,
                    const struct dtn_parts *parts)
{
    return !local->which && parts->args->reduction == DTENSOR_OP_MEAN;
}

static size_t sharded_bytes(const struct dtn_local *local,
                            const struct dtn_parts *parts)
{
    const int ndim = parts->in->ndim;

    return dtn_work_sharded(parts, is_mean(local, parts) ? (1u << ndim) - 1
                                                     : 1u << (ndim - 1));
}

size_t dtn_work_loss(const struct dtn_local *local,
                     const struct dtn_parts *parts)
{
    return losses_bytes(parts) + sharded_bytes(local, parts);
}

/* One number from the losses of all rows. */
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
        dtn_op_reduce(parts, how == DTENSOR_OP_SUM ? DTN_REDUCE_SUM
                                                   : DTN_REDUCE_MEAN, &out,
                      losses, 0);
}

/* The second output of log-probabilities: over how many rows that was. */
static void rows_count(const struct dtn_parts *parts,
                       const struct dtn_array *losses)
{
    if (parts->nout > 1)
        dtn_op_fill(parts, &parts->out[1],
                    parts->args->reduction == DTENSOR_OP_NONE ? 0
                    : (double)dtn_array_count(losses));
}

/* Of scores it is the largest of each row, and the third the sum. */
static void scores_loss(const struct dtn_parts *parts,
                        const struct dtn_array *losses,
                        const struct dtn_array *target)
{
    struct dtn_array known[2] = { *losses, *losses };

    for (int i = 0; i < 2 && i + 1 < parts->nout; i++) {
        known[i].data = parts->out[i + 1].data;
        known[i].dtype = parts->out[i + 1].dtype;
    }
    dtn_op_cross_entropy(parts, &(struct dtn_row_loss){
        .loss = losses, .most = parts->nout > 1 ? &known[0] : NULL,
        .sum = parts->nout > 2 ? &known[1] : NULL, .in = &parts->in[0],
        .target = target, .dim = parts->in[0].ndim - 1 });
}

/* The losses of rows of which a rank has a part. */
static int losses_sharded(const struct dtn_local *local,
                          const struct dtn_parts *parts,
                          const struct dtn_array *losses,
                          const struct dtn_array *target,
                          struct dtensor_error *err)
{
    const int64_t first = dtn_shard_first(parts, 0);

    if (local->which)
        return dtn_cross_entropy_sharded(losses, target, first, parts, err);
    return dtn_nll_loss_sharded(losses, target, first, parts, err);
}

/* The mean of log-probabilities of which any may be elsewhere. */
static int mean_sharded(const struct dtn_parts *parts,
                        const struct dtn_array *losses,
                        const struct dtn_array *target,
                        struct dtensor_error *err)
{
    const struct dtensor_spec *rows = &parts->want[1];

    if (parts->nout > 1)
        dtn_op_fill(parts, &parts->out[1],
                    (double)dtn_numel(rows->ndim, rows->shape));
    return dtn_nll_mean_sharded(&parts->out[0], losses, target,
                                dtn_shard_first(parts, 0), parts, err);
}

int dtn_local_loss(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    const bool each = parts->args->reduction == DTENSOR_OP_NONE;
    const int dim = parts->in[0].ndim - 1;
    const int64_t classes = parts->want[0].shape[dim];
    const size_t sharded = sharded_bytes(local, parts);
    const struct dtn_array target = column(&parts->in[1], parts->in[1].data);
    char *room = each ? parts->out[0].data
                      : dtn_op_room(parts, sharded + losses_bytes(parts));
    const struct dtn_array losses = losses_of(
        parts, each || sharded == 0 ? room : room + sharded);
    int64_t wrong, at;
    int rc = 0;

    at = dtn_op_index_wrong(parts, &target, classes, &wrong);
    if (at >= 0)
        return dtn_index_fail(parts, 1, at, wrong, classes, err);
    if (parts->among && is_mean(local, parts))
        return mean_sharded(parts, &losses, &target, err);
    if (parts->among) {
        rc = losses_sharded(local, parts, &losses, &target, err);
    } else if (local->which) {
        scores_loss(parts, &losses, &target);
    } else {
        dtn_op_gather(parts, &losses, &parts->in[0], dim, &target, 0);
        dtn_op_pointwise(parts, DTN_NEG, &losses,
                         (const struct dtn_array *const[]){ &losses }, NULL);
    }
    if (rc == 0 && !local->which)
        rows_count(parts, &losses);
    if (rc == 0)
        loss_reduce(parts, &losses);
    return rc;
}
