/* min_cost.c - the cheapest route that changes one mesh dimension at a time
 *
 * The nodes of a graph are lists of placements, and its edges are changes of
 * one placement.  Dijkstra's algorithm finds the shortest path.  Example: on a
 * mesh of three dimensions, from [S(0),S(0),S(0)] to [S(1),S(1),S(1)] each
 * dimension may be S(0), S(1) or R.  These are 27 nodes.  Most of them are
 * never visited, because a path through them costs more than a path that is
 * known already: what it costs up to there, and at least from there on.
 */
#include "base/compiler.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/graph.h"
#include "redist/predict.h"
#include "redist/route.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { PLACES_FEW = 128 };      /* up to here other shards are tried as well */

/* -------------------------------------------------------------- choices --- */

/* The index of a choice, added if it is new. */
static int graph_choice(struct dtn_route_graph *g, int m,
                        const struct dtensor_placement *p)
{
    int i = 0;

    while (i < g->n[m] && !dtn_placement_equal(&g->choice[m][i], p,
                                               g->spec->mesh->size[m]))
        i++;
    if (i == g->n[m])
        g->choice[m][g->n[m]++] = *p;
    g->chosen |= p->kind == DTENSOR_SHARD && p->sizes;
    return i;
}

static int graph_count(const struct dtn_route_graph *g)
{
    int64_t places = 1;

    for (int m = 0; m < g->ndim; m++)
        places *= g->n[m];
    return places > DTN_PLACES_MAX ? -1 : (int)places;
}

/* The choices along each dimension: the source's placement, the target's, R,
 * and, while they are few, plain shards of tensor dimensions that the target
 * cuts.
 */
static void graph_choices(struct dtn_route_graph *g,
                          const struct dtensor_spec *src,
                          const struct dtensor_spec *dst)
{
    static const struct dtensor_placement whole = {
        .kind = DTENSOR_REPLICATE };
    struct dtensor_placement shard = { .kind = DTENSOR_SHARD };
    int before[DTENSOR_MAX_DIMS];

    memset(g->n, 0, sizeof g->n);
    g->chosen = false;
    for (int m = 0; m < g->ndim; m++) {
        graph_choice(g, m, &src->placement[m]);
        graph_choice(g, m, &dst->placement[m]);
        if (g->spec->mesh->size[m] > 1)
            graph_choice(g, m, &whole);
    }
    memcpy(before, g->n, sizeof before);
    for (int m = 0; m < g->ndim; m++)
        for (int k = 0; k < g->ndim; k++) {
            shard.dim = dst->placement[k].dim;
            if (g->spec->mesh->size[m] > 1 &&
                dtn_placement_class(&dst->placement[k]) == DTENSOR_SHARD)
                graph_choice(g, m, &shard);
        }
    g->nplaces = graph_count(g);
    if (g->nplaces < 0 || g->nplaces > PLACES_FEW) {
        memcpy(g->n, before, sizeof before);
        g->nplaces = graph_count(g);
    }
}

/* --------------------------------------------------------------- search --- */

static void graph_place(const struct dtn_route_graph *g, int place,
                        struct dtensor_placement placement[])
{
    for (int m = g->ndim - 1; m >= 0; m--) {
        placement[m] = g->choice[m][place % g->n[m]];
        place /= g->n[m];
    }
}

/* The number of a node; every placement of it must be a choice. */
static int graph_number(struct dtn_route_graph *g,
                        const struct dtensor_placement placement[])
{
    int place = 0;

    for (int m = 0; m < g->ndim; m++)
        place = place * g->n[m] + graph_choice(g, m, &placement[m]);
    return place;
}

static struct dtensor_spec graph_spec(const struct dtn_route_graph *g,
                                      const struct dtensor_placement now[])
{
    struct dtensor_spec spec = *g->spec;

    memcpy(spec.placement, now, (size_t)g->ndim * sizeof now[0]);
    return spec;
}

/* Do the chosen lengths fit? */
static bool graph_fits(const struct dtn_route_graph *g,
                       const struct dtensor_placement now[])
{
    struct dtensor_spec spec;

    if (!g->chosen)
        return true;
    spec = graph_spec(g, now);
    return dtn_spec_lengths_fit(&spec);
}

/* Does P at dimension m have the same terms as after one exchange from the
 * source?  A replica must not have been sharded before, and a shard must not
 * have changed.  A term of an average is the full value on every rank, so any
 * path is right.
 */
static bool graph_term(const struct dtn_route_graph *g,
                       const struct dtensor_placement now[], int m,
                       const struct dtensor_placement *to)
{
    const struct dtensor_placement *was = &g->src->placement[m];
    struct dtensor_spec spec;

    if (now[m].kind == DTENSOR_PARTIAL ||
        (was->kind == DTENSOR_PARTIAL && was->op == to->op))
        return false;
    if (to->op == DTENSOR_AVG)
        return true;
    if (dtn_placement_class(was) != DTENSOR_SHARD)
        return now[m].kind == DTENSOR_REPLICATE;
    spec = graph_spec(g, now);
    return dtn_spec_shards_alike(g->src, &spec, m);
}

/* May dimension m change in this way? */
static bool graph_legal(const struct dtn_route_graph *g,
                        const struct dtensor_placement now[], int m,
                        const struct dtensor_placement *to)
{
    const int *size = g->spec->mesh->size;

    if (to->kind != DTENSOR_PARTIAL || size[m] == 1)
        return true;
    for (int k = 0; k < g->ndim; k++)
        if (k != m && size[k] > 1 && now[k].kind == DTENSOR_PARTIAL &&
            !dtn_redops_mix(now[k].op, to->op))
            return false;
    return graph_term(g, now, m, to);
}

/* What is left from node `to` on at least; less than rounding changes. */
static double graph_left(struct dtn_route_graph *g, int to,
                         const struct dtensor_placement now[])
{
    if (g->left[to] < 0)
        g->left[to] = dtn_redist_predict_least(g->cost, g->spec, now,
                                               g->spec->placement) *
                      (1 - 1e-9);
    return g->left[to];
}

/* Make choice c of dimension m, which leads from `place` to `to`; `next` is
 * `to`, for as long as this takes.
 */
static void graph_step(struct dtn_route_graph *g, int place,
                       const struct dtn_step_from *from, int m, int c, int to,
                       const struct dtensor_placement next[])
{
    double ns;

    if (g->ns[place] + graph_left(g, to, next) >= g->limit_ns ||
        !graph_fits(g, next))
        return;
    ns = g->ns[place] + dtn_cost_step(g->cost, g->spec, from, m,
                                      &g->choice[m][c]);
    if (ns + g->left[to] >= g->limit_ns ||
        (g->ns[to] >= 0 && ns >= g->ns[to]))
        return;
    if (g->ns[to] < 0)
        g->open[g->nopen++] = (short)to;
    g->ns[to] = ns;
    g->from[to] = (short)place;
    if (to == g->goal)
        g->limit_ns = ns;
}

static void graph_relax(struct dtn_route_graph *g, int place)
{
    struct dtensor_placement now[DTENSOR_MAX_DIMS], next[DTENSOR_MAX_DIMS];
    struct dtn_step_from from;
    int step = g->nplaces;

    graph_place(g, place, now);
    memcpy(next, now, (size_t)g->ndim * sizeof now[0]);
    from = dtn_step_from(g->cost, g->spec, now);
    for (int m = 0; m < g->ndim; m++) {
        int own;

        step /= g->n[m];
        own = place / step % g->n[m];
        for (int c = 0; c < g->n[m]; c++) {
            const int to = place + (c - own) * step;

            if (c == own || g->done[to] ||
                !graph_legal(g, now, m, &g->choice[m][c]))
                continue;
            next[m] = g->choice[m][c];
            graph_step(g, place, &from, m, c, to, next);
        }
        next[m] = now[m];
    }
}

/* Take the nearest open node, of equal ones the first; -1: there is none. */
static int graph_nearest(struct dtn_route_graph *g)
{
    int best = 0, place;

    if (g->nopen == 0)
        return -1;
    for (int i = 1; i < g->nopen; i++) {
        const int p = g->open[i], q = g->open[best];

        if (g->ns[p] < g->ns[q] || (g->ns[p] == g->ns[q] && p < q))
            best = i;
    }
    place = g->open[best];
    g->open[best] = g->open[--g->nopen];
    return place;
}

/* The path to `goal`, which has at most one hop for each node, in forward
 * order.  False if it has too many hops.
 */
static bool graph_path(const struct dtn_route_graph *g, int goal, int start,
                       struct dtn_route *route)
{
    int hops = 0;

    for (int p = goal; p != start; p = g->from[p])
        hops++;
    if (hops > DTN_HOPS_MAX)
        return false;
    route->nhops = hops;
    for (int p = goal; p != start; p = g->from[p])
        graph_place(g, p, route->hop[--hops]);
    return true;
}

static void graph_search(struct dtn_route_graph *g, const struct dtn_cost *cost,
                         const struct dtensor_spec *src,
                         const struct dtensor_spec *dst, double limit_ns,
                         struct dtn_route *route)
{
    int start, place;

    g->cost = cost;
    g->src = src;
    g->spec = dst;
    g->ndim = dst->mesh->ndim;
    graph_choices(g, src, dst);
    if (g->nplaces < 0) {
        route->refused = "more than 729 placements to search";
        return;
    }
    for (int p = 0; p < g->nplaces; p++) {
        g->ns[p] = g->left[p] = -1;
        g->done[p] = false;
    }
    start = graph_number(g, src->placement);
    g->goal = graph_number(g, dst->placement);
    g->ns[start] = 0;
    g->open[0] = (short)start;
    g->nopen = 1;
    g->limit_ns = limit_ns;
    while ((place = graph_nearest(g)) >= 0 && place != g->goal) {
        g->done[place] = true;
        if (g->ns[place] + g->left[place] < g->limit_ns)
            graph_relax(g, place);
    }
    if (place < 0 && !isinf(limit_ns))
        route->slower = true;
    else if (place < 0)
        route->refused = "the chosen lengths do not fit on any such route";
    else if (!graph_path(g, g->goal, start, route))
        route->refused = "it has more than 16 steps";
    else
        route->ns = g->ns[place];
}

/* The graph has 20 KiB: where costs are kept it is there, not on the stack. */
static DTN_NOINLINE void graph_here(const struct dtn_cost *cost,
                                    const struct dtensor_spec *src,
                                    const struct dtensor_spec *dst,
                                    double limit_ns, struct dtn_route *route)
{
    struct dtn_route_graph g;          /* only what is used is set            */

    graph_search(&g, cost, src, dst, limit_ns, route);
}

void dtn_route_min_cost(const struct dtn_cost *cost,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, double limit_ns,
                        struct dtn_route *route)
{
    if (cost->kept)
        graph_search(&cost->kept->graph, cost, src, dst, limit_ns, route);
    else
        graph_here(cost, src, dst, limit_ns, route);
}
