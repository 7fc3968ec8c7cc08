/* stream.c - queues, each with a thread that does what is in it
 *
 * The tasks of a stream have numbers, 1 and up; `done` is the number up to
 * which they are done.  After an error that sticks nothing is run any more,
 * but it counts as done, so that nobody waits for ever.
 *
 * To wake a thread for each task takes ten times as long as most tasks.  So who
 * asks whether a task is done does it himself, with those before it, unless one
 * of them waits.  If nobody asks the thread of the stream is woken, TICK_US
 * later: what the library reads too early is not there yet.
 *
 * The legacy stream NULL waits for what was in all other streams, and they for
 * it, unless they were created as non-blocking.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TICK_US = 100 };

struct standin_stream {
    pthread_cond_t more;          /* something to do, or the end              */
    struct standin_task *first;   /* not begun                                */
    struct standin_task **last;   /* where the next is appended               */
    uint64_t pushed, done;        /* numbers of tasks                         */
    bool runs;                    /* a thread does one of its tasks           */
    bool blocking;                /* waits for the legacy stream              */
    bool ends;                    /* was destroyed                            */
    int device;                   /* of its context                           */
    struct standin_graph *graph;  /* that it records, or NULL                 */
    struct standin_stream *next;  /* of all                                   */
};

/* All under standin_lock.  Streams are never freed: an event may name one. */
static struct standin_stream *streams;
static struct standin_stream *legacy;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER; /* some `done`        */
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER; /* a task, again     */
static long nqueued;                                /* tasks not begun        */

/* ---------------------------------------------------------------- worker -- */

static void task_free(struct standin_task *task)
{
    free(task->bytes);
    free(task);
}

/* Without the lock. */
static void task_run(struct standin_task *task)
{
    CUresult rc = task->later;

    if (task->late_us)
        usleep(task->late_us);
    if (rc == CUDA_SUCCESS && standin_stuck() == CUDA_SUCCESS)
        rc = task->run(task);
    if (rc != CUDA_SUCCESS)
        standin_stick(rc);
}

static bool task_ready(const struct standin_task *task)
{
    return !task->other || task->other->done >= task->ticket
        || standin_stuck() != CUDA_SUCCESS;
}

/* With the lock, which it gives up meanwhile: do the first task. */
static void first_run(struct standin_stream *stream)
{
    struct standin_task *task = stream->first;

    stream->first = task->next;
    if (!stream->first)
        stream->last = &stream->first;
    nqueued--;
    stream->runs = true;
    if (task->run) {
        pthread_mutex_unlock(&standin_lock);
        task_run(task);
        pthread_mutex_lock(&standin_lock);
    }
    task_free(task);
    stream->runs = false;
    stream->done++;
    pthread_cond_broadcast(&moved);
}

static void *worker(void *arg)
{
    struct standin_stream *stream = arg;

    pthread_mutex_lock(&standin_lock);
    while (stream->first || stream->runs || !stream->ends)
        if (stream->runs || (stream->first && !task_ready(stream->first)))
            pthread_cond_wait(&moved, &standin_lock);
        else if (stream->first)
            first_run(stream);
        else
            pthread_cond_wait(&stream->more, &standin_lock);
    pthread_mutex_unlock(&standin_lock);
    return NULL;
}

/* With the lock. */
static void workers_wake(void)
{
    for (struct standin_stream *s = streams; s; s = s->next)
        if (s->first)
            pthread_cond_signal(&s->more);
}

/* Wakes the threads of all streams with tasks that nobody asked for. */
static void *waker(void *arg)
{
    pthread_mutex_lock(&standin_lock);
    for (;;) {
        while (nqueued == 0)
            pthread_cond_wait(&queued, &standin_lock);
        pthread_mutex_unlock(&standin_lock);
        usleep(TICK_US);
        pthread_mutex_lock(&standin_lock);
        workers_wake();
    }
    return NULL;
}

/* With the lock: do the tasks up to that number, as far as they do not wait. */
static void tasks_do(struct standin_stream *stream, uint64_t ticket)
{
    struct standin_task *task;

    while ((task = stream->first) != NULL && stream->done < ticket
           && !stream->runs && !task->waits && task->late_us == 0) {
        if (!task_ready(task))
            tasks_do(task->other, task->ticket);
        if (stream->first != task || stream->runs || !task_ready(task))
            break;
        first_run(stream);
    }
    if (stream->done < ticket)
        workers_wake();
}

static bool thread_start(void *(*main)(void *), void *arg)
{
    pthread_attr_t detached;
    pthread_t thread;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    return pthread_create(&thread, &detached, main, arg) == 0;
}

/* With the lock. */
static struct standin_stream *stream_new(bool blocking)
{
    struct standin_stream *stream = calloc(1, sizeof *stream);

    if (!stream || (!streams && !thread_start(waker, NULL))) {
        free(stream);
        return NULL;
    }
    pthread_cond_init(&stream->more, NULL);
    stream->last = &stream->first;
    stream->blocking = blocking;
    stream->device = standin_current();
    if (!thread_start(worker, stream)) {
        free(stream);
        return NULL;
    }
    stream->next = streams;
    streams = stream;
    return stream;
}

/* --------------------------------------------------------------- pushing -- */

struct standin_stream *standin_stream_of(CUstream handle, const char *call)
{
    struct standin_stream *stream;

    pthread_mutex_lock(&standin_lock);
    if (!handle && !legacy)
        legacy = stream_new(false);
    stream = streams;
    while (stream && (void *)stream != (void *)(handle ? (void *)handle
                                                       : (void *)legacy))
        stream = stream->next;
    if (stream && stream->ends)
        stream = NULL;
    pthread_mutex_unlock(&standin_lock);
    if (!stream)
        standin_complain("%s: %p is no stream", call, (void *)handle);
    return stream;
}

static uint64_t stream_append(struct standin_stream *stream,
                              struct standin_task *task)
{
    task->next = NULL;
    *stream->last = task;
    stream->last = &task->next;
    if (nqueued++ == 0)
        pthread_cond_signal(&queued);
    return ++stream->pushed;
}

/* `stream` goes on after what is now in `other`. */
static bool stream_follows(struct standin_stream *stream,
                           struct standin_stream *other)
{
    struct standin_task *task;

    if (other->done == other->pushed)
        return true;
    task = calloc(1, sizeof *task);
    if (!task)
        return false;
    task->other = other;
    task->ticket = other->pushed;
    stream_append(stream, task);
    return true;
}

static bool legacy_order(struct standin_stream *stream)
{
    if (stream->blocking)
        return !legacy || stream_follows(stream, legacy);
    if (stream != legacy)
        return true;
    for (struct standin_stream *s = streams; s; s = s->next)
        if (s->blocking && !stream_follows(stream, s))
            return false;
    return true;
}

/* With the lock. */
static CUresult stream_push(struct standin_stream *stream,
                            struct standin_task *own, uint64_t *ticketp)
{
    uint64_t ticket;

    if (!legacy_order(stream))
        return CUDA_ERROR_OUT_OF_MEMORY;
    ticket = stream_append(stream, own);
    if (ticketp)
        *ticketp = ticket;
    return CUDA_SUCCESS;
}

CUresult standin_push(struct standin_stream *stream,
                      const struct standin_task *task, uint64_t *ticketp)
{
    struct standin_task *own;
    CUresult rc;

    if (stream->graph) {
        standin_graph_add(stream->graph, task);
        return CUDA_SUCCESS;
    }
    own = malloc(sizeof *own);
    if (!own) {
        free(task->bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *own = *task;
    own->late_us = (unsigned)standin_number("DTN_STANDIN_LATE_US", 0);
    pthread_mutex_lock(&standin_lock);
    rc = stream_push(stream, own, ticketp);
    pthread_mutex_unlock(&standin_lock);
    if (rc != CUDA_SUCCESS)
        task_free(own);
    return rc;
}

bool standin_is_done(struct standin_stream *stream, uint64_t ticket)
{
    bool done;

    pthread_mutex_lock(&standin_lock);
    tasks_do(stream, ticket);
    done = stream->done >= ticket;
    pthread_mutex_unlock(&standin_lock);
    return done;
}

void standin_wait_done(struct standin_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&standin_lock);
    tasks_do(stream, ticket);
    while (stream->done < ticket)
        pthread_cond_wait(&moved, &standin_lock);
    pthread_mutex_unlock(&standin_lock);
}

uint64_t standin_last(struct standin_stream *stream)
{
    uint64_t last;

    pthread_mutex_lock(&standin_lock);
    last = stream->pushed;
    pthread_mutex_unlock(&standin_lock);
    return last;
}

/* ------------------------------------------------------------- recording -- */

struct standin_graph *standin_recorded(const struct standin_stream *stream)
{
    return stream->graph;
}

void standin_record_in(struct standin_stream *stream,
                       struct standin_graph *graph)
{
    pthread_mutex_lock(&standin_lock);
    stream->graph = graph;
    pthread_mutex_unlock(&standin_lock);
}

void standin_record_ends(struct standin_graph *graph)
{
    pthread_mutex_lock(&standin_lock);
    for (struct standin_stream *s = streams; s; s = s->next)
        if (s->graph == graph)
            s->graph = NULL;
    pthread_mutex_unlock(&standin_lock);
}

/* ----------------------------------------------------------------- calls -- */

CUresult standin_cuStreamCreate(CUstream *handle, unsigned flags)
{
    CUresult rc = standin_enter_context("cuStreamCreate");
    struct standin_stream *stream;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    stream = stream_new(!(flags & CU_STREAM_NON_BLOCKING));
    pthread_mutex_unlock(&standin_lock);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    standin_count(STANDIN_STREAM, 1);
    *handle = (CUstream)(void *)stream;
    return CUDA_SUCCESS;
}

/* What is in it is done before its thread ends. */
CUresult standin_cuStreamDestroy(CUstream handle)
{
    CUresult rc = standin_enter("cuStreamDestroy");
    struct standin_stream *stream;

    if (rc != CUDA_SUCCESS)
        return rc;
    stream = handle ? standin_stream_of(handle, "cuStreamDestroy") : NULL;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&standin_lock);
    stream->ends = true;
    pthread_cond_signal(&stream->more);
    pthread_mutex_unlock(&standin_lock);
    standin_count(STANDIN_STREAM, -1);
    return CUDA_SUCCESS;
}

/* For calls that a recording stream does not allow. */
static CUresult enter_idle(const char *call, CUstream handle,
                           struct standin_stream **streamp)
{
    CUresult rc = standin_enter(call);

    if (rc != CUDA_SUCCESS)
        return rc;
    *streamp = standin_stream_of(handle, call);
    if (!*streamp)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((*streamp)->graph)
        return standin_graph_spoil((*streamp)->graph, call);
    return CUDA_SUCCESS;
}

CUresult standin_cuStreamQuery(CUstream handle)
{
    struct standin_stream *stream;
    CUresult rc = enter_idle("cuStreamQuery", handle, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (!standin_is_done(stream, standin_last(stream)))
        return CUDA_ERROR_NOT_READY;
    return standin_stuck();
}

CUresult standin_cuStreamSynchronize(CUstream handle)
{
    struct standin_stream *stream;
    CUresult rc = enter_idle("cuStreamSynchronize", handle, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    standin_wait_done(stream, standin_last(stream));
    return standin_stuck();
}

CUresult standin_cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    CUresult rc = standin_enter_context("cuStreamGetCtx");
    struct standin_stream *stream;

    if (rc != CUDA_SUCCESS)
        return rc;
    stream = standin_stream_of(handle, "cuStreamGetCtx");
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *context = standin_context(handle ? stream->device : standin_current());
    return CUDA_SUCCESS;
}
