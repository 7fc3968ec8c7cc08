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
 * (n_r) or a part (n_s), V bytes of it.  Each addition brings two terms
 * together, and then the sum has to come to its n_r ranks: those that a
 * reduce-scatter and an all-gather send, V (1 + n_s - 2 / n_r).  Of 8 ranks
 * that get the whole that is 1.75 V.  Mesh dimensions of c ranks that have the
 * same may share the work, and send it to each other later: V (1 + (n_s - 2 /
 * n_r) / c).  If only a share of the elements has a term where it is wanted,
 * the sums of the others arrive, too: 2 becomes 1 + share.
 */
struct predict_terms {
    double whole, cut;            /* n_r, n_s                                 */
    double sharers;               /* c                                        */
    double share;                 /* with a term where the sum is wanted      */
    double messages;              /* to cut along one dimension after another */
    int dims;                     /* these dimensions                         */
    double few;                   /* ranks along the shortest of them         */
};

static void predict_term(const struct dtensor_spec *dst, int m,
                         enum predict_need need, double keeps,
                         struct predict_terms *terms)
{
    const enum dtensor_placement_kind kind = dst->placement[m].kind;
    const int n = dst->mesh->size[m];

    if (need == NEEDS_TERMS && kind == DTENSOR_REPLICATE) {
        terms->whole *= n;
    } else if (need == NEEDS_TERMS) {
        terms->cut *= n;
        terms->messages += n - 1;
        terms->dims++;
        terms->few = fmin(terms->few, n);
    } else if (kind == DTENSOR_REPLICATE || (kind == DTENSOR_PARTIAL &&
                                             need != NEEDS_NOTHING)) {
        terms->sharers *= n;
    } else {
        terms->share *= keeps;
    }
}

static double predict_reduced(const struct predict_terms *terms,
                              const double ns[], double byte, double bytes)
{
    const double received = 1 + (terms->cut - (1 + terms->share) /
                                 terms->whole) / terms->sharers;
    const double folded = (terms->cut - 1 / terms->whole) / terms->sharers;
    const double stays = terms->whole > 1 ? 0 : terms->share / terms->sharers;

    return bytes * (received * byte + folded * ns[DTENSOR_COST_FOLDED] +
                    stays * fmin(byte, ns[DTENSOR_COST_COPIED]));
}

/* Hops and messages.  To cut along several dimensions at once takes more
 * messages, to do it one after another more hops.  Or there is an allreduce,
 * which takes a hop, and sends each sum to all that had a term: of those, one
 * wanted it, and for the elements that have no term where they are wanted one
 * more is of use.
 */
static double predict_steps(const struct predict_terms *terms, double hop,
                            double message, double byte, double bytes)
{
    const double once = message * (terms->cut - 1);
    const double turns = 2 * hop + message * terms->messages;

    if (terms->whole > 1 || terms->sharers > 1)
        return hop;
    return fmin(2 * hop + (terms->dims == 1 ? once : fmin(once, turns)),
                hop + bytes * byte * (terms->few - 2 + terms->share));
}

/* A message has to come, and what a rank does not have of its part; the rest is
 * copied.  Whoever has a share of it gets parts from 1 / share - 1 others, or
 * in more steps from fewer.
 */
static double predict_moved(double share, double hop, double message,
                            double byte, double copied, double bytes)
{
    return 2 * hop + fmin(message, 2 * hop) * fmin(1, 1 / share - 1) +
           bytes * ((1 - share) * byte + share * fmin(byte, copied));
}

/* The bound is often the cost; then it may be above it by rounding. */
double dtn_redist_predict_least(const struct dtn_cost *cost,
                                const struct dtensor_spec *src,
                                const struct dtensor_spec *dst)
{
    const double *ns = cost->model.ns, copied = ns[DTENSOR_COST_COPIED];
    const double hop = fmin(ns[DTENSOR_COST_INTRA_HOPS],
                            ns[DTENSOR_COST_INTER_HOPS]);
    const double message = 3 * fmin(ns[DTENSOR_COST_INTRA_MESSAGES],
                                    ns[DTENSOR_COST_INTER_MESSAGES]);
    const double byte = fmin(ns[DTENSOR_COST_INTRA_BYTES],
                             ns[DTENSOR_COST_INTER_BYTES]);
    struct predict_terms terms = { 1, 1, 1, 1, 0, 0, HUGE_VAL };
    enum predict_need most = NEEDS_NOTHING, need;
    double share = 1, keeps, bytes, least;

    for (int m = 0; m < src->mesh->ndim; m++) {
        if (dst->placement[m].kind == DTENSOR_PARTIAL &&
            dtn_placement_class(&src->placement[m]) == DTENSOR_SHARD)
            return 0;                  /* what is not there is zeros          */
        need = predict_need(src, dst, m);
        most = need > most ? need : most;
        keeps = need == NEEDS_PEERS && !predict_shifts(src, dst, m)
              ? 1.0 / src->mesh->size[m] : 1;
        share *= keeps;
        predict_term(dst, m, need, keeps, &terms);
    }
    if (most == NEEDS_NOTHING)
        return 0;
    bytes = dtn_volume_local(dst, dst->placement) *
            (double)dtensor_dtype_size(dst->dtype);
    if (most == NEEDS_TERMS)
        least = predict_steps(&terms, hop, message, byte, bytes) +
                predict_reduced(&terms, ns, byte, bytes);
    else if (most == NEEDS_PEERS)
        least = predict_moved(share, hop, message, byte, copied, bytes);
    else
        least = bytes * fmin(byte, copied);
    return least;
}
