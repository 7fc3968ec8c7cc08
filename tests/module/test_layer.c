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
#include "tests/module/layer.h"
#include "tests/module/tree.h"

#include <string.h>

/* ------------------------------------------------------------- plans --- */

static const struct dtensor_style by_heads[] = {
    { "attn.[qkv]", "colwise" }, { "attn.out", "rowwise" },
    { "mlp.up", "colwise" }, { "mlp.down", "rowwise" } };

static const struct dtensor_style by_sequence[] = {
    { "norm?", "sequence" }, { "attn", "prepare input=R" },
    { "attn.[qkv]", "colwise" }, { "attn.out", "rowwise output=S(1)" },
    { "mlp.up", "colwise" }, { "mlp.down", "rowwise output=S(1)" } };

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
    near(whole, dtensor_tape_grad(tape, in), "backward");
    dtensor_tape_destroy(tape);
}

static void plan_run(int n, const struct dtensor_style plan[],
                     const char *layout, const struct moves *moves,
                     const char *backward)
{
    struct dtensor_tape *alone;
    char counts[40];
    const int64_t shape[] = { BATCH, LENGTH, WIDTH };
    struct dtensor_module *top = layer(NULL, "layer", true);
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
    near(whole, y, "forward");
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
