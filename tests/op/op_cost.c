/* op_cost.c - what a decision costs, made and found, and what a run adds to it
 *
 *   $ make bench-ops
 *
 * Nanoseconds of dtensor_op_infer() for calls that repeat the last one (hit),
 * that alternate with another (other), and that are new (miss), also of all
 * pairs of placements on a mesh of three dimensions.  Then, on one rank and
 * small tensors, nanoseconds of dtensor_op_into() and dtensor_op(), of the
 * arithmetic alone, and what the former adds.  The fastest of several rounds.
 */
#include "math/matmul.h"
#include "math/pointwise.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 30, CALLS = 400 };

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void infer(const struct dtensor_op_call *call)
{
    struct dtensor_spec want[3], out[3];
    struct dtensor_op_info info;
    struct dtensor_error err;

    if (dtensor_op_infer(call, want, 3, out, &info, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

/* The fastest of several rounds of `calls` calls. */
static double hits_ns(const struct dtensor_op_call call[2], int stride)
{
    double best = 1e18;

    for (int r = 0; r < ROUNDS; r++) {
        const double start = now_ns();

        for (int i = 0; i < CALLS; i++)
            infer(&call[i % 2 * stride]);
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    return best / CALLS;
}

/* Each call has another first size. */
static double misses_ns(const struct dtensor_op_call *call,
                        struct dtensor_spec in[2])
{
    double best = 1e18;

    for (int i = 0; i < ROUNDS * 4; i++) {
        double start;

        in[0].shape[0] += 8;
        if (strcmp(call->op, "add") == 0)
            in[1].shape[0] += 8;
        start = now_ns();
        infer(call);
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    return best;
}

/* All pairs of placements on a mesh of 2 x 2 x 2: each is a new decision, since
 * more others were made since.
 */
static void pairs_of(struct dtensor_ctx *ctx, const char *op)
{
    enum { KINDS = 4, PAIRS = 4096, SIDES = 512 };
    static const char *const kinds[KINDS] = { "R", "S(0)", "S(1)", "P" };
    static double best[PAIRS];
    const int size[] = { 2, 2, 2 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 3, size);
    double sum = 0, most = 0;
    int above = 0;

    for (int round = 0; round < 3; round++)
        for (int i = 0; i < PAIRS; i++) {
            const int64_t shape[] = { SIDES, SIDES };
            struct dtensor_spec in[2];
            double start;

            for (int k = 0, code = i; k < 2; k++, code /= KINDS * KINDS * KINDS)
            {
                char text[40];

                snprintf(text, sizeof text, "%s,%s,%s", kinds[code % KINDS],
                         kinds[code / KINDS % KINDS],
                         kinds[code / (KINDS * KINDS) % KINDS]);
                in[k] = spec_at(mesh, 2, shape, text);
            }
            start = now_ns();
            infer(&(struct dtensor_op_call){ .op = op, .nin = 2, .in = in });
            start = now_ns() - start;
            if (round == 0 || start < best[i])
                best[i] = start;
        }
    for (int i = 0; i < PAIRS; i++) {
        sum += best[i];
        above += best[i] > 1e5;
        most = best[i] > most ? best[i] : most;
    }
    printf("%-8s %10d %10.1f %10.1f %10d\n", op, PAIRS, sum / PAIRS / 1e3,
           most / 1e3, above);
}

/* ----------------------------------------------------------------- runs --- */

enum { SIDE = 8 };

/* What is timed. */
struct timed {
    struct job *job;                       /* of one rank                     */
    const char *op;                        /* operator on two squares         */
    const struct dtensor *in[2];           /* SIDE x SIDE                     */
    struct dtensor *out;                   /* the same                        */
};

static void run_into(const struct timed *t)
{
    struct job *job = t->job;
    struct dtensor *out = t->out;

    good(dtensor_op_into(t->op, 2, t->in, NULL, 1, &out, &job->err));
}

static void run_new(const struct timed *t)
{
    struct job *job = t->job;
    struct dtensor *out = NULL;

    good(dtensor_op(t->op, 2, t->in, NULL, 1, &out, &job->err));
    dtensor_destroy(out);
}

static void run_local(const struct timed *t)
{
    static char work[1 << 20];
    const int64_t shape[] = { SIDE, SIDE };
    const struct dtn_array a = dtn_array_packed(dtensor_to_local(t->in[0]),
                                                DTENSOR_F32, 2, shape);
    const struct dtn_array b = dtn_array_packed(dtensor_to_local(t->in[1]),
                                                DTENSOR_F32, 2, shape);
    const struct dtn_array out = dtn_array_packed(dtensor_to_local(t->out),
                                                  DTENSOR_F32, 2, shape);

    if (strcmp(t->op, "add") == 0)
        dtn_pointwise(DTN_ADD, &out, (const struct dtn_array *const[]){ &a,
                      &b }, NULL);
    else
        dtn_matmul(&out, &a, &b, 0, work);
}

static double runs_ns(void (*run)(const struct timed *t), const struct timed *t)
{
    double best = 1e18;

    for (int r = 0; r < ROUNDS; r++) {
        const double start = now_ns();

        for (int i = 0; i < CALLS; i++)
            run(t);
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    return best / CALLS;
}

static void runs(int rank, int n, void *arg)
{
    static const char *const ops[] = { "add", "matmul" };
    const int64_t shape[] = { SIDE, SIDE };
    struct job the_job, *job = &the_job;
    struct dtensor *t[3] = { NULL, NULL, NULL };
    struct dtensor_spec spec;

    job_open(job, rank, n, NULL);
    good(dtensor_spec_init(&spec, job->ctx, "world", "S(0)", DTENSOR_F32, 2,
                           shape, &job->err));
    for (int i = 0; i < 3; i++)
        good(dtensor_ones(&spec, &t[i], &job->err));
    printf("\n%-8s %10s %10s %10s %10s\n", "op", "into ns", "new ns",
           "local ns", "added ns");
    for (int k = 0; k < 2; k++) {
        struct timed timed = { job, ops[k], { t[0], t[1] }, t[2] };
        struct dtensor *out = NULL;
        double into, made, local;

        good(dtensor_op(ops[k], 2, timed.in, NULL, 1, &out, &job->err));
        timed.out = out;
        local = runs_ns(run_local, &timed);
        into = runs_ns(run_into, &timed);
        made = runs_ns(run_new, &timed);
        printf("%-8s %10.0f %10.0f %10.0f %10.0f\n", ops[k], into, made, local,
               into - local);
        dtensor_destroy(out);
    }
    for (int i = 0; i < 3; i++)
        dtensor_destroy(t[i]);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const struct {
        const char *op;
        int ndim, mesh[3];
        const char *a, *b;
    } rows[] = {
        { "add", 1, { 4 }, "S(0)", "S(0)" },
        { "add", 1, { 4 }, "S(0)", "S(1)" },
        { "matmul", 1, { 4 }, "S(0)", "R" },
        { "matmul", 1, { 4 }, "S(0)", "S(1)" },
        { "matmul", 2, { 2, 4 }, "S(0),R", "R,S(1)" },
        { "matmul", 2, { 2, 4 }, "S(0),S(1)", "S(1),P" },
        { "matmul", 3, { 2, 2, 2 }, "S(0),R,R", "R,S(1),R" },
        { "matmul", 3, { 2, 2, 2 }, "S(0),S(1),R", "R,P,S(1)" },
    };
    const int64_t shape[] = { 512, 512 };
    struct dtensor_ctx *ctx = planner_of(8, 8);

    printf("%-8s %-24s %10s %10s %10s\n", "op", "inputs", "hit ns", "other ns",
           "miss ns");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dtensor_mesh *mesh = mesh_of(ctx, rows[i].ndim,
                                                  rows[i].mesh);
        struct dtensor_spec in[2] = { spec_at(mesh, 2, shape, rows[i].a),
                                      spec_at(mesh, 2, shape, rows[i].b) };
        struct dtensor_spec whole = spec_at(mesh, 2, shape,
            rows[i].ndim == 1 ? "R" : rows[i].ndim == 2 ? "R,R" : "R,R,R");
        const struct dtensor_op_call call[2] = {
            { .op = rows[i].op, .nin = 2, .in = in },
            { .op = "relu", .nin = 1, .in = &whole } };
        char words[60];

        snprintf(words, sizeof words, "%s  %s", rows[i].a, rows[i].b);
        printf("%-8s %-24s %10.0f %10.0f", rows[i].op, words,
               hits_ns(call, 0), hits_ns(call, 1));
        printf(" %10.0f\n", misses_ns(call, in));
    }
    printf("\n%-8s %10s %10s %10s %10s\n", "2x2x2", "misses", "mean us",
           "worst us", "over 100");
    pairs_of(ctx, "matmul");
    pairs_of(ctx, "add");
    pairs_of(ctx, "mul");
    dtensor_fini(ctx);
    fflush(stdout);
    return ranks_run(1, 60, runs, NULL, NULL) != 0;
}
