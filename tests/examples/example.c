/* example.c - what the examples share: a job, layers, a step of training */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

struct dtensor_error err;

void check(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

struct dtensor_ctx *begin(void)
{
    const struct dtensor_mesh *world;
    struct dtensor_ctx *ctx = NULL;

    check(dtensor_init(NULL, &ctx, &err));
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_manual_seed(world, 1, NULL, &err));
    return ctx;
}

struct dtensor *numbers(struct dtensor_ctx *ctx, int ndim,
                        const int64_t shape[], double std)
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    check(dtensor_spec_init(&spec, ctx, "world", "R", DTENSOR_F64, ndim, shape,
                            &err));
    check(dtensor_empty(&spec, &t, &err));
    check(dtensor_fill_normal(t, 0, std, NULL, &err));
    return t;
}

/* -------------------------------------------------------------- modules --- */

struct dtensor_module *add(struct dtensor_ctx *ctx,
                           struct dtensor_module *parent, const char *name,
                           const char *type, dtensor_forward_f *forward)
{
    struct dtensor_module *m = NULL;

    check(dtensor_module_create(ctx, type, forward, NULL, &m, &err));
    if (parent)
        check(dtensor_module_add(parent, name, m, &err));
    return m;
}

void linear(struct dtensor_ctx *ctx, struct dtensor_module *parent,
            const char *name, int64_t to, int64_t from)
{
    struct dtensor_module *m = add(ctx, parent, name, "linear", NULL);
    const int64_t shape[] = { to, from };

    check(dtensor_module_set(m, "weight", numbers(ctx, 2, shape, 0.25), &err));
    check(dtensor_module_set(m, "bias", numbers(ctx, 1, shape, 0.25), &err));
}

void norm(struct dtensor_ctx *ctx, struct dtensor_module *parent,
          const char *name, int64_t width)
{
    struct dtensor_module *m = add(ctx, parent, name, "layer_norm", NULL);

    check(dtensor_module_set(m, "weight", numbers(ctx, 1, &width, 1), &err));
    check(dtensor_module_set(m, "bias", numbers(ctx, 1, &width, 0.25), &err));
}

void embedding(struct dtensor_ctx *ctx, struct dtensor_module *parent,
               const char *name, int64_t rows, int64_t width)
{
    struct dtensor_module *m = add(ctx, parent, name, "embedding", NULL);
    const int64_t shape[] = { rows, width };

    check(dtensor_module_set(m, "weight", numbers(ctx, 2, shape, 0.5), &err));
}

/* ------------------------------------------------------------- training --- */

static int watch(struct dtensor_module *module, void *tape,
                 struct dtensor_error *why)
{
    struct dtensor *t;
    const char *name;
    int rc = 0;

    for (int i = 0; rc == 0 && (t = dtensor_module_param_at(module, i, &name));
         i++)
        rc = dtensor_tape_watch(tape, t, why);
    return rc;
}

struct dtensor_tape *watched(struct dtensor_ctx *ctx,
                             struct dtensor_module *model)
{
    struct dtensor_tape *tape = NULL;

    check(dtensor_tape_create(ctx, &tape, &err));
    check(dtensor_module_walk(model, watch, tape, &err));
    return tape;
}

/* What a step of descent needs. */
struct descent {
    const struct dtensor_tape *tape;  /* after its backward                   */
    double rate;                      /* part of a gradient that is taken off */
};

static int step(struct dtensor_module *module, void *arg,
                struct dtensor_error *why)
{
    const struct descent *descent = arg;
    struct dtensor *t, *down = NULL;
    const char *name;
    int rc = 0;

    for (int i = 0; rc == 0 && (t = dtensor_module_param_at(module, i, &name));
         i++) {
        rc = dtensor_scale(dtensor_tape_grad(descent->tape, t), -descent->rate,
                           &down, why);
        if (rc == 0)
            rc = dtensor_op_into("add_", 2, (const struct dtensor *const[]){
                                 t, down }, NULL, 1, &t, why);
        dtensor_destroy(down);
        down = NULL;
    }
    return rc;
}

double descend(struct dtensor_tape *tape, struct dtensor_module *model,
               struct dtensor *loss, double rate)
{
    double value = 0;

    check(dtensor_tape_end(tape, &err));
    check(dtensor_tape_backward(tape, loss, NULL, &err));
    check(dtensor_module_walk(model, step, &(struct descent){ tape, rate },
                              &err));
    check(dtensor_full_tensor(loss, &value, sizeof value, &err));
    dtensor_destroy(loss);
    return value;
}

struct dtensor *squares(struct dtensor *y, const struct dtensor *want)
{
    struct dtensor *off = NULL, *square = NULL, *loss = NULL;

    check(dtensor_op("sub", 2, (const struct dtensor *const[]){ y, want }, NULL,
                     1, &off, &err));
    check(dtensor_mul(off, off, &square, &err));
    check(dtensor_op("mean", 1, (const struct dtensor *const[]){ square }, NULL,
                     1, &loss, &err));
    dtensor_destroy(y);
    dtensor_destroy(off);
    dtensor_destroy(square);
    return loss;
}
