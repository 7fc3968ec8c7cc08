/* test_requests.c - collectives started, persistent and in groups; sends and
 * receives
 *
 * Run by real processes over shared memory and TCP.  Allocations are counted
 * by wrapping malloc() and its kin: starting a persistent call makes none.
 *
 * Without this test, requests that overlap could take each other's messages,
 * or the start of a persistent call could get slow without anybody noticing.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "coll/request.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/allocations.h"
#include "tests/support/ranks.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4, LARGE = 100000 };

static int refused[2];            /* a pipe: a byte for each start refused    */

struct job {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world, *rows, *columns;
    int rank, n;
    struct dtensor_error err;
};

#define good(call) need((call) == 0, "%s", job->err.text)

static void job_open(struct job *job, int rank, int n)
{
    const struct dtensor_mesh *grid;

    *job = (struct job){ .rank = rank, .n = n };
    good(dtensor_init(NULL, &job->ctx, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &job->world, &job->err));
    if (n != RANKS)
        return;
    good(dtensor_mesh_create(job->ctx, 2, (int[]){ 2, 2 }, "r,c", NULL, &grid,
                             &job->err));
    good(dtensor_mesh_slice(grid, "c", &job->rows, &job->err));
    good(dtensor_mesh_slice(grid, "r", &job->columns, &job->err));
}

static int32_t *numbers(struct job *job, size_t count, bool registered,
                        int32_t first)
{
    void *mem = NULL;
    int32_t *array;

    if (registered)
        good(dtensor_alloc(job->ctx, count * 4 + 4, &mem, &job->err));
    else
        mem = calloc(count + 1, 4);
    array = mem;
    for (size_t i = 0; i < count; i++)
        array[i] = first + (int32_t)i;
    return array;
}

/* ---------------------------------------------------------------- requests */

static void numbers_free(struct job *job, int32_t *array, bool registered)
{
    if (registered)
        dtensor_free(job->ctx, array);
    else
        free(array);
}

/* The mesh of call i. */
static const struct dtensor_mesh *started_mesh(const struct job *job, int i)
{
    return job->n < 4 || i % 3 == 0 ? job->world
         : i % 3 == 1 ? job->rows : job->columns;
}

/* Is the result of call i right, a sum or an allgather? */
static void started_check(const struct dtensor_mesh *mesh, int i, size_t count,
                          const int32_t *out)
{
    const int size = dtensor_mesh_size(mesh);
    int sum = 0;

    for (int p = 0; p < size; p++)
        sum += dtensor_mesh_rank(mesh, p) * 1000 + i;
    for (size_t e = 0; e < count; e++) {
        if (i % 2 == 0)
            need(out[e] == sum + size * (int)e, "call %d: element %zu is %d",
                 i, e, out[e]);
        for (int p = 0; i % 2 && p < size; p++)
            need(out[(size_t)p * count + e]
                 == dtensor_mesh_rank(mesh, p) * 1000 + i + (int)e,
                 "call %d: element %zu of %d", i, e, p);
    }
}

/* Eight calls of all kinds under way, on three meshes; waited for backwards. */
static void started_main(int rank, int n, void *arg)
{
    static const size_t counts[] = { 1, 700, 5000, LARGE };
    enum { N = 8 };
    struct job job_here, *job = &job_here;
    bool registered = arg != NULL;

    job_open(job, rank, n);
    for (int round = 0; round < 12; round++) {
        struct dtensor_request *request[N];
        int32_t *in[N], *out[N];
        int done = 0;

        for (int i = 0; i < N; i++) {
            const struct dtensor_mesh *mesh = started_mesh(job, i);
            size_t count = counts[(i + round) % 4];
            int size = dtensor_mesh_size(mesh);
            struct dtensor_call call = { .dtype = DTENSOR_I32, .count = count,
                .coll = i % 2 ? DTENSOR_ALLGATHER : DTENSOR_ALLREDUCE };

            in[i] = numbers(job, count, registered, rank * 1000 + i);
            out[i] = numbers(job, count * (size_t)size, registered, 0);
            good(dtensor_call_start(mesh, &call, in[i], out[i], &request[i],
                                    &job->err));
        }
        while (round % 3 == 1 && !done)
            good(dtensor_test(request[N / 2], &done, &job->err));
        if (round % 3 == 2)
            good(dtensor_barrier(job->world, &job->err));
        for (int i = N - 1; i >= 0; i--) {
            good(dtensor_wait(request[i], &job->err));
            started_check(started_mesh(job, i), i, counts[(i + round) % 4],
                          out[i]);
        }
        for (int i = 0; i < N; i++) {
            numbers_free(job, in[i], registered);
            numbers_free(job, out[i], registered);
        }
    }
    dtensor_fini(job->ctx);
}

/* Two that share no peer are under way together: ranks 2 and 3 come late, and
 * the second call of 0 and 1, over another pair, is over before the first.
 */
static void overtake(struct job *job, size_t count)
{
    const struct timespec nap = { 0, 100000000 };
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = count,
                                 .dtype = DTENSOR_I32 };
    struct dtensor_request *first, *second;
    int32_t *in = numbers(job, count, false, 1),
            *a = numbers(job, count, false, 0),
            *b = numbers(job, count, false, 0);
    int done = 0, early = 1;

    good(dtensor_barrier(job->world, &job->err));
    if (job->rank >= 2)
        nanosleep(&nap, NULL);
    good(dtensor_call_start(job->columns, &call, in, a, &first, &job->err));
    good(dtensor_call_start(job->rows, &call, in, b, &second, &job->err));
    while (!done)
        good(dtensor_test(second, &done, &job->err));
    if (job->rank < 2)
        good(dtensor_test(first, &early, &job->err));
    need(job->rank >= 2 || !early, "the first was over though its peer sleeps");
    good(dtensor_wait(first, &job->err));
    good(dtensor_wait(second, &job->err));
    for (size_t i = 0; i < count; i++)
        need(a[i] == 2 * in[i] && b[i] == a[i], "%zu: %d and %d", i, a[i],
             b[i]);
    free(in);
    free(a);
    free(b);
}

/* Large ones are staged, each in bounce buffers of its own. */
static void overtaking_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;

    (void)arg;
    job_open(job, rank, n);
    overtake(job, 5);
    overtake(job, LARGE);
    dtensor_fini(job->ctx);
}

/* -------------------------------------------------------------- persistent */

/* Start it, and all but the last rank again, which is refused: it cannot be
 * over before the last has started it, who hears of theirs.  The refused start
 * counts among the calls over these ranks, so the last makes one too.
 */
static void start_twice(struct job *job, struct dtensor_persistent *persistent,
                        struct dtensor_request **requestp, int32_t *out)
{
    const bool last = job->rank == job->n - 1;
    char byte = 0;

    for (int r = 0; last && r < job->n - 1; r++)
        need(read(refused[0], &byte, 1) == 1, "pipe: %m");
    good(dtensor_persistent_start(persistent, requestp, &job->err));
    if (last)
        need(dtensor_allreduce(job->world, NULL, out, LARGE, DTENSOR_I32,
                               DTENSOR_SUM, &job->err) == DTENSOR_EINVAL,
             "no buffer");
    else
        need(dtensor_persistent_start(persistent, requestp, &job->err)
             == DTENSOR_EINVAL && write(refused[1], &byte, 1) == 1,
             "started twice");
}

/* Starts after the first allocate nothing. */
static void persistent_repeat(struct job *job,
                              struct dtensor_persistent *const persistent[],
                              int n)
{
    const long before = allocations;
    struct dtensor_request *request = NULL;

    need(before > 0, "the counter counts");
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < n; i++) {
            good(dtensor_persistent_start(persistent[i], &request, &job->err));
            good(dtensor_wait(request, &job->err));
        }
    need(allocations == before, "%ld allocations in %d starts",
         allocations - before, 50 * n);
}

static void persistent_main(int rank, int n, void *arg)
{
    static const struct {
        enum dtensor_collective coll;
        size_t count;
    } calls[] =
    {
        { DTENSOR_ALLREDUCE, 1 }, { DTENSOR_ALLREDUCE, LARGE },
        { DTENSOR_REDUCE_SCATTER, 3000 }, { DTENSOR_ALL_TO_ALL, 2000 },
        { DTENSOR_GATHER, 5000 }, { DTENSOR_SCATTER, 700 },
        { DTENSOR_BARRIER, 0 }
    };
    enum { N = sizeof calls / sizeof calls[0] };
    struct dtensor_persistent *persistent[N] = { NULL };
    struct dtensor_request *request = NULL;
    struct job job_here, *job = &job_here;
    bool registered = arg != NULL;
    int32_t *in, *out;

    job_open(job, rank, n);
    in = numbers(job, (size_t)n * LARGE, registered, rank);
    out = numbers(job, (size_t)n * LARGE, registered, 0);
    for (int i = 0; i < N; i++)
        good(dtensor_call_create(job->world, &(struct dtensor_call){
            .coll = calls[i].coll, .count = calls[i].count,
            .dtype = DTENSOR_I32 }, in, out, &persistent[i], &job->err));
    for (int i = 0; i < N; i++) {
        good(dtensor_persistent_start(persistent[i], &request, &job->err));
        good(dtensor_wait(request, &job->err));
    }
    persistent_repeat(job, persistent, N);
    memset(out, 0, LARGE * sizeof *out);
    start_twice(job, persistent[1], &request, out);
    good(dtensor_wait(request, &job->err));
    for (int i = 0; i < LARGE; i++)
        need(out[i] == n * (n - 1) / 2 + n * i, "element %d is %d", i, out[i]);
    good(dtensor_barrier(job->world, &job->err));
    for (int i = 0; i < N; i++)
        dtensor_persistent_destroy(persistent[i]);
    dtensor_persistent_destroy(NULL);
    if (!registered) {
        free(in);
        free(out);
    }
    dtensor_fini(job->ctx);
}

/* Two ranks have one CPU, and are told of two: who waits for a request must let
 * the other run, as who waits in a call does.  Best times of ten barriers.
 */
static void sharing_main(int rank, int n, void *arg)
{
    struct dtensor_call call = { .coll = DTENSOR_BARRIER };
    int64_t best[2] = { INT64_MAX, INT64_MAX };
    struct dtensor_persistent *barrier;
    struct dtensor_request *request;
    struct job job_here, *job = &job_here;
    cpu_set_t one;

    job_open(job, rank, n);
    good(dtensor_call_create(job->world, &call, NULL, NULL, &barrier,
                             &job->err));
    CPU_ZERO(&one);
    CPU_SET(*(int *)arg, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0, "affinity: %m");
    for (int round = 0; round < 200; round++) {
        const int64_t start = dtn_now_ns();
        int64_t took;

        for (int i = 0; i < 10 && round % 2 == 0; i++)
            good(dtensor_barrier(job->world, &job->err));
        for (int i = 0; i < 10 && round % 2 == 1; i++) {
            good(dtensor_persistent_start(barrier, &request, &job->err));
            good(dtensor_wait(request, &job->err));
        }
        took = dtn_now_ns() - start;
        best[round % 2] = took < best[round % 2] ? took : best[round % 2];
    }
    need(best[1] < 10 * best[0], "%.1f us started, %.1f us called",
         (double)best[1] / 1e4, (double)best[0] / 1e4);
    dtensor_persistent_destroy(barrier);
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------- sends, receives */

/* To the next and from the one before: both ways of calling, all sizes. */
static void ring_main(int rank, int n, void *arg)
{
    static const size_t counts[] = { 0, 1, 12, 13, 1024, 1025, LARGE };
    int next = (rank + 1) % n, before = (rank + n - 1) % n;
    struct job job_here, *job = &job_here;
    bool registered = arg != NULL;

    job_open(job, rank, n);
    for (size_t c = 0; c < DTN_COUNT(counts); c++)
        for (int way = 0; way < 2; way++) {
            size_t count = counts[c];
            int32_t *in = numbers(job, count, registered, rank);
            int32_t *out = numbers(job, count, registered, -1);

            if (way == 1)
                good(dtensor_group_begin(job->ctx, &job->err));
            if (way == 1 || rank % 2 == 0)
                good(dtensor_send(job->world, next, in, count, DTENSOR_I32,
                                  &job->err));
            good(dtensor_recv(job->world, before, out, count, DTENSOR_I32,
                              &job->err));
            if (way == 0 && rank % 2 == 1)
                good(dtensor_send(job->world, next, in, count, DTENSOR_I32,
                                  &job->err));
            if (way == 1)
                good(dtensor_group_end(job->ctx, &job->err));
            for (size_t i = 0; i < count; i++)
                need(out[i] == before + (int)i, "way %d of %zu: element %zu is "
                     "%d", way, count, i, out[i]);
            if (!registered) {
                free(in);
                free(out);
            }
        }
    dtensor_fini(job->ctx);
}

/* Sum i of group_main(): the third is over the row of the rank. */
static void group_sum_check(int i, int rank, const int32_t sum[])
{
    const int ranks = i == 2 ? rank / 2 * 4 + 1 : 6, size = i == 2 ? 2 : 4;

    for (int e = 0; e <= i; e++)
        need(sum[e] == ranks * 100 + size * (i + e), "sum %d: element %d is %d",
             i, e, sum[e]);
}

/* Message m of rank p. */
static void group_message_check(int p, int m, size_t count, const int32_t out[])
{
    for (size_t i = 0; i < count; i++)
        need(out[i] == p * 10 + m + (int)i, "from %d, message %d: element %zu "
             "is %d", p, m, i, out[i]);
}

/* Everyone to everyone and itself, three messages each of other sizes and
 * dtypes, on two meshes, with collectives in the same group.
 */
static void group_main(int rank, int n, void *arg)
{
    enum { M = 3, SUMS = 5 };
    static const size_t counts[M] = { 3, 0, 2500 };
    struct job job_here, *job = &job_here;
    bool registered = arg != NULL;
    int32_t *in[RANKS][M], *out[RANKS][M], *sum[SUMS];
    int32_t *all = NULL, from[4] = { rank, rank, rank, rank };

    job_open(job, rank, n);
    all = numbers(job, 4 * RANKS, registered, 0);
    for (int round = 0; round < 3; round++) {
        good(dtensor_group_begin(job->ctx, &job->err));
        need(dtensor_group_begin(job->ctx, &job->err) == DTENSOR_EINVAL,
             "a group in a group");
        for (int i = 0; i < SUMS; i++) {
            sum[i] = numbers(job, (size_t)i + 1, registered, rank * 100 + i);
            good(dtensor_allreduce(i == 2 ? job->rows : job->world, sum[i],
                                   sum[i], (size_t)i + 1, DTENSOR_I32,
                                   DTENSOR_SUM, &job->err));
        }
        good(dtensor_allgather(job->world, from, all, 1, DTENSOR_I32,
                               &job->err));
        good(dtensor_allgather(job->world, from, all + RANKS, 3, DTENSOR_I32,
                               &job->err));
        for (int p = 0; p < n; p++)
            for (int m = 0; m < M; m++) {
                in[p][m] = numbers(job, counts[m], registered, rank * 10 + m);
                out[p][m] = numbers(job, counts[m], registered, -1);
                good(dtensor_send(job->world, p, in[p][m], counts[m],
                                  m ? DTENSOR_I32 : DTENSOR_F32, &job->err));
            }
        for (int p = n - 1; p >= 0; p--)
            for (int m = 0; m < M; m++)
                good(dtensor_recv(job->world, p, out[p][m], counts[m],
                                  m ? DTENSOR_I32 : DTENSOR_F32, &job->err));
        good(dtensor_group_end(job->ctx, &job->err));
        for (int p = 0; p < n; p++)
            for (int m = 0; m < M; m++)
                group_message_check(p, m, counts[m], out[p][m]);
        for (int i = 0; i < SUMS; i++)
            group_sum_check(i, rank, sum[i]);
        for (int p = 0; p < n; p++)
            need(all[p] == p && all[RANKS + 3 * p + 2] == p, "gathered from "
                 "%d: %d, %d", p, all[p], all[RANKS + 3 * p + 2]);
    }
    good(dtensor_group_begin(job->ctx, &job->err));
    good(dtensor_group_end(job->ctx, &job->err));
    need(dtensor_group_end(job->ctx, &job->err) == DTENSOR_EINVAL,
         "no group to end");
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------------- bad input */

static void bad_main(int rank, int n, void *arg)
{
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 1,
                                 .dtype = DTENSOR_I32 };
    struct dtensor_persistent *persistent = NULL;
    struct dtensor_request *request = NULL;
    struct job job_here, *job = &job_here;
    int32_t x[2] = { 0, 0 };

    (void)arg;
    job_open(job, rank, n);
    need(dtensor_send(job->world, n, x, 1, DTENSOR_I32, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "0 to "), "no such peer");
    need(dtensor_recv(job->world, rank, x, 1, DTENSOR_I32, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "itself"), "itself");
    need(dtensor_send(job->world, 0, NULL, 1, DTENSOR_I32, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "NULL"), "NULL");
    need(dtensor_send(job->world, 0, x, SIZE_MAX / 2, DTENSOR_I32, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "overflow"), "overflow");
    need(dtensor_recv(job->world, 0, x, 1, (enum dtensor_dtype)77, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "dtype"), "dtype");
    need(dtensor_call_start(job->world, &call, x, NULL, &request, &job->err)
         == DTENSOR_EINVAL && !request, "started without a buffer");
    call.op = (enum dtensor_redop)DTENSOR_NREDOPS;
    need(dtensor_call_create(job->world, &call, x, x, &persistent, &job->err)
         == DTENSOR_EINVAL && !persistent, "made without a reduction");
    call.op = DTENSOR_SUM;
    good(dtensor_group_begin(job->ctx, &job->err));
    need(dtensor_call_start(job->world, &call, x, x, &request, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "group"), "in a group");
    need(dtensor_allreduce(job->world, x, x, 1, DTENSOR_F32, DTENSOR_BXOR,
                           &job->err) == DTENSOR_EINVAL, "recorded nonsense");
    good(dtensor_group_end(job->ctx, &job->err));
    good(dtensor_barrier(job->world, &job->err));
    dtensor_fini(job->ctx);
}

static void run(rank_main_f *fn, int n, bool registered, const char *claim)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        const char *path = ranks_file(wires[w], n, "connect_timeout = 20s\n"
                                                   "op_timeout = 20s\n");

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(n, 60, fn, registered ? (void *)(uintptr_t)path : NULL,
                     NULL) == 0, "%s, %d ranks, %s memory: %s", wires[w], n,
           registered ? "registered" : "foreign", claim);
        unlink(path);
    }
}

static void run_sharing(void)
{
    const char *claim = "who waits for a request lets a rank on its CPU run";
    const char *path = ranks_file("shm", 2, NULL);
    cpu_set_t usable;
    int cpu = 0;

    setenv("DTN_CLUSTER", path, 1);
    if (sched_getaffinity(0, sizeof usable, &usable) < 0 ||
        CPU_COUNT(&usable) < 2 || timeless()) {
        skip(claim, "one CPU, or one that is slow");
    } else {
        while (!CPU_ISSET(cpu, &usable))
            cpu++;
        ok(ranks_run(2, 60, sharing_main, &cpu, NULL) == 0, "%s", claim);
    }
    unlink(path);
}

int main(void)
{
    if (pipe(refused) < 0)
        return 99;
    for (int registered = 0; registered < 2; registered++) {
        run(started_main, RANKS, registered, "eight calls under way on three "
            "meshes, waited for in any order");
        run(persistent_main, 1, registered,
            "persistent calls allocate nothing");
        run(persistent_main, 2, registered,
            "persistent calls allocate nothing");
        run(started_main, 2, registered, "eight calls under way on one mesh");
        run(persistent_main, RANKS, registered, "persistent calls allocate "
            "nothing");
        run(ring_main, 2, registered, "sends and receives, alone and grouped");
        run(ring_main, RANKS, registered, "sends and receives in a ring");
        run(group_main, RANKS, registered, "messages and collectives in one "
            "group, on two meshes");
    }
    run_sharing();
    run(overtaking_main, RANKS, false, "calls that share no peer do not wait "
        "for each other");
    run(bad_main, 3, false,
        "bad sends, receives, starts and groups are refused "
        "in words");
    return done();
}
