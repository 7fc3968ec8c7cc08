/* gradient.c - the gradient of a redistribute
 *
 * The gradient of a tensor has the placements of the tensor, except where they
 * are Partial: if y is the sum of terms x0 and x1, then dy/dx0 = dy/dx1 = 1, so
 * each rank's term has the whole gradient.  So the gradient of [P] -> [S(0)], a
 * reduce-scatter, is only an all-gather to R, and the gradient of [P] -> [R]
 * needs no communication.
 */
#include "base/error.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

/* The placement of the gradient on mesh dimension m. */
static struct dtensor_placement
grad_target(const struct dtensor_placement *src,
            const struct dtensor_placement *grad)
{
    static const struct dtensor_placement whole = {
        .kind = DTENSOR_REPLICATE };

    if (src->kind != DTENSOR_PARTIAL)
        return *src;
    return grad->kind == DTENSOR_PARTIAL ? *grad : whole;
}

int dtensor_grad_spec(const struct dtensor_spec *src,
                      const struct dtensor_spec *grad,
                      struct dtensor_spec *spec, struct dtensor_error *err)
{
    struct dtensor_spec from = *src, at = *grad, made;
    int rc = dtensor_spec_normalize(&from, err);

    if (rc == 0)
        rc = dtensor_spec_normalize(&at, err);
    if (rc == 0 && (from.mesh != at.mesh || from.ndim != at.ndim))
        rc = dtn_fail(err, DTENSOR_EINVAL, "gradient: it is on another mesh or "
                      "has %d dimensions, the tensor %d (both need the same "
                      "mesh)", at.ndim, from.ndim);
    if (rc != 0)
        return rc;
    made = at;
    for (int m = 0; m < from.mesh->ndim; m++)
        made.placement[m] = grad_target(&from.placement[m], &at.placement[m]);
    rc = dtensor_spec_check(&made, err);
    if (rc == 0)
        *spec = made;
    return rc;
}

int dtensor_plan_pair(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtensor_spec *grad,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan *pair[2], struct dtensor_error *err)
{
    struct dtensor_plan *made[2] = { NULL, NULL };
    struct dtensor_spec arrives, leaves, checked = *dst;
    int rc = dtensor_spec_normalize(&checked, err);

    if (rc != 0)
        return rc;
    arrives = grad ? *grad : dtn_spec_reduced(checked);
    rc = dtensor_grad_spec(src, &arrives, &leaves, err);
    if (rc == 0)
        rc = dtensor_plan_create(src, dst, options, &made[0], err);
    if (rc == 0)
        rc = dtensor_plan_create(&arrives, &leaves, options, &made[1], err);
    if (rc != 0) {
        dtensor_plan_destroy(made[0]);
        return rc;
    }
    pair[0] = made[0];
    pair[1] = made[1];
    return 0;
}
