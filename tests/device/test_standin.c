/* test_standin.c - the stand-in for the CUDA driver
 *
 * Its memory, streams and events do what the driver's manual says, and wrong
 * use is an error.  What tests of the device see is worth as much as this.
 *
 * Without this test, tests on the stand-in could pass because it forgives: an
 * access of the CPU, a copy that nobody waited for, memory that was freed.
 */
#include "device/cuda/driver.h"
#include "dtensor.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 8192 };

static const struct dtn_cuda_driver *cu;
static CUcontext context;

static CUdeviceptr host(const void *mem)
{
    return (CUdeviceptr)(uintptr_t)mem;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What the process `fn` ended with; it has the driver to itself. */
static int alone(int (*fn)(void))
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        struct dtensor_error err;

        if (dtn_cuda_driver_load(&cu, &err) != 0
            || cu->cuDevicePrimaryCtxRetain(&context, 0) != 0
            || cu->cuCtxPushCurrent(context) != 0)
            _exit(99);
        _exit(fn());
    }
    waitpid(pid, &status, 0);
    return status;
}

/* ---------------------------------------------------------------- memory -- */

static int touch(void)
{
    CUdeviceptr at;

    if (cu->cuMemAlloc(&at, BYTES) != 0)
        return 3;
    *(volatile char *)(uintptr_t)at = 1;
    return 0;
}

static void test_touch(void)
{
    int status = alone(touch);

    ok(status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 3),
       "the CPU cannot store into memory of the device: status %#x", status);
}

static int roundtrip(void)
{
    unsigned char in[BYTES], out[BYTES];
    CUdeviceptr one, two;
    CUstream stream;

    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(i * 7);
    if (cu->cuMemAlloc(&one, BYTES) || cu->cuMemAlloc(&two, BYTES)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)
        || cu->cuMemcpyAsync(host(out), two, 1, stream)
        || out[0] == 0
        || cu->cuMemcpyAsync(one, host(in), BYTES, stream)
        || cu->cuMemcpyAsync(two, one, BYTES, stream)
        || cu->cuMemsetD8Async(two, 9, 3, stream)
        || cu->cuMemcpyAsync(host(out), two, BYTES, stream)
        || cu->cuStreamSynchronize(stream))
        return 1;
    if (out[2] != 9 || memcmp(out + 3, in + 3, BYTES - 3) != 0)
        return 2;
    return cu->cuMemFree(one) || cu->cuMemFree(two)
        || cu->cuStreamDestroy(stream) || cu->cuDevicePrimaryCtxRelease(0)
        || standin_left((char *)in, sizeof in) != 0 ? 3 : 0;
}

static int reused(void)
{
    CUdeviceptr first, second;

    if (cu->cuMemAlloc(&first, BYTES) || cu->cuMemFree(first)
        || cu->cuMemAlloc(&second, BYTES))
        return 1;
    return first == second || cu->cuMemFree(first) != CUDA_ERROR_INVALID_VALUE;
}

/* Freed while the stream has yet to use it: the error stays. */
static int freed_early(void)
{
    CUdeviceptr at;
    CUstream stream;

    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    if (cu->cuMemAlloc(&at, BYTES)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)
        || cu->cuMemsetD8Async(at, 1, BYTES, stream) || cu->cuMemFree(at))
        return 1;
    return cu->cuStreamSynchronize(stream) != CUDA_ERROR_ILLEGAL_ADDRESS
        || cu->cuMemAlloc(&at, BYTES) != CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int unpinned_early(void)
{
    void *pinned;
    CUdeviceptr at;
    CUstream stream;

    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    if (cu->cuMemAlloc(&at, BYTES) || cu->cuMemHostAlloc(&pinned, BYTES, 0)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)
        || cu->cuMemcpyAsync(at, host(pinned), BYTES, stream)
        || cu->cuMemFreeHost(pinned))
        return 1;
    return cu->cuStreamSynchronize(stream) != CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int out_of_range(void)
{
    char bytes[BYTES + 1];
    CUdeviceptr at;
    CUstream stream;

    memset(bytes, 0, sizeof bytes);
    if (cu->cuMemAlloc(&at, BYTES)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return 1;
    return cu->cuMemcpyAsync(at, host(bytes), BYTES + 1, stream)
        != CUDA_ERROR_INVALID_VALUE
        || cu->cuMemcpyAsync(at - 64, host(bytes), 64, stream)
        != CUDA_ERROR_INVALID_VALUE
        || cu->cuMemcpyAsync(at, host(bytes), BYTES, stream) != CUDA_SUCCESS;
}

static int used_up(void)
{
    CUdeviceptr one, two;
    size_t free_bytes, total;

    setenv("DTN_STANDIN_MEMORY", "65536", 1);
    if (cu->cuMemAlloc(&one, 40000)
        || cu->cuMemAlloc(&two, 40000) != CUDA_ERROR_OUT_OF_MEMORY
        || cu->cuMemGetInfo(&free_bytes, &total) || total != 65536
        || free_bytes != 65536 - 40960 || cu->cuMemFree(one))
        return 1;
    return cu->cuMemAlloc(&two, 40000);
}

static int pointers(void)
{
    CUpointer_attribute what[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
    };
    unsigned type;
    int device, rdma;
    CUdeviceptr start, at;
    size_t size;
    void *values[] = { &type, &device, &start, &size, &rdma }, *pinned;

    if (cu->cuMemAlloc(&at, BYTES) || cu->cuMemHostAlloc(&pinned, BYTES, 0)
        || cu->cuPointerGetAttributes(5, what, values, at + 100)
        || type != CU_MEMORYTYPE_DEVICE || device != 0 || start != at
        || size != BYTES || rdma != 1)
        return 1;
    if (cu->cuPointerGetAttributes(5, what, values, host(&at)) || type != 0
        || cu->cuPointerGetAttributes(1, what, values, host(pinned))
        || type != CU_MEMORYTYPE_HOST)
        return 2;
    return cu->cuMemFree(at)
        || cu->cuPointerGetAttributes(1, what, values, at) || type != 0;
}

static void test_memory(void)
{
    test_touch();
    ok(alone(roundtrip) == 0, "copies and sets, of memory that is not 0 at "
       "first, and nothing is left");
    ok(alone(reused) == 0, "addresses are not given out or freed twice");
    ok(alone(freed_early) == 0, "memory freed before its stream has used it is "
       "an error that sticks");
    ok(alone(unpinned_early) == 0, "so is pinned memory");
    ok(alone(out_of_range) == 0, "copies past either end are refused");
    ok(alone(used_up) == 0, "a device has so many bytes");
    ok(alone(pointers) == 0, "attributes tell device, pinned and other memory");
}

/* --------------------------------------------------------------- streams -- */

/* A copy from pinned memory has not happened when the call returns; one from
 * pageable memory has read it.
 */
static int late(void)
{
    unsigned char pageable = 1, out = 0, *pinned;
    CUdeviceptr at;
    CUstream stream;

    if (cu->cuMemAlloc(&at, 2) || cu->cuMemHostAlloc((void **)&pinned, 1, 0)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return 1;
    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    *pinned = 1;
    if (cu->cuMemcpyAsync(at, host(pinned), 1, stream)
        || cu->cuMemcpyAsync(at + 1, host(&pageable), 1, stream)
        || cu->cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
        return 2;
    *pinned = pageable = 2;
    if (cu->cuMemcpyAsync(host(&out), at, 1, stream) || out != 2)
        return 3;
    if (cu->cuMemcpyAsync(host(&out), at + 1, 1, stream) || out != 1)
        return 4;
    return cu->cuStreamQuery(stream);
}

static int events(void)
{
    unsigned char out = 0;
    CUdeviceptr at;
    CUstream one, two;
    CUevent event;

    if (cu->cuMemAlloc(&at, 1) || cu->cuStreamCreate(&one, 1)
        || cu->cuStreamCreate(&two, 1)
        || cu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)
        || cu->cuEventQuery(event) != CUDA_SUCCESS)
        return 1;
    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    if (cu->cuMemsetD8Async(at, 5, 1, one) || cu->cuEventRecord(event, one)
        || cu->cuEventQuery(event) != CUDA_ERROR_NOT_READY)
        return 2;
    setenv("DTN_STANDIN_LATE_US", "0", 1);
    if (cu->cuStreamWaitEvent(two, event, 0)
        || cu->cuMemcpyAsync(host(&out), at, 1, two) || out != 5
        || cu->cuEventQuery(event) != CUDA_SUCCESS
        || cu->cuEventSynchronize(event) != CUDA_SUCCESS)
        return 3;
    return cu->cuEventDestroy(event) || cu->cuStreamDestroy(one)
        || cu->cuStreamDestroy(two)
        || cu->cuStreamQuery(one) != CUDA_ERROR_INVALID_HANDLE;
}

/* The legacy stream waits for streams created without NON_BLOCKING. */
static int legacy(void)
{
    unsigned char out = 0;
    CUdeviceptr at;
    CUstream blocking;

    if (cu->cuMemAlloc(&at, 1) || cu->cuStreamCreate(&blocking, 0))
        return 1;
    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    if (cu->cuMemsetD8Async(at, 3, 1, blocking))
        return 2;
    setenv("DTN_STANDIN_LATE_US", "0", 1);
    return cu->cuMemcpyAsync(host(&out), at, 1, NULL) || out != 3;
}

static void store(void *arg)
{
    CUdeviceptr at;

    *(int *)arg = cu->cuMemcpyAsync(0, 0, 1, NULL) == CUDA_ERROR_NOT_PERMITTED
        && cu->cuMemAlloc(&at, 1) != CUDA_SUCCESS ? 7 : 8;
}

static int host_functions(void)
{
    int called = 0;
    CUstream stream;

    return cu->cuStreamCreate(&stream, 1)
        || cu->cuLaunchHostFunc(stream, store, &called)
        || cu->cuStreamSynchronize(stream) || called != 7;
}

static int values(void)
{
    uint64_t out = 0;
    CUdeviceptr at;
    CUstream one, two;
    double begin = seconds();

    if (cu->cuMemAlloc(&at, 16) || cu->cuStreamCreate(&one, 1)
        || cu->cuStreamCreate(&two, 1) || cu->cuMemsetD8Async(at, 0, 16, one)
        || cu->cuStreamSynchronize(one)
        || cu->cuStreamWaitValue64(one, at + 4, 1, 0) != 1
        || cu->cuStreamWaitValue64(one, at, 3, CU_STREAM_WAIT_VALUE_GEQ)
        || cu->cuStreamWriteValue64(one, at + 8, 44, 0))
        return 1;
    if (cu->cuStreamWriteValue64(two, at, 2, 0)
        || cu->cuStreamSynchronize(two)
        || cu->cuStreamQuery(one) != CUDA_ERROR_NOT_READY
        || cu->cuStreamWriteValue64(two, at, 3, 0)
        || cu->cuMemcpyAsync(host(&out), at + 8, 8, one) || out != 44)
        return 2;
    return seconds() - begin > 30;
}

static void test_streams(void)
{
    ok(alone(late) == 0, "what a stream was given is done later, unless the "
       "memory is pageable");
    ok(alone(events) == 0, "a stream waits for an event of another");
    ok(alone(legacy) == 0, "the legacy stream waits for blocking streams");
    ok(alone(host_functions) == 0, "a host function may not call the driver");
    ok(alone(values) == 0, "a stream waits for a value that another writes");
}

/* ---------------------------------------------------------------- faults -- */

static int asked(void)
{
    CUdeviceptr at;
    CUstream stream;

    setenv("DTN_STANDIN_FAIL", "cuMemAlloc:2=2,cuMemFree:1=719", 1);
    if (cu->cuMemAlloc(&at, 1) || cu->cuMemAlloc(&at, 1) != 2
        || cu->cuMemAlloc(&at, 1))
        return 1;
    setenv("DTN_STANDIN_FAIL", "cuMemAlloc:1=2", 1);
    if (cu->cuMemAlloc(&at, 1) != 2 || cu->cuMemAlloc(&at, 1))
        return 2;
    setenv("DTN_STANDIN_FAIL", "cuMemsetD8Async:1=-700", 1);
    if (cu->cuStreamCreate(&stream, 1)
        || cu->cuMemsetD8Async(at, 0, 1, stream)
        || cu->cuStreamSynchronize(stream) != CUDA_ERROR_ILLEGAL_ADDRESS)
        return 3;
    return cu->cuMemFree(at) != CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int no_context(void)
{
    CUdeviceptr at;
    CUcontext old;

    return cu->cuCtxPopCurrent(&old) || old != context
        || cu->cuMemAlloc(&at, 1) != CUDA_ERROR_INVALID_CONTEXT;
}

static int left(void)
{
    char text[200];
    CUdeviceptr at;
    CUevent event;

    return cu->cuMemAlloc(&at, 1) || cu->cuEventCreate(&event, 0)
        || standin_left(text, sizeof text) != 4
        || strcmp(text, "1 address ranges, 1 blocks of memory, 1 events, 1 "
                  "contexts") != 0;
}

static void test_faults(void)
{
    ok(alone(asked) == 0, "the n-th call fails as asked for, at once or later");
    ok(alone(no_context) == 0, "calls without a current context are refused");
    ok(alone(left) == 0, "what is left is counted");
}

int main(void)
{
    const char *why = standin_use();

    if (why || !standin_used())
        return skip_all(why ? why : "this is not for a real driver");
    test_memory();
    test_streams();
    test_faults();
    return done();
}
