/* queue.c - the stream of a device: order, waits, errors
 *
 * All operations go to one stream of the library, in order.  At the beginning
 * of a call this stream waits for the work that the program has enqueued in its
 * own stream.  No call waits for the whole device.  A wait polls, so it has a
 * deadline: if the program's stream never completes, the call returns an error.
 */
#include "base/error.h"
#include "base/wait.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

int dtn_cuda_enter(struct dtn_cuda *cuda)
{
    return dtn_cuda_result(cuda, "cuCtxPushCurrent",
                           cuda->driver->cuCtxPushCurrent(cuda->context),
                           "%s", cuda->name);
}

void dtn_cuda_leave(struct dtn_cuda *cuda)
{
    CUcontext before;

    cuda->driver->cuCtxPopCurrent(&before);
}

int dtn_cuda_end(struct dtn_cuda *cuda, int rc)
{
    dtn_cuda_leave(cuda);
    return rc;
}

/* Any call may return the error of a kernel that was launched before. */
int dtn_cuda_result(struct dtn_cuda *cuda, const char *call, CUresult result,
                    const char *fmt, ...)
{
    char what[200];
    va_list ap;

    if (result == CUDA_SUCCESS)
        return 0;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (cuda->running && dtn_cuda_sticky(result))
        return dtn_cuda_fail(&cuda->failure, cuda->driver, call, result,
                             "%s, after %s on stream %p", what, cuda->running,
                             (void *)cuda->stream);
    return dtn_cuda_fail(&cuda->failure, cuda->driver, call, result, "%s",
                         what);
}

/* ------------------------------------------------------------ waiting --- */

/* 0, EAGAIN, or a code. */
static int queue_ask(struct dtn_cuda *cuda, CUevent event)
{
    CUresult result = event ? cuda->driver->cuEventQuery(event)
                            : cuda->driver->cuStreamQuery(cuda->stream);

    if (result == CUDA_ERROR_NOT_READY)
        return DTENSOR_EAGAIN;
    return dtn_cuda_result(cuda, event ? "cuEventQuery" : "cuStreamQuery",
                           result, "stream %p of %s", (void *)cuda->stream,
                           cuda->name);
}

/* The host has waited: all launched operations are complete. */
static void queue_done(struct dtn_cuda *cuda)
{
    cuda->waits += cuda->launched;
    cuda->launched = false;
    cuda->to_host = false;
    cuda->running = NULL;
}

static int queue_wait(struct dtn_cuda *cuda, CUevent event)
{
    struct dtn_wait wait;
    int rc = queue_ask(cuda, event);

    dtn_wait_init(&wait, cuda->timeout_ns, false);
    while (rc == DTENSOR_EAGAIN) {
        if (dtn_wait_pause(&wait) == DTN_WAIT_EXPIRED)
            return dtn_fail(&cuda->failure, DTENSOR_ETIME, "stream %p of %s "
                            "has not finished after %lld ms (what does the "
                            "program's stream wait for?)",
                            (void *)cuda->stream, cuda->name,
                            (long long)(cuda->timeout_ns / 1000000));
        rc = queue_ask(cuda, event);
    }
    return rc;
}

int dtn_cuda_await(struct dtn_cuda *cuda, CUevent event)
{
    cuda->waits++;
    return queue_wait(cuda, event);
}

int dtn_cuda_drain(struct dtn_cuda *cuda)
{
    int rc = cuda->launched ? queue_wait(cuda, NULL) : 0;

    if (rc == 0)
        queue_done(cuda);
    return rc;
}

int dtn_cuda_land(struct dtn_cuda *cuda)
{
    return cuda->to_host ? dtn_cuda_drain(cuda) : 0;
}

int dtn_cuda_settle(const struct dtn_memory *memory, bool waits)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc;

    if (!cuda->launched)
        return 0;
    rc = dtn_cuda_enter(cuda);
    if (rc != 0)
        return rc;
    rc = waits ? queue_wait(cuda, NULL) : queue_ask(cuda, NULL);
    if (rc == 0)
        queue_done(cuda);
    return dtn_cuda_end(cuda, rc);
}

/* ----------------------------------------------- the program's stream --- */

/* Our stream waits for what is on another one now. */
static int queue_after(struct dtn_cuda *cuda, CUstream other, const char *name)
{
    const struct dtn_cuda_driver *driver = cuda->driver;
    int rc = dtn_cuda_result(cuda, "cuEventRecord",
                             driver->cuEventRecord(cuda->end, other),
                             "%s %p", name, (void *)other);

    if (rc != 0)
        return rc;
    cuda->launched = true;
    return dtn_cuda_result(cuda, "cuStreamWaitEvent",
                           driver->cuStreamWaitEvent(cuda->stream, cuda->end,
                                                     0),
                           "%s %p", name, (void *)other);
}

void dtn_cuda_turn(const struct dtn_memory *memory, bool started)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    const struct dtn_cuda_queue now = { cuda->stream, cuda->launched,
                                        cuda->to_host, cuda->running };

    if (cuda->turned == started)
        return;
    cuda->stream = cuda->other.stream;
    cuda->launched = cuda->other.launched;
    cuda->to_host = cuda->other.to_host;
    cuda->running = cuda->other.running;
    cuda->other = now;
    cuda->turned = started;
}

int dtn_cuda_join(const struct dtn_memory *memory)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = queue_after(cuda, cuda->other.stream, "the stream of started calls");
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

int dtn_cuda_begin(const struct dtn_memory *memory)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc;

    if (!cuda->follows)
        return 0;
    rc = dtn_cuda_enter(cuda);
    if (rc != 0)
        return rc;
    rc = queue_after(cuda, cuda->caller, "the program's stream");
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

/* Is the stream one of our context?  The default stream, NULL, is. */
static int queue_check(struct dtn_cuda *cuda, CUstream stream,
                       struct dtensor_error *err)
{
    CUcontext context = NULL;
    CUresult result;

    if (!stream)
        return 0;
    result = cuda->driver->cuStreamGetCtx(stream, &context);
    if (result != CUDA_SUCCESS)
        return dtn_fail(err, DTENSOR_EINVAL, "stream: %p is no stream of this "
                        "process (cuStreamGetCtx returns %d)", (void *)stream,
                        (int)result);
    if (context == cuda->context)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "stream: %p is of another device or "
                    "context than %s of this rank (make it in the primary "
                    "context of that device)", (void *)stream, cuda->name);
}

int dtn_cuda_follow(const struct dtn_memory *memory, void *stream,
                    struct dtensor_error *err)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0) {
        if (err)
            *err = cuda->failure;
        return rc;
    }
    rc = queue_check(cuda, stream, err);
    dtn_cuda_leave(cuda);
    if (rc != 0)
        return rc;
    cuda->follows = true;
    cuda->caller = stream;
    return 0;
}

/* ------------------------------------------------------------ copying --- */

int dtn_cuda_copy(struct dtn_cuda *cuda, void *dst, const void *src,
                  size_t bytes)
{
    dtn_cuda_given(cuda);
    return dtn_cuda_result(cuda, "cuMemcpyAsync",
                           cuda->driver->cuMemcpyAsync((CUdeviceptr)dst,
                                                       (CUdeviceptr)src, bytes,
                                                       cuda->stream),
                           "%zu bytes from %p to %p, stream %p of %s", bytes,
                           src, dst, (void *)cuda->stream, cuda->name);
}

int dtn_cuda_mark(struct dtn_cuda *cuda, int slot)
{
    return dtn_cuda_result(cuda, "cuEventRecord",
                           cuda->driver->cuEventRecord(cuda->moved[slot],
                                                       cuda->stream),
                           "stream %p of %s", (void *)cuda->stream,
                           cuda->name);
}
