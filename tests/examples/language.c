/* language.c - a small language model, data x tensor parallel
 *
 *   $ cc -o language language.c example.c transformer.c \
 *         $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 8 ./language FILE
 *
 * FILE is any text, of which every rank reads the first 64 KiB.  The model
 * learns which letter comes next.
 *
 * The mesh has two dimensions, on 8 ranks dp=4, tp=2: dp shards the batch, tp
 * the layers.  Each rank computes some rows of the batch with some of the
 * heads. Operators find the placements of intermediate tensors.  The gradients
 * of parameters are P(sum) along dp, and the tape sums them in one batch.
 */
#include "example.h"
#include "transformer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, LENGTH = 16, WIDTH = 32, LAYERS = 2, LETTERS = 27, STEPS = 4
};

static char text[1 << 16];        /* the first letters of the file            */
static int letters;               /* how many                                 */

/* ---------------------------------------------------------------- model --- */

static int model_forward(const struct dtensor_forward *call,
                         struct dtensor_error *why)
{
    static const char *const paths[] = { "token", "layers", "norm", "head" };
    struct dtensor *x = NULL, *y = NULL;
    int rc = 0;

    for (int i = 0; rc == 0 && i < 4; i++) {
        rc = dtensor_module_apply(call->module, paths[i], x ? x : call->in[0],
                                  &y, why);
        dtensor_destroy(x);
        x = rc == 0 ? y : NULL;
    }
    call->out[0] = x;
    return rc;
}

static struct dtensor_module *model_make(struct dtensor_ctx *ctx)
{
    struct dtensor_module *top = add(ctx, NULL, NULL, "model", model_forward);
    struct dtensor_module *layers;
    char name[8];

    embedding(ctx, top, "token", LETTERS, WIDTH);
    layers = add(ctx, top, "layers", "sequential", NULL);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "%d", i);
        layer(ctx, layers, name, WIDTH);
    }
    norm(ctx, top, "norm", WIDTH);
    linear(ctx, top, "head", LETTERS, WIDTH);
    return top;
}

/* The placements of a parameter on (dp, tp): it is sharded along tp, by the
 * output of its module or by the input; along dp it is replicated.
 */
static const char *place(const struct dtensor_module *module,
                         const char *param, void *arg)
{
    static const char *const columns[] = { "q", "k", "v", "up" };
    const char *name = dtensor_module_name(module);

    (void)arg;
    for (int i = 0; i < 4; i++)
        if (strcmp(name, columns[i]) == 0)
            return "R,S(0)";
    if (strcmp(name, "out") == 0 || strcmp(name, "down") == 0)
        return strcmp(param, "weight") == 0 ? "R,S(1)" : NULL;
    return NULL;
}

/* ----------------------------------------------------------------- data --- */

/* Letters of the file without their case; what stands between words is one "-".
 */
static void text_read(const char *path)
{
    FILE *file = path ? fopen(path, "r") : NULL;
    int c;

    while (file && letters < (int)sizeof text && (c = fgetc(file)) != EOF) {
        if (isalpha(c))
            text[letters++] = (char)tolower(c);
        else if (letters > 0 && text[letters - 1] != '-')
            text[letters++] = '-';
    }
    if (file)
        fclose(file);
    if (letters == 0) {
        fprintf(stderr, "language: no letters (usage: language FILE)\n");
        exit(1);
    }
}

static int64_t letter(int i)
{
    const char c = text[i % letters];

    return c == '-' ? 26 : c - 'a';
}

/* Rows of the text from `at` on, sharded along dp. */
static struct dtensor *rows(const struct dtensor_mesh *mesh, int at)
{
    static const int64_t shape[] = { BATCH, LENGTH };
    int64_t index[BATCH * LENGTH];
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < LENGTH; i++)
            index[b * LENGTH + i] = letter(at + 17 * b + i);
    check(dtensor_spec_on(&spec, mesh, "S(0),R", DTENSOR_I64, 2, shape, &err));
    check(dtensor_distribute(&spec, index, -1, &t, &err));
    return t;
}

/* ------------------------------------------------------------- training --- */

static double train(struct dtensor_tape *tape, struct dtensor_module *model,
                    const struct dtensor_mesh *mesh, int at)
{
    struct dtensor *x = rows(mesh, at), *next = rows(mesh, at + 1);
    struct dtensor *scores = NULL, *loss = NULL;

    check(dtensor_tape_begin(tape, &err));
    check(dtensor_module_apply(model, "", x, &scores, &err));
    check(dtensor_cross_entropy(scores, next, DTENSOR_OP_MEAN, &loss, &err));
    dtensor_destroy(x);
    dtensor_destroy(next);
    dtensor_destroy(scores);
    return descend(tape, model, loss, 0.2);
}

int main(int argc, char **argv)
{
    struct dtensor_ctx *ctx = begin();
    const int n = dtensor_world_size(ctx), tp = n > 1 ? 2 : 1;
    const struct dtensor_distribution how = { .partition = place, .root = -1 };
    struct dtensor_module *model = model_make(ctx);
    const struct dtensor_mesh *mesh;
    struct dtensor_tape *tape;
    double loss;

    text_read(argv[1]);
    check(dtensor_mesh_create(ctx, 2, (const int[]){ n / tp, tp }, "dp,tp",
                              NULL, &mesh, &err));
    check(dtensor_distribute_module(model, mesh, &how, &err));
    tape = watched(ctx, model);
    for (int i = 0; i < STEPS; i++) {
        loss = train(tape, model, mesh, 5 * i);
        if (dtensor_rank(ctx) == 0)
            printf("step %d: loss %.6f\n", i, loss);
    }
    dtensor_tape_destroy(tape);
    dtensor_module_destroy(model);
    dtensor_fini(ctx);
    return 0;
}
