/* route.c - routes from one spec to another
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
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "dtensor.h"

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

static bool route_shards(const struct dtensor_placement *p)
{
    return dtn_placement_class(p) == DTENSOR_SHARD;
}

void dtn_route_direct(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, struct dtn_route *route)
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
        const bool shards = route_shards(&now[k]) && now[k].dim == d;
        const bool will = route_shards(&dst[k]) && dst[k].dim == d;

        if (shards != will)
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
void dtn_route_greedy(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, struct dtn_route *route)
{
    static const struct dtensor_placement whole = {
        .kind = DTENSOR_REPLICATE };
    struct dtensor_placement now[DTENSOR_MAX_DIMS];
    const int ndim = dst->mesh->ndim;
    int shards = 1;

    memcpy(now, src->placement, sizeof now);
    for (int m = 0; m < ndim; m++)
        if (route_shards(&now[m]))
            shards *= dst->mesh->size[m];
    for (int m = ndim - 1; m >= 0 && shards > 1 && ndim > 1; m--) {
        const struct dtensor_placement *to = &dst->placement[m];

        if (route_shards(to) && greedy_blocked(now, dst->placement, m, to->dim))
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
    return route_shards(to) ? HOP_MIXED : HOP_GATHER;
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

void dtn_route_merged(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtn_route *greedy, struct dtn_route *route)
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

void dtn_route_check(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, struct dtn_route *route)
{
    route->refused = route_refused(src, route);
    if (!route->refused)
        route_add_once(src, dst, route);
}
