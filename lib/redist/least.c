/* least.c - a lower bound of the cost of a redistribute
 *
 * If a shard or a term changes, at least one message has to arrive, with the
 * bytes of the new part that the rank does not have.  The rest of the new part
 * has to be copied.  This bound takes 50 ns, and a search for the best route
 * takes microseconds.  So the bound excludes candidates that cannot be the best
 * before any search.
 */
#include "redist/predict.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

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
    NEEDS_TERMS                   /* terms of other ranks                     */
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

/* Terms of n_r times n_s ranks are reduced, and each rank then has the whole
 * (n_r) or a part (n_s).  If V bytes are there in the end, at least those that
 * a reduce-scatter and an all-gather send are received: V (1 + n_s - 2 / n_r).
 * Of 8 ranks that get the whole that is 1.75 V.  Mesh dimensions of c ranks
 * that have the same may share the work, and send it to each other later:
 * V (1 + (n_s - 2 / n_r) / c).
 */
struct predict_terms {
    double whole, cut;            /* n_r, n_s                                 */
    double sharers;               /* c                                        */
};

static void predict_term(const struct dtensor_spec *dst, int m,
                         enum predict_need need, struct predict_terms *terms)
{
    const enum dtensor_placement_kind kind = dst->placement[m].kind;
    const int n = dst->mesh->size[m];

    if (need == NEEDS_TERMS)
        *(kind == DTENSOR_REPLICATE ? &terms->whole : &terms->cut) *= n;
    else if (kind == DTENSOR_REPLICATE || (kind == DTENSOR_PARTIAL &&
                                           need != NEEDS_NOTHING))
        terms->sharers *= n;
}

static double predict_reduced(const struct predict_terms *terms,
                              const double ns[], double byte, double bytes)
{
    const double received = 1 + (terms->cut - 2 / terms->whole) /
                                terms->sharers;
    const double folded = (terms->cut - 1 / terms->whole) / terms->sharers;

    return bytes * (received * byte + folded * ns[DTENSOR_COST_FOLDED]);
}

double dtn_redist_predict_least(const struct dtn_cost *cost,
                                const struct dtensor_spec *src,
                                const struct dtensor_spec *dst)
{
    const double *ns = cost->model.ns;
    const double hop = fmin(ns[DTENSOR_COST_INTRA_HOPS],
                            ns[DTENSOR_COST_INTER_HOPS]);
    const double byte = fmin(ns[DTENSOR_COST_INTRA_BYTES],
                             ns[DTENSOR_COST_INTER_BYTES]);
    struct predict_terms terms = { 1, 1, 1 };
    enum predict_need most = NEEDS_NOTHING, need;
    double share = 1, bytes;

    for (int m = 0; m < src->mesh->ndim; m++) {
        if (dst->placement[m].kind == DTENSOR_PARTIAL &&
            dtn_placement_class(&src->placement[m]) == DTENSOR_SHARD)
            return 0;                  /* what is not there is zeros          */
        need = predict_need(src, dst, m);
        most = need > most ? need : most;
        if (need == NEEDS_PEERS && !predict_shifts(src, dst, m))
            share /= src->mesh->size[m];
        predict_term(dst, m, need, &terms);
    }
    if (most == NEEDS_NOTHING)
        return 0;
    bytes = dtn_volume_local(dst, dst->placement) *
            (double)dtensor_dtype_size(dst->dtype);
    if (most == NEEDS_TERMS)
        return hop + predict_reduced(&terms, ns, byte, bytes);
    return (most == NEEDS_PEERS ? 2 * hop : 0) + byte * (1 - share) * bytes +
           fmin(byte, ns[DTENSOR_COST_COPIED]) * share * bytes;
}
