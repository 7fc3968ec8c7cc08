/* test_sums.c - small allreduces of a batch go together
 *
 * Four ranks, tensors that are terms and become whole: those that lie alike and
 * are small are one allreduce, over tcp up to 64 KiB; another type, another
 * reduction and large ones have their own.  By shared memory, where a copy that
 * peers read costs more than a message, tensors of 32 KiB run alone.  Calls are
 * counted; elements are those of redistributes one by one.  A batch is run
 * twice.
 *
 * Without this test, each gradient of a norm could cost an allreduce of its
 * own, a batch could take three times as long as its plans, or a tensor could
 * get the elements of its neighbour.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, MOST = 9 };

/* Tensors of a batch, and how many allreduces they are. */
static const struct row {
    const char *what;
    struct {
        enum dtensor_dtype dtype;
        const char *from;
        int64_t count;
    } t[MOST];
    uint64_t calls[2];            /* by shm, over tcp                         */
} rows[] = {
    { "alike", { { DTENSOR_F32, "P", 5 }, { DTENSOR_F32, "P", 1 },
                 { DTENSOR_F32, "P", 300 } }, { 1, 1 } },
    { "one", { { DTENSOR_F64, "P", 7 } }, { 1, 1 } },
    { "of two types", { { DTENSOR_F32, "P", 5 }, { DTENSOR_F64, "P", 5 },
                        { DTENSOR_F32, "P", 6 }, { DTENSOR_F64, "P", 6 } },
      { 2, 2 } },
    { "of two reductions", { { DTENSOR_F32, "P(max)", 5 },
                             { DTENSOR_F32, "P", 5 },
                             { DTENSOR_F32, "P(max)", 9 } }, { 2, 2 } },
    { "up to 64 KiB", { { DTENSOR_F32, "P", 8192 }, { DTENSOR_F32, "P", 8192 },
                        { DTENSOR_F32, "P", 1 }, { DTENSOR_F32, "P", 2 } },
      { 3, 2 } },
    { "with a large one", { { DTENSOR_F32, "P", 3 },
                            { DTENSOR_F32, "P", 16385 },
                            { DTENSOR_F32, "P", 4 } }, { 2, 2 } }
};

static struct job *job;

/* The specs of tensor i; false: there is none. */
static bool specs(const struct row *row, int i, struct dtensor_spec *from,
                  struct dtensor_spec *to)
{
    const int64_t shape[] = { row->t[i].count };

    if (i == MOST || !row->t[i].from)
        return false;
    good(dtensor_spec_init(from, job->ctx, "world", row->t[i].from,
                           row->t[i].dtype, 1, shape, &job->err));
    good(dtensor_spec_init(to, job->ctx, "world", "R", row->t[i].dtype, 1,
                           shape, &job->err));
    return true;
}

/* A term with whole numbers of its own on each rank. */
static struct dtensor *term(const struct dtensor_spec *spec, int i)
{
    static double wide[1 << 15];
    static float narrow[1 << 15];
    struct dtensor *t = NULL;

    for (int64_t k = 0; k < spec->shape[0]; k++)
        narrow[k] = (float)(wide[k] = (double)((k * 7 + i * 13) % 101 +
                                               1000 * (job->rank + 1)));
    good(dtensor_from_local(spec, spec->dtype == DTENSOR_F64 ? (void *)wide
                            : (void *)narrow, (size_t)spec->shape[0] *
                            dtensor_dtype_size(spec->dtype), &t, &job->err));
    return t;
}

static void equal(const struct dtensor *in, const struct dtensor *out,
                  const char *what, int i)
{
    struct dtensor *want = NULL;
    int same = 0;

    good(dtensor_redistribute(in, "R", &want, &job->err));
    good(dtensor_equal(want, out, &same, &job->err));
    need(same, "%s: tensor %d has other elements", what, i);
    dtensor_destroy(want);
}

static uint64_t reduced(int kind)
{
    struct dtensor_debug_count count;

    good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_FORWARD, kind, &count,
                              &job->err));
    return count.calls;
}

/* Schedules that have run: lines of collectives. */
static uint64_t schedules(void)
{
    struct dtensor_debug_line line;
    uint64_t runs = 0;

    for (int i = 0; dtensor_debug_line(job->ctx, i, &line, NULL) == 0; i++)
        if (strcmp(line.what, "collective") == 0)
            runs += line.count.calls;
    return runs;
}

static void run(const struct row *row, uint64_t calls)
{
    struct dtensor_spec from[MOST], to[MOST];
    struct dtensor *in[MOST], *out[MOST] = { NULL };
    struct dtensor_batch *batch = NULL;
    int n = 0;

    for (; specs(row, n, &from[n], &to[n]); n++) {
        in[n] = term(&from[n], n);
        good(dtensor_empty(&to[n], &out[n], &job->err));
    }
    good(dtensor_batch_create(n, from, to, &batch, &job->err));
    for (int again = 0; again < 2; again++) {
        good(dtensor_debug_begin(job->ctx, NULL, &job->err));
        good(dtensor_batch_run(batch, (const struct dtensor *const *)in, out,
                               &job->err));
        good(dtensor_debug_end(job->ctx, &job->err));
        need(reduced(DTENSOR_ALLREDUCE) == calls &&
             reduced(DTENSOR_DEBUG_ALL) == calls &&
             schedules() == calls, "%s: %d allreduces, %d schedules, not "
             "%d", row->what, (int)reduced(DTENSOR_ALLREDUCE),
             (int)schedules(), (int)calls);
        for (int i = 0; i < n; i++) {
            equal(in[i], out[i], row->what, i);
            good(dtensor_fill_value(out[i], -1, &job->err));
        }
    }
    dtensor_batch_destroy(batch);
    for (int i = 0; i < n; i++) {
        dtensor_destroy(in[i]);
        dtensor_destroy(out[i]);
    }
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job;

    const char *wire = arg;

    job = &the_job;
    job_open(job, rank, n, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        run(&rows[i], rows[i].calls[strcmp(wire, "tcp") == 0]);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (int i = 0; i < 2; i++) {
        const char *path = ranks_file(wires[i], RANKS, NULL);

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(RANKS, 60, rank_main, (void *)(uintptr_t)wires[i],
                     NULL) == 0,
           "%s: small tensors that are reduced alike are one allreduce, with "
           "the elements of redistributes one by one", wires[i]);
        unlink(path);
    }
    return done();
}
