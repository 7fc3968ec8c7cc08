/* graph.c - the device's part of a persistent call, recorded and launched
 *
 * After the hosts have exchanged READY, the rest of a run in which devices
 * signal is words, copies and reductions of this rank's device.  The first
 * start of a persistent call records these operations as a graph and launches
 * it.  Later starts launch it with the next values of the words.  In an
 * allreduce over 8 ranks one launch replaces 29 operations.
 *
 * Addresses are recorded too.  If a peer names other memory, or maps it at
 * another address, the run is recorded again.
 *
 * If an operation cannot be recorded, no operation has been executed yet.  The
 * run then continues behind the last READY without a graph, and so do later
 * runs.
 */
#include "coll/exec/graph.h"
#include "base/error.h"
#include "base/log.h"
#include "coll/exec.h"
#include "coll/exec/bind.h"
#include "coll/exec/direct.h"
#include "coll/exec/exec.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "coll/words.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct dtn_exec_graph {
    bool off;                     /* nothing can be recorded                  */
    struct dtn_graph *graph;      /* what was recorded; NULL: nothing         */
    const struct dtn_memory *memory; /* by this device                        */
    int from, end;                /* steps: the last READY, the last of the   */
                                  /* graph                                    */
    int nwords, batched;          /* words so far, those in a batch           */
    struct graph_word {
        const struct dtn_exec_peer *peer; /* to whom, or from whom            */
        enum dtn_tag tag;         /* which of its words                       */
        bool posts;               /* to whom                                  */
    } *words;                     /* [nsteps + 2 n] in their order            */
    struct dtn_word_op *ops;      /* as many: the words of a launch           */
    unsigned char **base;         /* [dtn_exec_nbase()] addresses             */
    struct graph_peer {           /* that were recorded: of this rank ...     */
        unsigned char *words;     /* ... and of peers                         */
        struct dtn_remote remote[DTN_EXEC_NNAMES];
    } *peers;                     /* [n]                                      */
};

int dtn_exec_repeats(struct dtn_exec *exec, struct dtensor_error *err)
{
    const size_t n = (size_t)exec->sched.n;
    const size_t nwords = (size_t)exec->sched.nsteps + 2 * n;
    struct dtn_exec_graph *graph;

    if (!exec->sched.streams)
        return 0;
    graph = exec->graph = calloc(1, sizeof *graph);
    if (graph) {
        graph->words = calloc(nwords, sizeof *graph->words);
        graph->ops = calloc(nwords, sizeof *graph->ops);
        graph->base = calloc(dtn_exec_nbase(exec), sizeof *graph->base);
        graph->peers = calloc(n, sizeof *graph->peers);
    }
    if (!graph || !graph->words || !graph->ops || !graph->base || !graph->peers)
        return dtn_fail_nomem(err, exec->sched.name,
                              nwords * sizeof *graph->ops);
    return 0;
}

static void graph_forget(struct dtn_exec_graph *graph)
{
    if (graph->graph)
        graph->memory->ops->forget(graph->memory, graph->graph);
    graph->graph = NULL;
}

void dtn_graph_destroy(struct dtn_exec *exec)
{
    struct dtn_exec_graph *graph = exec->graph;

    if (!graph)
        return;
    graph_forget(graph);
    free(graph->words);
    free(graph->ops);
    free(graph->base);
    free(graph->peers);
    free(graph);
}

bool dtn_graph_wanted(const struct dtn_exec *exec)
{
    return exec->graph && !exec->graph->off;
}

/* ---------------------------------------------------------- addresses --- */

static bool graph_fits(const struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    const struct dtn_exec_graph *graph = exec->graph;
    bool same = graph->memory == run->memory
             && memcmp(graph->base, exec->base,
                       dtn_exec_nbase(exec) * sizeof *graph->base) == 0;

    for (int p = 0; p < exec->sched.n && same; p++)
        same = graph->peers[p].words == exec->peers[p].words
            && memcmp(graph->peers[p].remote, exec->peers[p].remote,
                      sizeof graph->peers[p].remote) == 0;
    return same;
}

static void graph_keep(const struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    struct dtn_exec_graph *graph = exec->graph;

    graph->memory = run->memory;
    memcpy(graph->base, exec->base, dtn_exec_nbase(exec) * sizeof *graph->base);
    for (int p = 0; p < exec->sched.n; p++) {
        graph->peers[p].words = exec->peers[p].words;
        memcpy(graph->peers[p].remote, exec->peers[p].remote,
               sizeof graph->peers[p].remote);
    }
}

/* ---------------------------------------------------------- recording --- */

static bool is_word(const struct dtn_exec_step *bound)
{
    return bound->step->op == DTN_OP_SIGNAL || bound->step->op == DTN_OP_WAIT;
}

/* Does a word come next?  Flushes are of puts by hosts. */
static bool word_follows(const struct dtn_exec_run *run)
{
    const int next = run->progress.step + 1;
    const struct dtn_exec_step *bound = &run->exec->steps[next];

    while (bound->step->op == DTN_OP_FLUSH)
        bound++;
    return is_word(bound);
}

/* Does this rank's device do the step? */
static bool step_able(const struct dtn_exec_run *run,
                      const struct dtn_exec_step *bound)
{
    const enum dtn_tag tag = bound->step->tag;
    bool maps = bound->nterms > 0 || dtn_run_maps(run, bound->src);

    switch (bound->step->op) {
    case DTN_OP_SIGNAL:
    case DTN_OP_WAIT:
        return bound->peer->words
            && (tag == DTN_TAG_DATA || tag == DTN_TAG_DONE);
    case DTN_OP_PUT:
        return dtn_direct_put_at(run, bound) != NULL;
    case DTN_OP_FLUSH:
        return bound->peer->words != NULL;
    default:
        for (int i = 0; i < bound->nterms; i++)
            maps &= dtn_run_maps(run, bound->terms[i]);
        return maps;
    }
}

/* Does it do all steps after the last READY, but for flushes at the end? */
static bool graph_able(struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    struct dtn_exec_graph *graph = exec->graph;
    bool able;

    graph->from = run->progress.step;
    graph->end = exec->sched.nsteps - 1;
    while (graph->end > graph->from
           && exec->steps[graph->end].step->op == DTN_OP_FLUSH)
        graph->end--;
    able = graph->end > graph->from && is_word(&exec->steps[graph->end]);
    for (int s = graph->from + 1; s <= graph->end && able; s++)
        able = step_able(run, &exec->steps[s]);
    return able;
}

/* Go back to the last READY, and on without a graph. */
static int graph_give_up(struct dtn_exec_run *run, const char *why)
{
    struct dtn_exec_graph *graph = run->exec->graph;

    dtn_log(&run->ctx->log, DTN_LOG_INFO, "gpu: %s: started without a graph: "
            "%s", run->exec->sched.name, why);
    dtn_graph_end(run);
    graph_forget(graph);
    graph->off = true;
    run->progress.step = graph->from;
    return DTN_UNRECORDED;
}

void dtn_graph_end(struct dtn_exec_run *run)
{
    if (run->device.records)
        run->memory->ops->recorded(run->memory, NULL);
    run->device.records = run->device.spoilt = false;
}

static const char *graph_why(const struct dtn_exec_run *run)
{
    return run->memory->ops->why(run->memory);
}

/* Fill in the words from `first` on, with the values that this launch has. */
static void graph_fill(struct dtn_exec_run *run, int first)
{
    struct dtn_device_words *words = dtn_words_of(run->ctx);
    struct dtn_exec_graph *graph = run->exec->graph;

    for (int i = first; i < graph->nwords; i++) {
        const struct graph_word *word = &graph->words[i];
        const size_t here = dtn_word_of(word->peer->rank, word->tag);
        const size_t there = dtn_word_of(run->ctx->world.rank, word->tag);

        graph->ops[i] = (struct dtn_word_op){
            .posts = word->posts,
            .word = word->posts
                ? word->peer->words + there * sizeof words->posted[0]
                : words->mem + here * sizeof words->held[0],
            .value = word->posts ? words->posted[here] : words->held[here] };
    }
}

/* Count them on, or back. */
static void graph_count(struct dtn_exec_run *run, uint64_t by)
{
    struct dtn_device_words *words = dtn_words_of(run->ctx);
    struct dtn_exec_graph *graph = run->exec->graph;

    for (int i = 0; i < graph->nwords; i++) {
        const struct graph_word *word = &graph->words[i];

        (word->posts ? words->posted
                     : words->held)[dtn_word_of(word->peer->rank, word->tag)]
            += by;
    }
}

static int graph_launch(struct dtn_exec_run *run)
{
    struct dtn_exec_graph *graph = run->exec->graph;
    int rc;

    graph_count(run, 1);
    graph_fill(run, 0);
    rc = run->memory->ops->replay(run->memory, graph->graph, graph->ops);
    if (rc != DTN_LAUNCHED) {
        graph_count(run, UINT64_MAX);
        return graph_give_up(run, graph_why(run));
    }
    run->device.launched = true;
    run->progress.step = graph->end;
    run->ctx->path.graph = true;
    return 0;
}

/* All words that stand together are there. */
static void graph_batch(struct dtn_exec_run *run)
{
    struct dtn_exec_graph *graph = run->exec->graph;
    const int n = graph->nwords - graph->batched;

    graph_fill(run, graph->batched);
    if (!run->device.spoilt
        && run->memory->ops->batch(run->memory, graph->ops + graph->batched, n)
           != DTN_LAUNCHED)
        run->device.spoilt = true;
    graph->batched = graph->nwords;
}

static void graph_add(struct dtn_exec_graph *graph,
                      const struct dtn_exec_peer *peer, enum dtn_tag tag,
                      bool posts)
{
    graph->words[graph->nwords++] = (struct graph_word){ peer, tag, posts };
}

/* The last word of a run is there. */
static int graph_done(struct dtn_exec_run *run)
{
    int rc = DTENSOR_EINVAL;

    if (!run->device.spoilt) {
        run->device.records = false;
        rc = run->memory->ops->recorded(run->memory, &run->exec->graph->graph);
    }
    if (rc != 0)
        return graph_give_up(run, graph_why(run));
    graph_keep(run);
    return graph_launch(run);
}

int dtn_graph_note(struct dtn_exec_run *run, const struct dtn_exec_peer *peer,
                   enum dtn_tag tag, bool posts)
{
    struct dtn_exec_graph *graph = run->exec->graph;

    graph_add(graph, peer, tag, posts);
    if (run->progress.step == graph->end || !word_follows(run))
        graph_batch(run);
    return run->progress.step == graph->end ? graph_done(run)
         : run->device.spoilt ? graph_give_up(run, graph_why(run)) : 0;
}

static int graph_record(struct dtn_exec_run *run)
{
    struct dtn_exec *exec = run->exec;
    struct dtn_exec_graph *graph = exec->graph;

    if (run->memory->ops->record(run->memory) != 0)
        return graph_give_up(run, graph_why(run));
    run->device.records = true;
    run->device.spoilt = false;
    graph->nwords = graph->batched = 0;
    for (int p = 0; p < exec->sched.n; p++)
        if (exec->peers[p].words)
            graph_add(graph, &exec->peers[p], DTN_TAG_READY, true);
    for (int p = 0; p < exec->sched.n; p++)
        if (exec->peers[p].words)
            graph_add(graph, &exec->peers[p], DTN_TAG_READY, false);
    if (!word_follows(run))
        graph_batch(run);
    return 0;
}

int dtn_graph_meet(struct dtn_exec_run *run)
{
    struct dtn_exec_graph *graph = run->exec->graph;

    if (graph->graph && graph_fits(run))
        return graph_launch(run);
    graph_forget(graph);
    return graph_able(run) ? graph_record(run) : DTN_UNRECORDED;
}
