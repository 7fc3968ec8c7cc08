/* routes.c - what routes cost, and which one is chosen
 *
 * Most redistributes are direct: of 2,680 between R, S(0), S(1) and P(sum) on a
 * mesh of 2 x 2 x 2, 1 MiB, 2,446 are.  So the cost of the direct route is
 * computed first, and other routes are looked for only if a lower bound says
 * that one may be faster.  What else there is to know of a route, its phases
 * and its scratch, is found when it is to be chosen.
 */
#include "base/dtype.h"
#include "base/error.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/cross.h"
#include "redist/phases.h"
#include "redist/predict.h"
#include "redist/route.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---------------------------------------------------------------- costs --- */

/* The mesh dimension of a hop that changes one placement, and is one phase; -1:
 * there is none, or it may be several.
 */
static int hop_dim(const struct dtensor_mesh *mesh,
                   const struct dtensor_placement from[],
                   const struct dtensor_placement to[])
{
    int dim = -1;

    for (int m = 0; m < mesh->ndim; m++) {
        if (mesh->size[m] == 1 ||
            dtn_placement_equal(&from[m], &to[m], mesh->size[m]))
            continue;
        if (dim >= 0 || (from[m].kind == DTENSOR_PARTIAL &&
                         to[m].kind == DTENSOR_PARTIAL))
            return -1;
        dim = m;
    }
    return dim;
}

/* The sum of `ns` and the costs of a hop of several changes.  Sums are made
 * phase by phase, so that the cost of a route is that of its phases to the bit.
 */
static double hop_cost(const struct dtn_cost *cost,
                       const struct dtensor_spec *src,
                       const struct dtensor_placement from[],
                       const struct dtensor_placement to[], double ns)
{
    const size_t size = (size_t)src->mesh->ndim * sizeof from[0];
    struct dtensor_spec before = *src, after = *src;
    struct dtn_phase phase[DTN_MAX_PHASES];
    int n;

    memcpy(before.placement, from, size);
    memcpy(after.placement, to, size);
    n = dtn_phases(&before, &after, phase);
    for (int i = 0; i < n; i++)
        ns += dtn_cost_phase(cost, &phase[i]);
    return ns;
}

static double route_cost(const struct dtn_cost *cost,
                         const struct dtensor_spec *src,
                         const struct dtn_route *route)
{
    const struct dtensor_placement *from = src->placement;
    double ns = 0;

    for (int i = 0; i < route->nhops; from = route->hop[i++]) {
        const struct dtensor_placement *to = route->hop[i];
        const int m = hop_dim(src->mesh, from, to);

        if (m < 0) {
            ns = hop_cost(cost, src, from, to, ns);
        } else {
            const struct dtn_step_from step = dtn_step_from(cost, src, from);

            ns += dtn_cost_step(cost, src, &step, m, &to[m]);
        }
    }
    return ns;
}

static double cross_cost(const struct dtn_cost *cost,
                         const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    struct dtn_phase phase[DTN_CROSS_PHASES_MAX];
    const int n = dtn_cross_phases(src, dst, phase);
    double ns = 0;

    for (int i = 0; i < n; i++)
        ns += dtn_cost_phase(cost, &phase[i]);
    return ns;
}

/* --------------------------------------------------------------- phases --- */

/* The placements after a hop. */
static void route_hop(const struct dtn_route *route, int i,
                      struct dtensor_spec *to)
{
    memcpy(to->placement, route->hop[i],
           (size_t)to->mesh->ndim * sizeof to->placement[0]);
}

int dtn_route_phases(const struct dtn_route *route,
                     const struct dtensor_spec *src,
                     const struct dtensor_spec *dst,
                     struct dtn_phase phase[DTN_ROUTE_PHASES_MAX])
{
    struct dtensor_spec from = *src, to = *dst;
    int n = 0;

    if (src->mesh != dst->mesh)
        return dtn_cross_phases(src, dst, phase);

    for (int i = 0; i < route->nhops; i++) {
        route_hop(route, i, &to);
        n += dtn_phases(&from, &to, phase + n);
        from = to;
    }
    return n;
}

/* Results between exchanges, which use two buffers in turn. */
struct between {
    double bytes;                 /* of the last result                       */
    double most[2];               /* of those in each buffer                  */
    int turn;                     /* the buffer of the next one               */
};

/* Count phases, and the bytes of the results between them. */
static void phases_measure(const struct dtn_phase phase[], int n,
                           struct dtn_route *route, struct between *between)
{
    const double elem = (double)dtensor_dtype_size(phase[0].dst.dtype);

    for (int i = 0; i < n; i++) {
        double *most = &between->most[between->turn];

        route->nsums += phase[i].kind == DTN_PHASE_REDUCE ||
                        dtn_phase_folds(&phase[i]);
        if (route->nphases++ > 0 && phase[i].kind == DTN_PHASE_EXCHANGE) {
            *most = fmax(*most, between->bytes);
            between->turn = !between->turn;
        }
        between->bytes = elem * (double)dtn_max_numel(&phase[i].dst);
    }
}

/* Hop by hop: the phases of all would need 32 KiB. */
static void route_measure(const struct dtensor_spec *src,
                          const struct dtensor_spec *dst,
                          struct dtn_route *route)
{
    struct dtn_phase phase[DTN_CROSS_PHASES_MAX];
    struct dtensor_spec from = *src, to = *dst;
    struct between between = { .turn = 0 };
    const bool cross = src->mesh != dst->mesh;

    route->nphases = route->nsums = 0;
    for (int i = 0; i < (cross ? 1 : route->nhops); i++) {
        if (!cross)
            route_hop(route, i, &to);
        phases_measure(phase, cross ? dtn_cross_phases(src, dst, phase)
                                    : dtn_phases(&from, &to, phase),
                       route, &between);
        from = to;
    }
    route->scratch = between.most[0] + between.most[1];
}

/* Does no route need more?  A result between two exchanges is a part. */
static bool scratch_is_enough(const struct dtensor_spec *spec,
                              uint64_t max_scratch)
{
    double bytes = 2 * (double)dtensor_dtype_size(spec->dtype);

    for (int d = 0; d < spec->ndim; d++)
        bytes *= (double)spec->shape[d];
    return bytes <= (double)max_scratch;
}

/* Measure a route.  Does it keep to the limit? */
static bool route_fits(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, uint64_t max_scratch,
                       struct dtn_route *route)
{
    route_measure(src, dst, route);
    if (route->scratch > (double)max_scratch)
        route->refused = "needs more scratch than max_scratch";
    return !route->refused;
}

/* ------------------------------------------------------------- choosing --- */

/* What another route must be below: one has to be better by more than the error
 * of the model.  Of equal routes the earlier is taken.
 */
static double route_beaten_ns(double best_ns)
{
    return 0.99 * best_ns;
}

/* Can no other route beat the direct one? */
static bool direct_is_best(const struct dtn_cost *cost,
                           const struct dtensor_spec *src,
                           const struct dtensor_spec *dst, double direct_ns)
{
    const double least = dtn_redist_predict_least(cost, src, src->placement,
                                                  dst->placement);

    return least * (1 - 1e-9) >= route_beaten_ns(direct_ns);
}

/* May a stepwise route cost less than the search for the cheapest one knows?
 * Steps that add averages of integers are made one; and the search leaves out
 * what chosen lengths do not fit.
 */
static bool routes_other(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    for (int m = 0; m < src->mesh->ndim; m++) {
        const struct dtensor_placement *a = &src->placement[m];
        const struct dtensor_placement *b = &dst->placement[m];

        if ((a->kind == DTENSOR_SHARD && a->sizes) ||
            (b->kind == DTENSOR_SHARD && b->sizes))
            return true;
    }
    return dtn_phases_add_once(src, dst);
}

/* Find the stepwise routes, on one mesh: those that can be chosen and cost less
 * than the limit, and the one that is wanted.  If the search finds none below
 * the limit, there is none.
 */
static void routes_stepwise(const struct dtn_cost *cost,
                            const struct dtensor_spec *src,
                            const struct dtensor_spec *dst,
                            enum dtensor_route want, double limit,
                            struct dtn_route route[])
{
    struct dtn_route *greedy = &route[DTENSOR_ROUTE_GREEDY];
    struct dtn_route *merged = &route[DTENSOR_ROUTE_MERGED];
    struct dtn_route *min_cost = &route[DTENSOR_ROUTE_MIN_COST];
    const double direct_ns = route[DTENSOR_ROUTE_DIRECT].ns;
    const bool other = routes_other(src, dst);
    const bool wanted = want == DTENSOR_ROUTE_MIN_COST;

    limit = other ? direct_ns : fmin(limit, route_beaten_ns(direct_ns));
    dtn_route_min_cost(cost, src, dst, wanted ? HUGE_VAL : limit, min_cost);
    dtn_route_greedy(src, dst, greedy);
    dtn_route_merged(src, dst, greedy, merged);
    dtn_route_check(src, dst, greedy);
    dtn_route_check(src, dst, merged);
    greedy->slower = min_cost->slower && !other &&
                     want != DTENSOR_ROUTE_GREEDY;
    merged->slower = greedy->slower && want != DTENSOR_ROUTE_MERGED &&
                     merged->nhops == greedy->nhops;
    if (greedy->refused)
        merged->refused = greedy->refused;
    else if (!greedy->slower)
        greedy->ns = route_cost(cost, src, greedy);
    if (!merged->refused && !merged->slower)
        merged->ns = merged->nhops == 1 ? direct_ns
                                        : route_cost(cost, src, merged);
    if (min_cost->refused || min_cost->slower)
        return;
    min_cost->slower = !wanted && !greedy->refused && !greedy->slower &&
                       greedy->ns <= min_cost->ns;
    dtn_route_check(src, dst, min_cost);
    if (!min_cost->refused)
        min_cost->ns = route_cost(cost, src, min_cost);
}

/* Choose among those that were found.  Floats of 16 and 8 bits are added in f32
 * and rounded after each step, so more steps change more than the order of the
 * terms.
 */
static void routes_choose(const struct dtensor_spec *src,
                          const struct dtensor_spec *dst, uint64_t max_scratch,
                          struct dtn_routes *routes)
{
    struct dtn_route *best = &routes->route[DTENSOR_ROUTE_DIRECT];
    const bool rounds = dtn_dtype_is_narrow(src->dtype);
    const bool measured = rounds || !scratch_is_enough(src, max_scratch);

    routes->chosen = DTENSOR_ROUTE_DIRECT;
    routes->why = best->nhops == 0 ? "nothing changes"
        : "each element is sent once, and no other way is faster";
    for (int i = DTENSOR_ROUTE_MERGED; i < DTENSOR_NROUTES; i++) {
        struct dtn_route *route = &routes->route[i];

        if (route->refused || route->slower ||
            route->ns >= route_beaten_ns(best->ns) ||
            (measured && !route_fits(src, dst, max_scratch, route)))
            continue;
        if (rounds && routes->chosen == DTENSOR_ROUTE_DIRECT)
            route_measure(src, dst, best);
        if (rounds && route->nsums > best->nsums) {
            routes->why = "no faster way rounds sums as rarely";
            continue;
        }
        best = route;
        routes->chosen = (enum dtensor_route)i;
        routes->why = "predicted to be the fastest";
    }
}

static void routes_search(const struct dtn_cost *cost,
                          const struct dtensor_spec *src,
                          const struct dtensor_spec *dst,
                          enum dtensor_route want, uint64_t max_scratch,
                          double limit_ns, struct dtn_routes *routes)
{
    struct dtn_route *route = routes->route;
    struct dtn_route *direct = &route[DTENSOR_ROUTE_DIRECT];
    const bool crosses = src->mesh != dst->mesh;

    for (int i = 0; i < DTENSOR_NROUTES; i++) {
        route[i].nhops = 0;
        route[i].slower = false;
        route[i].refused = crosses && i != DTENSOR_ROUTE_DIRECT
                         ? "it stays on one mesh" : NULL;
    }
    dtn_route_direct(src, dst, direct);
    direct->ns = crosses ? cross_cost(cost, src, dst)
                         : route_cost(cost, src, direct);
    if (crosses || (want == DTENSOR_ROUTE_AUTO &&
                    direct_is_best(cost, src, dst, direct->ns)))
        for (int i = DTENSOR_ROUTE_MERGED; i < DTENSOR_NROUTES; i++)
            route[i].slower = true;
    else
        routes_stepwise(cost, src, dst, want, limit_ns, route);
    routes_choose(src, dst, max_scratch, routes);
}

int dtn_routes_find(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, struct dtn_routes *routes,
                    struct dtensor_error *err)
{
    struct dtn_route *wanted = &routes->route[want];

    routes_search(cost, src, dst, want, max_scratch, HUGE_VAL, routes);
    if (want == DTENSOR_ROUTE_AUTO || want == routes->chosen) {
        route_measure(src, dst, &routes->route[routes->chosen]);
        return 0;
    }
    if (want == DTENSOR_ROUTE_DIRECT)
        route_measure(src, dst, wanted);
    else if (wanted->refused || !route_fits(src, dst, max_scratch, wanted))
        return dtn_fail(err, DTENSOR_EINVAL, "plan: no %s route: %s (take "
                        "another, or auto)", dtn_route_name(want),
                        wanted->refused);
    routes->chosen = want;
    routes->why = "it was asked for";
    return 0;
}

double dtn_route_ns(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, double limit_ns)
{
    struct dtn_routes routes;

    if (want != DTENSOR_ROUTE_AUTO)
        return dtn_routes_find(cost, src, dst, want, max_scratch, &routes, NULL)
             ? HUGE_VAL : routes.route[routes.chosen].ns;
    routes_search(cost, src, dst, want, max_scratch, limit_ns, &routes);
    return routes.route[routes.chosen].ns;
}
