/* pipeline.c - a model in two stages, trained on micro-batches
 *
 * The cluster file, stages.ini, says which ranks are the stages "first" and
 * "last", and that each stage has a seed of its own.  In three columns:
 *
 *     [cluster]                 [mesh "world"]        [mesh "last"]
 *     version = 1               dims = pp=2, dp=2     parent = world
 *                                                     select = pp=1
 *     [nodes "here"]            [mesh "first"]
 *     hosts = localhost         parent = world        [seed]
 *     ranks = 4                 select = pp=0         base     = 7
 *                                                     mesh     = world
 *                                                     distinct = pp
 *
 * A batch is divided into micro-batches.  The output of the first stage for one
 * of them is redistributed to the mesh of the last stage, which computes with
 * it while the first begins the next one; the gradients come back the same way.
 * Every rank makes every call: the ranks of the other stage return at once.
 *
 *   $ cc -o pipeline pipeline.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 -C stages.ini ./pipeline
 */
#include <dtensor.h>

#include <stdio.h>
#include <stdlib.h>

enum { MICROBATCHES = 4, ROWS = 16, IN = 12, HIDDEN = 24, CLASSES = 8,
       STEPS = 6 };

static struct dtensor_error err;

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "pipeline: %s\n", err.text);
    exit(1);
}

/* -------------------------------------------------------------- stages --- */

struct stage {
    const struct dtensor_mesh *mesh;   /* its ranks                           */
    struct dtensor *weight;            /* of its layer, on each of them       */
};

/* [seed] gives the ranks of stage i base + i.  One rank that is both stages has
 * one seed only, so that each generator is made from its number.
 */
static struct stage stage_make(struct dtensor_ctx *ctx, int i, const char *name,
                               int64_t rows, int64_t columns)
{
    const int mine = 2 * dtensor_rank(ctx) >= dtensor_world_size(ctx) &&
                     dtensor_world_size(ctx) > 1;
    const uint64_t seed =
        dtensor_generator_seed(dtensor_generator_default(ctx));
    struct stage stage = { .mesh = NULL };
    struct dtensor_generator *gen = NULL;
    struct dtensor_spec spec;

    must(dtensor_mesh_find(ctx, name, &stage.mesh, &err));
    must(dtensor_spec_on(&spec, stage.mesh, "R", DTENSOR_F64, 2,
                         (int64_t[]){ rows, columns }, &err));
    must(dtensor_generator_create(seed + (uint64_t)i - (uint64_t)mine, &gen,
                                  &err));
    must(dtensor_randn(&spec, gen, &stage.weight, &err));
    dtensor_generator_destroy(gen);
    return stage;
}

/* ---------------------------------------------------------------- data --- */

/* Rows of numbers for the first stage, and their classes for the second: the
 * same on any number of ranks.
 */
static void batch_make(const struct stage stage[2], int m, struct dtensor **xp,
                       struct dtensor **targetp)
{
    double x[ROWS * IN];
    int64_t target[ROWS];
    struct dtensor_spec spec;

    for (int i = 0; i < ROWS; i++) {
        target[i] = (i * 5 + m) % CLASSES;
        for (int j = 0; j < IN; j++)
            x[i * IN + j] = ((target[i] * 7 + j * 3) % 11 - 5) / 5.0 +
                            ((i + j + m) % 3 - 1) / 10.0;
    }
    must(dtensor_spec_on(&spec, stage[0].mesh, "S(0)", DTENSOR_F64, 2,
                         (int64_t[]){ ROWS, IN }, &err));
    must(dtensor_distribute(&spec, x, -1, xp, &err));
    must(dtensor_spec_on(&spec, stage[1].mesh, "S(0)", DTENSOR_I64, 1,
                         (int64_t[]){ ROWS }, &err));
    must(dtensor_distribute(&spec, target, -1, targetp, &err));
}

/* ------------------------------------------------------------- forward --- */

/* The loss of one micro-batch, through both stages. */
static struct dtensor *forward(const struct stage stage[2],
                               const struct dtensor *x,
                               const struct dtensor *target)
{
    struct dtensor *made = NULL, *here = NULL, *there = NULL, *scores = NULL,
                   *loss = NULL;
    struct dtensor_spec spec;

    must(dtensor_matmul(x, stage[0].weight, &made, &err));
    must(dtensor_op("tanh", 1, (const struct dtensor *[]){ made }, NULL, 1,
                    &here, &err));
    must(dtensor_spec_on(&spec, stage[1].mesh, "S(0)", DTENSOR_F64, 2,
                         (int64_t[]){ ROWS, HIDDEN }, &err));
    must(dtensor_redistribute_to(here, &spec, &there, &err));
    must(dtensor_matmul(there, stage[1].weight, &scores, &err));
    must(dtensor_cross_entropy(scores, target, DTENSOR_OP_SUM, &loss, &err));
    dtensor_destroy(made);
    dtensor_destroy(here);
    dtensor_destroy(there);
    dtensor_destroy(scores);
    return loss;
}

/* weight -= rate times its gradient. */
static void descend(const struct dtensor_tape *tape, struct dtensor *weight)
{
    struct dtensor *step = NULL;

    must(dtensor_scale(dtensor_tape_grad(tape, weight),
                       -0.2 / (MICROBATCHES * ROWS), &step, &err));
    must(dtensor_op_into("add_", 2, (const struct dtensor *[]){ weight, step },
                         NULL, 1, &weight, &err));
    dtensor_destroy(step);
}

/* All micro-batches forward, then backward, then one step of all weights. */
static struct dtensor *train(struct dtensor_tape *tape,
                             const struct stage stage[2],
                             struct dtensor *const x[],
                             struct dtensor *const target[])
{
    struct dtensor *all = NULL;

    must(dtensor_tape_begin(tape, &err));
    for (int m = 0; m < MICROBATCHES; m++) {
        struct dtensor *loss = forward(stage, x[m], target[m]), *before = all;

        all = loss;
        if (!before)
            continue;
        must(dtensor_add(before, loss, &all, &err));
        dtensor_destroy(before);
        dtensor_destroy(loss);
    }
    must(dtensor_tape_end(tape, &err));
    must(dtensor_tape_backward(tape, all, NULL, &err));
    for (int i = 0; i < 2; i++)
        descend(tape, stage[i].weight);
    return all;
}

int main(void)
{
    struct dtensor *x[MICROBATCHES], *target[MICROBATCHES];
    struct dtensor_tape *tape = NULL;
    struct dtensor_ctx *ctx = NULL;
    struct stage stage[2];
    double sum = 0;

    must(dtensor_init(NULL, &ctx, &err));
    stage[0] = stage_make(ctx, 0, "first", IN, HIDDEN);
    stage[1] = stage_make(ctx, 1, "last", HIDDEN, CLASSES);
    must(dtensor_tape_create(ctx, &tape, &err));
    for (int i = 0; i < 2; i++)
        must(dtensor_tape_watch(tape, stage[i].weight, &err));
    for (int m = 0; m < MICROBATCHES; m++)
        batch_make(stage, m, &x[m], &target[m]);
    for (int step = 0; step < STEPS; step++) {
        struct dtensor *loss = train(tape, stage, x, target);

        must(dtensor_full_tensor(loss, &sum, sizeof sum, &err));
        dtensor_destroy(loss);
        if (dtensor_rank(ctx) == dtensor_mesh_rank(stage[1].mesh, 0))
            printf("step %d loss %.9f\n", step, sum / (MICROBATCHES * ROWS));
    }
    for (int m = 0; m < MICROBATCHES; m++) {
        dtensor_destroy(x[m]);
        dtensor_destroy(target[m]);
    }
    dtensor_tape_destroy(tape);
    dtensor_destroy(stage[0].weight);
    dtensor_destroy(stage[1].weight);
    dtensor_fini(ctx);
    return 0;
}
