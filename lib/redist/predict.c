/* predict.c - what a redistribute would cost, as other rooms ask it
 *
 * An operator that can run with its inputs in several placements asks for the
 * cost of each.  The lower bound leaves out what cannot be best: some message
 * has to arrive if a shard or a term becomes anything else, and with it what
 * the rank does not have of its new part; the rest has to be copied.
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

/* What the change of one mesh dimension needs at least. */
enum predict_need {
    NEEDS_NOTHING,                /* all is there                             */
    NEEDS_COPY,                   /* of what is there                         */
    NEEDS_PEERS,                  /* elements of other ranks                  */
    NEEDS_TERMS                   /* the same, or loads from their memory     */
};

static enum predict_need predict_need(const struct dtensor_spec *src,
                                      const struct dtensor_spec *dst, int m)
{
    const struct dtensor_placement *a = &src->placement[m];
    const struct dtensor_placement *b = &dst->placement[m];
    const int n = src->mesh->size[m];

    if (n == 1 || dtn_placement_equal(a, b, n))
        return NEEDS_NOTHING;
    if (dtn_placement_is_local(a, b))
        return NEEDS_COPY;
    return a->kind == DTENSOR_PARTIAL ? NEEDS_TERMS : NEEDS_PEERS;
}

double dtn_redist_predict_least(const struct dtn_cost *cost,
                                const struct dtensor_spec *src,
                                const struct dtensor_spec *dst)
{
    const double *ns = cost->model.ns;
    const double hop = fmin(ns[DTENSOR_COST_INTRA_HOPS],
                            ns[DTENSOR_COST_INTER_HOPS]);
    double byte = fmin(ns[DTENSOR_COST_INTRA_BYTES],
                       ns[DTENSOR_COST_INTER_BYTES]);
    double copy = fmin(byte, ns[DTENSOR_COST_COPIED]), share = 1, bytes;
    enum predict_need most = NEEDS_NOTHING, need;

    for (int m = 0; m < src->mesh->ndim; m++) {
        if (dst->placement[m].kind == DTENSOR_PARTIAL &&
            dtn_placement_class(&src->placement[m]) == DTENSOR_SHARD)
            return 0;                  /* what is not there is zeros          */
        need = predict_need(src, dst, m);
        most = need > most ? need : most;
        if (need >= NEEDS_PEERS && !predict_shifts(src, dst, m))
            share /= src->mesh->size[m];
    }
    if (most == NEEDS_NOTHING)
        return 0;
    if (most == NEEDS_TERMS) {
        byte = fmin(byte, ns[DTENSOR_COST_FOLDED]);
        copy = 0;
    }
    bytes = dtn_volume_local(dst, dst->placement) *
            (double)dtensor_dtype_size(dst->dtype);
    return (most == NEEDS_PEERS ? 2 * hop : most == NEEDS_TERMS ? hop : 0) +
           byte * (1 - share) * bytes + copy * share * bytes;
}
