/* own.c - operators of the program: mapped, registered, overridden
 *
 *   $ cc -o own own.c example.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./own
 *
 * Between two tensor-parallel layers the program calls three functions of its
 * own. One is mapped over the parts of a tensor (local_map of PyTorch) and
 * noted on the tape; one is an operator with a rule, a local function and a
 * gradient; one overrides the library's relu.
 */
#include "example.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8, WIDTH = 8, HIDDEN = 32, STEPS = 5 };

/* ------------------------------------------------ mapped over the parts --- */

/* x / (1 + |x|) or, with a gradient, that times the slope. */
static double softsign(double x, const double *grad)
{
    const double down = 1 + fabs(x);

    return grad ? *grad / (down * down) : x / down;
}

/* softsign() of each element, with the placements of x. */
static int map(const struct dtensor *x, const struct dtensor *grad,
               struct dtensor **yp, struct dtensor_error *why)
{
    const double *in = dtensor_to_local(x);
    const double *g = grad ? dtensor_to_local(grad) : NULL;
    const size_t bytes = dtensor_local_bytes(x), n = bytes / sizeof *in;
    double *part = malloc(bytes + 1);
    int rc;

    if (!part)
        return DTENSOR_ENOMEM;
    for (size_t i = 0; i < n; i++)
        part[i] = softsign(in[i], g ? g + i : NULL);
    rc = dtensor_from_local(dtensor_spec_of(x), part, bytes, yp, why);
    free(part);
    return rc;
}

static int map_back(const struct dtensor_op_gradient *gradient,
                    struct dtensor *in[], struct dtensor_error *why)
{
    return gradient->grad[0]
           ? map(gradient->in[0], gradient->grad[0], &in[0], why) : 0;
}

static struct dtensor *mapped(struct dtensor_tape *tape,
                              const struct dtensor *x)
{
    struct dtensor *y = NULL;
    const struct dtensor_tape_call call = {
        .name = "softsign", .nin = 1, .in = &x, .nout = 1, .out = &y,
        .backward = map_back, .keeps = "a" };

    check(map(x, NULL, &y, &err));
    check(dtensor_tape_note(tape, &call, &err));
    return y;
}

/* ----------------------------------------------------------- registered --- */

static int smooth(const struct dtensor_op_run *run, struct dtensor_error *why)
{
    const double *x = run->in[0].data;
    double *y = run->out[0].data;

    (void)why;                         /* it cannot fail */
    for (int64_t i = 0; i < run->out[0].count; i++)
        y[i] = x[i] / sqrt(1 + x[i] * x[i]);
    return 0;
}

static int leaky(const struct dtensor_op_run *run, struct dtensor_error *why)
{
    const double *x = run->in[0].data;
    double *y = run->out[0].data;

    (void)why;
    for (int64_t i = 0; i < run->out[0].count; i++)
        y[i] = x[i] > 0 ? x[i] : 0.1 * x[i];
    return 0;
}

/* A new operator needs a rule; one that overrides keeps the library's. */
static const struct dtensor_op_def own[] = {
    { .name = "smooth", .letters = "*->*", .types = "f>f", .local = smooth,
      .grad = { "mul(g,pow(shift(mul(a,a),1),-1.5))" } },
    { .name = "relu", .local = leaky,
      .grad = { "where(gt(a,0a),g,scale(g,0.1))" } },
};

static struct dtensor *applied(const char *op, const struct dtensor *x)
{
    struct dtensor *y = NULL;

    check(dtensor_op(op, 1, &x, NULL, 1, &y, &err));
    return y;
}

/* -------------------------------------------------------------- the net --- */

static struct dtensor *forward(struct dtensor_tape *tape,
                               struct dtensor_module *model,
                               const struct dtensor *x)
{
    struct dtensor *up = NULL, *soft, *smoothed, *bent, *down = NULL;

    check(dtensor_module_apply(model, "up", x, &up, &err));
    soft = mapped(tape, up);
    smoothed = applied("smooth", soft);
    bent = applied("relu", smoothed);
    check(dtensor_module_apply(model, "down", bent, &down, &err));
    dtensor_destroy(up);
    dtensor_destroy(soft);
    dtensor_destroy(smoothed);
    dtensor_destroy(bent);
    return down;
}

int main(void)
{
    static const struct dtensor_style plan[] = {
        { "up", "colwise" }, { "down", "rowwise" } };
    static const int64_t shape[] = { ROWS, WIDTH };
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = add(ctx, NULL, NULL, "sequential", NULL);
    struct dtensor *x = numbers(ctx, 2, shape, 1);
    struct dtensor *want = numbers(ctx, 2, shape, 1);
    const struct dtensor_mesh *world;
    struct dtensor_tape *tape;
    double loss;

    for (int i = 0; i < 2; i++)
        check(dtensor_op_register(ctx, &own[i], &err));
    linear(ctx, model, "up", HIDDEN, WIDTH);
    linear(ctx, model, "down", WIDTH, HIDDEN);
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_parallelize(model, world, 2, plan, -1, &err));
    tape = watched(ctx, model);
    for (int i = 0; i < STEPS; i++) {
        check(dtensor_tape_begin(tape, &err));
        loss = descend(tape, model, squares(forward(tape, model, x), want),
                       0.05);
        if (dtensor_rank(ctx) == 0)
            printf("step %d: loss %.6f\n", i, loss);
    }
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(want);
    dtensor_module_destroy(model);
    dtensor_fini(ctx);
    return 0;
}
