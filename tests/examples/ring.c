/* ring.c - a language model with a sharded sequence, trained on text
 *
 * Each rank has a piece from the head and one from the tail of one long
 * sequence, HT(1), and all weights.  Only attention needs other ranks: their
 * keys and values move around a ring.
 *
 *   $ cc -o ring ring.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./ring
 */
#include <dtensor.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 64, LETTERS = 12, WIDTH = 16, HEADS = 2, STEPS = 6 };

/* The weights: of letters, queries, keys, values, what attention gives, and of
 * the scores of the next letter.
 */
enum { TABLE, QUERY, KEY, VALUE, MIX, SCORES, WEIGHTS };

struct model {
    struct dtensor *weight[WEIGHTS];
};

static struct dtensor_error err;

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "ring: %s\n", err.text);
    exit(1);
}

/* --------------------------------------------------------------- model --- */

static struct model model_make(struct dtensor_ctx *ctx)
{
    struct dtensor_generator *gen = NULL;
    struct model model;
    struct dtensor_spec spec;

    must(dtensor_generator_create(5, &gen, &err));
    for (int i = 0; i < WEIGHTS; i++) {
        const int64_t shape[2] = { i == TABLE || i == SCORES ? LETTERS : WIDTH,
                                   WIDTH };
        struct dtensor *wide = NULL;

        must(dtensor_spec_init(&spec, ctx, "world", "R", DTENSOR_F64, 2, shape,
                               &err));
        must(dtensor_randn(&spec, gen, &wide, &err));
        must(dtensor_scale(wide, 1 / sqrt(WIDTH), &model.weight[i], &err));
        dtensor_destroy(wide);
    }
    dtensor_generator_destroy(gen);
    return model;
}

/* Replace a tensor by an operator of it. */
static void step(const char *op, const struct dtensor_op_args *args,
                 struct dtensor **tp)
{
    struct dtensor *made = NULL;

    must(dtensor_op(op, 1, (const struct dtensor *[]){ *tp }, args, 1, &made,
                    &err));
    dtensor_destroy(*tp);
    *tp = made;
}

/* 1 x LENGTH x WIDTH times a weight, as 1 x HEADS x LENGTH x WIDTH / HEADS. */
static struct dtensor *by_heads(const struct dtensor *x,
                                const struct dtensor *weight)
{
    const struct dtensor_op_args split = { .ndim = 4,
        .shape = { 1, LENGTH, HEADS, WIDTH / HEADS } };
    const struct dtensor_op_args turn = { .ndims = 4, .dim = { 0, 2, 1, 3 } };
    struct dtensor *made = NULL;

    must(dtensor_linear(x, weight, NULL, &made, &err));
    step("view", &split, &made);
    step("permute", &turn, &made);
    return made;
}

/* Each letter sees those before it, and itself. */
static struct dtensor *attend(const struct model *model,
                              const struct dtensor *x)
{
    const struct dtensor_attention_options how = { .causal = 1,
        .method = DTENSOR_ATTENTION_RING };
    const struct dtensor_op_args turn = { .ndims = 4, .dim = { 0, 2, 1, 3 } };
    const struct dtensor_op_args merge = { .ndim = 3,
                                           .shape = { 1, LENGTH, WIDTH } };
    struct dtensor *q = by_heads(x, model->weight[QUERY]);
    struct dtensor *k = by_heads(x, model->weight[KEY]);
    struct dtensor *v = by_heads(x, model->weight[VALUE]);
    struct dtensor *out = NULL, *mixed = NULL;

    must(dtensor_attention(q, k, v, &how, &out, &err));
    step("permute", &turn, &out);
    step("view", &merge, &out);
    must(dtensor_linear(out, model->weight[MIX], NULL, &mixed, &err));
    dtensor_destroy(q);
    dtensor_destroy(k);
    dtensor_destroy(v);
    dtensor_destroy(out);
    return mixed;
}

static struct dtensor *forward(const struct model *model,
                               const struct dtensor *text,
                               const struct dtensor *next)
{
    struct dtensor *x = NULL, *seen = NULL, *sum = NULL, *scores = NULL,
                   *loss = NULL;

    must(dtensor_embedding(model->weight[TABLE], text, &x, &err));
    seen = attend(model, x);
    must(dtensor_add(x, seen, &sum, &err));
    must(dtensor_linear(sum, model->weight[SCORES], NULL, &scores, &err));
    must(dtensor_cross_entropy(scores, next, DTENSOR_OP_SUM, &loss, &err));
    dtensor_destroy(x);
    dtensor_destroy(seen);
    dtensor_destroy(sum);
    dtensor_destroy(scores);
    return loss;
}

/* ------------------------------------------------------------ training --- */

/* A text of LENGTH letters, from letter `first` on. */
static struct dtensor *text_make(struct dtensor_ctx *ctx, int first)
{
    int64_t letter[LENGTH];
    struct dtensor *t = NULL;
    struct dtensor_spec spec;

    for (int i = 0; i < LENGTH; i++)
        letter[i] = (i + first) * (i + first + 3) % LETTERS;
    must(dtensor_spec_init(&spec, ctx, "world", "HT(1)", DTENSOR_I64, 2,
                           (int64_t[]){ 1, LENGTH }, &err));
    must(dtensor_distribute(&spec, letter, -1, &t, &err));
    return t;
}

static double train(struct dtensor_tape *tape, struct model *model,
                    const struct dtensor *text, const struct dtensor *next)
{
    struct dtensor *loss, *down = NULL;
    double sum;

    must(dtensor_tape_begin(tape, &err));
    loss = forward(model, text, next);
    must(dtensor_tape_end(tape, &err));
    must(dtensor_tape_backward(tape, loss, NULL, &err));
    for (int i = 0; i < WEIGHTS; i++) {
        must(dtensor_scale(dtensor_tape_grad(tape, model->weight[i]),
                           -0.5 / LENGTH, &down, &err));
        must(dtensor_op_into("add_", 2, (const struct dtensor *[]){
                             model->weight[i], down }, NULL, 1,
                             &model->weight[i], &err));
        dtensor_destroy(down);
    }
    must(dtensor_full_tensor(loss, &sum, sizeof sum, &err));
    dtensor_destroy(loss);
    return sum / LENGTH;
}

int main(void)
{
    struct dtensor *text, *next;
    struct dtensor_tape *tape = NULL;
    struct dtensor_ctx *ctx = NULL;
    struct model model;

    must(dtensor_init(NULL, &ctx, &err));
    model = model_make(ctx);
    must(dtensor_tape_create(ctx, &tape, &err));
    for (int i = 0; i < WEIGHTS; i++)
        must(dtensor_tape_watch(tape, model.weight[i], &err));
    text = text_make(ctx, 0);
    next = text_make(ctx, 1);
    for (int i = 0; i < STEPS; i++) {
        const double loss = train(tape, &model, text, next);

        if (dtensor_rank(ctx) == 0)
            printf("step %d loss %.9f\n", i, loss);
    }
    dtensor_tape_destroy(tape);
    dtensor_destroy(text);
    dtensor_destroy(next);
    for (int i = 0; i < WEIGHTS; i++)
        dtensor_destroy(model.weight[i]);
    dtensor_fini(ctx);
    return 0;
}
