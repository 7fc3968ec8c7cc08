/* test_cuda.c - tensors and buffers in the memory of GPUs
 *
 * Ranks on one or two devices of the driver in tests/standin, over shm and tcp:
 * what a program sees of device memory, and each wrong use of it in words.
 *
 * Without this test, a mesh with memory = cuda could silently stay in host
 * memory, a foreign address could crash, and an error of the device could leave
 * the other ranks waiting.
 */
#include "base/compiler.h"
#include "cuda/image.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE "connect_timeout = 20s\nop_timeout = 20s\n"
#define ON_GPU "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n"

enum { COUNT = 3000 };            /* elements, more than an eager message     */

static const struct dtn_cuda_driver *driver;
static char file[64];

/* -------------------------------------------------------------- helpers --- */

static const struct dtensor_mesh *world(struct job *job)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    return mesh;
}

/* The device of this rank; what follows uses its context. */
static struct dtn_cuda *device(struct job *job)
{
    struct dtn_cuda *cuda = dtn_cuda_of(job->ctx->device);

    need(dtn_cuda_driver_load(&driver, &job->err) == 0
         && driver->cuCtxPushCurrent(cuda->context) == 0, "no device");
    return cuda;
}

/* Memory of the driver's own allocator. */
static void *foreign(size_t bytes)
{
    CUdeviceptr at = 0;

    need(driver->cuMemAlloc(&at, bytes) == 0, "cuMemAlloc");
    return (void *)(uintptr_t)at;
}

/* To or from device memory, at once. */
static void move(void *dst, const void *src, size_t bytes)
{
    need(driver->cuMemcpyAsync((CUdeviceptr)dst, (CUdeviceptr)src, bytes, NULL)
         == 0 && driver->cuStreamSynchronize(NULL) == 0, "cuMemcpyAsync");
}

static void fill(void *mem, float value)
{
    static float array[COUNT];

    for (int i = 0; i < COUNT; i++)
        array[i] = value;
    move(mem, array, sizeof array);
}

/* A job, and COUNT ones in memory of the program's own on its device. */
static void *open_with_ones(struct job *job, int rank, int n)
{
    void *mem;

    job_open(job, rank, n, file);
    device(job);
    mem = foreign(COUNT * sizeof(float));
    fill(mem, 1);
    return mem;
}

static bool all_are(const void *mem, float value)
{
    static float array[COUNT];

    move(array, mem, sizeof array);
    for (int i = 0; i < COUNT; i++)
        if (array[i] != value)
            return false;
    return true;
}

/* The call fails, with that code and these words, and leaves the rest usable.
 */
#define refused(call, errcode, words)                                         \
    need((call) == (errcode) && strstr(job->err.text, words),                 \
         "%s: not \"%s\" but %s: %s", #call, words,                           \
         dtensor_errname(job->err.code), job->err.text)

static int allreduce(struct job *job, void *in, void *out)
{
    return dtensor_allreduce(world(job), in, out, COUNT, DTENSOR_F32,
                             DTENSOR_SUM, &job->err);
}

static void job_close(struct job *job)
{
    char left[200];

    dtensor_fini(job->ctx);
    while (driver && driver->cuCtxPopCurrent(&(CUcontext){ NULL }) == 0)
        ;
    need(standin_left(left, sizeof left) == 0, "left: %s", left);
}

/* ----------------------------------------------------------- the ranks --- */

/* Tensors lie on the device, and are those of the host. */
static void rank_tensors(int rank, int n, void *arg)
{
    const int64_t shape[] = { 301, 1001 };
    static double want[301 * 1001], got[301 * 1001];
    struct dtensor *rows = NULL, *cols = NULL;
    struct dtensor_spec spec;
    struct job made, *job = &made;

    job_open(job, rank, n, file);
    device(job);
    good(dtensor_spec_on(&spec, world(job), "S(0)", DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_arange(&spec, &rows, &job->err));
    need(dtn_cuda_holds(job->ctx->device, dtensor_to_local(rows)),
         "it is not on the device");
    good(dtensor_redistribute(rows, "S(1)", &cols, &job->err));
    good(dtensor_full_tensor(cols, got, sizeof got, &job->err));
    for (int i = 0; i < 301 * 1001; i++)
        want[i] = i;
    need(memcmp(got, want, sizeof got) == 0, "other elements");
    dtensor_destroy(rows);
    dtensor_destroy(cols);
    job_close(job);
}

/* Buffers of any allocator, on the device or one side of it. */
static void rank_buffers(int rank, int n, void *arg)
{
    static float host[COUNT];
    struct job made, *job = &made;
    void *ours = NULL, *theirs;

    job_open(job, rank, n, file);
    device(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, COUNT * sizeof(float), &ours,
                          &job->err));
    need(all_are(ours, 0), "it is not zeroed");
    theirs = foreign(COUNT * sizeof(float));
    fill(theirs, (float)(rank + 1));
    good(allreduce(job, theirs, ours));
    need(all_are(ours, 3), "device to device");
    good(allreduce(job, ours, host));
    need(host[0] == 6 && host[COUNT - 1] == 6, "device to host");
    good(allreduce(job, host, theirs));
    need(all_are(theirs, 12), "host to device");
    good(allreduce(job, theirs, theirs));
    need(all_are(theirs, 24), "in place");
    driver->cuMemFree((CUdeviceptr)theirs);
    dtensor_free(job->ctx, ours);
    job_close(job);
}

/* What is on the program's stream comes first, however late it is. */
static void rank_stream(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *mem = NULL;
    CUstream stream;

    job_open(job, rank, n, file);
    device(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, COUNT * sizeof(float), &mem,
                          &job->err));
    need(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0, "stream");
    good(dtensor_stream(job->ctx, stream, &job->err));
    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    for (int i = 0; i < 3; i++)
        driver->cuMemsetD8Async((CUdeviceptr)mem, 0, COUNT * 4, stream);
    driver->cuMemsetD8Async((CUdeviceptr)mem, 0x40, COUNT * 4, stream);
    unsetenv("DTN_STANDIN_LATE_US");
    good(allreduce(job, mem, mem));
    need(all_are(mem, 2 * 0x1.808080p+1f), "it did not wait");
    driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    refused(allreduce(job, mem, mem), DTENSOR_EINVAL, "is being captured");
    driver->cuStreamEndCapture(stream, &(CUgraph){ NULL });
    good(allreduce(job, mem, mem));
    dtensor_free(job->ctx, mem);
    good(dtensor_stream(job->ctx, NULL, &job->err));
    driver->cuStreamDestroy(stream);
    dtensor_fini(job->ctx);
}

static void twice(void *dst, const void *left, const void *right,
                  size_t count, enum dtensor_dtype dtype, void *arg)
{
    for (size_t i = 0; i < count; i++)
        ((float *)dst)[i] = 2 * (((const float *)left)[i]
                                 + ((const float *)right)[i]);
}

/* A function of the program's reduces device memory, on copies. */
static void rank_function(int rank, int n, void *arg)
{
    enum dtensor_redop op;
    struct job made, *job = &made;
    void *mem;

    mem = open_with_ones(job, rank, n);
    good(dtensor_redop_create(job->ctx, twice, NULL, 0, &op, &job->err));
    good(dtensor_allreduce(world(job), mem, mem, COUNT, DTENSOR_F32, op,
                           &job->err));
    need(all_are(mem, 4), "2 * (1 + 1)");
    driver->cuMemFree((CUdeviceptr)mem);
    dtensor_redop_destroy(job->ctx, op);
    job_close(job);
}

/* Addresses and streams that are not of this rank's device. */
static void rank_bad(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    struct dtn_cuda *cuda;
    void *mem, *other;
    CUcontext second;
    CUstream stream;

    job_open(job, rank, n, file);
    cuda = device(job);
    mem = foreign(COUNT * sizeof(float));
    need(driver->cuDevicePrimaryCtxRetain(&second, !cuda->number) == 0
         && driver->cuCtxPushCurrent(second) == 0
         && driver->cuStreamCreate(&stream, 0) == 0, "second device");
    other = foreign(COUNT * sizeof(float));
    refused(allreduce(job, other, mem), DTENSOR_EINVAL, "is memory of GPU");
    refused(dtensor_stream(job->ctx, stream, &job->err), DTENSOR_EINVAL,
            "is of another device or context");
    setenv("DTN_STANDIN_MEMORY_IS", "managed", 1);
    refused(allreduce(job, mem, mem), DTENSOR_EINVAL, "is managed memory");
    setenv("DTN_STANDIN_MEMORY_IS", "foreign", 1);
    refused(allreduce(job, mem, mem), DTENSOR_EINVAL, "is of another context");
    unsetenv("DTN_STANDIN_MEMORY_IS");
    refused(dtensor_register(job->ctx, mem, COUNT, &job->err), DTENSOR_EINVAL,
            "is memory of a GPU");
    refused(dtensor_alloc_on(job->ctx, (enum dtensor_memory)7, 1, &other,
                             &job->err), DTENSOR_EINVAL, "no memory 7");
    need(driver->cuCtxPopCurrent(&second) == 0, "pop");
    fill(mem, 1);
    good(allreduce(job, mem, mem));
    need(all_are(mem, 2), "calls are refused, the context is not");
    dtensor_fini(job->ctx);
}

/* Too much memory: words, and all goes on. */
static void rank_memory(int rank, int n, void *arg)
{
    void *mem = NULL, *more = NULL;
    struct job made, *job = &made;

    job_open(job, rank, n, file);
    device(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, (size_t)30 << 20, &mem,
                          &job->err));
    refused(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, (size_t)50 << 20, &more,
                             &job->err), DTENSOR_ENOMEM,
            "no room for 50.0 MiB on GPU");
    dtensor_free(job->ctx, mem);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, (size_t)50 << 20, &mem,
                          &job->err));
    dtensor_free(job->ctx, mem);
    job_close(job);
}

/* A device that fails for good on rank 1. */
static void rank_sticky(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *mem;
    int rc;

    mem = open_with_ones(job, rank, n);
    if (rank == 1)
        setenv("DTN_STANDIN_FAIL", "cuMemcpyAsync:1=-700", 1);
    rc = allreduce(job, mem, mem);
    need(rc != 0 && strstr(job->err.text, "CUDA_ERROR_ILLEGAL_ADDRESS") == NULL
         ? rank == 0 : rank == 1, "%s", job->err.text);
    need(rank == 0 || strstr(job->err.text, "allreduce"), "%s", job->err.text);
    need(job->err.rank == 1, "rank %d is blamed: %s", job->err.rank,
         job->err.text);
    need(allreduce(job, mem, mem) == rc, "the context is not poisoned");
    _exit(0);
}

/* Rank 1 frees its memory while a call uses it. */
static void rank_freed(int rank, int n, void *arg)
{
    const struct dtensor_call sum = { .coll = DTENSOR_ALLREDUCE,
                                      .count = COUNT, .dtype = DTENSOR_F32 };
    struct dtensor_request *request;
    struct job made, *job = &made;
    void *mem;
    int rc;

    mem = open_with_ones(job, rank, n);
    good(allreduce(job, mem, mem));              /* so that it begins at once */
    good(dtensor_call_start(world(job), &sum, mem, mem, &request, &job->err));
    if (rank == 1)
        need(driver->cuMemFree((CUdeviceptr)mem) == 0, "cuMemFree");
    rc = dtensor_wait(request, &job->err);
    need(rc != 0 && job->err.rank == 1, "rank %d is blamed: %s", job->err.rank,
         job->err.text);
    need(allreduce(job, mem, mem) == rc, "the context is not poisoned");
    _exit(0);
}

/* The third kernel of rank 1 fails, at once or later. */
static void rank_kernel(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *mem;
    int rc = 0;

    mem = open_with_ones(job, rank, n);
    if (rank == 1)
        setenv("DTN_STANDIN_FAIL", arg, 1);
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = allreduce(job, mem, mem);
        need(rc != 0 || all_are(mem, (float)(2 << i)), "call %d", i);
    }
    need(rc != 0 && job->err.rank == 1, "rank %d is blamed: %s", job->err.rank,
         job->err.text);
    need(rank == 0 || (strstr(job->err.text, "dtn_fold_f32")
                       && strstr(job->err.text, "stream 0x")
                       && strstr(job->err.text, "CUDA_ERROR_LAUNCH_FAILED")),
         "%s", job->err.text);
    need(allreduce(job, mem, mem) == rc, "the context is not poisoned");
    _exit(0);
}

/* The job does not start, and every rank has these words. */
static void rank_refused(int rank, int n, void *arg)
{
    struct job made = { .rank = rank }, *job = &made;

    refused(dtensor_init(file, &job->ctx, &job->err), DTENSOR_ENODEV,
            (const char *)arg);
}

/* Without memory = cuda the device is opened when it is asked for. */
static void rank_late(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *mem = NULL;

    job_open(job, rank, n, file);
    need(!job->ctx->device, "it is open");
    good(dtensor_alloc(job->ctx, 100, &mem, &job->err));
    need(((unsigned char *)mem)[99] == 0, "not of the host");
    dtensor_free(job->ctx, mem);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, 100, &mem, &job->err));
    need(dtn_cuda_holds(job->ctx->device, mem), "not of the device");
    need(dtn_cuda_of(job->ctx->device)->number == rank, "GPU %d",
         dtn_cuda_of(job->ctx->device)->number);
    dtensor_free(job->ctx, mem);
    job_close(job);
}

/* ----------------------------------------------------------- the cases --- */

static const struct {
    const char *claim, *wire, *more;
    rank_main_f *run;
    const char *variable, *value; /* of the environment, or NULL              */
    const char *words;            /* of the error, or what fails              */
} cases[] = {
    { "tensors, shm", "shm", PATIENCE ON_GPU, rank_tensors, NULL, NULL, NULL },
    { "tensors, tcp", "tcp", PATIENCE ON_GPU, rank_tensors, NULL, NULL, NULL },
    { "tensors, two ranks on one of one GPU", "shm", PATIENCE ON_GPU,
      rank_tensors, "DTN_STANDIN_DEVICES", "1", NULL },
    { "tensors of a late device", "shm", PATIENCE ON_GPU, rank_tensors,
      "DTN_STANDIN_LATE_US", "500", NULL },
    { "buffers, shm", "shm", PATIENCE ON_GPU, rank_buffers, NULL, NULL, NULL },
    { "buffers, tcp", "tcp", PATIENCE ON_GPU, rank_buffers, NULL, NULL, NULL },
    { "the program's stream", "shm", PATIENCE ON_GPU, rank_stream, NULL, NULL,
      NULL },
    { "a function of the program's", "shm", PATIENCE ON_GPU, rank_function,
      NULL, NULL, NULL },
    { "wrong addresses and streams", "shm", PATIENCE ON_GPU, rank_bad, NULL,
      NULL, NULL },
    { "not enough memory", "shm", PATIENCE ON_GPU, rank_memory,
      "DTN_STANDIN_MEMORY", "67108864", NULL },
    { "a device that fails, shm", "shm", PATIENCE ON_GPU, rank_sticky, NULL,
      NULL, NULL },
    { "a device that fails, tcp", "tcp", PATIENCE ON_GPU, rank_sticky, NULL,
      NULL, NULL },
    { "memory that is freed in use", "shm", PATIENCE ON_GPU, rank_freed,
      "DTN_STANDIN_LATE_US", "2000", NULL },
    { "a kernel that cannot be launched", "shm", PATIENCE ON_GPU, rank_kernel,
      NULL, NULL, "cuLaunchKernel:3=719" },
    { "a kernel that fails", "shm", PATIENCE ON_GPU, rank_kernel, NULL, NULL,
      "cuLaunchKernel:3=-719" },
    { "no mesh on a GPU", "shm", PATIENCE, rank_late, NULL, NULL, NULL },
    { "no GPU", "shm", PATIENCE ON_GPU, rank_refused, "DTN_STANDIN_DEVICES",
      "0", "CUDA_ERROR_NO_DEVICE" },
    { "no virtual memory", "shm", PATIENCE ON_GPU, rank_refused,
      "DTN_STANDIN_ATTRIBUTES", "102=0", "has no virtual memory management" },
    { "a driver without cuMemCreate", "shm", PATIENCE ON_GPU, rank_refused,
      "DTN_STANDIN_WITHOUT", "cuMemCreate", "has no cuMemCreate" },
};

static void case_run(int i)
{
    if (cases[i].run == rank_kernel && dtn_cuda_image_size == 0) {
        skip(cases[i].claim, "built without nvcc");
        return;
    }
    setenv("DTN_STANDIN_DEVICES", "2", 1);
    if (cases[i].variable)
        setenv(cases[i].variable, cases[i].value, 1);
    strcpy(file, ranks_file(cases[i].wire, 2, cases[i].more));
    ok(ranks_run(2, 60, cases[i].run, (void *)(uintptr_t)cases[i].words, NULL)
       == 0, "%s", cases[i].claim);
    unlink(file);
    if (cases[i].variable)
        unsetenv(cases[i].variable);
}

int main(void)
{
    const char *why = standin_use();

    if (why)
        return skip_all(why);
    for (size_t i = 0; i < DTN_COUNT(cases); i++)
        case_run((int)i);
    return done();
}
