/* index.c - operators that find elements by index, on one rank's parts
 *
 * Where the table is sharded along the dimension that is looked up, this rank
 * has the rows from `first` on, gives zeros for the others, and the output is a
 * term of a sum.  An index is checked against the whole table.
 */
#include "op/device.h"
#include "op/local/index.h"
#include "op/local/rows.h"
#include "base/error.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "math/pointwise.h"
#include "math/select.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <inttypes.h>

int dtn_index_fail(const struct dtn_parts *parts, int i, int64_t at,
                   int64_t value, int64_t size, struct dtensor_error *err)
{
    const struct dtn_world *world = &parts->want[i].mesh->ctx->world;
    char who[128];

    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s: element %" PRId64 " of its "
                    "part of input %d is %" PRId64 " (expected 0 to %" PRId64
                    ")", parts->op,
                    dtn_world_rank_name(world, world->rank, who, sizeof who),
                    at, i, value, size - 1);
}

int dtn_index_check(const struct dtn_parts *parts, int i, int64_t size,
                    struct dtensor_error *err)
{
    int64_t wrong;
    const int64_t at = dtn_op_index_wrong(parts, &parts->in[i], size, &wrong);

    return at < 0 ? 0 : dtn_index_fail(parts, i, at, wrong, size, err);
}

int64_t dtn_index_first(const struct dtn_parts *parts,
                        const struct dtensor_spec *spec, int dim)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtn_layout(spec, parts->me, shape, offset);
    return offset[dim];
}

int dtn_local_embedding(const struct dtn_local *local,
                        const struct dtn_parts *parts,
                        struct dtensor_error *err)
{
    int rc = dtn_index_check(parts, 1, parts->want[0].shape[0], err);

    if (rc == 0)
        dtn_op_embedding(parts, &parts->out[0], &parts->in[0], &parts->in[1],
                         dtn_index_first(parts, &parts->want[0], 0));
    return rc;
}

/* Added to zeros, or to the third input; of a table that is sharded along its
 * rows each rank adds to those that it has.
 */
int dtn_local_embedding_backward(const struct dtn_local *local,
                                 const struct dtn_parts *parts,
                                 struct dtensor_error *err)
{
    int rc = dtn_index_check(parts, 1, parts->spec[0].shape[0], err);

    if (rc != 0)
        return rc;
    if (parts->nin > 2)
        dtn_op_copy(parts, &parts->out[0], &parts->in[2]);
    else
        dtn_op_fill(parts, &parts->out[0], 0);
    dtn_op_embedding_backward(parts, &parts->out[0], &parts->in[0],
                              &parts->in[1],
                              dtn_index_first(parts, &parts->spec[0], 0));
    return 0;
}

int dtn_local_gather(const struct dtn_local *local,
                     const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    int rc = dtn_index_check(parts, 1, parts->want[0].shape[dim], err);

    if (rc == 0)
        dtn_op_gather(parts, &parts->out[0], &parts->in[0], dim, &parts->in[1],
                      dtn_index_first(parts, &parts->want[0], dim));
    return rc;
}

int dtn_local_index_select(const struct dtn_local *local,
                           const struct dtn_parts *parts,
                           struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    int rc = dtn_index_check(parts, 1, parts->want[0].shape[dim], err);

    if (rc == 0)
        dtn_op_index_select(parts, &parts->out[0], &parts->in[0], dim,
                            &parts->in[1], 0);
    return rc;
}

int dtn_local_scatter(const struct dtn_local *local,
                      const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    int rc = dtn_index_check(parts, 1, parts->want[0].shape[dim], err);

    if (rc != 0)
        return rc;
    dtn_op_copy(parts, &parts->out[0], &parts->in[0]);
    dtn_op_scatter(parts, &parts->out[0], dim, &parts->in[1], &parts->in[2],
                   local->which);
    return 0;
}

int dtn_local_triangle(const struct dtn_local *local,
                       const struct dtn_parts *parts, struct dtensor_error *err)
{
    if (parts->in->ndim < 2)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: the input has %d dimensions "
                        "(expected 2 or more)", parts->op, parts->in->ndim);
    dtn_op_triangle(parts, local->which, parts->args->start, &parts->out[0],
                    &parts->in[0]);
    return 0;
}
