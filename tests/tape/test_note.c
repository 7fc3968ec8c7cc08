/* test_note.c - gradients pass what a program computes from parts itself
 *
 * A program takes the part of a tensor (dtensor_to_local()) or the whole array
 * (dtensor_full_tensor()), computes, makes a tensor of the result
 * (dtensor_from_local(), dtensor_distribute()) and notes that, between
 * operators before and after.  The gradients are those of the whole.  The
 * backwards check that what they are given lies as the outputs, R where these
 * are terms.
 *
 * Without this test, a gradient could stop at such a call, or come to it in
 * other placements than the parts that the program has.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <string.h>

enum { WORLD = 4, ROWS = 6, COLUMNS = 2, ELEMS = ROWS * COLUMNS };

/* Element i of x, and of what the loss multiplies the results with. */
static double x_at(int i)
{
    return (i * 5 % 7) - 2.5;
}

static double c_at(int i)
{
    return (i * 3 % 5) - 1;
}

static struct dtensor *tensor(struct job *job, const char *placements,
                              double at(int i))
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    double full[ELEMS];

    for (int i = 0; i < ELEMS; i++)
        full[i] = at(i);
    good(dtensor_spec_init(&spec, job->ctx, "world", placements, DTENSOR_F64, 2,
                           (const int64_t[]){ ROWS, COLUMNS }, &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    return t;
}

static size_t local_count(const struct dtensor *t)
{
    return dtensor_local_bytes(t) / sizeof(double);
}

/* A tensor of the spec whose part are the squares, or 2 a b. */
static int squares(const struct dtensor_spec *spec, const double *a,
                   const double *b, size_t n, struct dtensor **tp,
                   struct dtensor_error *err)
{
    double part[ELEMS];

    for (size_t i = 0; i < n; i++)
        part[i] = b ? 2 * a[i] * b[i] : a[i] * a[i];
    return dtensor_from_local(spec, part, n * sizeof part[0], tp, err);
}

/* ---------------------------------------------------------------- parts --- */

/* Of squares of the parts; `arg` counts. */
static int parts_back(const struct dtensor_op_gradient *g, struct dtensor *in[],
                      struct dtensor_error *err)
{
    const struct dtensor *x = g->in[0], *grad = g->grad[0];
    const struct dtensor_spec *spec = dtensor_spec_of(x);

    need(!g->out[0], "an output was kept that is not read");
    need(g->wanted[0] == 1 && dtensor_local_bytes(grad) ==
         dtensor_local_bytes(x), "the gradient has another part than x");
    ++*(int *)g->arg;
    return squares(spec, dtensor_to_local(x), dtensor_to_local(grad),
                   local_count(x), &in[0], err);
}

/* sum(c (2 x)^2), squared on the parts.  S only: a square of terms is none. */
static void parts(struct job *job, const char *placements)
{
    struct dtensor *x = tensor(job, placements, x_at), *y = NULL, *z = NULL;
    struct dtensor *c = tensor(job, "R", c_at), *cz = NULL, *loss = NULL;
    struct dtensor_tape *tape = NULL;
    double full[ELEMS];
    int count = 0;

    tape = job_tape(job, x);
    good(dtensor_scale(x, 2, &y, &job->err));
    good(squares(dtensor_spec_of(y), dtensor_to_local(y), NULL, local_count(y),
                 &z, &job->err));
    good(dtensor_tape_note(tape, &(struct dtensor_tape_call){
        .name = "squares", .nin = 1, .nout = 1, .out = &z, .keeps = "a",
        .in = (const struct dtensor *const[]){ y }, .backward = parts_back,
        .arg = &count }, &job->err));
    good(dtensor_mul(z, c, &cz, &job->err));
    good(dtensor_op("sum", 1, (const struct dtensor *const[]){ cz }, NULL, 1,
                    &loss, &job->err));
    dtensor_destroy(y);
    dtensor_destroy(z);
    dtensor_destroy(cz);
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    good(dtensor_full_tensor(dtensor_tape_grad(tape, x), full, sizeof full,
                             &job->err));
    for (int i = 0; i < ELEMS; i++)
        need(fabs(full[i] - 8 * c_at(i) * x_at(i)) < 1e-12, "%s: element %d "
             "is %.17g", placements, i, full[i]);
    need(count == 1, "the backward ran %d times", count);
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(c);
    dtensor_destroy(loss);
}

/* --------------------------------------------------------------- wholes --- */

/* The whole was halved by rank 0, and distributed as terms: the gradient comes
 * as R, and half of it is that of the whole.
 */
static int whole_back(const struct dtensor_op_gradient *g, struct dtensor *in[],
                      struct dtensor_error *err)
{
    need(dtensor_spec_of(g->grad[0])->placement[0].kind == DTENSOR_REPLICATE,
         "the gradient of a term is not whole");
    return dtensor_scale(g->grad[0], 0.5, &in[0], err);
}

/* x, full_tensor, half of it on rank 0, distribute as P(sum), squares. */
static void wholes(struct job *job, const char *placements)
{
    struct dtensor *x = tensor(job, placements, x_at), *half = NULL;
    struct dtensor *square = NULL, *loss = NULL;
    struct dtensor_spec spec = *dtensor_spec_of(x);
    struct dtensor_tape *tape = NULL;
    double full[ELEMS];

    tape = job_tape(job, x);
    good(dtensor_full_tensor(x, full, sizeof full, &job->err));
    for (int i = 0; i < ELEMS; i++)
        full[i] /= 2;
    spec.placement[0] = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL,
                                                    .op = DTENSOR_SUM };
    good(dtensor_distribute(&spec, job->rank == 0 ? full : NULL, 0, &half,
                            &job->err));
    good(dtensor_tape_note(tape, &(struct dtensor_tape_call){
        .name = "half", .nin = 1, .nout = 1, .out = &half,
        .in = (const struct dtensor *const[]){ x }, .backward = whole_back },
        &job->err));
    good(dtensor_mul(half, half, &square, &job->err));
    good(dtensor_op("sum", 1, (const struct dtensor *const[]){ square }, NULL,
                    1, &loss, &job->err));
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    good(dtensor_full_tensor(dtensor_tape_grad(tape, x), full, sizeof full,
                             &job->err));
    for (int i = 0; i < ELEMS; i++)
        need(fabs(full[i] - x_at(i) / 2) < 1e-12, "%s: element %d is %.17g",
             placements, i, full[i]);
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(half);
    dtensor_destroy(square);
    dtensor_destroy(loss);
}

/* --------------------------------------------------------------- faults --- */

static int scalar_back(const struct dtensor_op_gradient *g,
                       struct dtensor *in[], struct dtensor_error *err)
{
    return dtensor_op("sum", 1, g->grad, NULL, 1, &in[0], err);
}

static void refused(struct job *job, int rc, const char *words)
{
    need(rc == DTENSOR_EINVAL && strstr(job->err.text, words),
         "rc %d, \"%s\" instead of \"%s\"", rc, job->err.text, words);
    job->err.text[0] = '\0';
}

/* A backward that makes a scalar; an input that was changed since. */
static void wrong_backwards(struct job *job, struct dtensor_tape *tape,
                            struct dtensor *x, struct dtensor *y)
{
    const struct dtensor_tape_call call = {
        .name = "bad", .nin = 1, .nout = 1, .out = &y,
        .in = (const struct dtensor *const[]){ x }, .backward = scalar_back };

    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_tape_note(tape, &call, &job->err));
    refused(job, dtensor_tape_backward(tape, y, y, &job->err),
            "the backward of bad made f64[]");
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_tape_note(tape, &call, &job->err));
    good(dtensor_fill_uniform(x, 0, 1, NULL, &job->err));
    refused(job, dtensor_tape_backward(tape, y, y, &job->err),
            "input 0 of bad was changed in place");
}

static void faults(struct job *job)
{
    struct dtensor *x = tensor(job, "S(0)", x_at), *y = tensor(job, "R", c_at);
    struct dtensor *none = NULL;
    struct dtensor_tape *tape = NULL;
    struct dtensor_tape_call call = {
        .name = "it", .nin = 1, .nout = 1, .out = &y,
        .in = (const struct dtensor *const[]){ x }, .backward = scalar_back };

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_tape_watch(tape, x, &job->err));
    refused(job, dtensor_tape_note(tape, &call, &job->err), "not active");
    wrong_backwards(job, tape, x, y);
    good(dtensor_tape_begin(tape, &job->err));
    refused(job, dtensor_tape_note(tape, NULL, &job->err), "call is NULL");
    call.keeps = "q";
    refused(job, dtensor_tape_note(tape, &call, &job->err), "keeps has");
    call.nin = 33;
    refused(job, dtensor_tape_note(tape, &call, &job->err), "more than 32");
    call.nin = 1;
    call.out = &none;
    refused(job, dtensor_tape_note(tape, &call, &job->err), "output is NULL");
    call.backward = NULL;
    refused(job, dtensor_tape_note(tape, &call, &job->err), "is NULL");
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(y);
}

static void rank_main(int rank, int n, void *arg)
{
    static const char *const placed[] = { "R", "S(0)", "S(1)" };
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    for (int i = 0; i < 3; i++) {
        parts(job, placed[i]);
        wholes(job, placed[i]);
    }
    wholes(job, "P(sum)");
    faults(job);
    dtensor_fini(job->ctx);
}

int main(void)
{
    for (int n = 1; n <= WORLD; n++)
        ok(ranks_run(n, 120, rank_main, NULL, NULL) == 0,
           "gradients pass what a program computes from parts, on %d ranks",
           n);
    return done();
}
