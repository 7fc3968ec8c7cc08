/* test_plan.c - plans: their routes, choice, gradients and text
 *
 * No ranks are needed: the context only plans.  test_plan_bytes.c has the bytes
 * that a plan moves.
 *
 * Without this test, a plan could take another route than PyTorch's where that
 * is asked for, need more scratch than allowed, or get slower with more ranks.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/rand.h"
#include "tests/support/tensor_job.h"

#include <string.h>

/* ------------------------------------------------------- greedy, as PyTorch */

/* facts: 4.2 and 13.1; what the steps are and how many communicate. */
static const struct greedy_case {
    int ndim, size[3];
    const char *from, *to;
    const char *steps;
} greedy_cases[] = {
    { 2, { 2, 2 }, "S(0),S(1)", "S(0),S(0)", "all-to-all" },
    { 2, { 2, 2 }, "S(0),S(1)", "S(1),S(0)", "all-gather all-to-all local" },
    { 2, { 2, 2 }, "S(0),S(0)", "S(1),S(1)", "all-gather all-to-all local" },
    { 2, { 2, 2 }, "S(0),S(2)", "S(1),S(0)", "all-gather all-to-all local" },
    { 2, { 2, 2 }, "S(1),S(1)", "S(1),S(2)", "all-to-all" },
    { 3, { 2, 2, 2 }, "S(0),S(0),S(0)", "S(1),S(1),S(1)",
      "all-gather all-gather all-to-all local local" },
    { 3, { 2, 2, 2 }, "S(0),S(1),S(0)", "S(1),S(0),S(0)", NULL },
    { 3, { 2, 2, 2 }, "S(0),S(1),S(2)", "S(2),S(1),S(0)",
      "all-gather all-to-all local" },
    { 3, { 2, 2, 2 }, "S(1),S(0),S(0)", "R,S(0),S(0)", "all-gather" },
    { 3, { 2, 2, 2 }, "S(0),S(0),S(1)", "S(0),S(1),S(2)",
      "all-to-all all-to-all" },
    { 2, { 4, 2 }, "P,P", "R,R", "allreduce allreduce" },
    { 2, { 4, 2 }, "P,P", "S(0),S(0)", "reduce-scatter reduce-scatter" },
    { 2, { 4, 2 }, "S(0),S(0)", "R,R", "all-gather all-gather" },
    { 2, { 4, 1 }, "R,S(1)", "R,S(0)", "" },
};

static void steps_text(const struct dtensor_plan *plan, char *text, size_t size)
{
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;
    size_t used = 0;

    dtensor_plan_info(plan, &info);
    text[0] = '\0';
    for (int i = 0; i < info.nsteps && used < size; i++) {
        dtensor_plan_step(plan, i, &step, NULL);
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i ? " " : "", step.what);
    }
}

static void test_greedy(struct dtensor_ctx *ctx)
{
    const int64_t shape[] = { 8, 8, 8 };
    char text[200];

    for (size_t i = 0; i < DTN_COUNT(greedy_cases); i++) {
        const struct greedy_case *c = &greedy_cases[i];
        const struct dtensor_mesh *mesh = mesh_of(ctx, c->ndim, c->size);
        struct dtensor_spec src = spec_at(mesh, 3, shape, c->from);
        struct dtensor_spec dst = spec_at(mesh, 3, shape, c->to);
        struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_GREEDY);

        steps_text(plan, text, sizeof text);
        if (c->steps)
            ok(strcmp(text, c->steps) == 0, "greedy [%s] to [%s]: %s",
               c->from, c->to, text);
        else
            ok(strlen(text) > 0, "greedy [%s] to [%s]: %s", c->from, c->to,
               text);
        dtensor_plan_destroy(plan);
    }
}

/* --------------------------------------------------------------- the choice */

static void test_choice(struct dtensor_ctx *ctx)
{
    static const int cube[] = { 2, 2, 2 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 3, cube);
    const int64_t small[] = { 8, 8 }, large[] = { 4096, 4096 };
    struct dtensor_spec src = spec_at(mesh, 2, large, "S(0),S(0),S(0)");
    struct dtensor_spec dst = spec_at(mesh, 2, large, "S(1),S(1),S(1)");
    struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_AUTO);
    struct dtensor_plan_choice greedy, direct;
    struct dtensor_plan_info info;
    struct dtensor_error err;

    dtensor_plan_info(plan, &info);
    dtensor_plan_choice(plan, DTENSOR_ROUTE_GREEDY, &greedy, &err);
    dtensor_plan_choice(plan, DTENSOR_ROUTE_DIRECT, &direct, &err);
    ok(info.route == DTENSOR_ROUTE_DIRECT && info.nsteps == 1 &&
       greedy.predicted_us > 2 * direct.predicted_us,
       "64 MiB turned over 2x2x2: direct, %.0f us, greedy would be %.0f",
       direct.predicted_us, greedy.predicted_us);
    ok(info.scratch_bytes == 0 && info.why[0] && info.text[0] &&
       info.predicted_us == direct.predicted_us,
       "it says why: %s", info.why);
    ok(dtensor_plan_choice(plan, DTENSOR_ROUTE_AUTO, &direct, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "expected direct"),
       "auto is no candidate: %s", err.text);
    dtensor_plan_destroy(plan);

    src = spec_at(mesh, 2, small, "P(max),R,R");
    dst = spec_at(mesh, 2, small, "P(min),R,R");
    plan = NULL;
    ok(dtensor_plan_create(&src, &dst, &(struct dtensor_plan_options){
           .route = DTENSOR_ROUTE_GREEDY }, &plan, &err) == DTENSOR_EINVAL &&
       !plan && strstr(err.text, "no greedy route"),
       "a route that does not exist is refused: %s", err.text);
    plan = plan_of(&src, &dst, DTENSOR_ROUTE_AUTO);
    dtensor_plan_info(plan, &info);
    ok(info.nsteps == 2, "P(max) to P(min) goes through R: %d steps",
       info.nsteps);
    dtensor_plan_destroy(plan);
}

/* Scratch between steps is bounded: greedy gathers the whole. */
static void test_scratch(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 4, 4 };
    const int64_t shape[] = { 1024, 1024 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    struct dtensor_spec src = spec_at(mesh, 2, shape, "S(0),S(1)");
    struct dtensor_spec dst = spec_at(mesh, 2, shape, "S(1),S(0)");
    const struct dtensor_plan_options tight = { .max_scratch = 1000 };
    struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_GREEDY);
    struct dtensor_plan_choice choice;
    struct dtensor_plan_info info;
    struct dtensor_error err;

    dtensor_plan_info(plan, &info);
    ok(info.scratch_bytes == (4 << 20) / 2, "greedy [S(0),S(1)] to "
       "[S(1),S(0)] of 4 MiB on 4x4: scratch of two quarters, %llu bytes",
       (unsigned long long)info.scratch_bytes);
    dtensor_plan_destroy(plan);
    ok(dtensor_plan_create(&src, &dst, &tight, &plan, &err) == 0,
       "with 1000 bytes of scratch there is a plan");
    dtensor_plan_choice(plan, DTENSOR_ROUTE_GREEDY, &choice, &err);
    dtensor_plan_info(plan, &info);
    ok(choice.refused && strstr(choice.refused, "scratch") &&
       info.scratch_bytes <= 1000, "which keeps to it: %s",
       choice.refused ? choice.refused : "not refused");
    dtensor_plan_destroy(plan);
}

/* ------------------------------------------------------------------- speed */

static int64_t now_ns(void)
{
    return dtn_now_ns();
}

static int64_t plan_ns(const struct dtensor_mesh *mesh, const char *from,
                       const char *to)
{
    const int64_t shape[] = { 8192, 8192 };
    struct dtensor_spec src = spec_at(mesh, 2, shape, from);
    struct dtensor_spec dst = spec_at(mesh, 2, shape, to);
    const int64_t start = now_ns();

    dtensor_plan_destroy(plan_of(&src, &dst, DTENSOR_ROUTE_AUTO));
    return now_ns() - start;
}

/* Planning looks at no ranks: 128 times as many would cost 128 times as much.
 * Both sizes take turns, and the least of 20 counts, so that a busy machine
 * meets both alike.
 */
static void test_speed(void)
{
    static const int sizes[2][3] = { { 2, 2, 2 }, { 16, 8, 8 } };
    static const char *const pairs[][2] = {
        { "S(0),S(0),S(0)", "S(1),S(1),S(1)" }, { "S(0),S(1),R",
                                                  "R,S(0),S(1)" },
        { "P,S(0),S(1)", "S(0),R,S(1)" }, { "S(0),S(0),R", "R,R,R" },
        { "R,R,R", "S(0),S(1),S(0)" }
    };
    struct dtensor_ctx *ctx[2] = { planner_of(8, 8), planner_of(1024, 8) };
    int64_t least[2];

    for (size_t i = 0; i < DTN_COUNT(pairs); i++) {
        least[0] = least[1] = INT64_MAX;
        for (int k = 0; k < 40; k++) {
            const int64_t ns = plan_ns(mesh_of(ctx[k % 2], 3, sizes[k % 2]),
                                       pairs[i][0], pairs[i][1]);

            least[k % 2] = ns < least[k % 2] ? ns : least[k % 2];
        }
        ok(timeless() || least[1] < 10 * least[0], "[%s] to [%s]: a plan takes "
           "%.1f us for 8 ranks, %.1f for 1,024: their number hardly matters",
           pairs[i][0], pairs[i][1], (double)least[0] / 1e3,
           (double)least[1] / 1e3);
    }
    dtensor_fini(ctx[0]);
    dtensor_fini(ctx[1]);
}

/* --------------------------------------------------------------- gradients */

/* facts: 4.6.  What comes back moves and where it goes. */
static const struct grad_case {
    const char *from, *to, *grad;             /* NULL: as usual               */
    const char *forward, *backward, *back;
} grad_cases[] = {
    { "S(0)", "R", NULL, "all-gather", "local", "S(0)" },
    { "R", "S(0)", NULL, "local", "all-gather", "R" },
    { "P", "R", NULL, "allreduce", "", "R" },
    { "P", "S(0)", NULL, "reduce-scatter", "all-gather", "R" },
    { "S(0)", "S(1)", NULL, "all-to-all", "all-to-all", "S(0)" },
    { "R", "P", NULL, "local", "", "R" },
    { "R", "P", "P", "local", "allreduce", "R" },
    { "P", "P", "P", "", "", "P(sum)" },
    { "P", "P", NULL, "", "", "R" },
};

static void test_gradients(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 4 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, sizes);
    const int64_t shape[] = { 1200, 500 };
    char forward[60], backward[60], back[60];
    struct dtensor_error err;

    for (size_t i = 0; i < DTN_COUNT(grad_cases); i++) {
        const struct grad_case *c = &grad_cases[i];
        struct dtensor_spec src = spec_at(mesh, 2, shape, c->from);
        struct dtensor_spec dst = spec_at(mesh, 2, shape, c->to), at, grad;
        struct dtensor_plan *pair[2] = { NULL, NULL };

        at = spec_at(mesh, 2, shape, c->grad ? c->grad : c->to);
        if (!c->grad && at.placement[0].kind == DTENSOR_PARTIAL)
            at = spec_at(mesh, 2, shape, "R");
        dtensor_plan_pair(&src, &dst, c->grad ? &at : NULL, NULL, pair, &err);
        dtensor_grad_spec(&src, &at, &grad, &err);
        steps_text(pair[0], forward, sizeof forward);
        steps_text(pair[1], backward, sizeof backward);
        dtensor_placements_format(mesh, grad.placement, back, sizeof back);
        ok(!strcmp(forward, c->forward) && !strcmp(backward, c->backward) &&
           !strcmp(back, c->back), "%s -> %s: forward \"%s\", a gradient %s "
           "back \"%s\" to %s", c->from, c->to, forward,
           c->grad ? c->grad : "as usual", backward, back);
        dtensor_plan_destroy(pair[0]);
        dtensor_plan_destroy(pair[1]);
    }
}

/* --------------------------------------------------- a context that plans */

static void test_planning(struct dtensor_ctx *ctx)
{
    const int64_t shape[] = { 4, 4 };
    struct dtensor_error err;
    struct dtensor_spec spec;
    struct dtensor_ctx *none = NULL;
    struct dtensor *t = NULL;
    void *mem = NULL;
    float x[4] = { 0 };

    ok(dtensor_world_size(ctx) == 8 && dtensor_rank(ctx) == 0,
       "it is rank 0 of as many as were asked for");
    ok(dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F32, 2, shape,
                         &err) == 0, "specs are made as usual");
    ok(dtensor_zeros(&spec, &t, &err) == 0 && dtensor_local_bytes(t) == 0,
       "tensors have no elements");
    dtensor_destroy(t);
    ok(dtensor_alloc(ctx, 8, &mem, &err) == DTENSOR_EINVAL && !mem,
       "memory is refused");
    ok(dtensor_allreduce(spec.mesh, x, x, 4, DTENSOR_F32, DTENSOR_SUM, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "only plans"),
       "collectives are refused: %s", err.text);
    ok(dtensor_barrier(spec.mesh, &err) == DTENSOR_EINVAL,
       "barriers are refused");
    ok(dtensor_init_offline(NULL, 0, 0, &none, &err) == DTENSOR_EINVAL && !none,
       "no ranks at all: %s", err.text);
    ok(dtensor_init_offline("/no/such/file", 0, 0, &none, &err) < 0 && !none,
       "no such file: %s", err.text);
}

static void test_text(struct dtensor_ctx *ctx)
{
    static const int sizes[] = { 2, 4 };
    const int64_t shape[] = { 512, 512 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, sizes);
    struct dtensor_spec src = spec_at(mesh, 2, shape, "S(0),R");
    struct dtensor_spec dst = spec_at(mesh, 2, shape, "R,S(1)");
    struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_AUTO);
    struct dtensor_plan_step step;
    struct dtensor_error err;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool starts;
    int routes = 0;

    dtensor_plan_print(plan, stream);
    fclose(stream);
    starts = strncmp(text, "1.0 MiB moves between 8 ranks in about ", 38)
        == 0 && strstr(text, " us, by route direct: each element is sent ");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        note("%s", line);
        routes += strncmp(line, "route  ", 7) == 0;
    }
    ok(size > 200 && starts && routes == 4, "a plan is explained in words: "
       "a sentence first, then steps and routes");
    ok(dtensor_plan_step(plan, 7, &step, &err) == DTENSOR_EINVAL,
       "there is no step 7: %s", err.text);
    free(text);
    dtensor_plan_destroy(plan);
    dtensor_plan_destroy(NULL);
}

int main(void)
{
    struct dtensor_ctx *ctx = planner_of(8, 0);

    test_greedy(ctx);
    test_choice(ctx);
    test_gradients(ctx);
    test_planning(ctx);
    test_text(ctx);
    dtensor_fini(ctx);
    ctx = planner_of(16, 4);
    test_scratch(ctx);
    dtensor_fini(ctx);
    test_speed();
    return done();
}
