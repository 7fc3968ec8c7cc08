/* test_standin_kernels.c - kernels by name on the stand-in
 *
 * A launch runs the twin of the kernel on memory of the device, after what the
 * stream did before; a kernel that leaves its memory is an error that sticks.
 *
 * Without this test, launches on the stand-in could do nothing, or forgive an
 * address that ends a job on a GPU.
 */
#include "cuda/kernels.h"
#include "device/cuda/driver.h"
#include "dtensor.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 5000 };

static const struct dtn_cuda_driver *cu;
static CUlibrary library;
static CUstream stream;

/* What a fat binary begins with; the stand-in looks no further. */
static const uint32_t image[4] = { 0xba55ed50 };

static int alone(int (*fn)(void))
{
    struct dtensor_error err;
    CUcontext context;
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if (dtn_cuda_driver_load(&cu, &err) != 0
            || cu->cuDevicePrimaryCtxRetain(&context, 0) != 0
            || cu->cuCtxPushCurrent(context) != 0
            || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0
            || cu->cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL,
                                     NULL, 0) != 0)
            _exit(99);
        _exit(fn());
    }
    waitpid(pid, &status, 0);
    return status;
}

/* Launch dtn_arange for COUNT float32, from 7 on. */
static CUresult launch(CUdeviceptr at, uint64_t count, unsigned threads)
{
    struct dtn_arange_args args = {
        .dst = (void *)(uintptr_t)at, .first = 7, .count = count,
        .dtype = DTENSOR_F32
    };
    void *params[] = { &args };
    CUkernel kernel;
    CUfunction function;

    if (cu->cuLibraryGetKernel(&kernel, library, "dtn_arange") != 0
        || cu->cuKernelGetFunction(&function, kernel) != 0)
        return CUDA_ERROR_UNKNOWN;
    return cu->cuLaunchKernel(function, 3, 1, 1, threads, 1, 1, 0, stream,
                              params, NULL);
}

static int right(void)
{
    static float out[COUNT];
    CUdeviceptr at;

    if (cu->cuMemAlloc(&at, sizeof out))
        return 1;
    setenv("DTN_STANDIN_LATE_US", "10000", 1);
    if (cu->cuMemsetD8Async(at, 0, sizeof out, stream)
        || launch(at, COUNT, DTN_KERNEL_THREADS)
        || cu->cuStreamQuery(stream) != CUDA_ERROR_NOT_READY
        || cu->cuMemcpyAsync((CUdeviceptr)(uintptr_t)out, at, sizeof out,
                             stream))
        return 2;
    for (int i = 0; i < COUNT; i++)
        if (out[i] != (float)(i + 7))
            return 3;
    return cu->cuMemFree(at) || cu->cuLibraryUnload(library);
}

static int refused(void)
{
    static const uint32_t other[4] = { 1 };
    CUlibrary more;
    CUkernel kernel;
    CUdeviceptr at;

    if (cu->cuMemAlloc(&at, COUNT * 4)
        || launch(at, COUNT, 128) != CUDA_ERROR_INVALID_VALUE
        || cu->cuLibraryGetKernel(&kernel, library, "dtn_no_such")
        != CUDA_ERROR_NOT_FOUND
        || cu->cuLibraryLoadData(&more, other, NULL, NULL, 0, NULL, NULL, 0)
        != CUDA_ERROR_INVALID_IMAGE)
        return 1;
    setenv("DTN_STANDIN_ATTRIBUTES", "75=7", 1);
    return cu->cuLibraryLoadData(&more, image, NULL, NULL, 0, NULL, NULL, 0)
        != CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The error of a launch on `at` for `count` elements, when it is waited for. */
static int waited(CUdeviceptr at, uint64_t count)
{
    CUresult rc = launch(at, count, DTN_KERNEL_THREADS);

    return rc != CUDA_SUCCESS ? 1000 : cu->cuStreamSynchronize(stream);
}

static int far_out(void)
{
    CUdeviceptr at;

    return cu->cuMemAlloc(&at, 4096) || waited(at, COUNT) != 700
        || cu->cuMemFree(at) != 700;
}

static int a_bit_out(void)
{
    CUdeviceptr at;

    return cu->cuMemAlloc(&at, 4000) || waited(at, 1001) != 0
        || cu->cuMemFree(at) != CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int freed(void)
{
    CUdeviceptr at;

    return cu->cuMemAlloc(&at, COUNT * 4) || cu->cuMemFree(at)
        || waited(at, COUNT) != 700;
}

static int pageable(void)
{
    static float out[COUNT];

    return waited((CUdeviceptr)(uintptr_t)out, COUNT) != 700 || out[9] != 0;
}

static int pinned(void)
{
    float *out;

    return cu->cuMemHostAlloc((void **)&out, COUNT * 4, 0)
        || waited((CUdeviceptr)(uintptr_t)out, COUNT) != 0 || out[9] != 16;
}

int main(void)
{
    const char *why = standin_use();

    if (why || !standin_used())
        return skip_all(why ? why : "this is not for a real driver");
    ok(alone(right) == 0, "a kernel runs in its stream, on memory of a device");
    ok(alone(refused) == 0, "no such kernel, other threads, another image, an "
       "older device: refused");
    ok(alone(far_out) == 0, "a kernel that leaves its memory is error 700");
    ok(alone(a_bit_out) == 0, "one byte too far is seen when it is freed");
    ok(alone(freed) == 0, "so is memory that was freed");
    ok(alone(pageable) == 0, "and memory of the host that is not pinned");
    ok(alone(pinned) == 0, "pinned memory can be used");
    return done();
}
