/* route.c - ways from one spec to another, and which to take
 *
 * A way is a list of placements to pass through.  From [S(0),S(0)] to [R,R] on
 * a 2 x 2 mesh:
 *
 *   greedy    [S(0),R] [R,R]     PyTorch's: one mesh dimension at a time
 *   min-cost  the same           the cheapest of all that change one at a time
 *   merged    [R,R]              greedy's steps of one kind taken together
 *   direct    [R,R]              all at once
 *
 * Of shape (5,3) the ranks hold 2, 1, 1 and 1 rows.  PyTorch merges the two
 * all-gathers as well, takes 2, 2, 1 and 0 for granted, and gets wrong rows;
 * every step here knows the box of each rank, so lengths may be what they are.
 */
#include "spec/redist.h"

#include <math.h>
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

/* Do the dimensions left of m that cut tensor dimension d differ? */
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

/* Put `to` at mesh dimension m, one hop, unless it is there. */
static void greedy_step(struct dtn_route *route, const struct dtensor_spec *dst,
                        struct dtensor_placement now[], int m,
                        const struct dtensor_placement *to)
{
    if (dtn_placement_equal(&now[m], to, dst->mesh->size[m]))
        return;
    now[m] = *to;
    route_add(route, now, dst->mesh->ndim);
}

/* PyTorch's default planner, to the letter: inner to outer, as far as the nesting
 * of shards allows, then outer to inner.
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

/* What a hop does to the dimensions it changes: only hops that do one and the
 * same thing are taken together.
 */
enum hop_kind { HOP_MIXED, HOP_GATHER, HOP_REDUCE, HOP_SCATTER, HOP_LOCAL };

static enum hop_kind hop_kind_of(const struct dtensor_placement *from,
                                 const struct dtensor_placement *to)
{
    if (from->kind == DTENSOR_REPLICATE || to->kind == DTENSOR_PARTIAL)
        return HOP_LOCAL;
    if (from->kind == DTENSOR_PARTIAL)
        return to->kind == DTENSOR_REPLICATE ? HOP_REDUCE : HOP_SCATTER;
    return to->kind == DTENSOR_REPLICATE ? HOP_GATHER : HOP_MIXED;
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

/* -------------------------------------------------------------- choosing --- */

/* No two different reductions may wait in one tensor on the way. */
static const char *route_refused(const struct dtensor_spec *src,
                                 const struct dtensor_spec *dst)
{
    const int a = dtn_spec_partial(src), b = dtn_spec_partial(dst);

    if (src->mesh != dst->mesh)
        return "it stays on one mesh";
    return a < 0 || b < 0 || a == b ? NULL
         : "PyTorch has no step from one reduction to another";
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
        memcpy(to.placement, route->hop[i],
               (size_t)dst->mesh->ndim * sizeof to.placement[0]);
        n += dtn_phases(&from, &to, phase + n);
        from = to;
    }
    return n;
}

/* Bytes of the results between exchanges: two buffers take turns. */
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
        const struct dtensor_spec *now = &phase[i].dst;
        const double bytes = elem * (double)dtn_most_numel(now);

        route->ns += dtn_cost_phase(cost, &phase[i]);
        route->nsums += phase[i].kind == DTN_PHASE_REDUCE ||
                        dtn_phase_folds(&phase[i]);
        if (i + 1 == route->nphases ||
            phase[i + 1].kind != DTN_PHASE_EXCHANGE)
            continue;
        if (bytes > most[turn])
            most[turn] = bytes;
        turn = !turn;
    }
    route->scratch = most[0] + most[1];
}

/* Better by more than the model can be wrong: a tie goes to the earlier. */
static bool route_beats(const struct dtn_route *route,
                        const struct dtn_route *best)
{
    return route->ns < 0.99 * best->ns;
}

/* Is more than the order of terms lost by adding them in two steps?  Floats of 16
 * and 8 bits are added in f32 and rounded after each, averages of integers are
 * divided after each: that of 3, 4, 1 and 0 is 2, but those of two and two are 3
 * and 0, of which it is 1.
 */
static bool route_rounds(const struct dtensor_spec *src)
{
    bool averages = false;

    for (int m = 0; m < src->mesh->ndim; m++)
        averages = averages || (src->placement[m].kind == DTENSOR_PARTIAL &&
                                src->placement[m].op == DTENSOR_AVG);
    return dtn_dtype_is_narrow(src->dtype) ||
           (averages && !dtn_dtype_is_float(src->dtype));
}

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
        if (route->refused || !route_beats(route, best))
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

int dtn_routes_find(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, struct dtn_routes *routes,
                    struct dtensor_error *err)
{
    struct dtn_route *route = routes->route;
    double limit;

    for (int i = 0; i < DTENSOR_NROUTES; i++) {
        route[i].nhops = 0;
        route[i].refused = NULL;
    }
    route_direct(src, dst, &route[DTENSOR_ROUTE_DIRECT]);
    route_measure(cost, src, dst, &route[DTENSOR_ROUTE_DIRECT]);
    limit = route[DTENSOR_ROUTE_DIRECT].ns;
    for (int i = DTENSOR_ROUTE_MERGED; i < DTENSOR_NROUTES; i++)
        route[i].refused = route_refused(src, dst);
    if (!route_refused(src, dst)) {
        route_greedy(src, dst, &route[DTENSOR_ROUTE_GREEDY]);
        route_measure(cost, src, dst, &route[DTENSOR_ROUTE_GREEDY]);
        route_merged(src, dst, &route[DTENSOR_ROUTE_GREEDY],
                     &route[DTENSOR_ROUTE_MERGED]);
        route_measure(cost, src, dst, &route[DTENSOR_ROUTE_MERGED]);
        if (route[DTENSOR_ROUTE_GREEDY].ns < limit)
            limit = route[DTENSOR_ROUTE_GREEDY].ns;
    }
    if (src->mesh == dst->mesh) {
        route[DTENSOR_ROUTE_MIN_COST].refused = NULL;
        dtn_route_min_cost(cost, src, dst,
                           want == DTENSOR_ROUTE_MIN_COST ? HUGE_VAL : limit,
                           &route[DTENSOR_ROUTE_MIN_COST]);
    }
    if (!route[DTENSOR_ROUTE_MIN_COST].refused)
        route_measure(cost, src, dst, &route[DTENSOR_ROUTE_MIN_COST]);
    routes_choose(routes, max_scratch, route_rounds(src));
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
