/* stack.c - the placements of stack
 *
 * stack makes a new dimension, which is not sharded.  All inputs get the same
 * placements.  Along a mesh dimension: equal placements stay; a replica becomes
 * what the other input is; a term and a shard become shards; two different
 * shards, or two different terms, become replicas.
 */
#include "op/stack.h"
#include "op/words.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <string.h>

static const struct dtensor_placement whole = { .kind = DTENSOR_REPLICATE };

/* The placement that both inputs can have, so that no shard has to become a
 * term.
 */
static struct dtensor_placement both(const struct dtensor_placement *a,
                                     const struct dtensor_placement *b, int n)
{
    const enum dtensor_placement_kind ca = dtn_placement_class(a);
    const enum dtensor_placement_kind cb = dtn_placement_class(b);

    if (dtn_placement_equal(a, b, n) || cb == DTENSOR_REPLICATE)
        return *a;
    if (ca == DTENSOR_REPLICATE)
        return *b;
    if (ca == cb)
        return whole;
    return ca == DTENSOR_PARTIAL ? *b : *a;
}

/* A tensor with two reductions that do not mix: the later dimension is
 * replicated.
 */
static void unmix(struct dtensor_spec *spec)
{
    for (int m = 0; m < spec->mesh->ndim; m++)
        for (int k = 0; k < m; k++)
            if (spec->placement[m].kind == DTENSOR_PARTIAL &&
                spec->placement[k].kind == DTENSOR_PARTIAL &&
                !dtn_redops_mix(spec->placement[k].op, spec->placement[m].op))
                spec->placement[m] = whole;
}

static int stack_check(const struct dtensor_op_call *call, int *dimp,
                       struct dtensor_error *err)
{
    const struct dtensor_spec *in = call->in;

    for (int i = 1; i < call->nin; i++)
        if (in[i].ndim != in->ndim ||
            memcmp(in[i].shape, in->shape,
                   (size_t)in->ndim * sizeof in->shape[0]) != 0)
            return dtn_op_fail(call, err, "input %d has another shape than "
                               "input 0", i);
    if (call->args.ndims != 1 || in->ndim == DTENSOR_MAX_DIMS)
        return dtn_op_fail(call, err, "args.dim names %d dimensions of %d "
                           "(expected one of at most %d)", call->args.ndims,
                           in->ndim, DTENSOR_MAX_DIMS - 1);
    return dtn_op_dim(call, call->args.dim[0], in->ndim + 1, dimp, err);
}

int dtn_stack_infer(const struct dtensor_op_call *call,
                    struct dtensor_spec *want, struct dtensor_spec *out,
                    struct dtensor_error *err)
{
    const int nmesh = call->in[0].mesh->ndim;
    struct dtensor_spec to;
    int dim = 0, rc = stack_check(call, &dim, err);

    if (rc != 0)
        return rc;
    to = call->in[0];
    for (int i = 1; i < call->nin; i++)
        for (int m = 0; m < nmesh; m++)
            to.placement[m] = both(&to.placement[m], &call->in[i].placement[m],
                                   to.mesh->size[m]);
    unmix(&to);
    *want = to;
    for (int m = 0; m < nmesh; m++)
        if (dtn_placement_class(&to.placement[m]) == DTENSOR_SHARD)
            to.placement[m].dim += to.placement[m].dim >= dim;
    memmove(&to.shape[dim + 1], &to.shape[dim],
            (size_t)(to.ndim - dim) * sizeof to.shape[0]);
    to.shape[dim] = call->nin;
    to.ndim++;
    *out = to;
    return 0;
}
