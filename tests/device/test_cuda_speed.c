/* test_cuda_speed.c - how fast the GPU does what the library asks of it
 *
 * `make bench-gpu` runs it on a real driver: bounds first (write, copy, the
 * wait for one operation), then folds, boxes and fills as parts of them, then
 * an allreduce of two ranks.  The bound of that is 2 r S bytes: each of r ranks
 * reads S bytes once and writes them once.  Two processes that share a GPU work
 * by turns, so their figure is one of processes.
 *
 * In make check it runs on the driver in tests/standin with small arrays, whose
 * figures are not those of any GPU and are marked so.  Without this test, the
 * program could be wrong by the day somebody has a GPU for an hour.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/reduce.h"
#include "base/wait.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROW_BYTES = 1024 };

static char file[64];
static size_t bytes = 1 << 20;    /* of an array                              */
static int rounds = 2;            /* of which the best counts                 */

/* What is measured, on two arrays of the device. */
struct bench {
    struct job *job;
    const struct dtn_memory *gpu;
    unsigned char *a, *b, *c;     /* of `bytes` bytes                         */
    struct dtensor *t;            /* f32, of `bytes` bytes                    */
};

/* ----------------------------------------------------- what is measured --- */

static int run_write(struct bench *x)
{
    return x->gpu->ops->set(x->gpu, x->a, 1, bytes);
}

static int run_copy(struct bench *x)
{
    return x->gpu->ops->copy(x->gpu, x->a, x->b, bytes);
}

static int run_one(struct bench *x)
{
    return x->gpu->ops->set(x->gpu, x->a, 1, 4);
}

static int fold(struct bench *x, enum dtensor_dtype dtype)
{
    const struct dtn_reduction how = dtn_reduction(dtype, DTENSOR_SUM, 2);
    const void *const src[] = { x->b, x->c };

    return x->gpu->ops->fold(x->gpu, &how, 0, x->a, src, 2,
                             bytes / dtensor_dtype_size(dtype));
}

static int run_fold_f32(struct bench *x)
{
    return fold(x, DTENSOR_F32);
}

static int run_fold_bf16(struct bench *x)
{
    return fold(x, DTENSOR_BF16);
}

/* Every second row of a matrix of f32 with rows of 1 KiB, packed. */
static int run_pack(struct bench *x)
{
    const int64_t width = ROW_BYTES / 4;
    const struct dtn_box box = { .ndim = 2,
        .size = { (int64_t)(bytes / ROW_BYTES / 2), width },
        .dst_stride = { width, 1 }, .src_stride = { 2 * width, 1 } };

    return x->gpu->ops->copy_box(x->gpu, &box, 4, x->a, x->b);
}

static int run_uniform(struct bench *x)
{
    return dtensor_uniform(x->t, 0, 1, NULL, &x->job->err);
}

static int run_normal(struct bench *x)
{
    return dtensor_normal(x->t, 0, 1, NULL, &x->job->err);
}

enum bound { NONE, WRITE, COPY };

/* `moved` times the bytes of an array are read or written; `expected` is the
 * part of the bound that is asked of a GPU.
 */
static const struct {
    const char *name;
    int (*run)(struct bench *x);
    double moved;
    enum bound bound;
    double expected;
} rows[] = {
    { "write", run_write, 1, NONE, 0 },
    { "copy", run_copy, 2, NONE, 0 },
    { "sum of two f32", run_fold_f32, 3, COPY, 0.85 },
    { "sum of two bf16", run_fold_bf16, 3, COPY, 0.85 },
    { "pack every second row", run_pack, 1, COPY, 0.85 },
    { "uniform f32", run_uniform, 1, WRITE, 0.85 },
    { "normal f32", run_normal, 1, WRITE, 0.45 },
};

/* Seconds of the fastest round. */
static double best(struct bench *x, int (*run)(struct bench *x))
{
    struct job *job = x->job;
    double least = 1e9;

    for (int i = 0; i <= rounds; i++) {
        const int64_t begin = dtn_now_ns();
        double s;

        job->err.text[0] = '\0';
        need(dtn_memory_done(x->gpu, run(x)) == 0, "%s %s", job->err.text,
             x->gpu->ops->why(x->gpu));
        s = (double)(dtn_now_ns() - begin) / 1e9;
        if (i > 0 && s < least)
            least = s;
    }
    return least;
}

static const char *mark(void)
{
    return standin_used() ? "  (of the stand-in, not of a GPU)" : "";
}

/* ---------------------------------------------------------------- ranks --- */

static void rank_alone(int rank, int n, void *arg)
{
    double bound[COPY + 1] = { 1, 1, 1 };
    struct job made, *job = &made;
    struct bench x = { .job = job };
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    const int64_t shape[] = { (int64_t)(bytes / 4) };

    job_open(job, rank, n, file);
    x.gpu = job->ctx->device;
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, (void **)&x.a,
                          &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, (void **)&x.b,
                          &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, (void **)&x.c,
                          &job->err));
    good(dtensor_spec_on(&spec, mesh, "R", DTENSOR_F32, 1, shape, &job->err));
    good(dtensor_zeros(&spec, &x.t, &job->err));
    note("arrays of %zu KiB, the best of %d rounds%s", bytes >> 10, rounds,
         mark());
    note("%-24s %9.2f us%s", "one operation and a wait", best(&x, run_one)
         * 1e6, mark());
    for (size_t i = 0; i < DTN_COUNT(rows); i++) {
        const double rate = rows[i].moved * (double)bytes
                          / best(&x, rows[i].run) / 1e9;

        if (i < COPY)
            bound[i + 1] = rate;
        if (rows[i].bound == NONE)
            note("%-24s %9.2f GB/s%s", rows[i].name, rate, mark());
        else
            note("%-24s %9.2f GB/s, %.2f of %s; expected %.2f%s", rows[i].name,
                 rate, rate / bound[rows[i].bound], rows[rows[i].bound
                 - 1].name, rows[i].expected, mark());
    }
    dtensor_destroy(x.t);
    dtensor_free(job->ctx, x.a);
    dtensor_free(job->ctx, x.b);
    dtensor_free(job->ctx, x.c);
    dtensor_fini(job->ctx);
}

static void rank_pair(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    const struct dtensor_mesh *mesh;
    double least = 1e9;
    void *mem;

    job_open(job, rank, n, file);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &mem, &job->err));
    for (int i = 0; i <= rounds; i++) {
        int64_t begin;
        double s;

        good(dtensor_barrier(mesh, &job->err));
        begin = dtn_now_ns();
        good(dtensor_allreduce(mesh, mem, mem, bytes / 2, DTENSOR_BF16,
                               DTENSOR_SUM, &job->err));
        s = (double)(dtn_now_ns() - begin) / 1e9;
        if (i > 0 && s < least)
            least = s;
    }
    if (rank == 0)
        note("%-24s %9.2f us, %.2f GB/s of 2 r S, two processes%s",
             "allreduce bf16", least * 1e6, 2.0 * n * (double)bytes / least
             / 1e9, mark());
    if (rank == 0)
        note("%s", dtensor_last_plan(job->ctx));
    dtensor_free(job->ctx, mem);
    dtensor_fini(job->ctx);
}

static void run(const char *claim, int n, rank_main_f *fn)
{
    char more[200];

    snprintf(more, sizeof more, "connect_timeout = 60s\n[mesh \"world\"]\n"
             "dims = x=%d\nmemory = cuda\n", n);
    strcpy(file, ranks_file("shm", n, more));
    ok(ranks_run(n, 280, fn, NULL, NULL) == 0, "%s", claim);
    unlink(file);
}

int main(void)
{
    const char *why = standin_use();

    if (why)
        return skip_all(why);
    why = standin_used() ? "" : standin_no_gpu();
    if (*why)
        return skip_all(why);
    if (!standin_used()) {
        bytes = (size_t)64 << 20;
        rounds = 20;
    }
    run("operations of one rank are timed", 1, rank_alone);
    run("an allreduce of two ranks is timed", 2, rank_pair);
    return done();
}
