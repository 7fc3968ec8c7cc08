/* test_cuda_graphs.c - persistent calls on GPUs are one launch of a graph
 *
 * Ranks on the driver in tests/standin, which counts calls.  The results have
 * the bits of the same call without a graph; each start takes three calls of
 * the driver, whatever the number of ranks is; addresses of a peer that change
 * are recorded anew; a driver without graphs, or whose calls fail, is used
 * without, and the log says so.  A rank that dies while the others' graphs wait
 * is blamed.
 *
 * Without this test, a graph could read memory that a peer has left, or go on
 * before its peers, with the right result most of the time; and a driver that
 * is old would end the job.
 */
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/device/gpu_rank.h"
#include "tests/support/standin.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 4, CALLS = 3 };

static void start(struct gpu_rank *use, struct dtensor_persistent *call)
{
    struct dtensor_request *request = NULL;
    struct job *job = &use->job;
    const uint64_t waits = use->cuda->waits;

    good(dtensor_persistent_start(call, &request, &job->err));
    good(dtensor_wait(request, &job->err));
    need(use->cuda->waits <= waits + 1, "%d waits",
         (int)(use->cuda->waits - waits));
}

/* Calls of the driver, without those that ask whether it is done, and for the
 * context of the thread.
 */
static unsigned long calls_made(void)
{
    return standin_called(NULL) - standin_called("cuStreamQuery")
         - standin_called("cuCtxPushCurrent")
         - standin_called("cuCtxPopCurrent");
}

/* A start, and the bits of the blocking call. */
static void round_try(struct gpu_rank *use, const struct dtensor_call *call,
                      struct dtensor_persistent *kept, int round)
{
    struct job *job = &use->job;
    unsigned long calls, launches;

    gpu_fill(use, use->in, round);
    good(dtensor_call_run(use->mesh, call, use->in, use->out, &job->err));
    gpu_take(use, graph);
    memcpy(plain, graph, sizeof plain);
    gpu_fill(use, use->out, round + 1);
    calls = calls_made();
    launches = standin_called("cuGraphLaunch");
    start(use, kept);
    calls = calls_made() - calls;
    launches = standin_called("cuGraphLaunch") - launches;
    good(dtn_buffer_copy(job->ctx, graph, use->out, sizeof graph, &job->err));
    gpu_fill(use, use->out, round + 1);
    good(dtensor_call_run(use->mesh, call, use->in, use->out, &job->err));
    gpu_take(use, plain);
    need(memcmp(plain, graph, sizeof plain) == 0, "coll %d, round %d: other "
         "bits", (int)call->coll, round);
    need(launches == 1, "coll %d, round %d: %lu graphs", (int)call->coll,
         round, launches);
    need(round == 0 || calls <= CALLS, "coll %d, round %d: %lu calls of the "
         "driver", (int)call->coll, round, calls);
}

static void rank_same(int rank, int n, void *arg)
{
    static const enum dtensor_collective colls[] = {
        DTENSOR_ALLREDUCE, DTENSOR_ALLGATHER, DTENSOR_REDUCE_SCATTER,
        DTENSOR_BROADCAST, DTENSOR_ALL_TO_ALL, DTENSOR_REDUCE };
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;
    char left[200];

    gpu_rank_open(&use, rank, n);
    setenv("DTN_STANDIN_LATE_US", rank == 1 ? "1000" : "100", 1);
    for (size_t c = 0; c < DTN_COUNT(colls); c++) {
        const struct dtensor_call call = { .coll = colls[c], .root = 1 % n,
            .count = GPU_COUNT / (size_t)n, .dtype = DTENSOR_F32,
            .op = DTENSOR_SUM };
        struct dtensor_persistent *kept = NULL;

        good(dtensor_persistent_create(use.mesh, &call, use.in, use.out, &kept,
                                       &job->err));
        for (int round = 0; round < ROUNDS; round++)
            round_try(&use, &call, kept, round);
        standin_left(left, sizeof left);
        need(strstr(left, "2 graphs"), "the graph is not there: %s", left);
        dtensor_persistent_destroy(kept);
        standin_left(left, sizeof left);
        need(!strstr(left, "graphs"), "left behind: %s", left);
    }
    gpu_rank_close(&use);
}

/* Rank 1 takes another buffer every second time. */
static void rank_moves(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_F32, .op = DTENSOR_SUM };
    struct dtensor_persistent *one = NULL, *other = NULL;
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;

    gpu_rank_open(&use, rank, n);
    good(dtensor_persistent_create(use.mesh, &call, use.in, use.out, &one,
                                   &job->err));
    good(dtensor_persistent_create(use.mesh, &call, use.in2, use.out, &other,
                                   &job->err));
    for (int round = 0; round < ROUNDS; round++) {
        const bool moves = rank == 1 && round % 2 == 1;

        gpu_fill(&use, use.in, round);
        gpu_fill(&use, use.in2, round + (rank == 1));
        start(&use, moves ? other : one);
        gpu_take(&use, graph);
        good(dtensor_call_run(use.mesh, &call, moves ? use.in2 : use.in,
                              use.out, &job->err));
        gpu_take(&use, plain);
        need(memcmp(plain, graph, GPU_COUNT * sizeof *plain) == 0,
             "round %d: other bits", round);
    }
    dtensor_persistent_destroy(one);
    dtensor_persistent_destroy(other);
    gpu_rank_close(&use);
}

/* A driver that cannot, or does not want to: see the environment. */
static void rank_without(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_F32, .op = DTENSOR_SUM };
    struct dtensor_persistent *kept = NULL;
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;
    char log[96], line[400], left[200];
    bool said = false;
    FILE *lines;

    snprintf(log, sizeof log, "%s.%d", gpu_file, rank);
    need(freopen(log, "w", stderr) != NULL, "%s", log);
    gpu_rank_open(&use, rank, n);
    good(dtensor_persistent_create(use.mesh, &call, use.in, use.out, &kept,
                                   &job->err));
    for (int round = 0; round < ROUNDS; round++) {
        gpu_fill(&use, use.in, round);
        start(&use, kept);
        gpu_take(&use, graph);
        need(strstr(dtensor_last_plan(job->ctx), "GPUs signal")
             && !strstr(dtensor_last_plan(job->ctx), "in a graph"), "%s",
             dtensor_last_plan(job->ctx));
        good(dtensor_call_run(use.mesh, &call, use.in, use.out, &job->err));
        gpu_take(&use, plain);
        need(memcmp(plain, graph, GPU_COUNT * sizeof *plain) == 0,
             "round %d: other bits", round);
    }
    dtensor_persistent_destroy(kept);
    standin_left(left, sizeof left);
    need(!strstr(left, "graphs"), "left behind: %s", left);
    fflush(stderr);
    lines = fopen(log, "r");
    while (lines && fgets(line, sizeof line, lines))
        said |= strstr(line, "started without a graph: ")
             && strstr(line, (const char *)arg);
    fclose(lines);
    remove(log);
    need(said, "the log does not name %s", (const char *)arg);
    gpu_rank_close(&use);
}

/* ------------------------------------------------------------ failures --- */

static int replay_kills(const struct dtn_memory *memory,
                        struct dtn_graph *recorded,
                        const struct dtn_word_op ops[])
{
    raise(SIGKILL);
    return 0;
}

static int replay_forgets(const struct dtn_memory *memory,
                          struct dtn_graph *recorded,
                          const struct dtn_word_op ops[])
{
    return DTN_LAUNCHED;
}

/* Rank 1 dies, or its GPU does nothing, in the second start. */
static void rank_lost(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_F32, .op = DTENSOR_SUM };
    static struct dtn_memory_ops mutant;
    struct dtensor_persistent *kept = NULL;
    struct dtensor_request *request = NULL;
    const bool dies = arg != NULL;
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;
    int rc;

    gpu_rank_open(&use, rank, n);
    good(dtensor_persistent_create(use.mesh, &call, use.in, use.out, &kept,
                                   &job->err));
    start(&use, kept);
    mutant = *job->ctx->device->ops;
    mutant.replay = dies ? replay_kills : replay_forgets;
    if (rank == 1)
        job->ctx->device->ops = &mutant;
    good(dtensor_persistent_start(kept, &request, &job->err));
    rc = dtensor_wait(request, &job->err);
    need(rc != 0 || (rank == 1 && !dies), "nobody noticed");
    need(!dies || (rc == DTENSOR_EPEER && job->err.rank == 1), "%s",
         job->err.text);
    need(dies || rank == 1 || rc == DTENSOR_ETIME || rc == DTENSOR_EABORT, "%s",
         job->err.text);
    need(dtensor_barrier(use.mesh, &job->err) != 0, "not poisoned");
    dtensor_persistent_destroy(kept);
    gpu_rank_close(&use);
}

/* ---------------------------------------------------------------- main --- */

static void job_try(int n, const char *timeout, rank_main_f *run,
                    const char *arg, int lost, const char *claim)
{
    const char *dims = n == 2 ? "x=2" : n == 3 ? "x=3" : "x=8";

    ok(gpu_ranks(n, dims, timeout, run, arg) == lost, "%d ranks: %s", n, claim);
}

static void test_without(void)
{
    static const char *const calls[] = { "cuStreamBeginCapture",
        "cuStreamBatchMemOp", "cuStreamGetCaptureInfo", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags", "cuGraphExecBatchMemOpNodeSetParams",
        "cuGraphLaunch" };
    char fail[100];

    setenv("DTN_LOG", "info", 1);
    setenv("DTN_STANDIN_WITHOUT", "cuGraphLaunch", 1);
    job_try(2, "30s", rank_without, "cuGraphLaunch", 0,
            "a driver without graphs");
    unsetenv("DTN_STANDIN_WITHOUT");
    for (size_t i = 0; i < DTN_COUNT(calls); i++) {
        snprintf(fail, sizeof fail, "%s:0=801", calls[i]);
        setenv("DTN_STANDIN_FAIL", fail, 1);
        job_try(2, "30s", rank_without, calls[i], 0, calls[i]);
    }
    unsetenv("DTN_STANDIN_FAIL");
    unsetenv("DTN_LOG");
}

int main(void)
{
    const char *why = standin_use_signals();

    if (why)
        return skip_all(why);
    setenv("DTN_STANDIN_DEVICES", "2", 1);
    job_try(2, "30s", rank_same, NULL, 0, "three calls of the driver a start");
    job_try(3, "30s", rank_same, NULL, 0, "three calls of the driver a start");
    job_try(8, "30s", rank_same, NULL, 0, "three calls of the driver a start");
    job_try(3, "30s", rank_moves, NULL, 0, "another buffer of a peer");
    test_without();
    job_try(3, "30s", rank_lost, "dies", 1, "a rank that dies is blamed");
    job_try(3, "2s", rank_lost, NULL, 0, "a graph that says nothing ends");
    return done();
}
