/* bits.c - prints sums of all bits of a transformer layer; run by bits.sh
 *
 *   bits heads|sequence|mesh       how the layer is cut
 *
 * Under repro, two steps of descent.  Of each step the output of every module,
 * every gradient, and every parameter after it: a name and a checksum of the
 * whole tensor in a line.
 */
#include "tests/examples/example.h"
#include "tests/examples/transformer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 4, LENGTH = 8, WIDTH = 32, STEPS = 2 };

static int rank;                   /* the first one prints */

static void print_bits(struct dtensor_module *m, const char *what,
                       const char *name, const struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    size_t bytes = dtensor_dtype_size(spec->dtype);
    uint64_t sum = 14695981039346656037u;      /* FNV-1a */
    static unsigned char full[4 * WIDTH * WIDTH * 8];
    char path[80];

    for (int d = 0; d < spec->ndim; d++)
        bytes *= (size_t)spec->shape[d];
    check(dtensor_full_tensor(t, full, bytes, &err));
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ full[i]) * 1099511628211u;
    dtensor_module_path(m, path, sizeof path);
    if (rank == 0)
        printf("%s %s.%s %016llx\n", what, path, name,
               (unsigned long long)sum);
}

/* ---------------------------------------------------------------- steps --- */

static int output(const struct dtensor_hook *call, struct dtensor_error *why)
{
    (void)why;
    print_bits(call->module, "output", "0", call->t[0]);
    return 0;
}

static int hook(struct dtensor_module *m, void *arg, struct dtensor_error *why)
{
    (void)arg;
    return dtensor_module_on_output(m, output, NULL, why);
}

static int gradients(struct dtensor_module *m, void *tape,
                     struct dtensor_error *why)
{
    const struct dtensor *t;
    const char *name;

    (void)why;
    for (int i = 0; (t = dtensor_module_param_at(m, i, &name)); i++)
        print_bits(m, "gradient", name, dtensor_tape_grad(tape, t));
    return 0;
}

static int parameters(struct dtensor_module *m, void *arg,
                      struct dtensor_error *why)
{
    const struct dtensor *t;
    const char *name;

    (void)arg;
    (void)why;
    for (int i = 0; (t = dtensor_module_param_at(m, i, &name)); i++)
        print_bits(m, "parameter", name, t);
    return 0;
}

/* ------------------------------------------------------------- placing --- */

static const char *place(const struct dtensor_module *m, const char *param,
                         void *arg)
{
    const char *name = dtensor_module_name(m);

    (void)arg;
    if (strlen(name) == 1 || strcmp(name, "up") == 0)   /* q, k, v */
        return "R,S(0)";
    if (strcmp(name, "out") == 0 || strcmp(name, "down") == 0)
        return strcmp(param, "weight") == 0 ? "R,S(1)" : NULL;
    return NULL;
}

/* The batch cut along dp, the layer along tp. */
static void over_mesh(struct dtensor_ctx *ctx, struct dtensor_module *model,
                      struct dtensor **xp, struct dtensor **wantp)
{
    const struct dtensor_distribution how = { .partition = place, .root = -1 };
    const int n = dtensor_world_size(ctx), tp = n > 1 ? 2 : 1;
    struct dtensor **const both[] = { xp, wantp };
    const struct dtensor_mesh *mesh;
    static double full[BATCH * LENGTH * WIDTH];
    struct dtensor_spec spec;

    check(dtensor_mesh_create(ctx, 2, (const int[]){ n / tp, tp }, "dp,tp",
                              NULL, &mesh, &err));
    check(dtensor_distribute_module(model, mesh, &how, &err));
    check(dtensor_spec_on(&spec, mesh, "S(0),R", DTENSOR_F64, 3,
                          (int64_t[]){ BATCH, LENGTH, WIDTH }, &err));
    for (int i = 0; i < 2; i++) {
        check(dtensor_full_tensor(*both[i], full, sizeof full, &err));
        dtensor_destroy(*both[i]);
        *both[i] = NULL;
        check(dtensor_distribute(&spec, full, -1, both[i], &err));
    }
}

int main(int argc, char **argv)
{
    static const int64_t shape[] = { BATCH, LENGTH, WIDTH };
    const char *way = argc > 1 ? argv[1] : "heads";
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = layer(ctx, NULL, NULL, WIDTH);
    struct dtensor *x = numbers(ctx, 3, shape, 1);
    struct dtensor *want = numbers(ctx, 3, shape, 1), *y = NULL, *loss;
    const struct dtensor_mesh *world;
    struct dtensor_tape *tape;

    rank = dtensor_rank(ctx);
    dtensor_set_repro(ctx, 1);
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    if (strcmp(way, "mesh") == 0)
        over_mesh(ctx, model, &x, &want);
    else if (strcmp(way, "sequence") == 0)
        check(dtensor_parallelize(model, world, 7, by_sequence, -1, &err));
    else
        check(dtensor_parallelize(model, world, 4, by_heads, -1, &err));
    check(dtensor_module_walk(model, hook, NULL, &err));
    tape = watched(ctx, model);
    for (int i = 0; i < STEPS; i++) {
        check(dtensor_tape_begin(tape, &err));
        check(dtensor_module_apply(model, "", x, &y, &err));
        loss = squares(y, want);
        descend(tape, model, loss, 0.05);
        check(dtensor_module_walk(model, gradients, tape, &err));
        check(dtensor_module_walk(model, parameters, NULL, &err));
    }
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(want);
    dtensor_module_destroy(model);
    dtensor_fini(ctx);
    return 0;
}
