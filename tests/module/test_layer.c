/* test_layer.c - a transformer layer, written with modules and spread by plans
 *
 * Attention and an MLP, each behind a norm and with a residual.  Whole, cut by
 * heads, and with the sequence cut between them too, it gives the same numbers;
 * it moves what PyTorch's layer moves: 2 allreduces, or 2 all-gathers and 2
 * reduce-scatters; and the same on the way back, where PyTorch makes 4
 * allreduces, since it sums the gradients of q, k and v one by one.
 *
 * Without this test, each style could be right alone, and a layer of them could
 * move more than it has to, or have a view that no plan lets through.
 */
#include "dtensor.h"
#include "job/ctx.h"
#include "tests/module/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* -------------------------------------------------- the layer itself --- */

enum { BATCH = 2, LENGTH = 8, WIDTH = 16, HEADS = 4, HIDDEN = 32 };

static int one(const char *op, const struct dtensor *x,
               const struct dtensor_op_args *args, struct dtensor **yp,
               struct dtensor_error *err)
{
    return dtensor_op(op, 1, &x, args, 1, yp, err);
}

/* The result of a step takes the place of what it was made of. */
static int step(const char *op, struct dtensor **tp,
                const struct dtensor_op_args *args, struct dtensor_error *err)
{
    struct dtensor *made = NULL;
    int rc = one(op, *tp, args, &made, err);

    if (rc != 0)
        return rc;
    dtensor_destroy(*tp);
    *tp = made;
    return 0;
}

/* x by the child `name`, as heads: batch, head, then length and width of a head
 * in the order of a and b.
 */
static int heads(const struct dtensor_forward *call, const char *name, int a,
                 int b, struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtensor_op_args split = { .ndim = 4,
        .shape = { BATCH, LENGTH, HEADS, WIDTH / HEADS } };
    const struct dtensor_op_args order = { .ndims = 4, .dim = { 0, 2, a, b } };
    int rc = dtensor_module_apply(call->module, name, call->in[0], tp, err);

    if (rc == 0)
        rc = step("view", tp, &split, err);
    return rc == 0 ? step("permute", tp, &order, err) : rc;
}

/* softmax(q k^T / 2) v, the heads side by side again. */
static int attention(const struct dtensor_forward *call,
                     struct dtensor_error *err)
{
    const struct dtensor_op_args back = { .ndims = 4, .dim = { 0, 2, 1, 3 } };
    const struct dtensor_op_args join = { .ndim = 3,
                                          .shape = { BATCH, LENGTH, WIDTH } };
    const struct dtensor_op_args half = { .value = 0.5 };
    const struct dtensor_op_args last = { .ndims = 1, .dim = { -1 } };
    struct dtensor *q = NULL, *k = NULL, *v = NULL, *s = NULL, *y = NULL;
    int rc = heads(call, "q", 1, 3, &q, err);

    if (rc == 0)
        rc = heads(call, "k", 3, 1, &k, err);
    if (rc == 0)
        rc = heads(call, "v", 1, 3, &v, err);
    if (rc == 0)
        rc = dtensor_matmul(q, k, &s, err);
    if (rc == 0)
        rc = step("scale", &s, &half, err);
    if (rc == 0)
        rc = step("softmax", &s, &last, err);
    if (rc == 0)
        rc = dtensor_matmul(s, v, &y, err);
    if (rc == 0)
        rc = step("permute", &y, &back, err);
    if (rc == 0)
        rc = step("view", &y, &join, err);
    if (rc == 0)
        rc = dtensor_module_apply(call->module, "out", y, &call->out[0], err);
    dtensor_destroy(q);
    dtensor_destroy(k);
    dtensor_destroy(v);
    dtensor_destroy(s);
    dtensor_destroy(y);
    return rc;
}

/* x + the child behind the norm, of x. */
static int residual(struct dtensor_module *m, const char *norm,
                    const char *name, const struct dtensor *x,
                    struct dtensor **yp, struct dtensor_error *err)
{
    struct dtensor *normed = NULL, *inner = NULL;
    int rc = dtensor_module_apply(m, norm, x, &normed, err);

    if (rc == 0)
        rc = dtensor_module_apply(m, name, normed, &inner, err);
    if (rc == 0)
        rc = dtensor_add(x, inner, yp, err);
    dtensor_destroy(normed);
    dtensor_destroy(inner);
    return rc;
}

static int layer(const struct dtensor_forward *call, struct dtensor_error *err)
{
    struct dtensor *x = NULL;
    int rc = residual(call->module, "norm1", "attn", call->in[0], &x, err);

    if (rc == 0)
        rc = residual(call->module, "norm2", "mlp", x, &call->out[0], err);
    dtensor_destroy(x);
    return rc;
}

/* --------------------------------------------------- making the tree --- */

static void weight(struct dtensor_module *m, const char *name, int ndim,
                   const int64_t shape[], int seed)
{
    struct dtensor *t = tensor(DTENSOR_F64, ndim, shape, seed), *small = NULL;

    good(dtensor_scale(t, 1.0 / 16, &small, &job->err));
    dtensor_destroy(t);
    good(dtensor_module_set(m, name, small, &job->err));
}

static void linear(struct dtensor_module *parent, const char *name, int64_t to,
                   int64_t from, int seed)
{
    struct dtensor_module *m = module(parent, name, "linear");

    weight(m, "weight", 2, (const int64_t[]){ to, from }, seed);
    weight(m, "bias", 1, (const int64_t[]){ to }, seed + 1);
}

static struct dtensor_module *own(struct dtensor_module *parent,
                                  const char *name, dtensor_forward_f *forward)
{
    struct dtensor_module *m = NULL;

    good(dtensor_module_create(job->ctx, name, forward, NULL, &m, &job->err));
    if (parent)
        good(dtensor_module_add(parent, name, m, &job->err));
    return m;
}

static struct dtensor_module *tree(void)
{
    static const char *const attn_names[] = { "q", "k", "v", "out" };
    static const char *const norms[] = { "norm1", "norm2" };
    struct dtensor_module *top = own(NULL, "layer", layer);
    struct dtensor_module *attn = own(top, "attn", attention), *m;

    for (int i = 0; i < 4; i++)
        linear(attn, attn_names[i], WIDTH, WIDTH, 2 * i);
    for (int i = 0; i < 2; i++) {
        m = module(top, norms[i], "layer_norm");
        weight(m, "weight", 1, (const int64_t[]){ WIDTH }, i);
        weight(m, "bias", 1, (const int64_t[]){ WIDTH }, i + 2);
    }
    m = module(top, "mlp", "sequential");
    linear(m, "up", HIDDEN, WIDTH, 3);
    module(m, "act", "gelu");
    linear(m, "down", WIDTH, HIDDEN, 5);
    return top;
}

/* ------------------------------------------------------------- plans --- */

static const struct dtensor_style by_heads[] = {
    { "attn.[qkv]", "colwise" }, { "attn.out", "rowwise" },
    { "mlp.up", "colwise" }, { "mlp.down", "rowwise" } };

static const struct dtensor_style by_sequence[] = {
    { "norm?", "sequence" }, { "attn", "prepare input=R" },
    { "attn.[qkv]", "colwise" }, { "attn.out", "rowwise output=S(1)" },
    { "mlp.up", "colwise" }, { "mlp.down", "rowwise output=S(1)" } };

static void near(const struct dtensor *a, const struct dtensor *b)
{
    static double x[BATCH * LENGTH * WIDTH], y[BATCH * LENGTH * WIDTH];

    good(dtensor_full_tensor(a, x, sizeof x, &job->err));
    good(dtensor_full_tensor(b, y, sizeof y, &job->err));
    for (int i = 0; i < BATCH * LENGTH * WIDTH; i++)
        need(fabs(x[i] - y[i]) < 1e-12, "element %d is %.17g, whole %.17g", i,
             y[i], x[i]);
}

/* The gradient of x, and what it moved; the output's gradient is y itself. */
static struct dtensor_tape *differentiate(struct dtensor_module *top,
                                          const struct dtensor *x,
                                          char counts[40])
{
    struct dtensor_tape *tape = NULL;
    struct dtensor *y = NULL;
    uint64_t before;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_tape_watch(tape, x, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    before = job->ctx->calls;
    good(dtensor_tape_backward(tape, y, y, &job->err));
    calls_count(before, counts);
    dtensor_destroy(y);
    return tape;
}

/* The gradient of x, of the layer that lies so, against the whole one. */
static void backward_run(struct dtensor_module *top, const struct dtensor *in,
                         const struct dtensor *whole, const char *expected)
{
    char counts[40];
    struct dtensor_tape *tape = differentiate(top, in, counts);

    need(strcmp(counts, expected) == 0, "backward moves %s, not %s", counts,
         expected);
    near(whole, dtensor_tape_grad(tape, in));
    dtensor_tape_destroy(tape);
}

static void plan_run(int n, const struct dtensor_style plan[],
                     const char *layout, const struct moves *moves,
                     const char *backward)
{
    struct dtensor_tape *alone;
    char counts[40];
    const int64_t shape[] = { BATCH, LENGTH, WIDTH };
    struct dtensor_module *top = tree();
    struct dtensor *x = tensor(DTENSOR_F64, 3, shape, 1);
    struct dtensor *in = NULL, *whole = NULL, *y = NULL;
    char text[80];

    good(dtensor_module_apply(top, "", x, &whole, &job->err));
    alone = differentiate(top, x, counts);
    good(dtensor_redistribute(x, layout, &in, &job->err));
    notes_before(top);
    good(dtensor_parallelize(top, world, n, plan, -1, &job->err));
    notes_behind(top);
    moved = (struct moves){ 0 };
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_REFUSED, &job->err));
    good(dtensor_module_apply(top, "", in, &y, &job->err));
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_ALLOWED, &job->err));
    need(strcmp(placement(y, text), layout) == 0, "output %s", text);
    need(memcmp(&moved, moves, sizeof moved) == 0, "%d all-gathers, %d "
         "allreduces, %d reduce-scatters, %d others", moved.gathered,
         moved.reduced, moved.scattered, moved.other);
    near(whole, y);
    backward_run(top, in, dtensor_tape_grad(alone, x), backward);
    dtensor_tape_destroy(alone);
    dtensor_destroy(x);
    dtensor_destroy(in);
    dtensor_destroy(whole);
    dtensor_destroy(y);
    dtensor_module_destroy(top);
}

static void heads_run(void)
{
    plan_run(4, by_heads, "R", &(struct moves){ .reduced = 2 }, "0 2 0");
}

static void sequence_run(void)
{
    plan_run(6, by_sequence, "S(1)",
             &(struct moves){ .gathered = 2, .scattered = 2 }, "2 0 2");
}

int main(void)
{
    ok(tree_ranks(heads_run), "a layer that is cut by heads");
    ok(tree_ranks(sequence_run), "and by the sequence between them");
    return done();
}
