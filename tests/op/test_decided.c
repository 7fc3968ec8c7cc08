/* test_decided.c - all decisions of three operators on a mesh of 2 x 2 x 2
 *
 * Inputs of 512 x 512 in every pair of placements of R, S(0), S(1) and P(sum):
 * 4,096 calls of each operator.  What is decided must be the first of the
 * cheapest combinations, found by a walk through all of them with costs for
 * which nothing was left out: those of the routes that a plan compares when the
 * cheapest stepwise one was asked for.
 *
 * A decision should take less than 100 us, and tests measure no time; so the
 * test counts what is computed for one: steps of routes, each some 0.1 us, and
 * lower bounds, each 0.05 us.
 *
 * Without this test, a bound could leave out the best combination, or become so
 * loose that decisions take milliseconds.
 */
#include "op/choose.h"
#include "op/infer.h"
#include "op/rule.h"
#include "op/terms.h"
#include "redist/cost.h"
#include "redist/predict.h"
#include "redist/route.h"
#include "dtensor.h"
#include "tests/redist/counted.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4, WAYS = KINDS * KINDS * KINDS, NDIM = 3, SIDE = 512 };

/* At most, and in the mean: 1.2 times as many as on 2026-11-28. */
enum {
    STEPS_MOST = 200, STEPS_MEAN = 15, BOUNDS_MOST = 410, BOUNDS_MEAN = 151
};

COUNTED(double, dtn_cost_exchange,
        (const struct dtn_cost *cost, const struct dtensor_spec *spec,
         const struct dtensor_placement src[],
         const struct dtensor_placement dst[]), (cost, spec, src, dst))

static long bounds;               /* lower bounds that were computed          */

double __real_dtn_redist_predict_least(const struct dtn_cost *cost,
                                       const struct dtensor_spec *spec,
                                       const struct dtensor_placement src[],
                                       const struct dtensor_placement dst[]);
double __wrap_dtn_redist_predict_least(const struct dtn_cost *cost,
                                       const struct dtensor_spec *spec,
                                       const struct dtensor_placement src[],
                                       const struct dtensor_placement dst[]);
double __wrap_dtn_redist_predict_least(const struct dtn_cost *cost,
                                       const struct dtensor_spec *spec,
                                       const struct dtensor_placement src[],
                                       const struct dtensor_placement dst[])
{
    bounds++;
    return __real_dtn_redist_predict_least(cost, spec, src, dst);
}

static const struct dtensor_placement kinds[KINDS] = {
    { .kind = DTENSOR_REPLICATE }, { .kind = DTENSOR_SHARD, .dim = 0 },
    { .kind = DTENSOR_SHARD, .dim = 1 },
    { .kind = DTENSOR_PARTIAL, .op = DTENSOR_SUM }
};

static struct dtensor_spec way[WAYS];      /* a matrix, in all placements     */
static double full[WAYS][WAYS];            /* costs, nothing left out         */

static int kind_number(const struct dtensor_placement *p)
{
    for (int k = 0; k < KINDS; k++)
        if (p->kind == kinds[k].kind &&
            (p->kind != DTENSOR_SHARD || p->dim == kinds[k].dim) &&
            (p->kind != DTENSOR_PARTIAL || p->op == kinds[k].op))
            return k;
    return -1;
}

/* The number of placements; -1: they are others. */
static int way_number(const struct dtensor_placement placement[])
{
    int number = 0;

    for (int m = 0; m < NDIM; m++) {
        const int kind = kind_number(&placement[m]);

        if (kind < 0)
            return -1;
        number = number * KINDS + kind;
    }
    return number;
}

static void ways_make(const struct dtensor_mesh *mesh)
{
    const int64_t shape[] = { SIDE, SIDE };

    for (int i = 0; i < WAYS; i++) {
        way[i] = spec_at(mesh, 2, shape, "R,R,R");
        for (int m = 0, code = i; m < NDIM; m++, code /= KINDS)
            way[i].placement[NDIM - 1 - m] = kinds[code % KINDS];
    }
}

/* ---------------------------------------------------------------- costs --- */

/* Would a shard become a term? */
static bool never(const struct dtensor_spec *src,
                  const struct dtensor_spec *dst)
{
    for (int m = 0; m < NDIM; m++)
        if (src->placement[m].kind == DTENSOR_SHARD &&
            dst->placement[m].kind == DTENSOR_PARTIAL)
            return true;
    return false;
}

/* The first that no other beats by 1 %. */
static double full_cost(const struct dtn_cost *cost,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst)
{
    static struct dtn_routes routes;
    double best;

    if (dtn_routes_find(cost, src, dst, DTENSOR_ROUTE_MIN_COST, UINT64_MAX,
                        &routes, NULL) != 0)
        abort();
    best = routes.route[DTENSOR_ROUTE_DIRECT].ns;
    for (int r = DTENSOR_ROUTE_MERGED; r <= DTENSOR_ROUTE_MIN_COST; r++)
        if (!routes.route[r].refused && !routes.route[r].slower &&
            routes.route[r].ns < 0.99 * best)
            best = routes.route[r].ns;
    return best;
}

static void check_costs(const struct dtensor_mesh *mesh)
{
    struct dtn_costs_of model;
    struct dtn_costs costs;
    int other = 0, high = 0;

    for (int a = 0; a < WAYS; a++) {
        dtn_costs_model(mesh, &model, &costs);
        for (int b = 0; b < WAYS; b++) {
            double cost = dtn_redist_predict(&model.cost, &way[a], &way[b]);
            double below = dtn_redist_predict_below(&model.cost, &way[a],
                                                    &way[b], cost);
            double above = dtn_redist_predict_below(&model.cost, &way[a],
                                                    &way[b], 1.01 * cost);

            full[a][b] = a == b ? 0 : full_cost(&model.cost, &way[a], &way[b]);
            other += cost != full[a][b] || below < cost || above != cost;
            high += dtn_redist_predict_least(&model.cost, &way[a],
                                             way[a].placement,
                                             way[b].placement) >
                    cost * (1 + 1e-9);
            if (never(&way[a], &way[b]))
                full[a][b] = HUGE_VAL;
        }
    }
    ok(other == 0, "%d redistributes cost what they cost if nothing is left "
       "out", WAYS * WAYS);
    ok(high == 0, "and no less than their bounds");
}

/* ------------------------------------------------------------ decisions --- */

/* All combinations of a call. */
struct walk {
    const struct dtn_options *options;     /* of the call                     */
    int in[2];                    /* how its inputs lie                       */
    struct dtn_tuple best;        /* the last that moves nothing, else the    */
    double cost;                  /* first of the cheapest                    */
    const struct dtn_costs *costs; /* of terms                                */
};

static bool see(void *arg, const struct dtn_tuple *choice)
{
    struct walk *w = arg;
    double cost = 0;

    for (int i = 0; i < 2; i++) {
        struct dtensor_placement placement[DTENSOR_MAX_DIMS];
        int to;

        dtn_choice_input(w->options, choice, i, placement);
        to = way_number(placement);
        cost += to < 0 ? HUGE_VAL : full[w->in[i]][to];
    }
    cost += dtn_terms_cost(w->options, choice, w->costs);
    if (cost < w->cost) {
        w->best = *choice;
        w->cost = cost;
    }
    return true;
}

static bool see_still(void *arg, const struct dtn_tuple *choice)
{
    struct walk *w = arg;

    w->best = *choice;
    w->cost = 0;
    return true;
}

static struct {
    long calls, wrong, steps, steps_most, bounds, bounds_most;
} n;

static void decide(const char *op, int a, int b)
{
    struct dtensor_spec in[2] = { way[a], way[b] };
    const struct dtensor_op_call call = { .op = op, .nin = 2, .in = in };
    struct walk w = { .in = { a, b }, .cost = HUGE_VAL };
    struct dtn_costs_of model;
    struct dtn_costs costs;
    struct dtn_signature sig;
    struct dtn_rowset rows;
    struct dtn_options *options;
    const struct dtn_rule *rule;
    struct dtn_chosen chosen;

    dtn_costs_model(in[0].mesh, &model, &costs);
    if (dtn_rule_of(&call, &rule, NULL) != 0 ||
        dtn_infer_options(&call, rule, &costs, &sig, &rows, &options,
                          NULL) != 0)
        abort();
    work = bounds = 0;
    if (dtn_choose_options(options, &costs, &chosen, NULL) != 0)
        abort();
    n.calls++;
    n.steps += work;
    n.bounds += bounds;
    n.steps_most = work > n.steps_most ? work : n.steps_most;
    n.bounds_most = bounds > n.bounds_most ? bounds : n.bounds_most;
    w.options = options;
    w.costs = &costs;
    dtn_choices_visit(options, DTN_ALL, see, &w);
    dtn_choices_visit(options, DTN_STILL, see_still, &w);
    if ((memcmp(chosen.choice.at, w.best.at, NDIM) != 0 ||
         chosen.cost + chosen.terms != w.cost) && n.wrong++ < 5)
        note("%s of ways %d, %d: chosen %a, the cheapest is %a", op, a, b,
             chosen.cost + chosen.terms, w.cost);
    free(options);
}

static void check_decisions(const char *op)
{
    memset(&n, 0, sizeof n);
    for (int a = 0; a < WAYS; a++)
        for (int b = 0; b < WAYS; b++)
            decide(op, a, b);
    ok(n.wrong == 0, "%ld decisions of %s: each is the first of the cheapest",
       n.calls, op);
    ok(n.steps_most <= STEPS_MOST && n.steps <= STEPS_MEAN * n.calls,
       "one computes at most %ld steps, %.1f in the mean", n.steps_most,
       (double)n.steps / (double)n.calls);
    ok(n.bounds_most <= BOUNDS_MOST && n.bounds <= BOUNDS_MEAN * n.calls,
       "and at most %ld lower bounds, %.1f in the mean", n.bounds_most,
       (double)n.bounds / (double)n.calls);
}

int main(void)
{
    static const int size[] = { 2, 2, 2 };
    struct dtensor_ctx *ctx = planner_of(8, 8);
    const struct dtensor_mesh *mesh = mesh_of(ctx, NDIM, size);

    ways_make(mesh);
    check_costs(mesh);
    check_decisions("matmul");
    check_decisions("add");
    check_decisions("mul");
    dtensor_fini(ctx);
    return done();
}
