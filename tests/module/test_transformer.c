/* test_transformer.c - what a whole language model moves
 *
 * Two embeddings cut by rows, layers cut by heads, a norm and a head whose
 * scores are gathered: PyTorch's test model, with one and two layers, with the
 * head's weight of its own or that of the first embedding, and with the
 * sequence cut between all of them or not.  Forward it moves what PyTorch's
 * counts say.  Backward it moves less:
 *
 *   allreduces     PyTorch sums the gradients of q, k and v along the ranks one
 *                  by one; here they are added first, so that a layer has 2
 *                  allreduces where PyTorch's has 4
 *   norms          with the sequence cut their gradients are terms.  PyTorch
 *                  leaves them, and its optimizer sums each of them 3 times;
 *                  here the tape brings all of them home in one allreduce
 *
 * Losses of scores whose classes are cut are counted, too.  Gradients are those
 * of the model on whole tensors.
 *
 * Without this test, styles that are right one by one could move more than they
 * have to where one follows another.
 */
#include "dtensor.h"
#include "tests/debug/counted.h"
#include "tests/module/layer.h"
#include "tests/module/tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS = 8 };

/* ------------------------------------------------------------ the model --- */

/* The scores of positions: the head, or the table of the embedding again. */
static int head_tied(const struct dtensor_forward *call,
                     struct dtensor_error *err)
{
    struct dtensor_module *token = NULL;
    int rc = dtensor_module_find(dtensor_module_parent(call->module), "token",
                                 &token, err);

    return rc != 0 ? rc
         : dtensor_linear(call->in[0], dtensor_module_param(token, "weight"),
                          NULL, &call->out[0], err);
}

static int model_forward(const struct dtensor_forward *call,
                         struct dtensor_error *err)
{
    static const char *const paths[] = { "layers", "norm", "head" };
    struct dtensor *token = NULL, *place = NULL, *x = NULL, *y = NULL;
    int rc = dtensor_module_apply(call->module, "token", call->in[0], &token,
                                  err);

    if (rc == 0)
        rc = dtensor_module_apply(call->module, "place", call->in[1], &place,
                                  err);
    if (rc == 0)
        rc = dtensor_add(token, place, &x, err);
    dtensor_destroy(token);
    dtensor_destroy(place);
    for (int i = 0; rc == 0 && i < 3; i++) {
        rc = dtensor_module_apply(call->module, paths[i], x, &y, err);
        dtensor_destroy(x);
        x = rc == 0 ? y : NULL;
    }
    call->out[0] = x;
    return rc;
}

static struct dtensor_module *model(int layers, bool tied)
{
    struct dtensor_module *top = own(NULL, "model", model_forward), *all;
    char name[12];

    small(module(top, "token", "embedding"), "weight", 2,
          (const int64_t[]){ LETTERS, WIDTH }, 1);
    small(module(top, "place", "embedding"), "weight", 2,
          (const int64_t[]){ LENGTH, WIDTH }, 2);
    all = module(top, "layers", "sequential");
    for (int i = 0; i < layers; i++) {
        snprintf(name, sizeof name, "%d", i);
        layer(all, name, false);
    }
    small_norm(top, "norm", 3);
    if (tied)
        own(top, "head", head_tied);
    else
        small_linear(top, "head", LETTERS, WIDTH, false, 4);
    return top;
}

/* The styles of the head: with a weight of its own, or with that of the table,
 * which lies as the style colwise wants it.
 */
static const struct dtensor_style whole_sequence[] = {
    { "token", "rowwise" }, { "place", "rowwise" },
    { "layers.*.attn.[qkv]", "colwise" }, { "layers.*.attn.out", "rowwise" },
    { "layers.*.mlp.up", "colwise" }, { "layers.*.mlp.down", "rowwise" },
    { "head", "colwise output=R" }, { "head", "prepare output=R" } };

static const struct dtensor_style cut_sequence[] = {
    { "token", "rowwise output=S(1)" }, { "place", "rowwise output=S(1)" },
    { "layers.*.norm?", "sequence" }, { "layers.*.attn", "prepare input=R" },
    { "layers.*.attn.[qkv]", "colwise" },
    { "layers.*.attn.out", "rowwise output=S(1)" },
    { "layers.*.mlp.up", "colwise" },
    { "layers.*.mlp.down", "rowwise output=S(1)" }, { "norm", "sequence" },
    { "head", "colwise output=R" }, { "head", "prepare input=R output=R" } };

/* The last but one style is the head's, the last one that of a tied one. */
static void spread(struct dtensor_module *top, bool sequence, bool tied)
{
    struct dtensor_style plan[11];
    const int n = sequence ? 11 : 8;

    memcpy(plan, sequence ? cut_sequence : whole_sequence,
           (size_t)n * sizeof plan[0]);
    if (tied)
        plan[n - 2] = plan[n - 1];
    good(dtensor_parallelize(top, world, n - 1, plan, -1, &job->err));
}

/* ------------------------------------------------------------- training --- */

static struct dtensor *indices(int64_t rows, int64_t columns, int seed)
{
    return tensor(DTENSOR_I64, 2, (const int64_t[]){ rows, columns }, seed);
}

/* Forward and backward, counted; the scores are their own gradient. */
static struct dtensor_tape *train(struct dtensor_module *top)
{
    struct dtensor *in[] = { indices(BATCH, LENGTH, 5), indices(1, LENGTH, 6) };
    struct dtensor *y = NULL;
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    tree_watch(top, tape);
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_module_call(top, 2, (const struct dtensor *const *)in, 1, &y,
                             &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_tape_backward(tape, y, y, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    dtensor_destroy(in[0]);
    dtensor_destroy(in[1]);
    dtensor_destroy(y);
    return tape;
}

/* "AG AR RS", and that there is nothing else. */
static void counts_are(enum dtensor_direction d, const char *should,
                       const char *what)
{
    static const int kinds[] = { DTENSOR_ALLGATHER, DTENSOR_ALLREDUCE,
                                 DTENSOR_REDUCE_SCATTER };
    int n[3];
    char is[40];

    for (int i = 0; i < 3; i++)
        n[i] = (int)counted(NULL, d, kinds[i]);
    snprintf(is, sizeof is, "%d %d %d", n[0], n[1], n[2]);
    need(strcmp(is, should) == 0, "%s: %s, not %s", what, is, should);
    need((int)counted(NULL, d, DTENSOR_DEBUG_ALL) == n[0] + n[1] + n[2],
         "%s: others", what);
}

/* PyTorch 2.15 on 4 ranks.  Its backward is "0 5 0" where ours is "0 3
 * 0", "0 9 0" for "0 5 0"; with the sequence cut "4 0 3" and "6 0 5", and 18
 * and 30 allreduces of its optimizer, for the norms, where ours has 1.
 */
static const struct whole {
    int layers;
    bool tied, sequence;
    int params;                    /* parameters                              */
    const char *forward, *backward;    /* "AG AR RS"                          */
} wholes[] = {
    { 1, true, false, 16, "1 4 0", "0 3 0" },
    { 1, true, true, 16, "4 0 4", "4 1 3" },
    { 1, false, false, 17, "1 4 0", "0 3 0" },
    { 1, false, true, 17, "4 0 4", "4 1 3" },
    { 2, true, false, 28, "1 6 0", "0 5 0" },
    { 2, true, true, 28, "6 0 6", "6 1 5" },
    { 2, false, false, 29, "1 6 0", "0 5 0" },
    { 2, false, true, 29, "6 0 6", "6 1 5" }
};

static void whole_run(const struct whole *row)
{
    struct dtensor_module *top = model(row->layers, row->tied);
    struct dtensor_tape *alone = train(top), *tape;
    const struct dtensor *whole[LEAVES];
    char what[80];

    snprintf(what, sizeof what, "%d layers, tied %d, sequence %d", row->layers,
             row->tied, row->sequence);
    for (int i = 0; i < leaves.n; i++)
        whole[i] = dtensor_tape_grad(alone, leaves.t[i]);
    spread(top, row->sequence, row->tied);
    tape = train(top);
    need(leaves.n == row->params, "%s: %d parameters", what, leaves.n);
    counts_are(DTENSOR_FORWARD, row->forward, what);
    counts_are(DTENSOR_BACKWARD, row->backward, what);
    for (int i = 0; i < leaves.n; i++)
        near(whole[i], dtensor_tape_grad(tape, leaves.t[i]), what);
    dtensor_tape_destroy(alone);
    dtensor_tape_destroy(tape);
    dtensor_module_destroy(top);
}

static void models(void)
{
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        whole_run(&wholes[i]);
}

/* --------------------------------------------------------------- losses --- */

/* Scores of 8 rows and 16 classes, which are cut.  PyTorch's loss_parallel has
 * 3 allreduces forward and none backward; its plain loss gathers the scores.
 * Here the sums of a row and its picked score are one allreduce, and the
 * backward finds both numbers of the row on the tape.
 */
static const struct loss {
    enum dtensor_op_reduction reduction;
    bool plain;                    /* the program gathers the scores          */
    const char *forward, *backward;    /* "AG AR RS"                          */
} loss_rows[] = {
    { DTENSOR_OP_NONE, false, "0 2 0", "0 0 0" },
    { DTENSOR_OP_NONE, true, "1 0 0", "0 0 0" },
    { DTENSOR_OP_MEAN, false, "0 2 0", "0 0 0" },
    { DTENSOR_OP_MEAN, true, "1 0 0", "0 0 0" },
    { DTENSOR_OP_SUM, false, "0 2 0", "0 0 0" },
    { DTENSOR_OP_SUM, true, "1 0 0", "0 0 0" }
};

/* The loss of scores, and their gradient on the tape, both counted. */
static struct dtensor_tape *lose(const struct loss *row, struct dtensor *x,
                                 struct dtensor **lossp)
{
    struct dtensor *target = tensor(DTENSOR_I64, 1, (const int64_t[]){ 8 }, 3);
    struct dtensor *whole = NULL, *ones = NULL;
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_tape_watch(tape, x, &job->err));
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    if (row->plain)
        good(dtensor_redistribute(x, "R", &whole, &job->err));
    good(dtensor_cross_entropy(whole ? whole : x, target, row->reduction, lossp,
                               &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_ones(dtensor_spec_of(*lossp), &ones, &job->err));
    good(dtensor_tape_backward(tape, *lossp, ones, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    dtensor_destroy(target);
    dtensor_destroy(whole);
    dtensor_destroy(ones);
    return tape;
}

static void loss_run(const struct loss *row, const char *what)
{
    struct dtensor *all = tensor(DTENSOR_F64, 2, (const int64_t[]){ 8, 16 }, 5);
    struct dtensor *x = NULL, *alone = NULL, *loss = NULL;
    struct dtensor_tape *tape, *alone_tape = lose(row, all, &alone);
    char text[80];

    good(dtensor_redistribute(all, "S(1)", &x, &job->err));
    tape = lose(row, x, &loss);
    counts_are(DTENSOR_FORWARD, row->forward, what);
    counts_are(DTENSOR_BACKWARD, row->backward, what);
    need(strcmp(placement(loss, text), "R") == 0, "%s: loss %s", what, text);
    need(strcmp(placement(dtensor_tape_grad(tape, x), text), "S(1)") == 0,
         "%s: gradient %s", what, text);
    near(alone, loss, what);
    near(dtensor_tape_grad(alone_tape, all), dtensor_tape_grad(tape, x), what);
    dtensor_tape_destroy(tape);
    dtensor_tape_destroy(alone_tape);
    dtensor_destroy(all);
    dtensor_destroy(alone);
    dtensor_destroy(x);
    dtensor_destroy(loss);
}

static void losses(void)
{
    char what[60];

    for (size_t i = 0; i < sizeof loss_rows / sizeof loss_rows[0]; i++) {
        snprintf(what, sizeof what, "loss, reduction %d, plain %d",
                 (int)loss_rows[i].reduction, loss_rows[i].plain);
        loss_run(&loss_rows[i], what);
    }
}

int main(void)
{
    ok(tree_ranks(models), "a language model moves no more than PyTorch's, and "
       "has the gradients of one rank");
    ok(tree_ranks(losses), "a loss of scores whose classes are cut moves what "
       "it should");
    return done();
}
