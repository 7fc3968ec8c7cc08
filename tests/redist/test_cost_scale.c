/* test_cost_scale.c - predicted times of redistributes are what is simulated
 *
 * Over hosts of one rank and of eight, meshes of one and two dimensions, small
 * and large tensors, every route is simulated step by step and compared with
 * the cost by which routes are chosen.  `make check` goes to 16 ranks;
 * DTN_SCALE_RANKS=64 goes on, with larger tensors.  Left out are plans that
 * max_scratch cuts into many rounds, whose waits no cost knows.
 *
 * Without this test, a cost could be off by a factor, and the planner choose a
 * route that takes several times as long as the best one.
 */
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OFF_MAX 1.3               /* a cost that is off by more is wrong      */
#define OFF_MAX_MET 2.0           /* where senders meet at the same receivers */
#define ROUNDS_MAX 16             /* of a step                                */

struct change {
    int ndim;                     /* of the mesh                              */
    const char *from, *to;
    bool meets;                   /* ranks begin with the same receivers, and */
                                  /* wait for each other's bytes              */
};

static const struct change changes[] = {
    { 1, "S(0)", "R", false }, { 1, "S(0)", "S(1)", false },
    { 1, "P", "S(0)", false }, { 1, "P", "R", false },
    { 1, "R", "S(0)", false }, { 1, "R", "P", false },
    { 2, "S(0),R", "S(1),R", false }, { 2, "R,S(0)", "R,S(1)", false },
    { 2, "S(0),S(1)", "S(1),S(0)", true }, { 2, "S(0),S(0)", "R,R", false },
    { 2, "S(0),S(1)", "R,S(1)", false }, { 2, "P,R", "R,R", false },
    { 2, "R,P", "R,R", false }, { 2, "P,P", "R,R", false },
    { 2, "P,R", "S(0),R", false }, { 2, "P,S(0)", "S(0),R", true },
    { 2, "P,R", "R,S(1)", false },
};

/* What is compared. */
struct costs {
    int n, beyond, capacity, sides;
    double *off;                  /* [n] |log| of predicted by simulated      */
    double worst;
};

static const char *const routes[] = { "auto", "direct", "merged", "min-cost",
                                      "greedy" };

static void cost_compare(struct costs *costs, const struct dtensor_plan *plan,
                         const struct change *change, int n, int per_host,
                         int64_t side)
{
    const struct dtensor_simulated asked = { .plan = plan };
    struct dtensor_simulation result;
    struct dtensor_plan_info info;
    struct dtensor_error err;
    double off, most = log(change->meets ? OFF_MAX_MET : OFF_MAX);

    dtensor_plan_info(plan, &info);
    if (dtensor_simulate(NULL, &asked, 1, NULL, NULL, &result, &err) != 0) {
        ok(false, "%s", err.text);
        return;
    }
    if (result.ns > 0 && info.predicted_us > 0) {
        off = fabs(log(info.predicted_us * 1e3 / result.ns));
        if (costs->n < costs->capacity)
            costs->off[costs->n++] = off;
        costs->beyond += off > most;
        costs->worst = fmax(costs->worst, off);
        if (off > most)
            note("%s to %s by %s, %d ranks, %d on a host, f32[%d,%d]: "
                 "predicted %.2f us, simulated %.2f, %.2f", change->from,
                 change->to, routes[info.route], n, per_host, (int)side,
                 (int)side,
                 info.predicted_us, result.ns / 1e3,
                 info.predicted_us * 1e3 / result.ns);
    }
    dtensor_simulation_fini(&result);
}

static bool is_cut(const struct dtensor_plan *plan)
{
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;

    dtensor_plan_info(plan, &info);
    for (int i = 0; i < info.nsteps; i++)
        if (dtensor_plan_step(plan, i, &step, NULL) == 0
            && step.rounds > ROUNDS_MAX)
            return true;
    return false;
}

static void cost_change(struct costs *costs, struct dtensor_ctx *ctx,
                        const struct change *change, int n, int per_host)
{
    static const int64_t sides[] = { 256, 2048, 8192 };
    const int sizes[] = { change->ndim == 1 ? n : n / 8, 8 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, change->ndim, sizes);

    for (int s = 0; s < costs->sides; s++) {
        const int64_t shape[] = { sides[s], sides[s] };
        const struct dtensor_spec from = spec_at(mesh, 2, shape, change->from);
        const struct dtensor_spec to = spec_at(mesh, 2, shape, change->to);

        for (int route = 1; route < DTENSOR_NROUTES; route++) {
            struct dtensor_plan *plan = plan_of(&from, &to,
                                                (enum dtensor_route)route);

            if (plan && !is_cut(plan))
                cost_compare(costs, plan, change, n, per_host, sides[s]);
            dtensor_plan_destroy(plan);
        }
    }
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void test_costs(struct costs *costs, int per_host, int most)
{
    const int changes_n = (int)(sizeof changes / sizeof changes[0]);

    costs->n = costs->beyond = 0;
    costs->worst = 0;
    for (int n = per_host == 1 ? 2 : 8; n <= most; n *= 2) {
        struct dtensor_ctx *ctx = planner_of(n, per_host);

        ctx->world.cluster->costs.congestion_percent = 1;  /* no such switch  */
        for (int c = 0; c < changes_n; c++)
            if (changes[c].ndim == 1 || n >= 16)
                cost_change(costs, ctx, &changes[c], n, per_host);
        dtensor_fini(ctx);
    }
    qsort(costs->off, (size_t)costs->n, sizeof costs->off[0], ascending);
    ok(costs->n > 0 && costs->beyond == 0, "hosts of %d, to %d ranks: half of "
       "%d predictions are within %.2f, %d are off by more than %.1f, %.2f at "
       "worst", per_host, most, costs->n, exp(costs->off[costs->n / 2]),
       costs->beyond, OFF_MAX, exp(costs->worst));
}

int main(void)
{
    const char *ranks = getenv("DTN_SCALE_RANKS");
    const int most = ranks ? atoi(ranks) : 16;
    struct costs costs = { .capacity = 20000, .sides = ranks ? 3 : 2 };

    costs.off = calloc((size_t)costs.capacity, sizeof *costs.off);
    if (!costs.off)
        return 1;
    test_costs(&costs, 1, most);
    test_costs(&costs, 8, most);
    free(costs.off);
    return done();
}
