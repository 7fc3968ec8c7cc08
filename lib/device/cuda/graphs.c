/* graphs.c - operations that are recorded once and launched many times
 *
 * Operations that are enqueued in a capturing stream become a graph.  Its
 * copies and kernels stay the same.  The values of its words change with each
 * launch: consecutive words are one node, and the driver gets the new values of
 * that node. A call that waits for its peers, reduces, and signals them has two
 * such nodes and a kernel.  So it takes three calls of the driver for any
 * number of peers.
 */
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    BATCHES_MAX = 8,              /* of a graph                               */
    WORDS_MAX = 255               /* the driver's limit for a batch           */
};

struct dtn_graph {
    CUgraph graph;                /* names the nodes                          */
    CUgraphExec exec;             /* is launched                              */
    const char *running;          /* its last kernel, for errors, or NULL     */
    int nbatches;                 /* nodes of words                           */
    struct graph_batch {
        CUgraphNode node;         /* in `graph`                               */
        int count;                /* words                                    */
    } batch[BATCHES_MAX];         /* in their order                           */
};

/* ---------------------------------------------------------- recording --- */

int dtn_cuda_record(const struct dtn_memory *memory)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    struct dtn_graph *graph;
    char why[200];
    int rc;

    if (!dtn_cuda_can(cuda->driver, DTN_CUDA_GRAPHS, why, sizeof why))
        return dtn_fail(&cuda->failure, DTENSOR_ENODEV, "%s", why);
    graph = calloc(1, sizeof *graph);
    if (!graph)
        return dtn_fail_nomem(&cuda->failure, "graph", sizeof *graph);
    rc = dtn_cuda_enter(cuda);
    if (rc == 0) {
        rc = dtn_cuda_result(cuda, "cuStreamBeginCapture",
                             cuda->driver->cuStreamBeginCapture(
                                 cuda->stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                             "stream %p of %s", (void *)cuda->stream,
                             cuda->name);
        dtn_cuda_leave(cuda);
    }
    if (rc != 0) {
        free(graph);
        return rc;
    }
    cuda->recording = graph;
    return 0;
}

/* The node of the last operation that was recorded. */
static int graph_note(struct dtn_cuda *cuda, int count)
{
    struct dtn_graph *graph = cuda->recording;
    struct graph_batch *batch = &graph->batch[graph->nbatches];
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *nodes = NULL;
    size_t n = 0;
    int rc = dtn_cuda_result(cuda, "cuStreamGetCaptureInfo",
                             cuda->driver->cuStreamGetCaptureInfo(
                                 cuda->stream, &status, NULL, NULL, &nodes, &n),
                             "stream %p of %s", (void *)cuda->stream,
                             cuda->name);

    if (rc != 0)
        return rc;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || n != 1)
        return dtn_fail(&cuda->failure, DTENSOR_ESYS, "stream %p of %s: %zu "
                        "nodes after words were recorded; expected 1",
                        (void *)cuda->stream, cuda->name, n);
    *batch = (struct graph_batch){ nodes[0], count };
    graph->nbatches++;
    return 0;
}

static void words_fill(const struct dtn_word_op ops[], int n,
                       CUstreamBatchMemOpParams to[])
{
    for (int i = 0; i < n; i++)
        to[i] = (CUstreamBatchMemOpParams){
            .operation = ops[i].posts ? CU_STREAM_MEM_OP_WRITE_VALUE_64
                                      : CU_STREAM_MEM_OP_WAIT_VALUE_64,
            .address = (CUdeviceptr)ops[i].word, .value64 = ops[i].value,
            .flags = ops[i].posts ? CU_STREAM_WRITE_VALUE_DEFAULT
                                  : CU_STREAM_WAIT_VALUE_GEQ };
}

int dtn_cuda_batch(const struct dtn_memory *memory,
                   const struct dtn_word_op ops[], int n)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    CUstreamBatchMemOpParams words[WORDS_MAX];
    int rc;

    if (n > WORDS_MAX || cuda->recording->nbatches == BATCHES_MAX)
        return dtn_fail(&cuda->failure, DTENSOR_EINVAL, "%d words in batch %d; "
                        "expected at most %d in %d", n,
                        cuda->recording->nbatches + 1, WORDS_MAX, BATCHES_MAX);
    rc = dtn_cuda_enter(cuda);
    if (rc != 0)
        return rc;
    words_fill(ops, n, words);
    rc = dtn_cuda_result(cuda, "cuStreamBatchMemOp",
                         cuda->driver->cuStreamBatchMemOp(
                             cuda->stream, (unsigned)n, words, 0),
                         "%d words, stream %p of %s", n, (void *)cuda->stream,
                         cuda->name);
    if (rc == 0)
        rc = graph_note(cuda, n);
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

/* The context is current. */
static void graph_free(struct dtn_cuda *cuda, struct dtn_graph *graph)
{
    if (graph->exec)
        cuda->driver->cuGraphExecDestroy(graph->exec);
    if (graph->graph)
        cuda->driver->cuGraphDestroy(graph->graph);
    free(graph);
}

static int graph_end(struct dtn_cuda *cuda, struct dtn_graph *graph)
{
    int rc = dtn_cuda_result(cuda, "cuStreamEndCapture",
                             cuda->driver->cuStreamEndCapture(cuda->stream,
                                                              &graph->graph),
                             "stream %p of %s", (void *)cuda->stream,
                             cuda->name);

    if (rc != 0)
        graph->graph = NULL;
    return rc;
}

static int graph_instantiate(struct dtn_cuda *cuda, struct dtn_graph *graph)
{
    int rc = dtn_cuda_result(cuda, "cuGraphInstantiateWithFlags",
                             cuda->driver->cuGraphInstantiateWithFlags(
                                 &graph->exec, graph->graph, 0),
                             "%s", cuda->name);

    if (rc != 0)
        graph->exec = NULL;
    return rc;
}

int dtn_cuda_recorded(const struct dtn_memory *memory,
                      struct dtn_graph **graphp)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    struct dtn_graph *graph = cuda->recording;
    int rc = dtn_cuda_enter(cuda);
    const bool entered = rc == 0;

    cuda->recording = NULL;
    if (rc == 0)
        rc = graph_end(cuda, graph);
    if (rc == 0 && graphp)
        rc = graph_instantiate(cuda, graph);
    if (rc == 0 && graphp) {
        graph->running = cuda->running;
        *graphp = graph;
    } else {
        graph_free(cuda, graph);
    }
    if (entered)
        dtn_cuda_leave(cuda);
    return rc;
}

/* ---------------------------------------------------------- launching --- */

static int graph_words(struct dtn_cuda *cuda, const struct dtn_graph *graph,
                       const struct dtn_word_op ops[])
{
    CUstreamBatchMemOpParams words[WORDS_MAX];
    int rc = 0;

    for (int b = 0; b < graph->nbatches && rc == 0; b++) {
        const struct graph_batch *batch = &graph->batch[b];
        const CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
            .ctx = cuda->context, .count = (unsigned)batch->count,
            .paramArray = words };

        words_fill(ops, batch->count, words);
        ops += batch->count;
        rc = dtn_cuda_result(cuda, "cuGraphExecBatchMemOpNodeSetParams",
                             cuda->driver->cuGraphExecBatchMemOpNodeSetParams(
                                 graph->exec, batch->node, &params),
                             "%d words of %s", batch->count, cuda->name);
    }
    return rc;
}

int dtn_cuda_replay(const struct dtn_memory *memory, struct dtn_graph *graph,
                    const struct dtn_word_op ops[])
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = graph_words(cuda, graph, ops);
    if (rc == 0)
        rc = dtn_cuda_result(cuda, "cuGraphLaunch",
                             cuda->driver->cuGraphLaunch(graph->exec,
                                                         cuda->stream),
                             "stream %p of %s", (void *)cuda->stream,
                             cuda->name);
    if (rc == 0) {
        dtn_cuda_given(cuda);
        cuda->running = graph->running;
    }
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

void dtn_cuda_forget(const struct dtn_memory *memory, struct dtn_graph *graph)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    const bool entered = dtn_cuda_enter(cuda) == 0;

    graph_free(cuda, graph);
    if (entered)
        dtn_cuda_leave(cuda);
}
