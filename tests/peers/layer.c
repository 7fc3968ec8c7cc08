/* layer.c - a step of a transformer layer, and what of it is not arithmetic
 *
 * In turn, ROUNDS times, forward and backward in f32: the layer of width 1024,
 * cut by heads over all ranks; the arithmetic of a rank's part alone, as a
 * layer of its own; and copies, by all ranks at once, of the bytes that the
 * allreduces of a step bring to a rank at least.  Prints the milliseconds of a
 * round in a line: "dtensor LAYER ARITHMETIC COPIES".  Run by layer.sh.
 *
 *     dtensor-run -n 4 ./layer ROWS ROUNDS
 */
#include "tests/examples/example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 1024, HEAD = 64, ALLREDUCES = 4 };

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* -------------------------------------------------------------- forward --- */

/* The result of an operator takes the place of its input. */
static void then(const char *op, const struct dtensor_op_args *args,
                 struct dtensor **tp)
{
    struct dtensor *made = NULL;

    check(dtensor_op(op, 1, (const struct dtensor *const[]){ *tp }, args, 1,
                    &made, &err));
    dtensor_destroy(*tp);
    *tp = made;
}

static void child(struct dtensor_module *m, const char *name,
                  struct dtensor **tp)
{
    struct dtensor *made = NULL;

    check(dtensor_module_apply(m, name, *tp, &made, &err));
    dtensor_destroy(*tp);
    *tp = made;
}

static const struct dtensor_op_args swap = { .ndims = 4,
                                             .dim = { 0, 2, 1, 3 } };

static struct dtensor *heads(struct dtensor_module *m, const char *name,
                             const struct dtensor *x)
{
    struct dtensor_op_args split = { .ndim = 4 };
    const struct dtensor_spec *spec;
    struct dtensor *t = NULL;

    check(dtensor_module_apply(m, name, x, &t, &err));
    spec = dtensor_spec_of(t);
    memcpy(split.shape, (int64_t[]){ 1, spec->shape[1], spec->shape[2] / HEAD,
           HEAD }, 4 * sizeof split.shape[0]);
    then("view", &split, &t);
    then("permute", &swap, &t);
    return t;
}

static void attention(struct dtensor_module *m, struct dtensor **xp)
{
    const struct dtensor_op_args causal = { .causal = 1 };
    struct dtensor *in[3] = { heads(m, "q", *xp), heads(m, "k", *xp),
                              heads(m, "v", *xp) }, *y = NULL;
    const struct dtensor_spec *spec = dtensor_spec_of(in[0]);
    const struct dtensor_op_args join = { .ndim = 3,
        .shape = { 1, spec->shape[2], spec->shape[1] * HEAD } };

    check(dtensor_op("attention", 3, (const struct dtensor *const *)in, &causal,
                    1, &y, &err));
    then("permute", &swap, &y);
    then("view", &join, &y);
    child(m, "out", &y);
    for (int i = 0; i < 3; i++)
        dtensor_destroy(in[i]);
    dtensor_destroy(*xp);
    *xp = y;
}

static int forward(const struct dtensor_forward *call,
                   struct dtensor_error *why)
{
    struct dtensor *inner = NULL, *x = NULL;

    (void)why;
    check(dtensor_module_apply(call->module, "norm1", call->in[0], &inner,
                              &err));
    attention(call->module, &inner);
    check(dtensor_add(call->in[0], inner, &x, &err));
    dtensor_destroy(inner);
    inner = NULL;
    check(dtensor_module_apply(call->module, "norm2", x, &inner, &err));
    child(call->module, "up", &inner);
    then("gelu", NULL, &inner);
    child(call->module, "down", &inner);
    check(dtensor_add(x, inner, &call->out[0], &err));
    dtensor_destroy(inner);
    dtensor_destroy(x);
    return 0;
}

/* --------------------------------------------------------------- layers --- */

static struct dtensor *weights(const struct dtensor_mesh *mesh, int ndim,
                               const int64_t shape[])
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    check(dtensor_spec_on(&spec, mesh, "R", DTENSOR_F32, ndim, shape, &err));
    check(dtensor_empty(&spec, &t, &err));
    check(dtensor_fill_normal(t, 0, 0.03, NULL, &err));
    return t;
}

static void part(struct dtensor_ctx *ctx, struct dtensor_module *parent,
                 const struct dtensor_mesh *mesh, const char *name, int64_t to,
                 int64_t from)
{
    struct dtensor_module *m = NULL;
    const int64_t shape[] = { to, from };

    check(dtensor_module_create(ctx, from ? "linear" : "layer_norm", NULL, NULL,
                               &m, &err));
    check(dtensor_module_add(parent, name, m, &err));
    check(dtensor_module_set(m, "weight", weights(mesh, from ? 2 : 1, shape),
                            &err));
    check(dtensor_module_set(m, "bias", weights(mesh, 1, shape), &err));
}

/* A layer with 1 / `parts` of the heads and of the inner columns. */
static struct dtensor_module *layer(struct dtensor_ctx *ctx,
                                    const struct dtensor_mesh *mesh, int parts)
{
    static const char *const names[] = { "q", "k", "v" };
    struct dtensor_module *m = NULL;

    check(dtensor_module_create(ctx, "layer", forward, NULL, &m, &err));
    part(ctx, m, mesh, "norm1", WIDTH, 0);
    for (int i = 0; i < 3; i++)
        part(ctx, m, mesh, names[i], WIDTH / parts, WIDTH);
    part(ctx, m, mesh, "out", WIDTH, WIDTH / parts);
    part(ctx, m, mesh, "norm2", WIDTH, 0);
    part(ctx, m, mesh, "up", 4 * WIDTH / parts, WIDTH);
    part(ctx, m, mesh, "down", WIDTH, 4 * WIDTH / parts);
    return m;
}

/* --------------------------------------------------------------- timing --- */

struct model {
    struct dtensor_module *layer;
    struct dtensor_tape *tape;     /* watches its parameters and x            */
    struct dtensor *x;
};

static struct model model_make(struct dtensor_ctx *ctx,
                               const struct dtensor_mesh *mesh, int parts,
                               int64_t rows)
{
    static const struct dtensor_style by_heads[] = {
        { "[qkv]", "colwise" }, { "out", "rowwise" },
        { "up", "colwise" }, { "down", "rowwise" } };
    struct model m = { .layer = layer(ctx, mesh, parts),
        .x = weights(mesh, 3, (int64_t[]){ 1, rows, WIDTH }) };

    if (parts == 1)
        check(dtensor_parallelize(m.layer, mesh, 4, by_heads, -1, &err));
    m.tape = watched(ctx, m.layer);
    check(dtensor_tape_watch(m.tape, m.x, &err));
    return m;
}

static void model_free(struct model *m)
{
    dtensor_tape_destroy(m->tape);
    dtensor_destroy(m->x);
    dtensor_module_destroy(m->layer);
}

static double step_ms(const struct dtensor_mesh *world, const struct model *m)
{
    struct dtensor *y = NULL;
    double start;

    check(dtensor_barrier(world, &err));
    start = now_ms();
    check(dtensor_tape_begin(m->tape, &err));
    check(dtensor_module_apply(m->layer, "", m->x, &y, &err));
    check(dtensor_tape_end(m->tape, &err));
    check(dtensor_tape_backward(m->tape, y, y, &err));
    check(dtensor_barrier(world, &err));
    start = now_ms() - start;
    dtensor_destroy(y);
    return start;
}

static double copies_ms(const struct dtensor_mesh *world, char *to,
                        const char *from, size_t bytes)
{
    double start;

    check(dtensor_barrier(world, &err));
    start = now_ms();
    for (int i = 0; i < ALLREDUCES; i++)
        memcpy(to, from, bytes);
    check(dtensor_barrier(world, &err));
    return now_ms() - start;
}

int main(int argc, char *argv[])
{
    const int64_t rows = argc > 1 ? atoll(argv[1]) : 512;
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    const struct dtensor_mesh *world, *own = NULL;
    struct dtensor_ctx *ctx = NULL;
    struct model all, alone;
    char *bytes[2] = { NULL, NULL };
    size_t moved;
    int n, me, one = 1;

    check(dtensor_init(NULL, &ctx, &err));
    n = dtensor_world_size(ctx);
    me = dtensor_rank(ctx);
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_mesh_create(ctx, 1, &one, NULL, &me, &own, &err));
    check(dtensor_manual_seed(world, 1, NULL, &err));
    all = model_make(ctx, world, 1, rows);
    alone = model_make(ctx, own, n, rows);
    moved = (size_t)rows * WIDTH * 4 * 2 * (size_t)(n - 1) / (size_t)n;
    for (int i = 0; i < 2; i++) {
        check(dtensor_alloc(ctx, moved, (void **)&bytes[i], &err));
        memset(bytes[i], i, moved);
    }
    for (int i = -1; i < rounds; i++) {
        const double ms[] = { step_ms(world, &all), step_ms(world, &alone),
                              copies_ms(world, bytes[0], bytes[1], moved) };

        if (i >= 0 && me == 0)
            printf("dtensor %.3f %.3f %.3f\n", ms[0], ms[1], ms[2]);
    }
    model_free(&all);
    model_free(&alone);
    for (int i = 0; i < 2; i++)
        dtensor_free(ctx, bytes[i]);
    dtensor_fini(ctx);
    return 0;
}
