/* tasks.c - what streams do: copies, sets, values, host functions
 *
 * Addresses are looked at twice: by the call, which refuses what is not memory,
 * and when the task is run, where memory that was freed meanwhile is an error
 * that sticks.
 */
#include "tests/standin/standin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLL_US = 20 };

/* Streams that call host functions may not call the driver there. */
static _Thread_local bool in_host_function;

CUresult standin_enter_task(const char *call, CUstream handle,
                            struct standin_task *task,
                            struct standin_stream **streamp)
{
    CUresult rc = standin_enter_stream(call, &task->later);

    if (in_host_function) {
        standin_complain("%s: called by a host function of a stream", call);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if (rc != CUDA_SUCCESS)
        return rc;
    if (standin_current() < 0) {
        standin_complain("%s: no context is current in this thread", call);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *streamp = standin_stream_of(handle, call);
    return *streamp ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* May a call name it? */
static bool task_takes(const char *call, uint64_t at, size_t size)
{
    const char *why;

    if (standin_look(at, size, &why))
        return true;
    standin_complain("%s: %zu bytes at %#llx: %s", call, size,
                     (unsigned long long)at, why);
    return false;
}

static bool pinned_now(uint64_t at, size_t size)
{
    bool is;

    pthread_mutex_lock(&standin_lock);
    is = standin_is_pinned(at, size);
    pthread_mutex_unlock(&standin_lock);
    return is;
}

/* ------------------------------------------------------------- copy, set -- */

/* Where a task reaches it now, or NULL. */
static void *task_reach(uint64_t at, size_t size, bool was_pinned,
                        const char *what)
{
    if (was_pinned && !pinned_now(at, size)) {
        standin_complain("%s: %zu bytes at %#llx: no longer pinned", what, size,
                         (unsigned long long)at);
        standin_stick(CUDA_ERROR_ILLEGAL_ADDRESS);
        return NULL;
    }
    return standin_reach(at, size, what);
}

static CUresult run_copy(struct standin_task *task)
{
    const void *src = task->bytes ? task->bytes
        : task_reach(task->src, task->size, task->src_pinned, "copy from");
    void *dst = task_reach(task->dst, task->size, task->dst_pinned, "copy to");

    if (!src || !dst)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memmove(dst, src, task->size);
    return CUDA_SUCCESS;
}

/* Pageable sources are read before the call returns. */
static bool copy_snapshot(struct standin_task *task)
{
    task->bytes = malloc(task->size ? task->size : 1);
    if (task->bytes)
        memcpy(task->bytes, (const void *)(uintptr_t)task->src, task->size);
    return task->bytes != NULL;
}

CUresult standin_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size,
                               CUstream handle)
{
    struct standin_task task = { .run = run_copy, .dst = dst, .src = src,
                                 .size = size };
    struct standin_stream *stream;
    uint64_t ticket = 0;
    CUresult rc = standin_enter_task("cuMemcpyAsync", handle, &task, &stream);

    if (rc != CUDA_SUCCESS || size == 0)
        return rc;
    if (!task_takes("cuMemcpyAsync: destination", dst, size)
        || !task_takes("cuMemcpyAsync: source", src, size))
        return CUDA_ERROR_INVALID_VALUE;
    task.dst_pinned = pinned_now(dst, size);
    task.src_pinned = pinned_now(src, size);
    if (!standin_is_device(src) && !task.src_pinned && !copy_snapshot(&task))
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = standin_push(stream, &task, &ticket);
    if (rc != CUDA_SUCCESS || standin_is_device(dst) || task.dst_pinned
        || ticket == 0)
        return rc;
    standin_wait_done(stream, ticket);       /* pageable destinations         */
    return standin_stuck();
}

static CUresult run_set(struct standin_task *task)
{
    void *dst = standin_reach(task->dst, task->size, "set");

    if (!dst)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memset(dst, (int)task->value, task->size);
    return CUDA_SUCCESS;
}

CUresult standin_cuMemsetD8Async(CUdeviceptr dst, unsigned char byte,
                                 size_t size, CUstream handle)
{
    struct standin_task task = { .run = run_set, .dst = dst, .value = byte,
                                 .size = size };
    struct standin_stream *stream;
    CUresult rc = standin_enter_task("cuMemsetD8Async", handle, &task, &stream);

    if (rc != CUDA_SUCCESS || size == 0)
        return rc;
    if (!(standin_is_device(dst) || pinned_now(dst, size))
        || !task_takes("cuMemsetD8Async", dst, size))
        return CUDA_ERROR_INVALID_VALUE;
    return standin_push(stream, &task, NULL);
}

/* ---------------------------------------------------------------- values -- */

CUresult standin_word_write(uint64_t word, uint64_t value)
{
    _Atomic uint64_t *at = standin_reach(word, sizeof *at, "write value");

    if (!at)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    atomic_store(at, value);
    return CUDA_SUCCESS;
}

static CUresult run_write(struct standin_task *task)
{
    return standin_word_write(task->dst, task->value);
}

static bool value_satisfies(uint64_t value, uint64_t wanted, unsigned how)
{
    switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int64_t)(value - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
        return (value & wanted) != 0;
    default:
        return ~(value | wanted) != 0;
    }
}

CUresult standin_word_wait(uint64_t word, uint64_t value, unsigned flags)
{
    _Atomic uint64_t *at = standin_reach(word, sizeof *at, "wait value");

    while (at && !value_satisfies(atomic_load(at), value, flags)) {
        if (standin_stuck() != CUDA_SUCCESS)
            return CUDA_SUCCESS;
        usleep(POLL_US);
        at = standin_reach(word, sizeof *at, "wait value");
    }
    return at ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_wait(struct standin_task *task)
{
    return standin_word_wait(task->dst, task->value, task->flags);
}

bool standin_word_good(const char *call, uint64_t at)
{
    if (at % sizeof(uint64_t) == 0
        && (standin_is_device(at) || pinned_now(at, sizeof(uint64_t)))
        && task_takes(call, at, sizeof(uint64_t)))
        return true;
    standin_complain("%s: %#llx: expected 8 aligned bytes of the device", call,
                     (unsigned long long)at);
    return false;
}

static CUresult value_push(const char *call, CUstream handle,
                           struct standin_task *task)
{
    struct standin_stream *stream;
    CUresult rc = standin_enter_task(call, handle, task, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (!standin_word_good(call, task->dst))
        return CUDA_ERROR_INVALID_VALUE;
    return standin_push(stream, task, NULL);
}

CUresult standin_cuStreamWriteValue64(CUstream handle, CUdeviceptr at,
                                      cuuint64_t value, unsigned flags)
{
    struct standin_task task = { .run = run_write, .dst = at, .value = value };

    return value_push("cuStreamWriteValue64", handle, &task);
}

CUresult standin_cuStreamWaitValue64(CUstream handle, CUdeviceptr at,
                                     cuuint64_t value, unsigned flags)
{
    struct standin_task task = { .run = run_wait, .waits = true, .dst = at,
                                 .value = value, .flags = flags };

    if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED;
    return value_push("cuStreamWaitValue64", handle, &task);
}

/* -------------------------------------------------------- host functions -- */

static CUresult run_host(struct standin_task *task)
{
    in_host_function = true;
    task->call(task->arg);
    in_host_function = false;
    return CUDA_SUCCESS;
}

CUresult standin_cuLaunchHostFunc(CUstream handle, CUhostFn call, void *arg)
{
    struct standin_task task = { .run = run_host, .waits = true, .call = call,
                                 .arg = arg };
    struct standin_stream *stream;
    CUresult rc = standin_enter_task("cuLaunchHostFunc", handle, &task,
                                     &stream);

    return rc == CUDA_SUCCESS ? standin_push(stream, &task, NULL) : rc;
}
