/* test_scaling.c - the cost per tensor, rank or call does not grow with their
 * number
 *
 * The test counts calls of the functions that do the work, which is the same
 * on every machine.  Without such a function it measures CPU time: eight times
 * as many may take 24 times as long; a quadratic loop takes 64.  make
 * bench-plans prints times.
 *
 * Without this test, a quadratic loop could make plans of large jobs take
 * minutes.
 */
#include "coll/request.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/redist/looks.h"
#include "tests/redist/plan_of.h"
#include "tests/support/ranks.h"

#include <malloc.h>
#include <string.h>
#include <time.h>

enum { TRIES = 3, TIMES = 8, MOST = 24 };

struct job {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    int rank;
    struct dtensor_error err;
};

#define good(call) need((call) == 0, "%s", job->err.text)

static void job_open(struct job *job, int rank)
{
    *job = (struct job){ .rank = rank };
    good(dtensor_init(NULL, &job->ctx, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &job->world, &job->err));
}

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* How many times as long TIMES times as many take, at best. */
static double growth(double (*seconds)(void *arg, int n), void *arg, int n)
{
    double few = 1e9, many = 1e9, took;

    for (int t = 0; t < TRIES; t++) {
        took = seconds(arg, n);
        few = took < few ? took : few;
        took = seconds(arg, n * TIMES);
        many = took < many ? took : many;
    }
    return many / few;
}

/* ------------------------------------------------------------------ batches */

/* How often a batch of n asks what a rank holds, for each tensor. */
static double batch_work(struct job *job, int n)
{
    struct dtensor_spec *src = calloc((size_t)n, sizeof *src);
    struct dtensor_spec *dst = calloc((size_t)n, sizeof *dst);
    struct dtensor_batch *batch = NULL;
    double each;

    for (int i = 0; i < n; i++) {
        const int64_t shape[] = { 4 + i % 3, 5 + i % 2 };

        src[i] = spec_at(job->world, 2, shape, "S(0)");
        dst[i] = spec_at(job->world, 2, shape, "S(1)");
    }
    work = 0;
    good(dtensor_batch_create(n, src, dst, &batch, &job->err));
    each = (double)work / n;
    dtensor_batch_destroy(batch);
    free(src);
    free(dst);
    return each;
}

static void batch_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    double few, many;

    (void)n;
    (void)arg;
    job_open(job, rank);
    few = batch_work(job, 25);
    many = batch_work(job, 400);
    need(few > 0 && many <= 1.2 * few,
         "%.1f looks for each of 25 tensors, %.1f "
         "for each of 400", few, many);
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------------- models */

/* New sizes of calls and of sends ask no more where ranks are. */
static void models_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    float in[64] = { 0 }, out[64];

    (void)arg;
    job_open(job, rank);
    for (size_t count = 1; count <= 32; count++) {
        if (count == 2)
            work = 0;
        good(dtensor_allreduce(job->world, in, out, count, DTENSOR_F32,
                               DTENSOR_SUM, &job->err));
        good(dtensor_group_begin(job->ctx, &job->err));
        good(dtensor_send(job->world, (rank + 1) % n, in, count, DTENSOR_F32,
                          &job->err));
        good(dtensor_recv(job->world, (rank + n - 1) % n, out, count,
                          DTENSOR_F32, &job->err));
        good(dtensor_group_end(job->ctx, &job->err));
    }
    need(work == 0, "62 plans more looked %ld times where ranks are", work);
    dtensor_fini(job->ctx);
}

static double ways_seconds(void *arg, int n)
{
    const struct dtensor_call call = { .count = 1000 };
    struct dtensor_ctx *ctx = planner_of(n, 8);
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, &n);
    struct dtensor_way way;
    double begin = cpu_seconds();
    long *again = arg;

    if (dtensor_call_ways(mesh, &call, &way, 1, NULL, NULL) != 0)
        exit(1);
    begin = cpu_seconds() - begin;
    work = 0;
    if (dtensor_call_ways(mesh, &call, &way, 1, NULL, NULL) != 0)
        exit(1);
    *again += work;
    dtensor_fini(ctx);
    return begin;
}

static void test_ways(void)
{
    long again = 0;
    const double times = growth(ways_seconds, &again, 4096);

    ok(times <= MOST, "ways of a call over %d times as many ranks: %.1f times "
       "as long", TIMES, times);
    ok(again == 0, "and to ask again looks %ld times where ranks are", again);
}

/* -------------------------------------------------------------------- plans */

/* What PyTorch's collectives can say. */
static const struct {
    const char *what, *src, *dst;
} moves[] = {
    { "an all-gather", "S(0)", "R" }, { "a reduce-scatter", "P", "S(0)" },
    { "an all-to-all", "S(0)", "S(1)" }, { "an allreduce", "P", "R" },
    { "a local chunk", "R", "S(0)" }
};

static struct dtensor_plan *plan_make(const struct dtensor_mesh *mesh,
                                      int move, int64_t rows)
{
    const int64_t shape[] = { rows, 1 << 18 };
    const struct dtensor_spec from = spec_at(mesh, 2, shape, moves[move].src);
    const struct dtensor_spec to = spec_at(mesh, 2, shape, moves[move].dst);
    struct dtensor_plan *plan = NULL;

    if (dtensor_plan_create(&from, &to, NULL, &plan, NULL) != 0)
        exit(1);
    return plan;
}

static size_t heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* The looks and the bytes of a plan over n ranks.  The first plan over a mesh
 * also makes the model of its ranks, which later ones use.
 */
static void plan_cost(int move, int n, long *looks, size_t *bytes)
{
    struct dtensor_ctx *ctx = planner_of(n, 8);
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, &n);
    struct dtensor_plan *plan;
    size_t before;

    dtensor_plan_destroy(plan_make(mesh, move, 1 << 19));
    before = heap_bytes();
    work = 0;
    plan = plan_make(mesh, move, 1 << 18);
    *looks = work;
    *bytes = heap_bytes() - before;
    dtensor_plan_destroy(plan);
    dtensor_fini(ctx);
}

static void test_plans(void)
{
    for (int m = 0; m < (int)(sizeof moves / sizeof moves[0]); m++) {
        long few, many;
        size_t small, large;

        plan_cost(m, 1024, &few, &small);
        plan_cost(m, 131072, &many, &large);
        ok(many <= few + 8 && large <= small + 1024, "%s over 1,024 ranks "
           "takes %ld looks and keeps %zu bytes, over 131,072 %ld and %zu",
           moves[m].what, few, small, many, large);
    }
}

/* ---------------------------------------------------------------- schedules */

static long halving_work(int n)
{
    const struct dtn_call call = { .coll = DTN_COLL_ALLREDUCE, .n = n, .me = 1,
                                   .dtype = DTENSOR_F32, .count = 1 << 20 };
    struct dtn_sched sched;

    work = 0;
    if (dtn_emit_allreduce_halving(&call, &sched, NULL) != 0)
        exit(1);
    dtn_sched_fini(&sched);
    return work;
}

static void test_halving(void)
{
    const long few = halving_work(128), many = halving_work(1024);

    ok(many <= 2 * TIMES * few, "halving over 128 ranks looks at blocks %ld "
       "times, over 1024 %ld times", few, many);
}

/* ------------------------------------------------------- gathers, scatters */

/* A rank that is not the root has one peer, and looks at no other block. */
static void test_leaves(void)
{
    struct dtn_call call = { .coll = DTN_COLL_GATHER, .n = 131072, .me = 70000,
                             .dtype = DTENSOR_F32, .count = 1 << 10 };
    struct dtn_sched sched;

    work = 0;
    if (dtn_emit_gather_put(&call, &sched, NULL) != 0)
        exit(1);
    dtn_sched_fini(&sched);
    call.coll = DTN_COLL_SCATTER;
    if (dtn_emit_scatter_put(&call, &sched, NULL) != 0)
        exit(1);
    dtn_sched_fini(&sched);
    ok(work <= 64, "a gather and a scatter of 131,072 ranks look at %ld blocks "
       "where the rank is not the root", work);
}

/* ----------------------------------------------------------- groups, queues */

/* A rank sends itself n numbers, each by itself. */
static double messages_seconds(void *arg, int n)
{
    struct job *job = arg;
    float *in = calloc((size_t)n, sizeof *in);
    float *out = calloc((size_t)n, sizeof *out);
    double begin = cpu_seconds();

    for (int i = 0; i < n; i++)
        in[i] = (float)i;
    good(dtensor_group_begin(job->ctx, &job->err));
    for (int i = 0; i < n; i++) {
        good(dtensor_send(job->world, 0, in + i, 1, DTENSOR_F32, &job->err));
        good(dtensor_recv(job->world, 0, out + i, 1, DTENSOR_F32, &job->err));
    }
    good(dtensor_group_end(job->ctx, &job->err));
    begin = cpu_seconds() - begin;
    need(memcmp(in, out, (size_t)n * sizeof *in) == 0, "what came is not what "
         "was sent");
    free(in);
    free(out);
    return begin;
}

static void messages_main(int rank, int n, void *arg)
{
    struct job job;
    double times;

    (void)n;
    (void)arg;
    job_open(&job, rank);
    times = growth(messages_seconds, &job, 1000);
    need(times <= MOST, "%d times as many messages: %.1f times as long", TIMES,
         times);
    dtensor_fini(job.ctx);
}

static int come[2];               /* a pipe: bytes that rank 1 waits for      */

/* Start n calls that cannot begin, and only then let rank 1 come. */
static double started_seconds(void *arg, int n)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 1,
                                       .dtype = DTENSOR_F32 };
    struct dtensor_request **request = calloc((size_t)n, sizeof(void *));
    float in = 1, *out = calloc((size_t)n, sizeof *out);
    struct job *job = arg;
    double begin;
    char byte = 0;

    good(dtensor_barrier(job->world, &job->err));
    if (job->rank == 1)
        need(read(come[0], &byte, 1) == 1, "no byte");
    begin = cpu_seconds();
    for (int i = 0; i < n; i++)
        good(dtensor_call_start(job->world, &call, &in, out + i, &request[i],
                                &job->err));
    begin = cpu_seconds() - begin;
    if (job->rank == 0)
        need(write(come[1], &byte, 1) == 1, "no pipe");
    for (int i = 0; i < n; i++)
        good(dtensor_wait(request[i], &job->err));
    free(request);
    free(out);
    return begin;
}

static void started_main(int rank, int n, void *arg)
{
    struct job job;
    double times;

    (void)n;
    (void)arg;
    job_open(&job, rank);
    times = growth(started_seconds, &job, 2000);
    need(rank == 1 || times <= MOST, "%d times as many calls started: %.1f "
         "times as long", TIMES, times);
    dtensor_fini(job.ctx);
}

int main(void)
{
    test_ways();
    test_plans();
    test_halving();
    test_leaves();
    ok(ranks_run(2, 60, batch_main, NULL, NULL) == 0, "each tensor of a batch "
       "of 400 takes as many looks as of 25");
    ok(ranks_run(3, 60, models_main, NULL, NULL) == 0,
       "a new size of a call or "
       "send looks at no rank's host");
    ok(ranks_run(1, 60, messages_main, NULL, NULL) == 0, "a group of 8,000 "
       "messages grows with their number");
    ok(pipe(come) == 0 && ranks_run(2, 60, started_main, NULL, NULL) == 0,
       "16,000 calls under way are started in time that grows with them");
    return done();
}
