/* pointer.c - what kind of memory an address is
 *
 * The driver is asked about each address outside the arena.  Its answers are
 * not cached: an address of a GPU may be host memory after it was freed.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "transport/arena.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct pointer {
    unsigned type;                /* CU_MEMORYTYPE_..., 0: the driver does    */
                                  /* not know it                              */
    unsigned managed;             /* 1: moves between host and device         */
    int device;                   /* its number                               */
    CUcontext context;            /* that has it; NULL: every one             */
};

static struct pointer pointer_ask(struct dtn_cuda *cuda, const void *mem)
{
    static CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT
    };
    struct pointer found = { 0 };
    void *values[] = { &found.type, &found.managed, &found.device,
                       &found.context };

    if (!mem || dtn_cuda_enter(cuda) != 0)
        return found;
    if (cuda->driver->cuPointerGetAttributes(DTN_COUNT(names), names,
                                             values,
                                             (CUdeviceptr)mem) != CUDA_SUCCESS)
        found = (struct pointer){ 0 };
    dtn_cuda_leave(cuda);
    return found;
}

bool dtn_cuda_is_device(const void *mem)
{
    const struct dtn_cuda_driver *driver = mem ? dtn_cuda_driver_seen() : NULL;
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    unsigned type = 0;
    void *value = &type;

    return driver
        && driver->cuPointerGetAttributes(1, &name, &value, (CUdeviceptr)mem)
           == CUDA_SUCCESS
        && type == CU_MEMORYTYPE_DEVICE;
}

bool dtn_cuda_holds(const struct dtn_memory *memory, const void *mem)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);

    return dtn_arena_contains(&cuda->arena, mem, 1)
        || pointer_ask(cuda, mem).type == CU_MEMORYTYPE_DEVICE;
}

/* May network cards reach it, as far as the driver knows? */
bool dtn_cuda_rdma_capable(struct dtn_cuda *cuda, const void *mem)
{
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE;
    int capable = 1;
    void *value = &capable;
    CUresult result;

    if (dtn_cuda_enter(cuda) != 0)
        return true;
    result = cuda->driver->cuPointerGetAttributes(1, &name, &value,
                                                  (CUdeviceptr)mem);
    dtn_cuda_leave(cuda);
    return result != CUDA_SUCCESS || capable != 0;
}

static int pointer_check(const struct dtn_cuda *cuda, const char *what,
                         const void *mem, const struct pointer *found,
                         struct dtensor_error *err)
{
    if (found->managed)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %p is managed memory, which "
                        "moves between host and device (use memory of "
                        "cuMemAlloc() or dtensor_alloc_on())", what, mem);
    if (found->device != cuda->number)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %p is memory of GPU %d, but "
                        "this rank uses %s (see [nodes] gpus)", what, mem,
                        found->device, cuda->name);
    if (found->context && found->context != cuda->context)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %p is of another context of "
                        "%s than the primary one (allocate it in the primary "
                        "context, as the CUDA runtime does)", what, mem,
                        cuda->name);
    return 0;
}

/* Does the program record this stream of its own into a graph?  Our waits
 * cannot be.  What else is wrong with the stream, its next use says.
 */
static int stream_check(struct dtn_cuda *cuda, const char *what,
                        CUstream stream, struct dtensor_error *err)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    int rc = dtn_cuda_enter(cuda);
    CUresult result;

    if (rc != 0) {
        if (err)
            *err = cuda->failure;
        return rc;
    }
    result = cuda->driver->cuStreamIsCapturing(stream, &status);
    dtn_cuda_leave(cuda);
    if (result != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: the program's stream %p is being "
                    "captured into a graph, which this call cannot be (end "
                    "the capture first)", what, (void *)stream);
}

int dtn_cuda_check_stream(const struct dtn_memory *memory, void *stream,
                          struct dtensor_error *err)
{
    return stream_check(dtn_cuda_of(memory), "stream", stream, err);
}

int dtn_cuda_check(const struct dtn_memory *memory, const char *what,
                   const void *mem, size_t bytes, struct dtensor_error *err)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    struct pointer found;
    int rc = 0;

    if (!mem || bytes == 0)
        return 0;
    if (!dtn_arena_contains(&cuda->arena, mem, 1)) {
        found = pointer_ask(cuda, mem);
        if (found.type != CU_MEMORYTYPE_DEVICE)
            return 0;
        rc = pointer_check(cuda, what, mem, &found, err);
    }
    return rc == 0 && cuda->follows
         ? stream_check(cuda, what, cuda->caller, err) : rc;
}
