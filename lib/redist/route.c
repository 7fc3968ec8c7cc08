/* route.c - routes from one spec to another, and their choice
 *
 * A route is a list of placements between the source and the target.  From
 * [S(0),S(0)] to [R,R] on a 2 x 2 mesh:
 *
 *   greedy    [S(0),R] [R,R]     PyTorch's: one mesh dimension at a time
 *   min-cost  the same           the cheapest that changes one at a time
 *   merged    [R,R]              greedy, with hops of the same kind merged
 *   direct    [R,R]              all at once
 *
 * Example: with shape (5,3) the ranks hold 2, 1, 1 and 1 rows.  PyTorch also
 * merges the two all-gathers, but assumes 2, 2, 1 and 0 rows, and returns wrong
 * rows.  Here every step knows the box of each rank, so shards of any lengths
 * can be merged.
 */
#include "redist/route.h"
#include "base/dtype.h"
#include "base/error.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/cross.h"
#include "redist/phases.h"
#include "redist/predict.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const char *dtn_route_name(enum dtensor_route kind)
{
    static const char *const names[DTENSOR_NROUTES] = {
        [DTENSOR_ROUTE_AUTO] = "auto", [DTENSOR_ROUTE_DIRECT] = "direct",
        [DTENSOR_ROUTE_MERGED] = "merged",
        [DTENSOR_ROUTE_MIN_COST] = "min-cost",
        [DTENSOR_ROUTE_GREEDY] = "greedy",
    };

    return (unsigned)kind < DTENSOR_NROUTES ? names[kind] : "?";
}

/* --------------------------------------------------------------- hops --- */

static void route_add(struct dtn_route *route,
                      const struct dtensor_placement placement[], int n)
{
    memcpy(route->hop[route->nhops++], placement,
           (size_t)n * sizeof placement[0]);
}

static bool route_cuts(const struct dtensor_placement *p)
{
    return dtn_placement_class(p) == DTENSOR_SHARD;
}

static void route_direct(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         struct dtn_route *route)
{
    if (!dtn_spec_equal(src, dst))
        route_add(route, dst->placement, dst->mesh->ndim);
}

/* -------------------------------------------------------------- greedy --- */

/* Do the placements to the left of m that cut tensor dimension d differ? */
static bool greedy_blocked(const struct dtensor_placement now[],
                           const struct dtensor_placement dst[], int m, int d)
{
    for (int k = 0; k < m; k++) {
        const bool cuts = route_cuts(&now[k]) && now[k].dim == d;
        const bool will = route_cuts(&dst[k]) && dst[k].dim == d;

        if (cuts != will)
            return true;
    }
    return false;
}

/* Add a hop that makes mesh dimension m `to`, if it is not `to` already. */
static void greedy_step(struct dtn_route *route, const struct dtensor_spec *dst,
                        struct dtensor_placement now[], int m,
                        const struct dtensor_placement *to)
{
    if (dtn_placement_equal(&now[m], to, dst->mesh->size[m]))
        return;
    now[m] = *to;
    route_add(route, now, dst->mesh->ndim);
}

/* Exactly PyTorch's default planner: from the inner mesh dimension to the outer
 * as far as the nesting of shards allows, then from the outer to the inner.
 */
static void route_greedy(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         struct dtn_route *route)
{
    static const struct dtensor_placement whole = {
        .kind = DTENSOR_REPLICATE };
    struct dtensor_placement now[DTENSOR_MAX_DIMS];
    const int ndim = dst->mesh->ndim;
    int shards = 1;

    memcpy(now, src->placement, sizeof now);
    for (int m = 0; m < ndim; m++)
        if (route_cuts(&now[m]))
            shards *= dst->mesh->size[m];
    for (int m = ndim - 1; m >= 0 && shards > 1 && ndim > 1; m--) {
        const struct dtensor_placement *to = &dst->placement[m];

        if (route_cuts(to) && greedy_blocked(now, dst->placement, m, to->dim))
            to = &whole;
        greedy_step(route, dst, now, m, to);
    }
    for (int m = 0; m < ndim; m++)
        greedy_step(route, dst, now, m, &dst->placement[m]);
}

/* -------------------------------------------------------------- merged --- */

/* The kind of change that a hop makes.  Only hops of one kind are merged. */
enum hop_kind { HOP_MIXED, HOP_GATHER, HOP_REDUCE, HOP_SCATTER, HOP_LOCAL };

static enum hop_kind hop_kind_of(const struct dtensor_placement *from,
                                 const struct dtensor_placement *to)
{
    if (dtn_placement_is_local(from, to))
        return HOP_LOCAL;
    if (from->kind == DTENSOR_PARTIAL)
        return to->kind == DTENSOR_REPLICATE ? HOP_REDUCE : HOP_SCATTER;
    return route_cuts(to) ? HOP_MIXED : HOP_GATHER;
}

static enum hop_kind hop_kind(const struct dtensor_mesh *mesh,
                              const struct dtensor_placement from[],
                              const struct dtensor_placement to[])
{
    for (int m = 0; m < mesh->ndim; m++)
        if (!dtn_placement_equal(&from[m], &to[m], mesh->size[m]))
            return hop_kind_of(&from[m], &to[m]);
    return HOP_MIXED;
}

static void route_merged(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         const struct dtn_route *greedy,
                         struct dtn_route *route)
{
    const struct dtensor_placement *from = src->placement;
    enum hop_kind last = HOP_MIXED, kind;

    for (int i = 0; i < greedy->nhops; i++) {
        kind = hop_kind(dst->mesh, from, greedy->hop[i]);
        from = greedy->hop[i];
        if (kind != HOP_MIXED && kind == last)
            route->nhops--;
        route_add(route, from, dst->mesh->ndim);
        last = kind;
    }
}

/* ---------------------------------------------------------------- rules --- */

/* The reason why a hop is impossible; NULL: it is possible. */
static const char *hop_refused(const struct dtensor_mesh *mesh,
                               const struct dtensor_placement from[],
                               const struct dtensor_placement to[])
{
    for (int m = 0; m < mesh->ndim; m++) {
        if (to[m].kind != DTENSOR_PARTIAL || mesh->size[m] == 1)
            continue;
        if (from[m].kind == DTENSOR_PARTIAL && from[m].op != to[m].op)
            return "PyTorch has no step from one reduction to another";
        for (int k = 0; k < m; k++)
            if (to[k].kind == DTENSOR_PARTIAL && mesh->size[k] > 1 &&
                !dtn_redops_mix(to[k].op, to[m].op))
                return "a tensor on the way would have two reductions";
    }
    return NULL;
}

static const char *route_refused(const struct dtensor_spec *src,
                                 const struct dtn_route *route)
{
    const struct dtensor_placement *from = src->placement;
    const char *why = NULL;

    for (int i = 0; !why && i < route->nhops; from = route->hop[i++])
        why = hop_refused(src->mesh, from, route->hop[i]);
    return why;
}

static bool hop_adds(const struct dtensor_mesh *mesh,
                     const struct dtensor_placement from[],
                     const struct dtensor_placement to[])
{
    for (int m = 0; m < mesh->ndim; m++)
        if (from[m].kind == DTENSOR_PARTIAL && to[m].kind != DTENSOR_PARTIAL &&
            mesh->size[m] > 1)
            return true;
    return false;
}

/* If all terms must be added in one step, merge all hops from the first that
 * adds terms to the last.
 */
static void route_add_once(const struct dtensor_spec *src,
                           const struct dtensor_spec *dst,
                           struct dtn_route *route)
{
    const struct dtensor_placement *from = src->placement;
    int first = -1, last = -1;

    for (int i = 0; i < route->nhops; from = route->hop[i++])
        if (hop_adds(src->mesh, from, route->hop[i])) {
            first = first < 0 ? i : first;
            last = i;
        }
    if (first == last || !dtn_phases_add_once(src, dst))
        return;
    memmove(route->hop[first], route->hop[last],
            (size_t)(route->nhops - last) * sizeof route->hop[0]);
    route->nhops -= last - first;
}

/* ------------------------------------------------------------- choosing --- */

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
        memcpy(to.placement, route->hop[i],
               (size_t)dst->mesh->ndim * sizeof to.placement[0]);
        n += dtn_phases(&from, &to, phase + n);
        from = to;
    }
    return n;
}

/* Bytes of the results between exchanges; they use two buffers in turn. */
static void route_measure(const struct dtn_cost *cost,
                          const struct dtensor_spec *src,
                          const struct dtensor_spec *dst,
                          struct dtn_route *route)
{
    struct dtn_phase phase[DTN_ROUTE_PHASES_MAX];
    const double elem = (double)dtensor_dtype_size(dst->dtype);
    double most[2] = { 0, 0 };
    int turn = 0;

    route->nphases = dtn_route_phases(route, src, dst, phase);
    route->ns = 0;
    route->nsums = 0;
    for (int i = 0; i < route->nphases; i++) {
        double bytes;

        route->ns += dtn_cost_phase(cost, &phase[i]);
        route->nsums += phase[i].kind == DTN_PHASE_REDUCE ||
                        dtn_phase_folds(&phase[i]);
        if (i + 1 == route->nphases ||
            phase[i + 1].kind != DTN_PHASE_EXCHANGE)
            continue;
        bytes = elem * (double)dtn_max_numel(&phase[i].dst);
        if (bytes > most[turn])
            most[turn] = bytes;
        turn = !turn;
    }
    route->scratch = most[0] + most[1];
}

/* Is `ns` better by more than the error of the model?  Of equal routes the
 * earlier is taken.
 */
static bool route_beats(double ns, double best_ns)
{
    return ns < 0.99 * best_ns;
}

/* `rounds`: floats of 16 and 8 bits.  They are added in f32 and rounded after
 * each step, so more steps change more than the order of the terms.
 */
static void routes_choose(struct dtn_routes *routes, uint64_t max_scratch,
                          bool rounds)
{
    const struct dtn_route *best = &routes->route[DTENSOR_ROUTE_DIRECT];

    routes->chosen = DTENSOR_ROUTE_DIRECT;
    routes->why = best->nhops == 0 ? "nothing changes"
        : "each element is sent once, and no other way is faster";
    for (int i = DTENSOR_ROUTE_MERGED; i < DTENSOR_NROUTES; i++) {
        struct dtn_route *route = &routes->route[i];

        if (!route->refused && route->scratch > (double)max_scratch)
            route->refused = "needs more scratch than max_scratch";
        if (route->refused || route->slower ||
            !route_beats(route->ns, best->ns))
            continue;
        if (rounds && route->nsums > best->nsums) {
            routes->why = "no faster way rounds sums as rarely";
            continue;
        }
        best = route;
        routes->chosen = (enum dtensor_route)i;
        routes->why = "predicted to be the fastest";
    }
}

/* Has a route the hops of another, whose cost is known? */
static bool route_same(const struct dtn_route *route,
                       const struct dtn_route *known,
                       const struct dtensor_mesh *mesh)
{
    if (route->nhops != known->nhops || known->refused || known->slower)
        return false;
    for (int i = 0; i + 1 < route->nhops; i++)   /* the last is the target    */
        for (int m = 0; m < mesh->ndim; m++)
            if (!dtn_placement_equal(&route->hop[i][m], &known->hop[i][m],
                                     mesh->size[m]))
                return false;
    return true;
}

/* Compute the cost of a route that was found, if it is not the one of `known`
 * routes before it.
 */
static void routes_keep(const struct dtn_cost *cost,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, struct dtn_route *route,
                        const struct dtn_route *const known[2])
{
    if (!route->refused)
        route->refused = route_refused(src, route);
    if (route->refused || route->slower)
        return;
    route_add_once(src, dst, route);
    for (int i = 0; i < 2 && known[i]; i++)
        if (route_same(route, known[i], src->mesh)) {
            route->ns = known[i]->ns;
            route->scratch = known[i]->scratch;
            route->nphases = known[i]->nphases;
            route->nsums = known[i]->nsums;
            return;
        }
    route_measure(cost, src, dst, route);
}

/* All routes but direct, on one mesh. */
static void routes_stepwise(const struct dtn_cost *cost,
                            const struct dtensor_spec *src,
                            const struct dtensor_spec *dst, bool thorough,
                            struct dtn_route route[])
{
    const struct dtn_route *direct = &route[DTENSOR_ROUTE_DIRECT];
    struct dtn_route *greedy = &route[DTENSOR_ROUTE_GREEDY];
    double limit = direct->ns;

    route_greedy(src, dst, greedy);
    route_merged(src, dst, greedy, &route[DTENSOR_ROUTE_MERGED]);
    route[DTENSOR_ROUTE_MERGED].refused = route_refused(src, greedy);
    routes_keep(cost, src, dst, greedy,
                (const struct dtn_route *const[]){ direct, NULL });
    routes_keep(cost, src, dst, &route[DTENSOR_ROUTE_MERGED],
                (const struct dtn_route *const[]){ direct, greedy });
    if (!greedy->refused && greedy->ns < limit)
        limit = greedy->ns;
    dtn_route_min_cost(cost, src, dst, thorough ? HUGE_VAL : limit,
                       &route[DTENSOR_ROUTE_MIN_COST]);
    routes_keep(cost, src, dst, &route[DTENSOR_ROUTE_MIN_COST],
                (const struct dtn_route *const[]){ direct, greedy });
}

int dtn_routes_find(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, struct dtn_routes *routes,
                    struct dtensor_error *err)
{
    struct dtn_route *route = routes->route;
    const bool crosses = src->mesh != dst->mesh;

    for (int i = 0; i < DTENSOR_NROUTES; i++) {
        route[i].nhops = 0;
        route[i].slower = false;
        route[i].scratch = 0;
        route[i].refused = crosses && i != DTENSOR_ROUTE_DIRECT
                         ? "it stays on one mesh" : NULL;
    }
    route_direct(src, dst, &route[DTENSOR_ROUTE_DIRECT]);
    route_measure(cost, src, dst, &route[DTENSOR_ROUTE_DIRECT]);
    if (!crosses)
        routes_stepwise(cost, src, dst, want == DTENSOR_ROUTE_MIN_COST, route);
    routes_choose(routes, max_scratch, dtn_dtype_is_narrow(src->dtype));
    if (want == DTENSOR_ROUTE_AUTO || want == routes->chosen)
        return 0;
    if (route[want].refused)
        return dtn_fail(err, DTENSOR_EINVAL, "plan: no %s route: %s (take "
                        "another, or auto)", dtn_route_name(want),
                        route[want].refused);
    routes->chosen = want;
    routes->why = "it was asked for";
    return 0;
}

double dtn_route_ns(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch)
{
    struct dtn_route *direct;
    struct dtn_routes routes;

    if (want == DTENSOR_ROUTE_AUTO) {
        direct = &routes.route[DTENSOR_ROUTE_DIRECT];
        direct->nhops = 0;
        route_direct(src, dst, direct);
        route_measure(cost, src, dst, direct);
        if (!route_beats(dtn_redist_predict_least(cost, src, dst) * (1 - 1e-9),
                         direct->ns))
            return direct->ns;
    }
    return dtn_routes_find(cost, src, dst, want, max_scratch, &routes, NULL)
         ? HUGE_VAL : routes.route[routes.chosen].ns;
}
