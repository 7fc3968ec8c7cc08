/* test_cuda_speed.c - how fast the GPU does what the library asks of it
 *
 * `make bench-gpu` runs it on a real driver: bounds first (write, copy), then
 * latencies (an operation and a wait, a launch alone, an event, a word that a
 * stream writes and one that it waits for), then folds, boxes and fills as
 * parts of the bounds with what is expected of them, then an allreduce of two
 * ranks (speed_pair.c).
 *
 * In make check it runs on the driver in tests/standin with small arrays, whose
 * figures are not those of any GPU and are marked so.  Without this test, the
 * program could be wrong by the day somebody has a GPU for an hour.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/reduce.h"
#include "base/wait.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/device/speed.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROW_BYTES = 1024 };

static struct speed *speed;       /* shared by all processes                  */
static size_t bytes;              /* of an array: beyond a GPU's cache        */

/* What is measured, on two arrays of the device. */
struct bench {
    struct job *job;
    const struct dtn_memory *gpu;
    unsigned char *a, *b, *c;     /* of `bytes` bytes                         */
    struct dtensor *t;            /* f32, of `bytes` bytes                    */
    uint64_t word;                /* the last that was written                */
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

/* A kernel, of which the host waits for the last only. */
enum { LAUNCHES = 100 };

static int run_launches(struct bench *x)
{
    const struct dtn_reduction how = dtn_reduction(DTENSOR_F32, DTENSOR_SUM, 2);
    const void *const src[] = { x->b, x->c };
    int rc = 0;

    for (int i = 0; i < LAUNCHES && rc >= 0; i++)
        rc = x->gpu->ops->fold(x->gpu, &how, 0, x->a, src, 2, 4);
    return rc;
}

/* An event is recorded, and asked for until it has happened. */
static int run_event(struct bench *x)
{
    struct dtn_cuda *cuda = dtn_cuda_of(x->gpu);
    int rc = dtn_cuda_enter(cuda);

    if (rc == 0) {
        need(dtn_cuda_slot(cuda, 0), "no pinned memory, nor its event");
        rc = dtn_cuda_mark(cuda, 0);
        if (rc == 0)
            rc = dtn_cuda_await(cuda, cuda->moved[0]);
        dtn_cuda_leave(cuda);
    }
    return rc;
}

/* The stream writes a word of the device, and another one; it waits for both,
 * so that nothing waits for long.
 */
static int run_words(struct bench *x)
{
    int rc = x->gpu->ops->post(x->gpu, x->a, ++x->word);

    return rc < 0 ? rc : x->gpu->ops->hold(x->gpu, x->a, x->word);
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
    return dtensor_fill_uniform(x->t, 0, 1, NULL, &x->job->err);
}

static int run_normal(struct bench *x)
{
    return dtensor_fill_normal(x->t, 0, 1, NULL, &x->job->err);
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

    for (int i = 0; i <= speed->rounds; i++) {
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

const char *speed_mark(void)
{
    return standin_used() ? "  (of the stand-in, not of a GPU)" : "";
}

const char *speed_verdict(double got, double expected)
{
    static char text[80];

    snprintf(text, sizeof text, "; expected %.2f: %s", expected, standin_used()
             ? "not measured" : got >= expected ? "reached" : "MISSED");
    return text;
}

/* ------------------------------------------------------------ latencies --- */

static const struct {
    const char *name;
    int (*run)(struct bench *x);
    double times;                 /* that it does it                          */
    bool words;                   /* needs a device that can signal           */
} latencies[] = {
    { "an operation and a wait", run_one, 1, false },
    { "a kernel of a hundred", run_launches, LAUNCHES, false },
    { "an event and its query", run_event, 1, false },
    { "a word written, waited for", run_words, 1, true },
};

static void latencies_say(struct bench *x)
{
    for (size_t i = 0; i < DTN_COUNT(latencies); i++)
        if (latencies[i].words && !x->gpu->ops->signals(x->gpu))
            note("%-28s not measured: this GPU does not signal",
                 latencies[i].name);
        else
            note("%-28s %9.2f us%s", latencies[i].name, best(x,
                 latencies[i].run) / latencies[i].times * 1e6, speed_mark());
}

/* ---------------------------------------------------------------- ranks --- */

static const char *part_of(double rate, const double bound[], enum bound which)
{
    static char text[40];

    snprintf(text, sizeof text, ", %.2f of %s", rate / bound[which],
             rows[which - 1].name);
    return text;
}

static void rank_alone(int rank, int n, void *arg)
{
    double bound[COPY + 1] = { 1, 1, 1 };
    struct job made, *job = &made;
    struct bench x = { .job = job };
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    const int64_t shape[] = { (int64_t)(bytes / 4) };

    job_open(job, rank, n, speed->file);
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
    note("%s, arrays of %zu KiB, the best of %d rounds%s",
         dtn_cuda_of(x.gpu)->name, bytes >> 10, speed->rounds, speed_mark());
    for (size_t i = 0; i < DTN_COUNT(rows); i++) {
        const double rate = rows[i].moved * (double)bytes
                          / best(&x, rows[i].run);

        if (i < COPY)
            bound[i + 1] = rate;
        note("%-28s %9.2f GB/s%s%s%s", rows[i].name, rate / 1e9,
             rows[i].bound == NONE ? "" : part_of(rate, bound, rows[i].bound),
             rows[i].bound == NONE ? "" : speed_verdict(
                 rate / bound[rows[i].bound], rows[i].expected), speed_mark());
        if (i + 1 == COPY)
            latencies_say(&x);
    }
    speed->copy = bound[COPY];
    dtensor_destroy(x.t);
    dtensor_free(job->ctx, x.a);
    dtensor_free(job->ctx, x.b);
    dtensor_free(job->ctx, x.c);
    dtensor_fini(job->ctx);
}

static void run(const char *claim, int n, rank_main_f *fn)
{
    char more[200];

    snprintf(more, sizeof more, "connect_timeout = 60s\n[mesh \"world\"]\n"
             "dims = x=%d\nmemory = cuda\n", n);
    strcpy(speed->file, ranks_file("shm", n, more));
    ok(ranks_run(fn == speed_pair_threads ? 1 : n, 280, fn, speed, NULL) == 0,
       "%s", claim);
    unlink(speed->file);
}

int main(void)
{
    const char *why = standin_use();

    if (why)
        return skip_all(why);
    why = standin_used() ? "" : standin_no_gpu();
    if (*why)
        return skip_all(why);
    speed = mmap(NULL, sizeof *speed, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (speed == MAP_FAILED)
        return skip_all("mmap");
    bytes = (size_t)(standin_used() ? 1 : 256) << 20;
    speed->bytes = bytes / (standin_used() ? 1 : 4);
    speed->rounds = standin_used() ? 2 : 20;
    run("operations of one rank are timed", 1, rank_alone);
    run("an allreduce of two processes is timed", 2, speed_pair_processes);
    run("an allreduce of two threads is timed", 2, speed_pair_threads);
    return done();
}
