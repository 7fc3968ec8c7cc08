/* gpucalls.c - collectives on memory of a GPU whose results are checked */
#include "tests/rdma/gpucalls.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdint.h>
#include <stdlib.h>

static const struct dtn_cuda_driver *driver;

const struct dtn_cuda_driver *gpu_enter(struct job *job)
{
    need(dtn_cuda_driver_load(&driver, &job->err) == 0
         && driver->cuCtxPushCurrent(dtn_cuda_of(job->ctx->device)->context)
            == 0, "no device");
    return driver;
}

void gpu_close(struct job *job)
{
    char left[200];

    dtensor_fini(job->ctx);
    while (driver->cuCtxPopCurrent(&(CUcontext){ NULL }) == 0)
        ;
    need(standin_left(left, sizeof left) == 0, "left: %s", left);
}

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

static bool is_sum(const void *mem, int n, int count)
{
    float *array = malloc((size_t)count * sizeof *array);
    bool right = true;

    move(array, mem, (size_t)count * sizeof *array);
    for (int i = 0; i < count && right; i++) {
        float sum = 0;

        for (int r = 0; r < n; r++)
            sum += value(r, i);
        right = array[i] == sum;
        if (!right)
            note("sum %d of %d is %g and not %g", i, count, (double)array[i],
                 (double)sum);
    }
    free(array);
    return right;
}

static bool is_gathered(const void *mem, int n, int count)
{
    float *array = malloc((size_t)(n * count) * sizeof *array);
    bool right = true;

    move(array, mem, (size_t)(n * count) * sizeof *array);
    for (int i = 0; i < n * count && right; i++) {
        right = array[i] == value(i / count, i % count);
        if (!right)
            note("element %d of %d is %g", i, n * count, (double)array[i]);
    }
    free(array);
    return right;
}

int gpu_allreduce(struct job *job, void *in, void *out, int count)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    fill(in, job->rank, count);
    return dtensor_allreduce(mesh, in, out, (size_t)count, DTENSOR_F32,
                             DTENSOR_SUM, &job->err);
}

bool gpu_collectives(struct job *job, void *in, void *out, int count)
{
    const struct dtensor_mesh *mesh = NULL;
    bool right;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(gpu_allreduce(job, in, out, count));
    right = is_sum(out, job->n, count);
    good(dtensor_allgather(mesh, in, out, (size_t)count / 2, DTENSOR_F32,
                           &job->err));
    return is_gathered(out, job->n, count / 2) && right;
}

bool gpu_redistribute(struct job *job)
{
    const int64_t shape[] = { 301, 1001 };
    static double got[301 * 1001];
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor *rows = NULL, *cols = NULL;
    struct dtensor_spec spec;
    bool right = true;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(dtensor_spec_on(&spec, mesh, "S(0)", DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_arange(&spec, &rows, &job->err));
    good(dtensor_redistribute(rows, "S(1)", &cols, &job->err));
    good(dtensor_full_tensor(cols, got, sizeof got, &job->err));
    for (int i = 0; i < 301 * 1001; i++)
        right = right && got[i] == i;
    dtensor_destroy(rows);
    dtensor_destroy(cols);
    return right;
}

bool gpu_staged(const struct job *job)
{
    for (int use = 0; use < DTN_BOUNCE_USES; use++)
        if (job->ctx->bounces.free[use])
            return true;
    return false;
}
