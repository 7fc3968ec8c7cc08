/* equal.c - do two tensors hold the same?
 *
 * Each rank compares its own part, and the smallest answer is everyone's: of
 * f32[2,8] as S(0) on 4 ranks two parts are empty, and agree with whatever the
 * others find.  Terms of a reduction say nothing of the sum (1 + 2 is 3 + 0),
 * so Partial tensors are reduced first.
 */
#include "tensor/tensor.h"

#include <string.h>

int dtensor_is_same_size(const struct dtensor *a, const struct dtensor *b)
{
    return a->spec.ndim == b->spec.ndim &&
           memcmp(a->spec.shape, b->spec.shape,
                  (size_t)a->spec.ndim * sizeof a->spec.shape[0]) == 0;
}

static int equal_check(const struct dtensor *a, const struct dtensor *b,
                       struct dtensor_error *err)
{
    struct dtensor_spec reshaped = b->spec;
    char one[400], other[400];

    memcpy(reshaped.shape, a->spec.shape, sizeof reshaped.shape);
    reshaped.ndim = a->spec.ndim;
    if (dtn_spec_equal(&a->spec, &reshaped))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "equal: %.200s and %.200s (mesh, "
                    "dtype and placements must be the same: redistribute one)",
                    dtn_spec_format(&a->spec, one, sizeof one),
                    dtn_spec_format(&b->spec, other, sizeof other));
}

/* Both reduced, to be compared. */
static int equal_reduced(const struct dtensor *a, const struct dtensor *b,
                         int *equalp, struct dtensor_error *err)
{
    struct dtensor_spec spec = a->spec;
    struct dtensor *left = NULL, *right = NULL;
    int rc;

    for (int m = 0; m < spec.mesh->ndim; m++)
        if (spec.placement[m].kind == DTENSOR_PARTIAL)
            spec.placement[m].kind = DTENSOR_REPLICATE;
    rc = dtensor_redistribute_to(a, &spec, &left, err);
    if (rc == 0)
        rc = dtensor_redistribute_to(b, &spec, &right, err);
    if (rc == 0)
        rc = dtensor_equal(left, right, equalp, err);
    dtensor_destroy(left);
    dtensor_destroy(right);
    return rc;
}

int dtensor_equal(const struct dtensor *a, const struct dtensor *b,
                  int *equalp, struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = a->spec.mesh;
    int32_t same, all = 1;
    int rc = equal_check(a, b, err);

    if (rc != 0)
        return rc;
    if (!dtensor_is_same_size(a, b)) {
        *equalp = 0;
        return 0;
    }
    if (dtn_spec_partial(&a->spec) >= 0)
        return equal_reduced(a, b, equalp, err);
    same = dtn_equal(a->spec.dtype, a->local, b->local, dtn_tensor_count(a));
    if (mesh->group.me >= 0)
        rc = dtensor_allreduce(mesh, &same, &all, 1, DTENSOR_I32, DTENSOR_MIN,
                               err);
    if (rc == 0)
        *equalp = all;
    return rc;
}
