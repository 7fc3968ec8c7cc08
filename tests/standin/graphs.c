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
    const struct standin_graph *made_of; /* a graph to launch: of that one    */
    struct standin_graph *next;   /* of all                                   */
};

/* All that were not destroyed, under standin_lock. */
static struct standin_graph *graphs;

static struct standin_graph *graph_new(void)
{
    struct standin_graph *graph = calloc(1, sizeof *graph);

    if (graph) {
        graph->last = &graph->first;
        pthread_mutex_lock(&standin_lock);
        graph->next = graphs;
        graphs = graph;
        pthread_mutex_unlock(&standin_lock);
        standin_count(STANDIN_GRAPH, 1);
    }
    return graph;
}

/* With the lock. */
static bool graph_lives(const struct standin_graph *graph)
{
    const struct standin_graph *g = graphs;

    while (g && g != graph)
        g = g->next;
    return g != NULL;
}

static void graph_unlist(struct standin_graph *graph)
{
    pthread_mutex_lock(&standin_lock);
    for (struct standin_graph **g = &graphs; *g; g = &(*g)->next)
        if (*g == graph) {
            *g = graph->next;
            break;
        }
    pthread_mutex_unlock(&standin_lock);
}

static void graph_free(struct standin_graph *graph)
{
    graph_unlist(graph);
    while (graph->first) {
        struct standin_task *task = graph->first;

        graph->first = task->next;
        free(task->bytes);
        free(task);
    }
    free(graph);
    standin_count(STANDIN_GRAPH, -1);
}

static bool graph_known(const char *call, const struct standin_graph *graph)
{
    bool known;

    pthread_mutex_lock(&standin_lock);
    known = graph_lives(graph);
    pthread_mutex_unlock(&standin_lock);
    if (!known)
        standin_complain("%s: %p is no graph", call, (const void *)graph);
    return known;
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

    stream = standin_stream_of(handle, "cuStreamEndCapture");
    graph = stream ? standin_recorded(stream) : NULL;
    if (!graph || graph->origin != stream)
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_ILLEGAL_STATE;
    standin_record_ends(graph);           /* whatever it returns              */
    if (rc != CUDA_SUCCESS || graph->spoilt) {
        graph_free(graph);
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
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
    if (!graph_known("cuGraphInstantiateWithFlags", graph))
        return CUDA_ERROR_INVALID_VALUE;
    exec = graph_new();
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->made_of = graph;
    for (struct standin_task *t = graph->first; t; t = t->next) {
        if (!task_copy(t, &own)) {
            graph_free(exec);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        own.node = t;
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
    if (!graph_known("cuGraphLaunch", exec) || !exec->made_of)
        return CUDA_ERROR_INVALID_VALUE;
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

static CUresult graph_destroy(const char *call, struct standin_graph *graph)
{
    CUresult rc = standin_enter(call);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (!graph_known(call, graph))
        return CUDA_ERROR_INVALID_VALUE;
    graph_free(graph);
    return CUDA_SUCCESS;
}

CUresult standin_cuGraphDestroy(CUgraph handle)
{
    return graph_destroy("cuGraphDestroy", (void *)handle);
}

CUresult standin_cuGraphExecDestroy(CUgraphExec handle)
{
    return graph_destroy("cuGraphExecDestroy", (void *)handle);
}

/* ----------------------------------------------------------------- nodes -- */

/* Every node comes after the one before it. */
CUresult standin_cuStreamGetCaptureInfo(CUstream handle,
                                        CUstreamCaptureStatus *status,
                                        cuuint64_t *id, CUgraph *graphp,
                                        const CUgraphNode **nodes, size_t *n)
{
    static _Thread_local CUgraphNode last;
    CUresult rc = standin_cuStreamIsCapturing(handle, status);
    const struct standin_graph *graph;
    const struct standin_task *task;

    if (rc != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return rc;
    rc = standin_enter_context("cuStreamGetCaptureInfo");
    if (rc != CUDA_SUCCESS)
        return rc;
    graph = standin_recorded(standin_stream_of(handle,
                                               "cuStreamGetCaptureInfo"));
    task = graph->first;
    while (task && task->next)
        task = task->next;
    last = (CUgraphNode)(uintptr_t)task;
    if (id)
        *id = (uintptr_t)graph;
    if (graphp)
        *graphp = (CUgraph)(uintptr_t)graph;
    if (nodes)
        *nodes = &last;
    if (n)
        *n = task != NULL;
    return CUDA_SUCCESS;
}

/* The task of a graph to launch that is this node of the graph it was made of.
 * NULL: there is none.
 */
static struct standin_task *graph_node(const struct standin_graph *exec,
                                       const struct standin_task *node)
{
    struct standin_task *task = exec->first;
    bool lives;

    pthread_mutex_lock(&standin_lock);
    lives = graph_lives(exec->made_of);
    pthread_mutex_unlock(&standin_lock);
    while (task && task->node != node)
        task = task->next;
    return lives ? task : NULL;
}

CUresult standin_cuGraphExecBatchMemOpNodeSetParams(
    CUgraphExec handle, CUgraphNode node,
    const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    static const char call[] = "cuGraphExecBatchMemOpNodeSetParams";
    CUresult rc = standin_enter_context(call);
    struct standin_graph *exec = (void *)handle;
    struct standin_task *task;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (!graph_known(call, exec) || !exec->made_of)
        return CUDA_ERROR_INVALID_VALUE;
    task = graph_node(exec, (void *)node);
    if (!task || params->flags != 0
        || params->ctx != standin_context(standin_current())
        || !standin_words_good(call, params->paramArray, params->count)
        || !standin_words_alike(task, params->paramArray, params->count)) {
        standin_complain("%s: %s", call, task ? "not what the node is"
                         : "no node of the graph that this one was made of");
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(task->bytes, params->paramArray, task->nbytes);
    return CUDA_SUCCESS;
}
