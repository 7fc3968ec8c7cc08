/* gpujob.c - a job whose ranks put from GPU memory into GPU memory, over verbs
 *
 *     gpujob direct | staged | required
 *
 * Two ranks on the driver of tests/standin, whose memory no CPU may touch.
 * `direct` needs the module rxe_dmabuf.c: nothing may then be staged, and each
 * signal behind a put waits for a READ where [transport] gpu_flush and the GPU
 * ask for it.  `staged` is a machine whose cards cannot reach the GPU: the same
 * results, by copies.  `required` is the same machine with [device] direct =
 * required: an error on both ranks.
 *
 * Without this test, every collective could be staged, or be shown before the
 * card has read the memory back, and nobody would see it but by the time.
 */
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "transport/verbs.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 200, LARGE = 900 * 1000 };     /* elements of 4 bytes          */

/* What is tried. */
struct trial {
    const char *flush;            /* [transport] gpu_flush                    */
    const char *attributes;       /* of the device                            */
    bool reads;                   /* must signals wait for READs?             */
    bool staged;                  /* must buffers be staged?                  */
    const char *what;             /* in words                                 */
    bool required;                /* is staging an error?                     */
};

static const struct trial directs[] = {
    { "auto", "118=0", true, false, "gpu_flush = auto, a GPU without "
      "order", false },
    { "auto", "118=100", false, false, "gpu_flush = auto, a GPU that keeps "
      "the order", false },
    { "always", "118=100", true, false, "gpu_flush = always", false },
    { "never", "118=0", false, false, "gpu_flush = never", false },
};

static const struct dtn_cuda_driver *driver;
static char file[64];

static void move(void *dst, const void *src, size_t bytes)
{
    need(driver->cuMemcpyAsync((CUdeviceptr)dst, (CUdeviceptr)src, bytes, NULL)
         == 0 && driver->cuStreamSynchronize(NULL) == 0, "cuMemcpyAsync");
}

/* Element i of rank r. */
static float value(int rank, int i)
{
    return (float)(i % 1000 + 7 * rank);
}

static void fill(void *mem, int rank, int count)
{
    float *array = malloc((size_t)count * sizeof *array);

    for (int i = 0; i < count; i++)
        array[i] = value(rank, i);
    move(mem, array, (size_t)count * sizeof *array);
    free(array);
}

static void check_sum(const void *mem, int n, int count)
{
    float *array = malloc((size_t)count * sizeof *array);

    move(array, mem, (size_t)count * sizeof *array);
    for (int i = 0; i < count; i++) {
        float sum = 0;

        for (int r = 0; r < n; r++)
            sum += value(r, i);
        need(array[i] == sum, "sum %d of %d", i, count);
    }
    free(array);
}

static void check_gathered(const void *mem, int n, int count)
{
    float *array = malloc((size_t)(n * count) * sizeof *array);

    move(array, mem, (size_t)(n * count) * sizeof *array);
    for (int i = 0; i < n * count; i++)
        need(array[i] == value(i / count, i % count), "element %d of %d", i,
             n * count);
    free(array);
}

/* Collectives that put: sums, by all algorithms of the size, and gathers. */
static void job_collectives(struct job *job, void *in, void *out, int count)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    fill(in, job->rank, count);
    good(dtensor_allreduce(mesh, in, out, (size_t)count, DTENSOR_F32,
                           DTENSOR_SUM, &job->err));
    check_sum(out, job->n, count);
    good(dtensor_allgather(mesh, in, out, (size_t)count / 2, DTENSOR_F32,
                           &job->err));
    check_gathered(out, job->n, count / 2);
}

/* A redistribute that cuts rows into columns. */
static void job_tensor(struct job *job)
{
    const int64_t shape[] = { 301, 1001 };
    static double got[301 * 1001];
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor *rows = NULL, *cols = NULL;
    struct dtensor_spec spec;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(dtensor_spec_on(&spec, mesh, "S(0)", DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_arange(&spec, &rows, &job->err));
    good(dtensor_redistribute(rows, "S(1)", &cols, &job->err));
    good(dtensor_full_tensor(cols, got, sizeof got, &job->err));
    for (int i = 0; i < 301 * 1001; i++)
        need(got[i] == i, "element %d of the tensor", i);
    dtensor_destroy(rows);
    dtensor_destroy(cols);
}

/* Was some buffer staged, of calls so far? */
static bool job_staged(const struct job *job)
{
    for (int use = 0; use < DTN_BOUNCE_USES; use++)
        if (job->ctx->bounces.free[use])
            return true;
    return false;
}

static void rank_job(int rank, int n, void *arg)
{
    const struct trial *trial = arg;
    const size_t bytes = (size_t)LARGE * sizeof(float);
    struct job made, *job = &made;
    unsigned long reads;
    CUdeviceptr own = 0;
    void *in = NULL, *out = NULL;
    char left[200];

    job_open(job, rank, n, file);
    need(dtn_cuda_driver_load(&driver, &job->err) == 0
         && driver->cuCtxPushCurrent(dtn_cuda_of(job->ctx->device)->context)
            == 0, "no device");
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &in, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &out, &job->err));
    job_collectives(job, in, out, SMALL);
    job_collectives(job, in, out, LARGE);
    need(job_staged(job) == trial->staged, "%s staged", trial->staged
         ? "nothing was" : "a buffer was");
    if (!trial->staged) {
        need(driver->cuMemAlloc(&own, bytes) == 0, "cuMemAlloc");
        good(dtensor_register(job->ctx, (void *)own, bytes, &job->err));
        job_collectives(job, (void *)own, out, LARGE);
        dtensor_unregister(job->ctx, (void *)own);
        need(driver->cuMemFree(own) == 0, "cuMemFree");
        need(!job_staged(job), "registered memory was staged");
    }
    job_tensor(job);
    reads = dtn_verbs_of(job->ctx->transports[0])->readbacks;
    need((reads > 0) == trial->reads, "%lu READs", reads);
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
    dtensor_fini(job->ctx);
    while (driver->cuCtxPopCurrent(&(CUcontext){ NULL }) == 0)
        ;
    need(standin_left(left, sizeof left) == 0, "left: %s", left);
}

/* What may not be staged is an error of the first call, on both ranks. */
static void rank_required(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    const struct dtensor_mesh *mesh = NULL;
    void *mem = NULL;
    int rc;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, LARGE, &mem, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    rc = dtensor_allreduce(mesh, mem, mem, LARGE / 4, DTENSOR_F32, DTENSOR_SUM,
                           &job->err);
    need(rc == DTENSOR_ENODEV || rc == DTENSOR_EABORT, "%s", job->err.text);
    need(rc == DTENSOR_EABORT || strstr(job->err.text, "direct = required")
         != NULL, "%s", job->err.text);
    _exit(0);
}

static void run(const struct trial *trial)
{
    rank_main_f *rank = trial->required ? rank_required : rank_job;
    char more[300];

    snprintf(more, sizeof more, "connect_timeout = 30s\ngpu_flush = %s\n"
             "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n[device]\ndirect = %s\n",
             trial->flush, trial->required || !trial->staged ? "required"
                                                             : "auto");
    if (trial->attributes)
        setenv("DTN_STANDIN_ATTRIBUTES", trial->attributes, 1);
    snprintf(file, sizeof file, "%s", ranks_file("rc", 2, more));
    ok(ranks_run(2, 120, rank, (void *)(uintptr_t)trial, NULL) == 0, "%s",
       trial->what);
    remove(file);
    unsetenv("DTN_STANDIN_ATTRIBUTES");
}

int main(int argc, char **argv)
{
    const struct trial staged = { "always", NULL, false, true, "cards that "
                                  "cannot reach GPU memory: it is staged",
                                  false };
    const struct trial required = { "always", NULL, false, true, "where "
                                    "staging is an error", true };

    if (argc > 1 && strcmp(argv[1], "staged") == 0)
        run(&staged);
    else if (argc > 1 && strcmp(argv[1], "required") == 0)
        run(&required);
    else
        for (size_t i = 0; i < DTN_COUNT(directs); i++)
            run(&directs[i]);
    return done();
}
