/* test_edges.c - gradients where a formula has no number, and outputs that
 * nobody uses
 *
 * PyTorch gives 0 where a formula would divide by 0, or multiply 0 by infinity.
 * An output without a use has a gradient of zeros.  The numbers of the rules
 * are read in any locale.
 *
 * Without this test, one zero among the elements could make all gradients of a
 * model NaN, and a program with a decimal comma could get other gradients.
 */
#include "dtensor.h"
#include "tests/support/comma.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD = 2 };

static struct dtensor *tensor(struct job *job, const char *placements,
                              const double full[4])
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_init(&spec, job->ctx, "world", placements, DTENSOR_F64, 2,
                           (const int64_t[]){ 2, 2 }, &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    return t;
}

/* Output `use` of `nout`, of which no other is used, summed. */
static struct dtensor *loss_of(struct job *job, const char *op,
                               const struct dtensor_op_args *args, int nout,
                               int use, const struct dtensor *x)
{
    struct dtensor *out[3] = { NULL }, *sum = NULL;

    good(dtensor_op(op, 1, &x, args, nout, out, &job->err));
    good(dtensor_op("sum", 1, (const struct dtensor *const *)&out[use], NULL, 1,
                    &sum, &job->err));
    for (int i = 0; i < nout; i++)
        dtensor_destroy(out[i]);
    return sum;
}

/* Is the gradient of `t` these numbers? */
static void is(struct job *job, const struct dtensor_tape *tape,
               const struct dtensor *t, const double want[4], const char *what)
{
    double full[4];

    good(dtensor_full_tensor(dtensor_tape_grad(tape, t), full, sizeof full,
                             &job->err));
    for (int i = 0; i < 4; i++)
        need(fabs(full[i] - want[i]) < 1e-12, "%s: element %d is %.17g, not "
             "%.17g", what, i, full[i], want[i]);
}

/* Where a formula would divide by 0 or multiply 0 by infinity. */
static const struct edge {
    const char *op;               /* name                                     */
    struct dtensor_op_args args;  /* of the call                              */
    int nout, use;                /* outputs; the one that is summed          */
    double x[4], want[4];         /* input; its gradient                      */
} edges[] = {
    { "dropout", { .p = 1 }, 1, 0, { 1, 2, 3, 4 }, { 0, 0, 0, 0 } },
    { "pow", { .p = 0 }, 1, 0, { 0, 2, 3, 4 }, { 0, 0, 0, 0 } },
    { "std", { .ndims = 0 }, 1, 0, { 2, 2, 2, 2 }, { 0, 0, 0, 0 } },
    { "norm", { .p = 2 }, 1, 0, { 0, 0, 3, 4 }, { 0, 0, 0.6, 0.8 } },
    { "norm", { .p = 0.5 }, 1, 0, { 0, 0, 1, -1 }, { 0, 0, 2, -2 } },
    { "powsum", { .p = 0.5 }, 1, 0,
      { 0, 4, 1, -1 }, { 0, 0.25, 0.5, -0.5 } },
    { "slice", { .ndims = 1, .end = 2, .step = INT64_MAX }, 1, 0,
      { 1, 2, 3, 4 }, { 1, 1, 0, 0 } },
    { "split", { .ndims = 1, .count = 1 }, 2, 1,
      { 1, 2, 3, 4 }, { 0, 0, 1, 1 } },
    { "unbind", { .ndims = 1, .dim = { 1 } }, 2, 0,
      { 1, 2, 3, 4 }, { 1, 0, 1, 0 } },
};

static void edge(struct job *job, const struct edge *at)
{
    struct dtensor *x = tensor(job, "S(1)", at->x), *whole = NULL;
    struct dtensor_tape *tape;
    struct dtensor *loss;

    good(dtensor_redistribute(x, "R", &whole, &job->err));
    tape = job_tape(job, whole);
    loss = loss_of(job, at->op, &at->args, at->nout, at->use, whole);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, whole, at->want, at->op);
    dtensor_destroy(loss);
    dtensor_destroy(whole);
    dtensor_destroy(x);
    dtensor_tape_destroy(tape);
}

/* The mean of a layer norm is not for computing with. */
static void no_gradient(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", edges[3].x), *loss;
    struct dtensor_tape *tape = job_tape(job, x);

    loss = loss_of(job, "layer_norm", NULL, 3, 1, x);
    need(dtensor_tape_backward(tape, loss, NULL, &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "output 1 of layer_norm has no gradient"),
         "%s", job->err.text);
    dtensor_destroy(loss);
    dtensor_destroy(x);
    dtensor_tape_destroy(tape);
}

/* Rules have numbers, which are read where the program has a decimal comma. */
static void commas(struct job *job)
{
    struct dtensor_op_args args = { .p = 0 };
    struct dtensor *x, *loss;
    struct dtensor_tape *tape;

    if (!comma_set())
        return;
    good(dtensor_op_args_parse("p=0.5", &args, &job->err));
    need(args.p > 0.49, "p is %g", args.p);
    x = tensor(job, "S(0)", (const double[]){ 1, 2, 3, 4 });
    tape = job_tape(job, x);
    loss = loss_of(job, "exp2", NULL, 1, 0, x);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, tape, x, (const double[]){ 2 * M_LN2, 4 * M_LN2, 8 * M_LN2,
       16 * M_LN2 }, "with a decimal comma");
    comma_unset();
    dtensor_destroy(loss);
    dtensor_destroy(x);
    dtensor_tape_destroy(tape);
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        edge(job, &edges[i]);
    no_gradient(job);
    commas(job);
    dtensor_fini(job->ctx);
}

int main(void)
{
    comma_make("rules are read where there is a decimal comma");
    ok(ranks_run(WORLD, 60, rank_main, NULL, NULL) == 0,
       "gradients are 0 where a formula has no number or an output no use, in "
       "any locale");
    comma_remove();
    return done();
}
