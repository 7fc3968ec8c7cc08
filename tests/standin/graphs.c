/* graphs.c - recording what a stream is given, and launching it again
 *
 * A graph has its tasks in the order in which they were given, whatever streams
 * took part, and is launched in that order.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>

/* Of a recording, a graph, and a graph to launch. */
struct standin_graph {
    struct standin_task *first;   /* tasks                                    */
    struct standin_task **last;   /* where the next is appended               */
    struct standin_stream *origin; /* where the recording began               */
    bool spoilt;                  /* by a call that is not allowed            */
};

static struct standin_graph *graph_new(void)
{
    struct standin_graph *graph = calloc(1, sizeof *graph);

    if (graph) {
        graph->last = &graph->first;
        standin_count(STANDIN_GRAPH, 1);
    }
    return graph;
}

static void graph_free(struct standin_graph *graph)
{
    while (graph->first) {
        struct standin_task *task = graph->first;

        graph->first = task->next;
        free(task->bytes);
        free(task);
    }
    free(graph);
    standin_count(STANDIN_GRAPH, -1);
}

void standin_graph_add(struct standin_graph *graph,
                       const struct standin_task *task)
{
    struct standin_task *own = malloc(sizeof *own);

    if (!own) {
        free(task->bytes);
        graph->spoilt = true;
        return;
    }
    *own = *task;
    own->next = NULL;
    *graph->last = own;
    graph->last = &own->next;
}

/* A copy of a task, with bytes of its own.  False: not enough memory. */
static bool task_copy(const struct standin_task *task, struct standin_task *own)
{
    *own = *task;
    if (!task->bytes)
        return true;
    own->bytes = malloc(task->nbytes);
    if (own->bytes)
        memcpy(own->bytes, task->bytes, task->nbytes);
    return own->bytes != NULL;
}

CUresult standin_graph_spoil(struct standin_graph *graph, const char *call)
{
    standin_complain("%s: not allowed while the stream is recorded", call);
    graph->spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult standin_cuStreamIsCapturing(CUstream handle,
                                     CUstreamCaptureStatus *status)
{
    CUresult rc = standin_enter("cuStreamIsCapturing");
    struct standin_stream *stream;
    struct standin_graph *graph;

    if (rc != CUDA_SUCCESS)
        return rc;
    stream = standin_stream_of(handle, "cuStreamIsCapturing");
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    graph = standin_recorded(stream);
    *status = !graph ? CU_STREAM_CAPTURE_STATUS_NONE
        : graph->spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult standin_cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    CUresult rc = standin_enter_context("cuStreamBeginCapture");
    struct standin_stream *stream;
    struct standin_graph *graph;

    if (rc != CUDA_SUCCESS)
        return rc;
    stream = standin_stream_of(handle, "cuStreamBeginCapture");
    if (!handle || !stream)
        return handle ? CUDA_ERROR_INVALID_HANDLE
                      : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (standin_recorded(stream))
        return CUDA_ERROR_ILLEGAL_STATE;
    graph = graph_new();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->origin = stream;
    standin_record_in(stream, graph);
    return CUDA_SUCCESS;
}

CUresult standin_cuStreamEndCapture(CUstream handle, CUgraph *graphp)
{
    CUresult rc = standin_enter_context("cuStreamEndCapture");
    struct standin_stream *stream;
    struct standin_graph *graph;

    if (rc != CUDA_SUCCESS)
        return rc;
    stream = standin_stream_of(handle, "cuStreamEndCapture");
    graph = stream ? standin_recorded(stream) : NULL;
    if (!graph || graph->origin != stream)
        return CUDA_ERROR_ILLEGAL_STATE;
    standin_record_ends(graph);
    if (graph->spoilt) {
        graph_free(graph);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graphp = (CUgraph)(void *)graph;
    return CUDA_SUCCESS;
}

CUresult standin_cuGraphInstantiateWithFlags(CUgraphExec *execp,
                                             CUgraph handle,
                                             unsigned long long flags)
{
    CUresult rc = standin_enter_context("cuGraphInstantiateWithFlags");
    const struct standin_graph *graph = (void *)handle;
    struct standin_graph *exec;
    struct standin_task own;

    if (rc != CUDA_SUCCESS)
        return rc;
    exec = graph_new();
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct standin_task *t = graph->first; t; t = t->next) {
        if (!task_copy(t, &own)) {
            graph_free(exec);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        standin_graph_add(exec, &own);
    }
    *execp = (CUgraphExec)(void *)exec;
    return CUDA_SUCCESS;
}

CUresult standin_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    CUresult later = CUDA_SUCCESS;
    CUresult rc = standin_enter_stream("cuGraphLaunch", &later);
    const struct standin_graph *exec = (void *)handle;
    struct standin_stream *stream;
    struct standin_task own;

    if (rc != CUDA_SUCCESS)
        return rc;
    stream = standin_stream_of(stream_handle, "cuGraphLaunch");
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    for (const struct standin_task *t = exec->first; t && rc == 0;
         t = t->next) {
        if (!task_copy(t, &own))
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (later != CUDA_SUCCESS)
            own.later = later;
        rc = standin_push(stream, &own, NULL);
    }
    return rc;
}

CUresult standin_cuGraphDestroy(CUgraph handle)
{
    CUresult rc = standin_enter("cuGraphDestroy");

    if (rc == CUDA_SUCCESS)
        graph_free((void *)handle);
    return rc;
}

CUresult standin_cuGraphExecDestroy(CUgraphExec handle)
{
    CUresult rc = standin_enter("cuGraphExecDestroy");

    if (rc == CUDA_SUCCESS)
        graph_free((void *)handle);
    return rc;
}
