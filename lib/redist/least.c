/* least.c - a lower bound of the cost of a redistribute
 *
 * If a shard or a term changes, at least one message has to arrive, with the
 * bytes of the new part that the rank does not have.  The rest of the new part
 * has to be copied.  This bound takes 50 ns, and a search for the best route
 * takes microseconds.  So the bound excludes candidates that cannot be the best
 * before any search.
 */
#include "redist/predict.h"
#include "base/dtype.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

/* Does another mesh dimension cut what m cut, or what m will cut, so that some
 * ranks may have their new part already?
 */
static bool predict_shifts(const struct dtensor_mesh *mesh,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[], int m)
{
    if (dtn_placement_class(&src[m]) != DTENSOR_SHARD)
        return false;
    for (int k = 0; k < mesh->ndim; k++)
        if (k != m && dtn_placement_class(&dst[k]) == DTENSOR_SHARD &&
            src[m].dim == dst[k].dim &&
            !dtn_placement_equal(&src[k], &dst[k], mesh->size[k]))
            return true;
    return false;
}

/* Mesh dimension m cuts as before.  Does it cut other parts, because a mesh
 * dimension to its left cuts otherwise?  From [R,S(0)] to [S(0),S(0)] of four
 * ranks, rank 1 had the second half and then has the second quarter.
 */
static bool predict_dragged(const struct dtensor_mesh *mesh,
                            const struct dtensor_placement src[],
                            const struct dtensor_placement dst[], int m)
{
    const struct dtensor_placement *p = &dst[m];

    if (p->kind != DTENSOR_SHARD || mesh->size[m] == 1)
        return false;
    for (int k = 0; k < m; k++)
        if (mesh->size[k] > 1 &&
            ((dtn_placement_class(&src[k]) == DTENSOR_SHARD &&
              src[k].dim == p->dim) ||
             (dtn_placement_class(&dst[k]) == DTENSOR_SHARD &&
              dst[k].dim == p->dim)) &&
            !dtn_placement_equal(&src[k], &dst[k], mesh->size[k]))
            return true;
    return false;
}

/* What the change of one mesh dimension needs at least. */
enum predict_need {
    NEEDS_NOTHING,                /* all is there                             */
    NEEDS_COPY,                   /* of what is there                         */
    NEEDS_PEERS,                  /* elements of other ranks                  */
    NEEDS_OTHERS,                 /* the same: of its part some rank has none */
    NEEDS_TERMS                   /* terms of other ranks                     */
};

static enum predict_need predict_need(const struct dtensor_mesh *mesh,
                                      const struct dtensor_placement src[],
                                      const struct dtensor_placement dst[],
                                      int m)
{
    const struct dtensor_placement *a = &src[m], *b = &dst[m];
    const int n = mesh->size[m];

    if (n == 1)
        return NEEDS_NOTHING;
    if (dtn_placement_equal(a, b, n))
        return predict_dragged(mesh, src, dst, m) ? NEEDS_OTHERS
                                                  : NEEDS_NOTHING;
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
    double fills;                 /* dimensions along which a replica becomes */
                                  /* terms of a sum                           */
    double filled;                /* ranks along those                        */
};

/* Each rank then divides its part, and so writes it once more. */
static void predict_fill(const struct dtensor_spec *spec,
                         const struct dtensor_placement *a,
                         const struct dtensor_placement *b, int n,
                         struct predict_terms *terms)
{
    if (a->kind != DTENSOR_REPLICATE || b->kind != DTENSOR_PARTIAL ||
        b->op != DTENSOR_SUM || n == 1 || !dtn_dtype_is_float(spec->dtype))
        return;
    terms->fills++;
    terms->filled *= n;
}

static void predict_term(enum dtensor_placement_kind kind, int n,
                         enum predict_need need, double keeps,
                         struct predict_terms *terms)
{
    if (need == NEEDS_TERMS && kind == DTENSOR_REPLICATE) {
        terms->whole *= n;
    } else if (need == NEEDS_TERMS) {
        terms->cut *= n;
        terms->messages += n - 1;
        terms->dims++;
        terms->few = terms->few < n ? terms->few : n;
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
    const double fills = terms->fills * terms->share * terms->filled /
                         (terms->whole * terms->sharers);

    return bytes * (received * byte + folded * ns[DTENSOR_COST_FOLDED] +
                    stays * fmin(byte, ns[DTENSOR_COST_COPIED]) +
                    fills * ns[DTENSOR_COST_COPIED]);
}

/* Hops and messages, and what they depend on.  An exchange reads and writes for
 * each term that it adds, and copies what stays; to cut along several
 * dimensions at once takes more messages, to do it one after another more hops.
 * Or there is an allreduce, which takes a hop and only reads, but sends each
 * sum to all that had a term: of those, one wanted it, and for the elements
 * that have no term where they are wanted one more is of use.
 */
static double predict_steps(const struct predict_terms *terms,
                            const double ns[], double hop, double message,
                            double byte, double bytes)
{
    const double once = message * (terms->cut - 1);
    const double turns = 2 * hop + message * terms->messages;
    const double each = bytes / terms->sharers;
    double exchanges = (terms->cut - 1) * each * ns[DTENSOR_COST_FOLDED];

    exchanges += terms->whole > 1 || terms->sharers > 1 ? hop
               : 2 * hop + (terms->dims == 1 ? once : fmin(once, turns));
    if (terms->whole > 1 && terms->cut > 1)
        exchanges += 2 / terms->whole * terms->share * each *
                     fmin(byte, ns[DTENSOR_COST_COPIED]);
    return fmin(exchanges, hop + each / terms->whole * byte *
                           (terms->few - 2 + terms->share));
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

/* The share of its new part that a rank has, as far as dimension m says. */
static double predict_keeps(const struct dtensor_mesh *mesh,
                            const struct dtensor_placement src[],
                            const struct dtensor_placement dst[], int m,
                            enum predict_need need)
{
    if (need == NEEDS_OTHERS)
        return 0;
    return need == NEEDS_PEERS && !predict_shifts(mesh, src, dst, m)
         ? 1.0 / mesh->size[m] : 1;
}

/* The bound is often the cost; then it may be above it by rounding. */
double dtn_redist_predict_least(const struct dtn_cost *cost,
                                const struct dtensor_spec *spec,
                                const struct dtensor_placement src[],
                                const struct dtensor_placement dst[])
{
    const double hop = cost->hop, message = 3 * cost->message;
    const double byte = cost->byte;
    const double *ns = cost->model.ns, copied = ns[DTENSOR_COST_COPIED];
    const struct dtensor_mesh *mesh = spec->mesh;
    struct predict_terms terms = { 1, 1, 1, 1, 0, 0, HUGE_VAL, 0, 1 };
    enum predict_need most = NEEDS_NOTHING, need;
    double share = 1, keeps, bytes;

    for (int m = 0; m < mesh->ndim; m++) {
        if (dst[m].kind == DTENSOR_PARTIAL &&
            dtn_placement_class(&src[m]) == DTENSOR_SHARD)
            return 0;                  /* what is not there is zeros          */
        need = predict_need(mesh, src, dst, m);
        most = need > most ? need : most;
        keeps = predict_keeps(mesh, src, dst, m, need);
        share *= keeps;
        predict_term(dst[m].kind, mesh->size[m], need, keeps, &terms);
        predict_fill(spec, &src[m], &dst[m], mesh->size[m], &terms);
    }
    if (most == NEEDS_NOTHING)
        return 0;
    bytes = dtn_volume_local(spec, dst) *
            (double)dtensor_dtype_size(spec->dtype);
    if (most == NEEDS_TERMS)
        return predict_steps(&terms, ns, hop, message, byte, bytes) +
               predict_reduced(&terms, ns, byte, bytes);
    if (most >= NEEDS_PEERS)
        return predict_moved(share, hop, message, byte, copied, bytes);
    return bytes * fmin(byte, (1 + terms.fills) * copied);
}
