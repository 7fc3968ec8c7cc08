/* predict.c - what a redistribute would cost, as other rooms ask it
 *
 * An operator that can run with its inputs in several placements asks for the
 * cost of each.  The lower bound leaves out what cannot be best: some message
 * has to arrive if a shard or a term becomes anything else, and with it what
 * the rank does not have of its new part.
 */
#include "redist/predict.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/route.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

double dtn_redist_predict(const struct dtn_cost *cost,
                          const struct dtensor_spec *src,
                          const struct dtensor_spec *dst)
{
    const struct dtn_redistribute_conf *conf =
        &dst->mesh->ctx->world.cluster->redistribute;
    struct dtn_routes routes;

    if (dtn_spec_equal(src, dst))
        return 0;
    if (dtn_routes_find(cost, src, dst, conf->planner, conf->max_scratch_bytes,
                        &routes, NULL) != 0)
        return HUGE_VAL;
    return routes.route[routes.chosen].ns;
}

/* Does another mesh dimension cut what m cut, or what m will cut, so that some
 * ranks may have their new part already?
 */
static bool predict_shifts(const struct dtensor_spec *src,
                           const struct dtensor_spec *dst, int m)
{
    for (int k = 0; k < src->mesh->ndim; k++) {
        const struct dtensor_placement *a = &src->placement[m];
        const struct dtensor_placement *b = &dst->placement[k];

        if (k != m && dtn_placement_class(a) == DTENSOR_SHARD &&
            dtn_placement_class(b) == DTENSOR_SHARD && a->dim == b->dim &&
            !dtn_placement_equal(&src->placement[k], b, src->mesh->size[k]))
            return true;
    }
    return false;
}

double dtn_redist_predict_least(const struct dtn_cost *cost,
                                const struct dtensor_spec *src,
                                const struct dtensor_spec *dst)
{
    const double *ns = cost->model.ns;
    double byte = fmin(ns[DTENSOR_COST_INTRA_BYTES],
                       ns[DTENSOR_COST_INTER_BYTES]);
    double share = 1;
    bool moves = false;

    if (dtn_spec_partial(src) >= 0)              /* from the peer's memory    */
        byte = fmin(byte, ns[DTENSOR_COST_FOLDED]);
    for (int m = 0; m < src->mesh->ndim; m++) {
        if (src->mesh->size[m] == 1 ||           /* all is there              */
            dtn_placement_equal(&src->placement[m], &dst->placement[m],
                                src->mesh->size[m]) ||
            dtn_placement_is_local(&src->placement[m], &dst->placement[m]))
            continue;
        moves = true;
        if (!predict_shifts(src, dst, m))
            share /= src->mesh->size[m];
    }
    return !moves ? 0
         : fmin(ns[DTENSOR_COST_INTRA_HOPS], ns[DTENSOR_COST_INTER_HOPS]) +
           byte * (1 - share) * dtn_volume_local(dst, dst->placement) *
           (double)dtensor_dtype_size(dst->dtype);
}
