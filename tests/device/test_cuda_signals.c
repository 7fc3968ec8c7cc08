/* test_cuda_signals.c - the devices of a host's ranks signal each other
 *
 * Three ranks on the driver in tests/standin.  Results are right when devices
 * are late, when a rank has its buffers on the host, and when it starts the
 * call instead of running it.  A rank that dies or whose device says nothing
 * ends the call of the others.  A library that forgets what a device has to
 * wait for is caught.
 *
 * Without this test, a device could wait for a dead one for ever, or read what
 * another has not written, which shows on GPUs only.
 */
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 5000, ROUNDS = 5 };

static char file[64];

struct use {
    struct job job;
    const struct dtensor_mesh *mesh;
    const struct dtn_cuda_driver *driver;
    CUstream stream;              /* the program's                            */
    unsigned char *in, *out;      /* [COUNT], [RANKS * COUNT]                 */
    int rank;
};

/* -------------------------------------------------------------- mutants --- */

static int post_forgets(const struct dtn_memory *memory, void *word,
                        uint64_t value)
{
    return DTN_LAUNCHED;
}

static int post_kills(const struct dtn_memory *memory, void *word,
                      uint64_t value)
{
    raise(SIGKILL);
    return 0;
}

static int hold_forgets(const struct dtn_memory *memory, void *word,
                        uint64_t value)
{
    return DTN_LAUNCHED;
}

/* This rank's device does these instead. */
static void mutate(struct use *use,
                   int (*post)(const struct dtn_memory *, void *, uint64_t),
                   int (*hold)(const struct dtn_memory *, void *, uint64_t))
{
    static struct dtn_memory_ops mutant;
    struct dtn_memory *device = use->job.ctx->device;

    mutant = *device->ops;
    mutant.post = post ? post : mutant.post;
    mutant.hold = hold ? hold : mutant.hold;
    device->ops = &mutant;
}

/* ---------------------------------------------------------------- ranks --- */

static void use_open(struct use *use, int rank, bool on_host)
{
    const enum dtensor_memory memory = on_host ? DTENSOR_HOST : DTENSOR_CUDA;
    struct job *job = &use->job;
    void *in = NULL, *out = NULL;

    use->rank = rank;
    job_open(job, rank, RANKS, file);
    good(dtensor_mesh_find(job->ctx, "world", &use->mesh, &job->err));
    good(dtensor_alloc_on(job->ctx, memory, COUNT, &in, &job->err));
    good(dtensor_alloc_on(job->ctx, memory, RANKS * COUNT, &out, &job->err));
    use->in = in;
    use->out = out;
    need(dtn_cuda_driver_load(&use->driver, &job->err) == 0
         && use->driver->cuCtxPushCurrent(dtn_cuda_of(job->ctx->device)
                                          ->context) == 0
         && use->driver->cuStreamCreate(&use->stream, CU_STREAM_NON_BLOCKING)
            == 0, "no stream");
    good(dtensor_stream(job->ctx, use->stream, &job->err));
}

static void use_close(struct use *use)
{
    dtensor_free(use->job.ctx, use->in);
    dtensor_free(use->job.ctx, use->out);
    dtensor_fini(use->job.ctx);
}

/* IN of rank r has this byte in a round; the program's stream writes it. */
static unsigned char given(int r, int round)
{
    return (unsigned char)(7 * round + 3 * r + 1);
}

static void fill(struct use *use, int round, bool on_host)
{
    if (on_host)
        memset(use->in, given(use->rank, round), COUNT);
    else
        need(use->driver->cuMemsetD8Async((CUdeviceptr)use->in,
                                          given(use->rank, round), COUNT,
                                          use->stream) == 0, "memset");
}

static bool all_are(struct use *use, size_t from, size_t to,
                    unsigned char value)
{
    static unsigned char host[RANKS * COUNT];
    struct job *job = &use->job;
    bool all = true;

    good(dtn_buffer_copy(job->ctx, host, use->out, to, &job->err));
    for (size_t i = from; i < to; i++)
        all = all && host[i] == value;
    return all;
}

/* An allreduce and an allgather; are the results right? */
static bool round_is_right(struct use *use, int round, bool starts)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .count = COUNT, .dtype = DTENSOR_U8, .op = DTENSOR_SUM };
    struct dtensor_request *request = NULL;
    struct job *job = &use->job;
    unsigned char sum = 0;
    bool right;

    for (int r = 0; r < RANKS; r++)
        sum = (unsigned char)(sum + given(r, round));
    if (starts) {
        good(dtensor_call_start(use->mesh, &call, use->in, use->out, &request,
                                &job->err));
        good(dtensor_wait(request, &job->err));
    } else {
        good(dtensor_call_run(use->mesh, &call, use->in, use->out, &job->err));
    }
    right = all_are(use, 0, COUNT, sum);
    good(dtensor_allgather(use->mesh, use->in, use->out, COUNT, DTENSOR_U8,
                           &job->err));
    for (int r = 0; r < RANKS; r++)
        right &= all_are(use, (size_t)r * COUNT, (size_t)(r + 1) * COUNT,
                         given(r, round));
    return right;
}

/* Devices that are late, one more than the others. */
static void rank_late(int rank, int n, void *arg)
{
    struct use use = { .rank = rank };

    use_open(&use, rank, false);
    setenv("DTN_STANDIN_LATE_US", rank == 1 ? "5000" : "300", 1);
    for (int round = 0; round < ROUNDS; round++) {
        fill(&use, round, false);
        need(round_is_right(&use, round, false), "round %d: %s", round,
             dtensor_last_plan(use.job.ctx));
        need(strstr(dtensor_last_plan(use.job.ctx), "GPUs signal"), "%s",
             dtensor_last_plan(use.job.ctx));
    }
    use_close(&use);
}

/* Rank 1 has its buffers on the host; rank 2 starts the call. */
static void rank_mixed(int rank, int n, void *arg)
{
    struct use use = { .rank = rank };

    use_open(&use, rank, rank == 1);
    setenv("DTN_STANDIN_LATE_US", "300", 1);
    for (int round = 0; round < ROUNDS; round++) {
        fill(&use, round, rank == 1);
        need(round_is_right(&use, round, rank == 2 && round % 2 == 0),
             "round %d: %s", round, dtensor_last_plan(use.job.ctx));
    }
    use_close(&use);
}

/* Rank 0's device waits for nobody, and rank 1's is late: a round is wrong. */
static void rank_forgets(int rank, int n, void *arg)
{
    struct use use = { .rank = rank };
    bool right = true;

    use_open(&use, rank, false);
    if (rank == 0)
        mutate(&use, NULL, hold_forgets);
    setenv("DTN_STANDIN_LATE_US", rank == 1 ? "60000" : "0", 1);
    for (int round = 0; round < 3; round++) {
        fill(&use, round, false);
        right &= round_is_right(&use, round, false);
    }
    need(rank != 0 || !right, "nothing was wrong");
    use_close(&use);
}

/* Rank 1 dies, or its device says nothing: the others blame it. */
static void rank_lost(int rank, int n, void *arg)
{
    const bool dies = arg != NULL;
    struct use use = { .rank = rank };
    struct job *job = &use.job;
    int rc;

    use_open(&use, rank, false);
    fill(&use, 0, false);
    need(round_is_right(&use, 0, false), "before");
    if (rank == 1)
        mutate(&use, dies ? post_kills : post_forgets, NULL);
    rc = dtensor_allreduce(use.mesh, use.in, use.out, COUNT, DTENSOR_U8,
                           DTENSOR_SUM, &job->err);
    need(rc != 0, "nobody noticed");
    need(!dies || (rc == DTENSOR_EPEER && job->err.rank == 1), "%s",
         job->err.text);
    need(dies || rc == DTENSOR_ETIME || rc == DTENSOR_EABORT, "%s",
         job->err.text);
    need(dtensor_allreduce(use.mesh, use.in, use.out, COUNT, DTENSOR_U8,
                           DTENSOR_SUM, &job->err) != 0, "not poisoned");
    _exit(0);
}

/* ---------------------------------------------------------------- main --- */

static const struct {
    const char *claim, *timeout;  /* op_timeout                               */
    rank_main_f *run;
    bool arg;
    int lost;                     /* ranks that do not end well               */
} cases[] = {
    { "devices signal, and are late", "30s", rank_late, false, 0 },
    { "buffers of one rank on the host, one rank starts", "30s", rank_mixed,
      false, 0 },
    { "a device that does not wait is caught", "30s", rank_forgets, false, 0 },
    { "a rank that dies is blamed", "30s", rank_lost, true, 1 },
    { "a device that says nothing ends the call", "2s", rank_lost, false, 0 },
};

int main(void)
{
    const char *why = standin_use_signals();
    char more[200];

    if (why)
        return skip_all(why);
    setenv("DTN_STANDIN_DEVICES", "2", 1);
    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        snprintf(more, sizeof more, "connect_timeout = 30s\nop_timeout = %s\n"
                 "[mesh \"world\"]\ndims = x=%d\nmemory = cuda\n",
                 cases[i].timeout, RANKS);
        strcpy(file, ranks_file("shm", RANKS, more));
        ok(ranks_run(RANKS, 90, cases[i].run, cases[i].arg ? file : NULL, NULL)
           == cases[i].lost, "%s", cases[i].claim);
        unlink(file);
    }
    return done();
}
