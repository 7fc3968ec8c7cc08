/* test_cuda_started.c - started calls that GPUs do while the hosts compute
 *
 * Ranks on the driver in tests/standin.  Once a started call has heard of all
 * peers, the GPUs finish it without the hosts; calls over rows and columns of a
 * mesh that are under way at the same time do not wait for each other
 * crosswise; a rank that leaves in between is noticed.
 *
 * Without this test, a started call could make progress in dtensor_wait() only,
 * or two of them could stop the GPUs of all ranks for ever.
 */
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/device/gpu_rank.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 4 };

/* Rank 1 leaves while it is started. */
static void rank_leaves(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_F32, .op = DTENSOR_SUM };
    struct dtensor_request *request = NULL;
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;

    gpu_rank_open(&use, rank, n);
    good(dtensor_call_start(use.mesh, &call, use.in, use.out, &request,
                            &job->err));
    if (rank == 0) {
        dtensor_fini(job->ctx);
        need(dtensor_wait(request, &job->err) == DTENSOR_EINVAL, "%s",
             job->err.text);
        return;
    }
    need(dtensor_wait(request, &job->err) != 0, "nobody noticed");
    gpu_rank_close(&use);
}

/* What the GPU was given waits for the program's stream; test() goes on until
 * the GPU has all of it.
 */
static void give_all(struct gpu_rank *use, struct dtensor_request *request,
                     unsigned long given, unsigned long launches)
{
    struct job *job = &use->job;
    int done = 0;

    for (int turn = 0; turn < 20000; turn++) {
        good(dtensor_test(request, &done, &job->err));
        if (standin_called("cuStreamWaitValue64") >= given
            || standin_called("cuGraphLaunch") > launches)
            return;
        usleep(1000);
    }
    need(false, "the GPU did not get all of the call");
}

/* Every element of OUT is that, soon, with no call of the library. */
static bool gets_there(struct gpu_rank *use, CUstream stream,
                       unsigned char value)
{
    const struct dtn_cuda_driver *driver = use->cuda->driver;
    static unsigned char bytes[GPU_COUNT];
    bool there = false;

    for (int turn = 0; turn < 20000 && !there; turn++) {
        usleep(1000);
        need(driver->cuMemcpyAsync((CUdeviceptr)bytes, (CUdeviceptr)use->out,
                                   GPU_COUNT, stream) == 0
             && driver->cuStreamSynchronize(stream) == 0, "copy");
        there = bytes[0] == value
             && memcmp(bytes, bytes + 1, GPU_COUNT - 1) == 0;
    }
    return there;
}

static void alone_once(struct gpu_rank *use, CUstream streams[2],
                       CUdeviceptr word, struct dtensor_persistent *kept,
                       uint64_t round)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_U8, .op = DTENSOR_SUM };
    const struct dtn_cuda_driver *driver = use->cuda->driver;
    const unsigned long launches = standin_called("cuGraphLaunch");
    struct dtensor_request *request = NULL;
    struct job *job = &use->job;
    unsigned long given;
    uint64_t waits;

    need(driver->cuStreamWaitValue64(streams[0], word, round, 0) == 0
         && driver->cuMemsetD8Async((CUdeviceptr)use->in,
                                    (unsigned char)(round + 1), GPU_COUNT,
                                    streams[0]) == 0, "stream");
    given = standin_called("cuStreamWaitValue64")
          + 2 * (unsigned long)(use->n - 1);
    if (kept)
        good(dtensor_persistent_start(kept, &request, &job->err));
    else
        good(dtensor_call_start(use->mesh, &call, use->in, use->out, &request,
                                &job->err));
    give_all(use, request, given, launches);
    waits = use->cuda->waits;
    need(driver->cuStreamWriteValue64(streams[1], word, round, 0) == 0,
         "stream");
    need(gets_there(use, streams[1],
                    (unsigned char)((unsigned)use->n * (round + 1))),
         "the GPU waits for the host");
    good(dtensor_wait(request, &job->err));
    need(use->cuda->waits == waits + 1, "%d waits",
         (int)(use->cuda->waits - waits));
}

/* A started call is done by the GPUs, while the hosts do something else. */
static void rank_alone(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_U8, .op = DTENSOR_SUM };
    struct dtensor_persistent *kept = NULL;
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;
    CUstream streams[2];
    CUdeviceptr word;

    gpu_rank_open(&use, rank, n);
    word = (CUdeviceptr)use.in2;
    need(use.cuda->driver->cuCtxPushCurrent(use.cuda->context) == 0, "context");
    for (int i = 0; i < 2; i++)
        need(use.cuda->driver->cuStreamCreate(&streams[i],
                                              CU_STREAM_NON_BLOCKING) == 0,
             "no stream");
    good(dtensor_stream(job->ctx, streams[0], &job->err));
    if (arg)
        good(dtensor_persistent_create(use.mesh, &call, use.in, use.out, &kept,
                                       &job->err));
    for (uint64_t round = 1; round < ROUNDS; round++)
        alone_once(&use, streams, word, kept, round);
    dtensor_persistent_destroy(kept);
    gpu_rank_close(&use);
}

/* Rows and columns of a mesh at the same time, half of the ranks in the other
 * order.  Devices are late, so that all of them are under way.
 */
static void rank_crosses(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = GPU_COUNT, .dtype = DTENSOR_F32, .op = DTENSOR_SUM };
    const int first = rank == 0 || rank == 3;
    const struct dtensor_mesh *line[2] = { NULL, NULL };
    struct dtensor_request *request[2] = { NULL, NULL };
    struct gpu_rank use = { .rank = rank };
    struct job *job = &use.job;

    gpu_rank_open(&use, rank, n);
    good(dtensor_mesh_slice(use.mesh, "r", &line[0], &job->err));
    good(dtensor_mesh_slice(use.mesh, "c", &line[1], &job->err));
    for (int i = 0; i < 2; i++)            /* then they are connected         */
        good(dtensor_call_run(line[i], &call, use.in, use.out, &job->err));
    setenv("DTN_STANDIN_LATE_US", "500", 1);
    for (int round = 0; round < 3 * ROUNDS; round++) {
        gpu_fill(&use, use.in, round);
        gpu_fill(&use, use.in2, round);
        good(dtensor_barrier(use.mesh, &job->err));
        for (int i = 0; i < 2; i++) {
            const int which = (i + first) % 2;

            good(dtensor_call_start(line[which], &call,
                                    which ? use.in2 : use.in,
                                    which ? use.in2 : use.in, &request[which],
                                    &job->err));
        }
        usleep(5000);             /* each READY arrives: both can go on       */
        good(dtensor_wait(request[0], &job->err));
        good(dtensor_wait(request[1], &job->err));
        good(dtn_buffer_copy(job->ctx, use.out, use.in2, sizeof plain,
                             &job->err));
        gpu_take(&use, graph);
        gpu_fill(&use, use.out, round);
        good(dtensor_call_run(line[1], &call, use.out, use.out, &job->err));
        gpu_take(&use, plain);
        need(memcmp(plain, graph, GPU_COUNT * sizeof *plain) == 0,
             "round %d: other bits", round);
    }
    gpu_rank_close(&use);
}

/* ---------------------------------------------------------------- main --- */

static void job_try(int n, const char *dims, rank_main_f *run, const char *arg,
                    const char *claim)
{
    ok(gpu_ranks(n, dims, "30s", run, arg) == 0, "%s", claim);
}

int main(void)
{
    const char *why = standin_use_signals();

    if (why)
        return skip_all(why);
    setenv("DTN_STANDIN_DEVICES", "2", 1);
    job_try(3, "x=3", rank_alone, NULL, "a started call needs no host");
    job_try(3, "x=3", rank_alone, "kept", "nor a persistent one");
    job_try(4, "r=2, c=2", rank_crosses, NULL, "calls that cross go on");
    job_try(3, "x=3", rank_leaves, NULL, "a rank that leaves is noticed");
    return done();
}
