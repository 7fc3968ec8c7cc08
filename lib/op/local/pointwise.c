/* pointwise.c - element by element, and reductions, of one rank's parts
 *
 * A reduction along a dimension that is sharded reduces what this
 * rank has; the output is then a term.  An empty part gives the neutral
 * element, so that it changes nothing.
 */
#include "op/device.h"
#include "op/local/collective.h"
#include "op/local/math.h"
#include "op/words.h"
#include "base/error.h"
#include "layout/layout.h"
#include "math/pointwise.h"
#include "math/reduction.h"
#include "dtensor.h"

#include <math.h>

/* ----------------------------------------------------------- pointwise --- */

bool dtn_takes_pointwise(const struct dtn_local *local,
                         enum dtensor_dtype dtype)
{
    return dtn_pointwise_ok((enum dtn_pointwise)local->which, dtype);
}

/* A NaN as a bound of clamp makes all elements NaN, which times NaN does. */
int dtn_local_pointwise(const struct dtn_local *local,
                        const struct dtn_parts *parts,
                        struct dtensor_error *err)
{
    const enum dtn_pointwise which = (enum dtn_pointwise)local->which;
    const struct dtensor_op_args *args = parts->args;
    const double clamp[] = { args->low, args->high };
    const double other[] = { which == DTN_POW ? args->p : args->value, 0 };
    const double nan[] = { NAN, 0 };
    const bool spoilt = which == DTN_CLAMP
                     && (isnan(args->low) || isnan(args->high));

    dtn_op_pointwise(parts, spoilt ? DTN_SCALE : which, &parts->out[0],
                     (const struct dtn_array *const[]){ &parts->in[0],
                         parts->nin > 1 ? &parts->in[1] : NULL,
                         parts->nin > 2 ? &parts->in[2] : NULL },
                     spoilt ? nan : which == DTN_CLAMP ? clamp : other);
    return 0;
}

int dtn_local_cast(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    dtn_op_cast(parts, &parts->out[0], &parts->in[0]);
    return 0;
}

int dtn_local_where(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    dtn_op_where(parts, &parts->out[0], &parts->in[0], &parts->in[1],
                 &parts->in[2]);
    return 0;
}

/* ----------------------------------------------------------- reductions --- */

bool dtn_takes_reduction(const struct dtn_local *local,
                         enum dtensor_dtype dtype)
{
    return dtn_reduction_ok((enum dtn_reduction_kind)local->which, dtype);
}

/* The dimensions that are reduced, a bit set. */
static unsigned reduced_dims(const struct dtn_parts *parts)
{
    unsigned dims = 0;

    if (parts->args->ndims == 0)
        return (1u << parts->in->ndim) - 1;
    for (int k = 0; k < parts->args->ndims; k++)
        dims |= 1u << dtn_local_dim(parts, k, parts->in->ndim);
    return dims;
}

/* Output i with as many dimensions as the input: 1 where it is reduced. */
static struct dtn_array reduced_view(const struct dtn_parts *parts, int i)
{
    const struct dtn_array *in = parts->in;
    const unsigned dims = reduced_dims(parts);
    int64_t shape[DTENSOR_MAX_DIMS];

    for (int d = 0; d < in->ndim; d++)
        shape[d] = dims >> d & 1 ? 1 : in->shape[d];
    return dtn_array_packed(parts->out[i].data, parts->out[i].dtype, in->ndim,
                            shape);
}

int dtn_local_reduce(const struct dtn_local *local,
                     const struct dtn_parts *parts, struct dtensor_error *err)
{
    const enum dtn_reduction_kind kind = (enum dtn_reduction_kind)local->which;
    const bool spread = kind == DTN_REDUCE_VAR || kind == DTN_REDUCE_STD;
    const struct dtn_array out = reduced_view(parts, 0);
    const double p = spread ? 1 : parts->args->p;

    if (parts->among)
        return dtn_reduce_sharded(kind, parts, reduced_dims(parts), p, err);
    dtn_op_reduce(parts, kind, &out, parts->in, p);
    return 0;
}

size_t dtn_work_reduce(const struct dtn_local *local,
                       const struct dtn_parts *parts)
{
    return dtn_work_sharded(parts, reduced_dims(parts));
}

/* Of no element along the dimension there is none that is largest. */
static int extreme_check(const struct dtn_parts *parts, int dim,
                         struct dtensor_error *err)
{
    char shape[170];

    if (parts->want->shape[dim] > 0 || dtn_array_count(&parts->out[0]) == 0)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s of %s: dimension %d has no "
                    "elements", parts->op, dtn_shape_words(parts->want->ndim,
                    parts->want->shape, shape, sizeof shape), dim);
}

size_t dtn_work_extreme(const struct dtn_local *local,
                        const struct dtn_parts *parts)
{
    return dtn_work_sharded(parts,
                            1u << dtn_local_dim(parts, 0, parts->in->ndim));
}

/* Of sharded rows; this rank's part of them are neighbours. */
static int extreme_sharded(const struct dtn_local *local,
                           const struct dtn_parts *parts, int dim,
                           const struct dtn_array *value,
                           const struct dtn_array *index,
                           struct dtensor_error *err)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtn_layout(&parts->want[0], parts->me, shape, offset);
    return dtn_extreme_sharded(local->which, parts, dim, offset[dim], value,
                               index, err);
}

int dtn_local_extreme(const struct dtn_local *local,
                      const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    const struct dtn_array value = reduced_view(parts, 0);
    struct dtn_array index;
    int rc = extreme_check(parts, dim, err);

    if (rc != 0 || dtn_array_count(&value) == 0)
        return rc;
    if (parts->nout > 1)
        index = reduced_view(parts, 1);
    if (parts->among)
        return extreme_sharded(local, parts, dim, &value,
                               parts->nout > 1 ? &index : NULL, err);
    if (parts->nout == 1) {
        dtn_op_reduce(parts, local->which ? DTN_REDUCE_MAX : DTN_REDUCE_MIN,
                      &value, parts->in, 0);
        return 0;
    }
    dtn_op_extreme(parts, local->which, &value, &index, parts->in, dim);
    return 0;
}

int dtn_local_place(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    const struct dtn_array index = reduced_view(parts, 0);
    int rc = extreme_check(parts, dim, err);

    if (rc == 0 && dtn_array_count(&index) > 0 && parts->among)
        return extreme_sharded(local, parts, dim, NULL, &index, err);
    if (rc == 0 && dtn_array_count(&index) > 0)
        dtn_op_extreme(parts, local->which, NULL, &index, parts->in, dim);
    return rc;
}
