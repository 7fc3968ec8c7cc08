/* order.c - operators that bring the elements of rows in order
 *
 * Rows are never sharded between ranks.
 */
#include "op/local/math.h"
#include "op/device.h"
#include "op/words.h"
#include "base/error.h"
#include "math/order.h"
#include "dtensor.h"

#include <string.h>

size_t dtn_work_order(const struct dtn_local *local,
                      const struct dtn_parts *parts)
{
    return dtn_order_workspace(parts->in,
                               dtn_local_dim(parts, 0, parts->in->ndim));
}

/* An output that may lack the dimension, with it. */
static struct dtn_array order_view(const struct dtn_parts *parts, int i,
                                   int dim, int64_t size)
{
    int64_t shape[DTENSOR_MAX_DIMS];

    memcpy(shape, parts->in->shape, sizeof shape);
    shape[dim] = size;
    return dtn_array_packed(parts->out[i].data, parts->out[i].dtype,
                            parts->in->ndim, shape);
}

static int order_check(const struct dtn_local *local,
                       const struct dtn_parts *parts, int dim,
                       struct dtensor_error *err)
{
    if ((local->which != DTN_ORDER_MEDIAN &&
         local->which != DTN_ORDER_MODE) || parts->want->shape[dim] > 0)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: dimension %d has no elements",
                    parts->op, dim);
}

int dtn_local_order(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    const int64_t n = parts->in->shape[dim], count = parts->args->count;
    const enum dtn_order_kind kind = (enum dtn_order_kind)local->which;
    const bool one = kind == DTN_ORDER_MEDIAN || kind == DTN_ORDER_KTH ||
                     kind == DTN_ORDER_MODE;
    const int64_t size = one ? 1 : kind == DTN_ORDER_TOP ? count : n;
    const struct dtn_array values = order_view(parts, 0, dim, size);
    const struct dtn_array index = order_view(parts, parts->nout > 1, dim,
                                              size);
    const struct dtn_order order = {
        .values = &values, .index = parts->nout > 1 ? &index : NULL,
        .dim = dim, .down = kind == DTN_ORDER_TOP,
        .first = kind == DTN_ORDER_MEDIAN ? (n - 1) / 2
               : kind == DTN_ORDER_KTH ? count - 1 : 0,
        .nan = kind == DTN_ORDER_MEDIAN, .often = kind == DTN_ORDER_MODE };
    int rc = order_check(local, parts, dim, err);

    if (rc == 0)
        dtn_op_order(parts, &order, parts->in);
    return rc;
}
