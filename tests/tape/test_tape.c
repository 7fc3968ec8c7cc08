/* test_tape.c - tapes: what they hold, and what they refuse
 *
 * Gradients of small calls against numbers known beforehand; tensors that are
 * destroyed, or changed in place, between a call and the backward; and each
 * error with its words.
 *
 * Without this test, a tensor that a program destroys could be freed while the
 * tape needs it, or a gradient be computed from elements that are no more.
 */
#include "job/ctx.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { WORLD = 2 };

static struct dtensor *tensor(struct job *job, const char *placements,
                              int64_t rows, int64_t columns,
                              const double full[])
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_init(&spec, job->ctx, "world", placements, DTENSOR_F64, 2,
                           (const int64_t[]){ rows, columns }, &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    return t;
}

static struct dtensor *op(struct job *job, const char *name,
                          const struct dtensor *a, const struct dtensor *b)
{
    struct dtensor *t = NULL;

    good(dtensor_op(name, b ? 2 : 1, (const struct dtensor *const[]){ a, b },
                    NULL, 1, &t, &job->err));
    return t;
}

/* Is the gradient of `t` these numbers, placed as `t` is? */
static void is(struct job *job, const struct dtensor_tape *tape,
               const struct dtensor *t, size_t n, const double want[],
               const char *what)
{
    const struct dtensor *grad = dtensor_tape_grad(tape, t);
    char have[80], should[80];
    double full[16];

    need(grad, "%s: no gradient", what);
    dtensor_placements_format(t->spec.mesh, t->spec.placement, should,
                              sizeof should);
    dtensor_placements_format(t->spec.mesh, grad->spec.placement, have,
                              sizeof have);
    need(strcmp(have, should) == 0, "%s: the gradient is %s, not %s", what,
         have, should);
    good(dtensor_full_tensor(grad, full, n * sizeof full[0], &job->err));
    for (size_t i = 0; i < n; i++)
        need(fabs(full[i] - want[i]) < 1e-12, "%s: element %zu is %.17g, not "
             "%.17g", what, i, full[i], want[i]);
}

/* It failed with EINVAL, and the words have these in them. */
static void refused(struct job *job, int rc, const char *words)
{
    need(rc == DTENSOR_EINVAL && strstr(job->err.text, words),
         "rc %d, \"%s\" instead of \"%s\"", rc, job->err.text, words);
    job->err.text[0] = '\0';
}

static const double four[] = { 1, 2, 3, 4 }, six[] = { 1, 2, 3, 4, 5, 6 };

/* ---------------------------------------------------------------- holds --- */

/* sum(x w): of w it is the sums of the columns of x, on rank after rank. */
static void a_product(struct job *job, const char *x_placed,
                      const char *w_placed)
{
    struct dtensor *x = tensor(job, x_placed, 2, 3, six);
    struct dtensor *w = tensor(job, w_placed, 3, 2, six), *y, *loss;
    struct dtensor_tape *tape = job_tape(job, w);

    good(dtensor_tape_watch(tape, x, &job->err));
    for (int step = 0; step < 3; step++) {
        if (step > 0)
            good(dtensor_tape_begin(tape, &job->err));
        y = op(job, "matmul", x, w);
        loss = op(job, "sum", y, NULL);
        good(dtensor_tape_end(tape, &job->err));
        dtensor_destroy(y);
        good(dtensor_tape_backward(tape, loss, NULL, &job->err));
        dtensor_destroy(loss);
        is(job, tape, w, 6, (const double[]){ 5, 5, 7, 7, 9, 9 }, "of w");
        is(job, tape, x, 6, (const double[]){ 3, 7, 11, 3, 7, 11 }, "of x");
    }
    dtensor_destroy(w);
    dtensor_destroy(x);
    dtensor_tape_destroy(tape);
}

static void products(struct job *job)
{
    static const char *const placed[] = { "R", "S(0)", "S(1)" };

    for (int i = 0; i < 9; i++)
        a_product(job, placed[i / 3], placed[i % 3]);
}

/* d = x x + x with x used three times, one of them destroyed at once; the tape
 * holds what it needs and nothing else.
 */
static void lives(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four), *square, *all, *loss;
    struct dtensor_tape *tape = job_tape(job, x);

    square = op(job, "mul", x, x);
    need(x->holders == 4, "x has %d holders", x->holders);
    all = op(job, "add", square, x);
    need(square->holders == 1, "a term of a sum has %d holders",
         square->holders);
    dtensor_destroy(square);
    loss = op(job, "sum", all, NULL);
    dtensor_destroy(all);
    good(dtensor_tape_watch(tape, loss, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, x, 4, (const double[]){ 3, 5, 7, 9 }, "x x + x");
    need(x->holders == 2, "x has %d holders after the backward", x->holders);
    dtensor_destroy(x);
    dtensor_tape_clear(tape);
    need(!dtensor_tape_grad(tape, loss), "there is a gradient after clear");
    dtensor_tape_destroy(tape);
    need(loss->holders == 1, "the loss has %d holders", loss->holders);
    dtensor_destroy(loss);
}

/* A step in the middle, whose gradient is asked for, and one that is given. */
static void middle(struct job *job)
{
    struct dtensor *x = tensor(job, "S(1)", 2, 2, four), *y, *z;
    struct dtensor *grad = tensor(job, "R", 2, 2, (const double[]){ 1, 0, 2,
                                                                    0 });
    struct dtensor_tape *tape = job_tape(job, x);

    y = op(job, "square", x, NULL);
    good(dtensor_tape_watch(tape, y, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    z = op(job, "neg", y, NULL);                 /* is not noted              */
    dtensor_destroy(z);
    good(dtensor_tape_begin(tape, &job->err));
    z = op(job, "neg", y, NULL);
    good(dtensor_tape_backward(tape, z, grad, &job->err));
    is(job, tape, y, 4, (const double[]){ -1, 0, -2, 0 }, "in the middle");
    is(job, tape, x, 4, (const double[]){ -2, 0, -12, 0 }, "before it");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(z);
    dtensor_destroy(grad);
    dtensor_tape_destroy(tape);
}

/* Placements that are made on the way, and back. */
static void redistributed(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four);
    struct dtensor *y = NULL, *z = NULL, *into = tensor(job, "S(1)", 2, 2,
                                                        four), *loss;
    struct dtensor_tape *tape = job_tape(job, x);

    good(dtensor_redistribute(x, "R", &y, &job->err));
    good(dtensor_redistribute_into(y, into, &job->err));
    good(dtensor_clone(into, &z, &job->err));
    dtensor_destroy(y);
    y = op(job, "square", z, NULL);
    loss = op(job, "sum", y, NULL);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, x, 4, (const double[]){ 2, 4, 6, 8 }, "redistributed");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(z);
    dtensor_destroy(into);
    dtensor_destroy(loss);
    dtensor_tape_destroy(tape);
}

/* What is dropped has the gradient 0, what is kept that of its scale. */
static void dropped(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, (const double[]){ 1, 1, 1,
                                                                    1 });
    struct dtensor *y = NULL, *loss;
    struct dtensor_tape *tape = job_tape(job, x);
    double want[4];

    good(dtensor_dropout(x, 0.5, NULL, &y, NULL, &job->err));
    good(dtensor_full_tensor(y, want, sizeof want, &job->err));
    loss = op(job, "sum", y, NULL);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, x, 4, want, "dropout");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(loss);
    dtensor_tape_destroy(tape);
}

/* A context that refuses implied redistributes: forward is refused, backward
 * is not.
 */
static void implied(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four), *y = NULL, *loss;
    struct dtensor *w = tensor(job, "R", 2, 2, four);
    struct dtensor_tape *tape = job_tape(job, w);
    const struct dtensor *const in[] = { x, w };

    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_REFUSED, &job->err));
    y = op(job, "matmul", x, w);
    loss = op(job, "sum", y, NULL);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, w, 4, (const double[]){ 4, 4, 6, 6 }, "of a replica");
    dtensor_destroy(y);
    y = op(job, "sigmoid", w, NULL);
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_ALLOWED, &job->err));
    dtensor_destroy(y);
    good(dtensor_op("add", 2, in, NULL, 1, &y, &job->err));
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(w);
    dtensor_destroy(loss);
    dtensor_tape_destroy(tape);
}

/* -------------------------------------------------------------- refuses --- */

static void twice(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four);
    struct dtensor_tape *tape = job_tape(job, x), *other = NULL;
    struct dtensor *loss = op(job, "sum", x, NULL);

    refused(job, dtensor_tape_begin(tape, &job->err), "the tape is active");
    good(dtensor_tape_create(job->ctx, &other, &job->err));
    refused(job, dtensor_tape_begin(other, &job->err), "another tape");
    refused(job, dtensor_tape_end(other, &job->err), "is not active");
    good(dtensor_tape_end(tape, &job->err));
    refused(job, dtensor_tape_end(tape, &job->err), "is not active");
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    refused(job, dtensor_tape_backward(tape, loss, NULL, &job->err),
            "there was a backward");
    dtensor_tape_destroy(other);
    dtensor_tape_destroy(NULL);
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(loss);
}

static void arguments(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four), *whole = NULL;
    struct dtensor *wide = tensor(job, "R", 2, 3, six), *y;
    struct dtensor_tape *tape = job_tape(job, x), *none = NULL;

    refused(job, dtensor_tape_create(NULL, &none, &job->err), "ctx is NULL");
    refused(job, dtensor_tape_watch(tape, NULL, &job->err), "t is NULL");
    good(dtensor_cast(x, DTENSOR_I32, &whole, &job->err));
    refused(job, dtensor_tape_watch(tape, whole, &job->err),
            "has no gradient (only floats have one)");
    y = op(job, "square", x, NULL);
    refused(job, dtensor_tape_backward(tape, y, NULL, &job->err),
            "several elements");
    refused(job, dtensor_tape_backward(tape, y, wide, &job->err),
            "is no gradient of");
    refused(job, dtensor_tape_backward(tape, wide, NULL, &job->err),
            "depends on no watched tensor");
    refused(job, dtensor_tape_backward(tape, whole, NULL, &job->err),
            "depends on no watched tensor");
    need(!dtensor_tape_grad(tape, wide), "what is not watched has a gradient");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(wide);
    dtensor_destroy(whole);
    dtensor_tape_destroy(tape);
}

/* mul needs its inputs, which are changed; add does not. */
static void changed(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four);
    struct dtensor *factor = tensor(job, "S(0)", 2, 2, four), *y, *loss;
    const struct dtensor *const twofold[] = { factor, factor };
    struct dtensor_tape *tape = job_tape(job, x);

    y = op(job, "mul", x, factor);
    loss = op(job, "sum", y, NULL);
    good(dtensor_op_into("add", 2, twofold, NULL, 1, &factor, &job->err));
    refused(job, dtensor_tape_backward(tape, loss, NULL, &job->err),
            "input 1 of mul was changed in place");
    need(!dtensor_tape_grad(tape, x), "a backward that failed left a gradient");
    dtensor_destroy(y);
    dtensor_destroy(loss);
    good(dtensor_tape_begin(tape, &job->err));
    y = op(job, "add", x, factor);
    good(dtensor_fill_uniform(factor, 0, 1, NULL, &job->err));
    loss = op(job, "sum", y, NULL);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, x, 4, (const double[]){ 1, 1, 1, 1 }, "of a term");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(loss);
    dtensor_destroy(factor);
    dtensor_tape_destroy(tape);
}

/* In place on what is watched: the gradient is that of the elements before. */
static void in_place(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four), *loss;
    struct dtensor *y = tensor(job, "S(0)", 2, 2, four);
    struct dtensor_tape *tape = job_tape(job, y);
    const struct dtensor *const in[] = { x, y };

    good(dtensor_op_into("add_", 2, in, NULL, 1, &x, &job->err));
    good(dtensor_op_into("mul_", 2, in, NULL, 1, &x, &job->err));
    loss = op(job, "sum", x, NULL);
    refused(job, dtensor_tape_backward(tape, loss, NULL, &job->err),
            "input 0 of mul_ was changed in place");
    dtensor_destroy(loss);
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_op_into("add_", 2, in, NULL, 1, &x, &job->err));
    good(dtensor_op_into("relu", 1, in, NULL, 1, &x, &job->err));
    loss = op(job, "sum", x, NULL);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, y, 4, (const double[]){ 1, 1, 1, 1 }, "add_ and relu");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(loss);
    dtensor_tape_destroy(tape);
}

/* An operator without a backward is noted, and refused when it is reached. */
static void without(struct job *job)
{
    struct dtensor *x = tensor(job, "R", 2, 2, four), *y, *loss, *sign;
    const struct dtensor_op_args last = { .ndims = 1, .dim = { -1 } };
    const struct dtensor *const in[] = { x, x };
    struct dtensor_tape *tape = job_tape(job, x);

    good(dtensor_op("softmax_backward", 2, in, &last, 1, &y, &job->err));
    sign = op(job, "sign", y, NULL);
    loss = op(job, "sum", y, NULL);
    refused(job, dtensor_tape_backward(tape, sign, NULL, &job->err),
            "depends on no watched tensor");
    refused(job, dtensor_tape_backward(tape, loss, NULL, &job->err),
            "softmax_backward has no backward");
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(sign);
    dtensor_destroy(loss);
    dtensor_tape_destroy(tape);
}

static void printed(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four), *y;
    struct dtensor_tape *tape = job_tape(job, x);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    y = op(job, "sin", x, NULL);
    good(dtensor_tape_print(tape, stream, &job->err));
    good(dtensor_tape_backward(tape, y, x, &job->err));
    good(dtensor_tape_print(tape, stream, &job->err));
    fclose(stream);
    need(strstr(text, "sin: #0 f64[2, 2]") &&
         strstr(text, "(kept) -> #1 f64") &&
         strstr(text, "gradient of #0 came as S(0), is S(0)"),
         "printed: %s", text);
    free(text);
    stream = fopen("/dev/full", "w");
    need(dtensor_tape_print(tape, stream, &job->err) == DTENSOR_ESYS,
         "a full disk went unseen");
    fclose(stream);
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_tape_destroy(tape);
}

/* A tape, and tensors that it holds, outlive the context. */
static void outlives(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2, four), *y;
    struct dtensor_tape *tape = job_tape(job, x);

    y = op(job, "square", x, NULL);
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_fini(job->ctx);
    dtensor_tape_destroy(tape);
}

/* A product with an element whose reciprocal is infinite. */
static void tiny(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", 2, 2,
                               (const double[]){ 4e-309, 2, 3, 4 });
    struct dtensor_tape *tape = job_tape(job, x);
    struct dtensor *loss = op(job, "prod", x, NULL);

    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, x, 4, (const double[]){ 24, 0, 0, 0 }, "of a product");
    dtensor_destroy(loss);
    dtensor_destroy(x);
    dtensor_tape_destroy(tape);
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    products(job);
    lives(job);
    middle(job);
    redistributed(job);
    dropped(job);
    implied(job);
    twice(job);
    arguments(job);
    changed(job);
    in_place(job);
    without(job);
    tiny(job);
    printed(job);
    outlives(job);
}

int main(void)
{
    for (int n = 1; n <= WORLD; n++)
        ok(ranks_run(n, 120, rank_main, NULL, NULL) == 0,
           "tapes on %d ranks hold what they need, and say what they refuse",
           n);
    return done();
}
