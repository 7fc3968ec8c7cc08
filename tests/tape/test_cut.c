/* test_cut.c - gradients of rows that are cut between ranks
 *
 * Norms and losses of rows whose elements are on four ranks: each reduces a
 * number or two of each row, and gathers nothing; the loss of scores does so in
 * the forward only, since the tape keeps the numbers.  Collectives are counted,
 * and the gradients compared with those of rows that are whole on every rank.
 *
 * Without this test, the gradient of a loss of scores that are cut by class
 * could be right and be gathered on every rank.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { WORLD = 4, ROWS = 32, WIDE = 510, INPUTS = 3 };

/* A call; what is watched are its inputs of floats.  `in` has for each input
 * the elements, r rows, w a weight, t targets, and how it is cut.
 */
static const struct row {
    const char *op, *args;
    const char *in[INPUTS], *placed[INPUTS];
    const char *grad;             /* how the gradient of the output lies;     */
                                  /* NULL: it is one number                   */
    uint64_t forward, backward;   /* allreduces                               */
} rows[] = {
    { "layer_norm", "", { "r", "w", "w" }, { "S(1)", "S(0)", "S(0)" }, "S(1)",
      2, 3 },
    { "rms_norm", "eps=0.1", { "r", "w" }, { "S(1)", "S(0)" }, "S(1)", 1, 2 },
    { "nll_loss", "reduction=none", { "r", "t" }, { "S(1)", "R" }, "R", 1, 0 },
    { "nll_loss", "reduction=sum", { "r", "t" }, { "S(1)", "R" }, NULL, 1, 0 },
    { "nll_loss", "reduction=mean", { "r", "t" }, { "S(1)", "R" }, NULL, 1, 0 },
    { "cross_entropy", "reduction=none", { "r", "t" }, { "S(1)", "R" }, "R", 2,
      0 },
    { "cross_entropy", "reduction=mean", { "r", "t" }, { "S(1)", "R" }, NULL, 2,
      0 },
};

/* One run of a row. */
struct run {
    struct dtensor *in[INPUTS];
    int nin;
    double grad[INPUTS][ROWS * WIDE];  /* of each input that is watched       */
};

/* --------------------------------------------------------------- inputs --- */

static double element(int k, int i)
{
    return ((i * 37 + k * 11 + i * i % 13) % 101 - 50) / 50.0;
}

static struct dtensor *tensor(struct job *job, char kind, const char *placed,
                              int ndim, int64_t rows_, int64_t wide)
{
    static double full[ROWS * WIDE];
    static int64_t target[ROWS];
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    const int64_t shape[2] = { rows_, wide };

    for (int i = 0; i < ROWS * WIDE; i++)
        full[i] = element(kind, i);
    for (int i = 0; i < ROWS; i++)
        target[i] = i * 131 % WIDE;
    good(dtensor_spec_init(&spec, job->ctx, "world", placed, kind == 't'
                           ? DTENSOR_I64 : DTENSOR_F64, ndim, shape,
                           &job->err));
    good(dtensor_distribute(&spec, kind == 't' ? (void *)target : (void *)full,
                            -1, &t, &job->err));
    return t;
}

static struct dtensor *input(struct job *job, const struct row *row, int i,
                             bool whole)
{
    const char kind = *row->in[i];
    const char *placed = whole ? "R" : row->placed[i];

    return kind == 'r' ? tensor(job, kind, placed, 2, ROWS, WIDE)
                       : tensor(job, kind, placed, 1, kind == 't' ? ROWS : WIDE,
                                0);
}

/* -------------------------------------------------------------- running --- */

static uint64_t calls_of(struct job *job, enum dtensor_direction direction,
                         int kind)
{
    struct dtensor_debug_count count;

    good(dtensor_debug_counts(job->ctx, NULL, direction, kind, &count,
                              &job->err));
    return count.calls;
}

/* Nothing but allreduces, as many as the row says. */
static void counted(struct job *job, const struct row *row)
{
    for (int k = 0; k < DTENSOR_NDIRECTIONS; k++) {
        const uint64_t want = k == DTENSOR_FORWARD ? row->forward
                                                   : row->backward;
        const uint64_t all = calls_of(job, k, DTENSOR_DEBUG_ALL);
        const uint64_t reduces = calls_of(job, k, DTENSOR_ALLREDUCE);

        need(all == want && reduces == want, "%s %s: %s %llu collectives, %llu "
             "allreduces, not %llu", row->op, row->args, k == DTENSOR_FORWARD
             ? "forward" : "backward", (unsigned long long)all,
             (unsigned long long)reduces, (unsigned long long)want);
    }
}

static struct dtensor *gradient(struct job *job, const struct row *row,
                                bool whole)
{
    const bool rows_only = row->grad && *row->grad == 'R';

    return row->grad ? tensor(job, 'g', whole ? "R" : row->grad,
                              rows_only ? 1 : 2, ROWS, WIDE) : NULL;
}

/* The call and its backward. */
static void passes(struct job *job, const struct row *row, struct run *run,
                   struct dtensor_tape *tape, bool whole)
{
    struct dtensor *grad = gradient(job, row, whole), *y = NULL;
    struct dtensor_op_args args;

    good(dtensor_op_args_parse(row->args, &args, &job->err));
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_op(row->op, run->nin, (const struct dtensor *const *)run->in,
                    &args, 1, &y, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_tape_backward(tape, y, grad, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    dtensor_destroy(grad);
    dtensor_destroy(y);
}

static void run_row(struct job *job, const struct row *row, bool whole,
                    struct run *run)
{
    struct dtensor_tape *tape = NULL;

    memset(run, 0, sizeof *run);
    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    for (int i = 0; i < INPUTS && row->in[i]; i++) {
        run->in[run->nin++] = input(job, row, i, whole);
        if (*row->in[i] != 't')
            good(dtensor_tape_watch(tape, run->in[i], &job->err));
    }
    passes(job, row, run, tape, whole);
    if (!whole)
        counted(job, row);
    for (int i = 0; i < run->nin; i++) {
        const size_t n = *row->in[i] == 'r' ? ROWS * WIDE : WIDE;

        if (*row->in[i] != 't')
            good(dtensor_full_tensor(dtensor_tape_grad(tape, run->in[i]),
                                     run->grad[i], n * sizeof(double),
                                     &job->err));
        dtensor_destroy(run->in[i]);
    }
    dtensor_tape_destroy(tape);
}

static void same(const struct row *row, const struct run *cut,
                 const struct run *whole)
{
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k < ROWS * WIDE; k++)
            need(fabs(cut->grad[i][k] - whole->grad[i][k]) <=
                 1e-12 * (1 + fabs(whole->grad[i][k])), "%s %s: gradient of "
                 "input %d, element %d is %.17g, not %.17g", row->op, row->args,
                 i, k, cut->grad[i][k], whole->grad[i][k]);
}

static void rank_main(int rank, int n, void *arg)
{
    const struct row *row = arg;
    struct job the_job, *job = &the_job;
    static struct run cut, whole;

    job_open(job, rank, n, NULL);
    run_row(job, row, true, &whole);
    run_row(job, row, false, &cut);
    same(row, &cut, &whole);
    dtensor_fini(job->ctx);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ok(ranks_run(WORLD, 120, rank_main, (void *)(uintptr_t)&rows[i],
                     NULL) == 0, "%s %s of cut rows: %d allreduces, backward "
           "%d, and the gradients of whole rows", rows[i].op, rows[i].args,
           (int)rows[i].forward, (int)rows[i].backward);
    return done();
}
