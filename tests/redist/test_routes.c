/* test_routes.c - which layouts may stand between the steps of a plan
 *
 * S(0:3,7) is a shard of 10 rows.  On the way from one spec to another it
 * could stand to the right of another shard of the rows, where there are not
 * 10 rows: such a route is not taken.
 *
 * Without this test, a plan could go through a layout that does not exist, and
 * fail or write out of bounds.
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What every step leaves is a spec that could be asked for. */
static void test_lengths(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 2, 2 };
    static const char *const pairs[][2] = {
        { "S(0:3,7),R", "S(1),S(0:1,9)" }, { "R,S(0:3,7)", "S(0),S(1)" },
        { "S(1),S(0:3,7)", "S(0),S(0)" }, { "P,S(0:3,7)", "S(0),S(1)" },
        { "S(0),S(1:1,5)", "S(1:2,4),S(0)" }, { "S(0:4,6),P", "S(0),S(0)" },
        { "P(max),R", "P(min),S(0:2,8)" }, { "P(max),S(0:2,8)", "S(0),P(min)" }
    };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    const int64_t shape[] = { 10, 6 };
    struct dtensor_plan_step step;
    struct dtensor_error err = { .text = "" };
    int steps = 0;
    bool good = true;

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (int route = 0; route < DTENSOR_NROUTES; route++) {
            struct dtensor_spec src = spec_at(mesh, 2, shape, pairs[i][0]);
            struct dtensor_spec dst = spec_at(mesh, 2, shape, pairs[i][1]);
            struct dtensor_plan *plan = NULL;

            if (dtensor_plan_create(&src, &dst, &(struct dtensor_plan_options){
                    .route = (enum dtensor_route)route }, &plan, &err) != 0)
                continue;
            for (int s = 0; dtensor_plan_step(plan, s, &step, NULL) == 0; s++) {
                steps++;
                if (dtensor_spec_check(&step.src, &err) != 0 ||
                    dtensor_spec_check(&step.dst, &err) != 0) {
                    note("%s -> %s by route %d, step %d: %s", pairs[i][0],
                         pairs[i][1], route, s, err.text);
                    good = false;
                }
            }
            dtensor_plan_destroy(plan);
        }
    ok(good && steps > 50, "chosen lengths add up after each of %d steps",
       steps);
}

/* ------------------------------------------------------------ each of them */

/* All can be asked for, and are what they were asked to be. */
static void test_selectable(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 2, 2 };
    static const int steps[DTENSOR_NROUTES] = {
        [DTENSOR_ROUTE_DIRECT] = 1, [DTENSOR_ROUTE_MERGED] = 1,
        [DTENSOR_ROUTE_MIN_COST] = 2, [DTENSOR_ROUTE_GREEDY] = 2
    };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    const int64_t shape[] = { 5, 3 };
    struct dtensor_spec src = spec_at(mesh, 2, shape, "S(0),S(0)");
    struct dtensor_spec dst = spec_at(mesh, 2, shape, "R,R");

    for (int r = DTENSOR_ROUTE_DIRECT; r < DTENSOR_NROUTES; r++) {
        struct dtensor_plan *plan = plan_of(&src, &dst, (enum dtensor_route)r);
        struct dtensor_plan_info info = { .nsteps = -1 };

        if (plan)
            dtensor_plan_info(plan, &info);
        ok(plan && info.route == (enum dtensor_route)r &&
           info.nsteps == steps[r] && info.why[0],
           "(5,3) on 2x2 from S(0),S(0) to R,R by route %d: %d steps", r,
           info.nsteps);
        dtensor_plan_destroy(plan);
    }
}

/* ------------------------------------------------- facts 13.1, merged steps */

/* How many all-gathers, allreduces and reduce-scatters PyTorch takes where its
 * meshes were flattened; ours need not be, and are not more.
 */
static const struct merged_case {
    int ndim, size[3];
    const char *from, *to;
    int gathers, reduces, scatters;
} merged_cases[] = {
    { 2, { 4, 2 }, "P,P", "R,R", 0, 1, 0 },
    { 2, { 4, 2 }, "P,P", "S(0),S(0)", 0, 0, 1 },
    { 2, { 4, 2 }, "P,P", "S(0),S(1)", 0, 0, 2 },
    { 2, { 4, 2 }, "S(0),S(0)", "R,R", 1, 0, 0 },
    { 2, { 4, 2 }, "S(0),S(1)", "R,R", 2, 0, 0 },
    { 3, { 2, 2, 2 }, "S(0),S(0),S(0)", "R,R,R", 1, 0, 0 },
    { 3, { 2, 2, 2 }, "S(0)[1]S(0)[0]S(0)[2]", "R,R,R", 3, 0, 0 },
    { 3, { 2, 2, 2 }, "P,P,S(0)", "S(0),S(0),S(0)", 1, 1, 1 },
    { 3, { 2, 2, 2 }, "P,P,P", "R,R,R", 0, 1, 0 },
    { 3, { 2, 2, 2 }, "P,S(0),P", "R,R,R", 1, 2, 0 },
    { 3, { 2, 2, 2 }, "P,R,P", "R,R,R", 0, 1, 0 },
    { 3, { 2, 2, 2 }, "P,P,R", "S(0),S(1),R", 0, 0, 2 },
    { 3, { 2, 2, 2 }, "P,P,P", "S(0),S(0),S(1)", 0, 0, 2 },
    { 3, { 2, 2, 2 }, "P(avg),P(avg),P", "R,R,R", 0, 1, 0 },
    { 3, { 2, 2, 2 }, "P(avg),P(avg),P", "S(0),S(0),S(0)", 0, 0, 1 },
};

static int steps_of(const struct dtensor_plan *plan, const char *what)
{
    struct dtensor_plan_step step;
    int n = 0;

    for (int i = 0; dtensor_plan_step(plan, i, &step, NULL) == 0; i++)
        n += strcmp(step.what, what) == 0;
    return n;
}

static void test_merged(struct dtensor_ctx *ctx)
{
    const int64_t shape[] = { 16, 16, 16 };

    for (size_t i = 0; i < sizeof merged_cases / sizeof merged_cases[0]; i++) {
        const struct merged_case *c = &merged_cases[i];
        const struct dtensor_mesh *mesh = mesh_of(ctx, c->ndim, c->size);
        struct dtensor_spec src = spec_at(mesh, 3, shape, c->from);
        struct dtensor_spec dst = spec_at(mesh, 3, shape, c->to);
        struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_MERGED);
        const int gathers = plan ? steps_of(plan, "all-gather") : 99;
        const int reduces = plan ? steps_of(plan, "allreduce") : 99;
        const int scatters = plan ? steps_of(plan, "reduce-scatter") : 99;

        ok(gathers <= c->gathers && reduces <= c->reduces &&
           scatters <= c->scatters && gathers + reduces + scatters > 0,
           "[%s] to [%s] merged: %d all-gathers, %d allreduces, %d "
           "reduce-scatters, where PyTorch has %d, %d, %d", c->from, c->to,
           gathers, reduces, scatters, c->gathers, c->reduces, c->scatters);
        dtensor_plan_destroy(plan);
    }
}

/* A mesh dimension of one rank never communicates, by any route. */
static void test_one_chunk(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 4, 1 };
    static const char *const from[] = { "R,S(1)", "R,R", "R,P" };
    static const char *const to[] = { "R,S(0)", "R,S(1)", "R,R" };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    const int64_t shape[] = { 8, 8 };
    uint64_t bytes = 0;
    int plans = 0;

    for (int pair = 0; pair < 9; pair++)
        for (int r = DTENSOR_ROUTE_AUTO; r < DTENSOR_NROUTES; r++) {
            struct dtensor_spec src = spec_at(mesh, 2, shape, from[pair / 3]);
            struct dtensor_spec dst = spec_at(mesh, 2, shape, to[pair % 3]);
            struct dtensor_plan *plan = plan_of(&src, &dst,
                                                (enum dtensor_route)r);
            struct dtensor_plan_info info = { .nsteps = 1 };

            if (plan)
                dtensor_plan_info(plan, &info);
            plans += plan && info.nsteps == 0;
            bytes += plan ? dtensor_plan_bytes(plan, -1, -1, -1) : 1;
            dtensor_plan_destroy(plan);
        }
    ok(plans == 9 * DTENSOR_NROUTES && bytes == 0, "a mesh dimension of one "
       "rank: %d plans without a step", plans);
}

/* ------------------------------------------- what is said of the others */

/* What a plan says of a route it has not taken is what happens to who asks for
 * that route, and with the same steps and cost.
 */
static bool choices_hold(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         const struct dtensor_plan *taken)
{
    bool right = true;

    for (int r = DTENSOR_ROUTE_DIRECT; r < DTENSOR_NROUTES; r++) {
        const struct dtensor_plan_options options = {
            .route = (enum dtensor_route)r };
        struct dtensor_plan_info info = { .nsteps = -1 };
        struct dtensor_plan_choice choice;
        struct dtensor_plan *plan = NULL;
        struct dtensor_error err = { .text = "" };
        int rc = dtensor_plan_create(src, dst, &options, &plan, &err);

        dtensor_plan_choice(taken, options.route, &choice, NULL);
        if (rc == 0)
            dtensor_plan_info(plan, &info);
        if (rc == 0 ? choice.refused || choice.nsteps != info.nsteps ||
                      choice.predicted_us > info.predicted_us * (1 + 1e-9) ||
                      choice.predicted_us < info.predicted_us * (1 - 1e-9)
                    : !choice.refused || !strstr(err.text, choice.refused)) {
            note("route %d: said \"%s\", %d steps, %.3f us; asked for: \"%s\", "
                 "%d, %.3f", r, choice.refused ? choice.refused : "",
                 choice.nsteps, choice.predicted_us, err.text, info.nsteps,
                 info.predicted_us);
            right = false;
        }
        dtensor_plan_destroy(plan);
    }
    return right;
}

static void test_choices(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 2, 3 };
    static const char *const words[] = { "R", "S(0)", "S(1)", "P(sum)",
                                         "P(avg)", "P(max)" };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    const int64_t shape[] = { 500, 300 };
    char from[40], to[40];
    int plans = 0, wrong = 0;

    for (int pair = 0; pair < 6 * 6 * 6 * 6; pair++) {
        struct dtensor_spec src, dst;
        struct dtensor_plan *plan;

        snprintf(from, sizeof from, "%s,%s", words[pair % 6],
                 words[pair / 6 % 6]);
        snprintf(to, sizeof to, "%s,%s", words[pair / 36 % 6],
                 words[pair / 216]);
        if ((strstr(from, "max") && (strstr(from, "sum") ||
                                     strstr(from, "avg"))) ||
            (strstr(to, "max") && (strstr(to, "sum") || strstr(to, "avg"))))
            continue;
        src = spec_at(mesh, 2, shape, from);
        dst = spec_at(mesh, 2, shape, to);
        plan = plan_of(&src, &dst, DTENSOR_ROUTE_AUTO);
        plans++;
        if (!plan || !choices_hold(&src, &dst, plan)) {
            note("%s -> %s", from, to);
            wrong++;
        }
        dtensor_plan_destroy(plan);
    }
    ok(wrong == 0 && plans > 800, "what %d plans say of each route is what "
       "comes of asking for it", plans);
}

/* Sums and averages go together by every route; others one after the other. */
static void test_mixed(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 2, 3 };
    static const struct {
        const char *from, *to, *refused;
    } cases[] = {
        { "P(avg),R", "R,P(sum)", NULL }, { "P(sum),R", "R,P(avg)", NULL },
        { "R,P(sum)", "P(avg),R", NULL },
        { "P(sum),P(avg)", "R,S(0)", NULL }, { "S(0),R", "P(sum),P(avg)",
                                               NULL },
        { "P(avg),P(sum)", "P(avg),R", NULL }, { "P(max),R", "R,P(min)", NULL },
        { "R,P(max)", "P(min),R", "would have two reductions" },
        { "P(avg),R", "P(sum),R", "no step from one reduction to another" },
    };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    const int64_t shape[] = { 12, 6 };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dtensor_spec src = spec_at(mesh, 2, shape, cases[i].from);
        struct dtensor_spec dst = spec_at(mesh, 2, shape, cases[i].to);
        struct dtensor_plan *plan = NULL;
        struct dtensor_error err = { .text = "" };
        int rc = dtensor_plan_create(&src, &dst, &(struct dtensor_plan_options){
            .route = DTENSOR_ROUTE_GREEDY }, &plan, &err);

        ok(cases[i].refused ? rc == DTENSOR_EINVAL &&
                              strstr(err.text, cases[i].refused) != NULL
                            : rc == 0, "%s -> %s greedy%s%s", cases[i].from,
           cases[i].to, rc == 0 ? "" : ": ", err.text);
        dtensor_plan_destroy(plan);
        plan = plan_of(&src, &dst, DTENSOR_ROUTE_MIN_COST);
        ok(plan != NULL, "%s -> %s min-cost", cases[i].from, cases[i].to);
        dtensor_plan_destroy(plan);
    }
}

/* Neutral elements are written, too: where nothing moves that is the cost. */
static void test_fill(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 8 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, sizes);
    double us[2];

    for (int large = 0; large < 2; large++) {
        const int64_t shape[] = { large ? 1 << 12 : 8, large ? 1 << 12 : 8 };
        struct dtensor_spec src = spec_at(mesh, 2, shape, "S(0)");
        struct dtensor_spec dst = spec_at(mesh, 2, shape, "P(max)");
        struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_DIRECT);
        struct dtensor_plan_info info = { .predicted_us = -1 };

        if (plan)
            dtensor_plan_info(plan, &info);
        us[large] = info.predicted_us;
        dtensor_plan_destroy(plan);
    }
    ok(us[0] >= 0 && us[0] < 1 && us[1] > 1000, "to fill 64 MiB with neutral "
       "elements is predicted to take %.0f us, 256 bytes %.3f", us[1], us[0]);
}

int main(void)
{
    struct dtensor_ctx *ctx = NULL;

    if (dtensor_init_offline(NULL, 8, 0, &ctx, NULL) != 0)
        return skip_all("no context");
    test_lengths(ctx);
    test_selectable(ctx);
    test_merged(ctx);
    test_one_chunk(ctx);
    test_choices(ctx);
    test_mixed(ctx);
    test_fill(ctx);
    dtensor_fini(ctx);
    return done();
}
