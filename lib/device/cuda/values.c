/* values.c - words that streams write and wait for
 *
 * A stream that waits for a word does nothing else.  So the operations that
 * read the words or end such a wait have a stream of their own.  That stream,
 * and the one of started calls, are created before the first wait.  The reason
 * is that a GPU has a few hardware queues, to which streams are assigned in
 * turn; a stream that shares a queue with a waiting stream is blocked too.
 */
#include "base/wait.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* What `unhold` writes to each byte: more than any value. */
enum { VALUE_ENDS = 0x7f };

/* The context is current. */
static bool values_stream(struct dtn_cuda *cuda, CUstream *stream)
{
    if (*stream
        || dtn_cuda_result(cuda, "cuStreamCreate",
                           cuda->driver->cuStreamCreate(stream,
                                                        CU_STREAM_NON_BLOCKING),
                           "%s", cuda->name) == 0)
        return true;
    *stream = NULL;
    return false;
}

bool dtn_cuda_signals(const struct dtn_memory *memory)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    char why[200];
    int able = 0;

    if (cuda->aside)
        return true;
    if (!cuda->library
        || !dtn_cuda_can(cuda->driver, DTN_CUDA_VALUES, why, sizeof why)
        || cuda->driver->cuDeviceGetAttribute(
               &able, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
               cuda->device) != CUDA_SUCCESS || !able
        || dtn_cuda_enter(cuda) != 0)
        return false;
    if (values_stream(cuda, &cuda->other.stream))
        values_stream(cuda, &cuda->aside);
    dtn_cuda_leave(cuda);
    return cuda->aside != NULL;
}

int dtn_cuda_post(const struct dtn_memory *memory, void *word, uint64_t value)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    dtn_cuda_given(cuda);
    rc = dtn_cuda_result(cuda, "cuStreamWriteValue64",
                         cuda->driver->cuStreamWriteValue64(
                             cuda->stream, (CUdeviceptr)word, value,
                             CU_STREAM_WRITE_VALUE_DEFAULT),
                         "%p, stream %p of %s", word, (void *)cuda->stream,
                         cuda->name);
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

int dtn_cuda_hold(const struct dtn_memory *memory, void *word, uint64_t value)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    dtn_cuda_given(cuda);
    rc = dtn_cuda_result(cuda, "cuStreamWaitValue64",
                         cuda->driver->cuStreamWaitValue64(
                             cuda->stream, (CUdeviceptr)word, value,
                             CU_STREAM_WAIT_VALUE_GEQ),
                         "%p, stream %p of %s", word, (void *)cuda->stream,
                         cuda->name);
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

/* What was enqueued aside is done; it is a copy of a few words. */
static int values_done(struct dtn_cuda *cuda)
{
    CUresult result = cuda->driver->cuStreamQuery(cuda->aside);
    struct dtn_wait wait;

    dtn_wait_init(&wait, cuda->timeout_ns, false);
    while (result == CUDA_ERROR_NOT_READY
           && dtn_wait_pause(&wait) != DTN_WAIT_EXPIRED)
        result = cuda->driver->cuStreamQuery(cuda->aside);
    return dtn_cuda_result(cuda, "cuStreamQuery", result, "stream %p of %s",
                           (void *)cuda->aside, cuda->name);
}

int dtn_cuda_look(const struct dtn_memory *memory, uint64_t to[],
                  const void *words, size_t bytes)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_result(cuda, "cuMemcpyAsync",
                         cuda->driver->cuMemcpyAsync(
                             (CUdeviceptr)to, (CUdeviceptr)words, bytes,
                             cuda->aside),
                         "%zu bytes from %p, stream %p of %s", bytes, words,
                         (void *)cuda->aside, cuda->name);
    if (rc == 0)
        rc = values_done(cuda);
    return dtn_cuda_end(cuda, rc);
}

int dtn_cuda_unhold(const struct dtn_memory *memory, void *words, size_t bytes)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_result(cuda, "cuMemsetD8Async",
                         cuda->driver->cuMemsetD8Async(
                             (CUdeviceptr)words, VALUE_ENDS, bytes,
                             cuda->aside),
                         "%zu bytes at %p, stream %p of %s", bytes, words,
                         (void *)cuda->aside, cuda->name);
    if (rc == 0)
        rc = values_done(cuda);
    return dtn_cuda_end(cuda, rc);
}
