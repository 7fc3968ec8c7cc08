/* copies.c - copies, and bytes set to a value, by the driver
 *
 * An asynchronous copy reads or writes pageable host memory at the time of the
 * call.  So if no device memory takes part, the CPU does the copy after it has
 * waited for the stream.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

#include <stdbool.h>
#include <string.h>

int dtn_cuda_move(const struct dtn_memory *memory, void *dst, const void *src,
                  size_t bytes)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc;

    if (bytes == 0)
        return 0;
    rc = dtn_cuda_enter(cuda);
    if (rc != 0)
        return rc;
    if (dtn_cuda_holds(memory, dst) || dtn_cuda_holds(memory, src)) {
        cuda->to_host = cuda->to_host || !dtn_cuda_holds(memory, dst);
        rc = dtn_cuda_copy(cuda, dst, src, bytes);
        return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
    }
    rc = dtn_cuda_drain(cuda);
    if (rc == 0)
        memcpy(dst, src, bytes);
    return dtn_cuda_end(cuda, rc);
}

int dtn_cuda_set_device(struct dtn_cuda *cuda, void *dst, int byte,
                        size_t bytes)
{
    int rc = dtn_cuda_result(cuda, "cuMemsetD8Async",
                             cuda->driver->cuMemsetD8Async(
                                 (CUdeviceptr)dst, (unsigned char)byte, bytes,
                                 cuda->stream),
                             "%zu bytes at %p, stream %p of %s", bytes, dst,
                             (void *)cuda->stream, cuda->name);

    dtn_cuda_given(cuda);
    return rc != 0 ? rc : DTN_LAUNCHED;
}

int dtn_cuda_set(const struct dtn_memory *memory, void *dst, int byte,
                 size_t bytes)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc;

    if (bytes == 0)
        return 0;
    rc = dtn_cuda_enter(cuda);
    if (rc != 0)
        return rc;
    if (dtn_cuda_holds(memory, dst))
        return dtn_cuda_end(cuda, dtn_cuda_set_device(cuda, dst, byte, bytes));
    rc = dtn_cuda_drain(cuda);
    if (rc == 0)
        memset(dst, byte, bytes);
    return dtn_cuda_end(cuda, rc);
}
