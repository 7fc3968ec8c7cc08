/* product.c - products of the parts of one rank
 *
 * All are products of matrices: a vector is a matrix of one column or row, the
 * leading dimensions of linear are one.  If the dimension that is summed over
 * is sharded, each rank sums what it has, and the output is a term; the bias
 * that is added has then been made a term before.
 */
#include "op/device.h"
#include "op/local/math.h"
#include "job/ctx.h"
#include "math/matmul.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <string.h>

/* out = a b, or bias + a b. */
struct factors {
    struct dtn_array out, a, b;   /* matrices, perhaps several                */
    const struct dtn_array *bias; /* broadcast to the output; NULL: none      */
};

/* A packed array with ones before its dimensions. */
static struct dtn_array led(const struct dtn_array *array, int ndim)
{
    const int more = ndim - array->ndim;
    int64_t shape[DTENSOR_MAX_DIMS];

    for (int d = 0; d < ndim; d++)
        shape[d] = d < more ? 1 : array->shape[d - more];
    return dtn_array_packed(array->data, array->dtype, ndim, shape);
}

/* A packed array as a matrix of `columns`; of none the rows are those of its
 * other dimensions.
 */
static struct dtn_array flat(const struct dtn_array *array)
{
    int64_t shape[2] = { 1, array->shape[array->ndim - 1] };

    for (int d = 0; d < array->ndim - 1; d++)
        shape[0] *= array->shape[d];
    return dtn_array_packed(array->data, array->dtype, 2, shape);
}

static struct dtn_array matrix(const struct dtn_array *array, int64_t rows,
                               int64_t columns)
{
    return dtn_array_packed(array->data, array->dtype, 2,
                            (const int64_t[]){ rows, columns });
}

/* The last two dimensions exchanged. */
static struct dtn_array turned(struct dtn_array array)
{
    return dtn_array_swapped(&array, array.ndim - 2, array.ndim - 1);
}

static struct factors product_of(const struct dtn_local *local,
                                 const struct dtn_parts *parts)
{
    const struct dtn_array *in = parts->in, *out = &parts->out[0];
    struct factors p = { .bias = NULL };

    switch ((enum dtn_product)local->which) {
    case DTN_PRODUCT_ADDMM:
        p = (struct factors){ *out, led(&in[1], out->ndim),
                              led(&in[2], out->ndim), &in[0] };
        break;
    case DTN_PRODUCT_LINEAR:
        p = (struct factors){ flat(out), flat(&in[0]),
                              dtn_array_swapped(&in[1], 0, 1),
                              parts->nin > 2 ? &in[2] : NULL };
        break;
    case DTN_PRODUCT_MV:
        p = (struct factors){ matrix(out, out->shape[0], 1), in[0],
                              matrix(&in[1], in[1].shape[0], 1), NULL };
        break;
    case DTN_PRODUCT_DOT:
        p = (struct factors){ matrix(out, 1, 1),
                              matrix(&in[0], 1, in[0].shape[0]),
                              matrix(&in[1], in[1].shape[0], 1), NULL };
        break;
    case DTN_PRODUCT_WEIGHT:
        p = (struct factors){ *out, turned(flat(&in[0])), flat(&in[1]), NULL };
        break;
    case DTN_PRODUCT_NT:
        p = (struct factors){ *out, led(&in[0], out->ndim),
                              turned(led(&in[1], out->ndim)), NULL };
        break;
    case DTN_PRODUCT_TN:
        p = (struct factors){ *out, turned(led(&in[0], out->ndim)),
                              led(&in[1], out->ndim), NULL };
        break;
    case DTN_PRODUCT_MATMUL:
    default:
        p = (struct factors){ *out, led(&in[0], out->ndim),
                              led(&in[1], out->ndim), NULL };
        break;
    }
    return p;
}

/* With and without `repro`, which can be switched between two runs. */
size_t dtn_work_product(const struct dtn_local *local,
                        const struct dtn_parts *parts)
{
    const struct factors p = product_of(local, parts);
    const unsigned add = p.bias ? DTN_MATMUL_ADD : 0;
    const size_t fast = dtn_matmul_workspace(&p.out, &p.a, &p.b, add);
    const size_t repro = dtn_matmul_workspace(&p.out, &p.a, &p.b,
                                              add | DTN_MATMUL_REPRO);

    return fast > repro ? fast : repro;
}

int dtn_local_product(const struct dtn_local *local,
                      const struct dtn_parts *parts, struct dtensor_error *err)
{
    const struct dtensor_ctx *ctx = parts->want->mesh->ctx;
    struct factors p = product_of(local, parts);
    unsigned flags = ctx->world.cluster->repro ? DTN_MATMUL_REPRO : 0;

    if (p.bias) {
        const struct dtn_array bias = dtn_array_expanded(p.bias, &p.out);

        dtn_op_copy(parts, &p.out, &bias);
        flags |= DTN_MATMUL_ADD;
    }
    dtn_op_matmul(parts, &p.out, &p.a, &p.b, flags);
    return 0;
}
