/* fail.c - a redistribute that fails on one rank
 *
 * The ranks of a redistribute wait for each other's data.  If one rank has not
 * enough memory while the others go on, it poisons the context.  Then the
 * others return with its error instead of waiting until the deadline.
 */
#include "redist/fail.h"
#include "base/error.h"
#include "coll/exec.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "dtensor.h"

#include <stdbool.h>

int dtn_redist_give_up(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int rc,
                       const struct dtensor_error *why,
                       struct dtensor_error *err)
{
    const struct dtn_group both = { .ctx = dst->mesh->ctx, .n = 2 };

    if (rc != DTENSOR_EINVAL)
        return dtn_call_give_up(src->mesh == dst->mesh ? &dst->mesh->group
                                                       : &both, rc, why, err);
    if (err)
        *err = *why;
    return rc;
}

int dtn_redist_fits(const struct dtensor_plan *plan,
                    const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, struct dtensor_error *err)
{
    const bool from = dtn_spec_equal(src, &plan->src);
    char have[400], want[400];

    if (from && dtn_spec_equal(dst, &plan->dst))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "plan: the %s is %.200s, but the plan "
                    "was made for %.200s", from ? "destination" : "source",
                    dtn_spec_format(from ? dst : src, have, sizeof have),
                    dtn_spec_format(from ? &plan->dst : &plan->src, want,
                                    sizeof want));
}
