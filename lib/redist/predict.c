/* predict.c - what a redistribute would cost, as other rooms ask it
 *
 * An operator that can run with its inputs in several placements asks for the
 * cost of each.
 */
#include "redist/predict.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/route.h"
#include "dtensor.h"

#include <math.h>

double dtn_redist_predict_below(const struct dtn_cost *cost,
                                const struct dtensor_spec *src,
                                const struct dtensor_spec *dst, double limit_ns)
{
    const struct dtn_redistribute_conf *conf =
        &dst->mesh->ctx->world.cluster->redistribute;

    return dtn_spec_equal(src, dst) ? 0
         : dtn_route_ns(cost, src, dst, conf->planner,
                        conf->max_scratch_bytes, limit_ns);
}

double dtn_redist_predict(const struct dtn_cost *cost,
                          const struct dtensor_spec *src,
                          const struct dtensor_spec *dst)
{
    return dtn_redist_predict_below(cost, src, dst, HUGE_VAL);
}
