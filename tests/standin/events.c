/* events.c - points in streams
 *
 * An event is a stream and the number of a task: it has happened when the
 * stream has done that task.  One that keeps its time has a task of its own,
 * which looks at the clock.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <time.h>

struct event {
    struct standin_stream *stream; /* NULL: never recorded                    */
    uint64_t ticket;              /* number of the task                       */
    struct standin_graph *graph;  /* it was recorded into this one, or NULL   */
    bool timed;                   /* it keeps its time                        */
    struct timespec at;           /* when it happened                         */
    struct event *next;           /* of all                                   */
};

static struct event *events;      /* under standin_lock                       */

/* With the lock. */
static struct event *event_find(const void *handle)
{
    struct event *event = events;

    while (event && event != handle)
        event = event->next;
    return event;
}

static struct event *event_of(CUevent handle, const char *call)
{
    struct event *event;

    pthread_mutex_lock(&standin_lock);
    event = event_find((void *)handle);
    pthread_mutex_unlock(&standin_lock);
    if (!event)
        standin_complain("%s: %p is no event", call, (void *)handle);
    return event;
}

CUresult standin_cuEventCreate(CUevent *handle, unsigned flags)
{
    CUresult rc = standin_enter_context("cuEventCreate");
    struct event *event;

    if (rc != CUDA_SUCCESS)
        return rc;
    event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&standin_lock);
    event->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    event->next = events;
    events = event;
    pthread_mutex_unlock(&standin_lock);
    standin_count(STANDIN_EVENT, 1);
    *handle = (CUevent)(void *)event;
    return CUDA_SUCCESS;
}

CUresult standin_cuEventDestroy(CUevent handle)
{
    CUresult rc = standin_enter("cuEventDestroy");
    struct event **link = &events, *event;

    if (rc != CUDA_SUCCESS)
        return rc;
    event = event_of(handle, "cuEventDestroy");
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&standin_lock);
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    pthread_mutex_unlock(&standin_lock);
    free(event);
    standin_count(STANDIN_EVENT, -1);
    return CUDA_SUCCESS;
}

/* The event may have been destroyed meanwhile. */
static CUresult run_stamp(struct standin_task *task)
{
    struct event *event;

    pthread_mutex_lock(&standin_lock);
    event = event_find(task->arg);
    if (event)
        clock_gettime(CLOCK_MONOTONIC, &event->at);
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

CUresult standin_cuEventRecord(CUevent handle, CUstream stream_handle)
{
    CUresult rc = standin_enter_context("cuEventRecord");
    struct standin_stream *stream;
    struct event *event;

    if (rc != CUDA_SUCCESS)
        return rc;
    event = event_of(handle, "cuEventRecord");
    stream = standin_stream_of(stream_handle, "cuEventRecord");
    if (!event || !stream)
        return CUDA_ERROR_INVALID_HANDLE;
    event->stream = stream;
    event->graph = standin_recorded(stream);
    if (event->timed && !event->graph)
        return standin_push(stream, &(struct standin_task){ .run = run_stamp,
                            .arg = event }, &event->ticket);
    event->ticket = event->graph ? 0 : standin_last(stream);
    return CUDA_SUCCESS;
}

/* For calls that ask whether it has happened. */
static CUresult enter_event(const char *call, CUevent handle,
                            struct event **eventp)
{
    CUresult rc = standin_enter(call);

    if (rc != CUDA_SUCCESS)
        return rc;
    *eventp = event_of(handle, call);
    if (!*eventp)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((*eventp)->graph)
        return standin_graph_spoil((*eventp)->graph, call);
    return CUDA_SUCCESS;
}

CUresult standin_cuEventQuery(CUevent handle)
{
    struct event *event;
    CUresult rc = enter_event("cuEventQuery", handle, &event);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (event->stream && !standin_is_done(event->stream, event->ticket))
        return CUDA_ERROR_NOT_READY;
    return standin_stuck();
}

CUresult standin_cuEventSynchronize(CUevent handle)
{
    struct event *event;
    CUresult rc = enter_event("cuEventSynchronize", handle, &event);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (event->stream)
        standin_wait_done(event->stream, event->ticket);
    return standin_stuck();
}

CUresult standin_cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    struct event *event[2];
    CUresult rc = enter_event("cuEventElapsedTime", from, &event[0]);

    if (rc == CUDA_SUCCESS)
        rc = enter_event("cuEventElapsedTime", to, &event[1]);
    if (rc != CUDA_SUCCESS)
        return rc;
    for (int i = 0; i < 2; i++)
        if (!event[i]->timed || !event[i]->stream)
            return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < 2; i++)
        if (!standin_is_done(event[i]->stream, event[i]->ticket))
            return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(event[1]->at.tv_sec - event[0]->at.tv_sec) * 1e3
                  + (double)(event[1]->at.tv_nsec - event[0]->at.tv_nsec)
                  / 1e6);
    return standin_stuck();
}

/* A stream that waits for an event of a recording stream records, too. */
CUresult standin_cuStreamWaitEvent(CUstream stream_handle, CUevent handle,
                                   unsigned flags)
{
    CUresult rc = standin_enter_context("cuStreamWaitEvent");
    struct standin_stream *stream;
    struct event *event;

    if (rc != CUDA_SUCCESS)
        return rc;
    event = event_of(handle, "cuStreamWaitEvent");
    stream = standin_stream_of(stream_handle, "cuStreamWaitEvent");
    if (!event || !stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->graph) {
        standin_record_in(stream, event->graph);
        return CUDA_SUCCESS;
    }
    if (!event->stream)
        return CUDA_SUCCESS;
    return standin_push(stream, &(struct standin_task){
        .other = event->stream, .ticket = event->ticket }, NULL);
}
