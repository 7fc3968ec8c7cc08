/* test_cuda_waits.c - how often the host waits for its GPU in a collective
 *
 * 2, 4 and 8 ranks of a host on the driver in tests/standin, with tensors on
 * GPUs and a stream of the program's.  Every collective, of a few bytes and of
 * many, has the right result and at most two waits; an allreduce is one kernel
 * at most.
 *
 * Without this test, a rank could wait for its GPU once for each peer, which
 * costs more time than all the bytes of a small collective.
 */
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MAX = 8, WAITS_MAX = 2, MOST = 40000 };

static char file[64];

struct use {
    struct job job;
    const struct dtensor_mesh *mesh;
    struct dtn_cuda *cuda;
    float *in, *out;              /* [RANKS_MAX * MOST] on the GPU            */
    float *host;                  /* [RANKS_MAX * MOST]                       */
    int rank, n;
    bool streams;                 /* devices signal                           */
};

/* ------------------------------------------------------------- results --- */

/* Element i of what rank r gives; sums of them are exact. */
static float given(int r, size_t i)
{
    return (float)((int)(i % 97) + 3 * r + 1);
}

static float summed(int n, size_t i)
{
    float sum = 0;

    for (int r = 0; r < n; r++)
        sum += given(r, i);
    return sum;
}

/* Elements of IN and OUT of this rank. */
static size_t elements(const struct use *use, enum dtensor_collective coll,
                       size_t count, bool out)
{
    const bool root = use->rank == 1 % use->n;

    switch (coll) {
    case DTENSOR_ALLGATHER:
        return out ? count * (size_t)use->n : count;
    case DTENSOR_GATHER:
        return !out ? count : root ? count * (size_t)use->n : 0;
    case DTENSOR_SCATTER:
        return out ? count : root ? count * (size_t)use->n : 0;
    case DTENSOR_REDUCE_SCATTER:
        return out ? count : count * (size_t)use->n;
    case DTENSOR_ALL_TO_ALL:
        return count * (size_t)use->n;
    case DTENSOR_REDUCE:
        return out && !root ? 0 : count;
    case DTENSOR_BROADCAST:
        return out || root ? count : 0;
    case DTENSOR_BARRIER:
        return 0;
    default:
        return count;
    }
}

/* Element i of OUT. */
static float expected(const struct use *use, enum dtensor_collective coll,
                      size_t count, size_t i)
{
    const int root = 1 % use->n;
    const size_t block = i / count, at = i % count;
    const size_t mine = (size_t)use->rank * count + i;

    switch (coll) {
    case DTENSOR_ALLREDUCE:
    case DTENSOR_REDUCE:         return summed(use->n, i);
    case DTENSOR_BROADCAST:      return given(root, i);
    case DTENSOR_REDUCE_SCATTER: return summed(use->n, mine);
    case DTENSOR_ALL_TO_ALL:
        return given((int)block, (size_t)use->rank * count + at);
    case DTENSOR_SCATTER:        return given(root, mine);
    default:                     return given((int)block, at);
    }
}

/* --------------------------------------------------------------- calls --- */

static void fill(struct use *use, size_t count)
{
    struct job *job = &use->job;

    for (size_t i = 0; i < count; i++)
        use->host[i] = given(use->rank, i);
    good(dtn_buffer_copy(job->ctx, use->in, use->host, count * sizeof(float),
                         &job->err));
}

static void check(struct use *use, enum dtensor_collective coll, size_t count,
                  const float *out)
{
    const size_t all = elements(use, coll, count, true);
    struct job *job = &use->job;

    good(dtn_buffer_copy(job->ctx, use->host, out, all * sizeof(float),
                         &job->err));
    for (size_t i = 0; i < all; i++)
        need(use->host[i] == expected(use, coll, count, i), "%s of %zu: "
             "element %zu is %g, not %g", dtensor_last_plan(job->ctx), count,
             i, use->host[i], expected(use, coll, count, i));
}

/* Devices that signal need no wait for the program's stream. */
static uint64_t waits_max(const struct use *use, enum dtensor_collective coll)
{
    const bool signals = use->streams && coll != DTENSOR_GATHER
                      && coll != DTENSOR_SCATTER && coll != DTENSOR_BARRIER;

    return signals ? 1 : WAITS_MAX;
}

/* One call: its result, its waits, its kernels. */
static void try_call(struct use *use, enum dtensor_collective coll,
                     size_t count, bool in_place)
{
    const struct dtensor_call call = { .coll = coll, .root = 1 % use->n,
        .count = count, .dtype = DTENSOR_F32, .op = DTENSOR_SUM };
    struct job *job = &use->job;
    float *out = in_place ? use->in : use->out;
    uint64_t waits;
    int launched;

    fill(use, elements(use, coll, count, false));
    waits = use->cuda->waits;
    launched = standin_launched();
    good(dtensor_call_run(use->mesh, &call, use->in, out, &job->err));
    waits = use->cuda->waits - waits;
    launched = standin_launched() - launched;
    if (use->rank == 0 && getenv("DTN_TEST_SHOW"))
        printf("# %s: %zu bytes, %d waits, %d kernels\n",
               dtensor_last_plan(job->ctx), count * 4, (int)waits, launched);
    need(waits <= waits_max(use, coll), "%s of %zu: %d waits",
         dtensor_last_plan(job->ctx), count, (int)waits);
    need(coll != DTENSOR_ALLREDUCE || launched <= 1, "%s of %zu: %d kernels",
         dtensor_last_plan(job->ctx), count, launched);
    check(use, coll, count, out);
}

static void rank_main(int rank, int n, void *arg)
{
    static const size_t counts[] = { 2, 1000, MOST };
    struct use use = { .rank = rank, .n = n, .streams = arg != NULL };
    const struct dtn_cuda_driver *driver;
    struct job *job = &use.job;
    void *in = NULL, *out = NULL;
    CUstream stream;

    job_open(job, rank, n, file);
    good(dtensor_mesh_find(job->ctx, "world", &use.mesh, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, RANKS_MAX * MOST * 4, &in,
                          &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, RANKS_MAX * MOST * 4, &out,
                          &job->err));
    use.in = in;
    use.out = out;
    use.host = malloc((size_t)RANKS_MAX * MOST * sizeof(float));
    use.cuda = dtn_cuda_of(job->ctx->device);
    need(use.host && dtn_cuda_driver_load(&driver, &job->err) == 0
         && driver->cuCtxPushCurrent(use.cuda->context) == 0
         && driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0,
         "no stream");
    good(dtensor_stream(job->ctx, stream, &job->err));
    good(dtensor_allreduce(use.mesh, in, out, 2, DTENSOR_F32, DTENSOR_SUM,
                           &job->err));
    need(!strstr(dtensor_last_plan(job->ctx), "GPUs signal") == !arg, "%s",
         dtensor_last_plan(job->ctx));
    for (int coll = 0; coll < DTENSOR_NCOLLECTIVES; coll++)
        for (size_t i = 0; i < DTN_COUNT(counts); i++) {
            try_call(&use, (enum dtensor_collective)coll, counts[i], false);
            if (coll == DTENSOR_ALLREDUCE)
                try_call(&use, (enum dtensor_collective)coll, counts[i], true);
        }
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
    free(use.host);
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------------- main --- */

int main(void)
{
    const char *why = standin_use_signals();
    char more[200];

    if (why)
        return skip_all(why);
    setenv("DTN_STANDIN_DEVICES", "2", 1);
    for (int n = 2; n <= RANKS_MAX; n *= 2) {
        snprintf(more, sizeof more, "connect_timeout = 30s\nop_timeout = 30s\n"
                 "[device]\ndirect = required\n[mesh \"world\"]\n"
                 "dims = x=%d\nmemory = cuda\n", n);
        strcpy(file, ranks_file("shm", n, more));
        ok(ranks_run(n, 100, rank_main, file, NULL) == 0, "%d ranks: the host "
           "waits for its GPU once, where the GPUs signal", n);
        setenv("DTN_STANDIN_WITHOUT", "cuStreamWriteValue64", 1);
        ok(ranks_run(n, 100, rank_main, NULL, NULL) == 0, "%d ranks: %d times, "
           "where they cannot", n, WAITS_MAX);
        unsetenv("DTN_STANDIN_WITHOUT");
        unlink(file);
    }
    return done();
}
