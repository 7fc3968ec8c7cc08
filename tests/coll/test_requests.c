/* test_requests.c - collectives started and in groups; sends and receives
 *
 * Run by real processes over shared memory and TCP.
 *
 * Without this test, requests that overlap could take each other's messages.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/coll/numbers.h"
#include "tests/support/gate.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <string.h>

enum { RANKS = 4, LARGE = 100000 };

struct job {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world, *rows, *columns;
    int rank, n;
    struct dtensor_error err;
};

#define good(call) need((call) == 0, "%s", job->err.text)

static struct gate late[RANKS / 2];    /* before ranks 2 and 3                */

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

            in[i] = numbers(job->ctx, count, registered, rank * 1000 + i);
            out[i] = numbers(job->ctx, count * (size_t)size, registered, 0);
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
            numbers_free(job->ctx, in[i], registered);
            numbers_free(job->ctx, out[i], registered);
        }
    }
    dtensor_fini(job->ctx);
}

/* Two that share no peer are under way together: ranks 2 and 3 come only when
 * the second call of 0 and 1, over another pair, is over before the first.
 */
static void overtake(struct job *job, size_t count)
{
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = count,
                                 .dtype = DTENSOR_I32 };
    struct dtensor_request *first, *second;
    int32_t *in = numbers(job->ctx, count, false, 1),
            *a = numbers(job->ctx, count, false, 0),
            *b = numbers(job->ctx, count, false, 0);
    int done = 0, early = 1;

    good(dtensor_barrier(job->world, &job->err));
    if (job->rank >= 2)
        gate_pass(&late[job->rank - 2]);
    good(dtensor_call_start(job->columns, &call, in, a, &first, &job->err));
    good(dtensor_call_start(job->rows, &call, in, b, &second, &job->err));
    while (!done)
        good(dtensor_test(second, &done, &job->err));
    if (job->rank < 2)
        good(dtensor_test(first, &early, &job->err));
    need(job->rank >= 2 || !early, "the first was over before its peer came");
    if (job->rank < 2)
        gate_open(&late[job->rank], 1);
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
            int32_t *in = numbers(job->ctx, count, registered, rank);
            int32_t *out = numbers(job->ctx, count, registered, -1);

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

/* A number goes to the next rank, in a group that is started. */
static struct dtensor_request *group_ring(struct job *job, int32_t in[1],
                                          int32_t out[1])
{
    struct dtensor_request *request = NULL;

    in[0] = job->rank;
    good(dtensor_group_begin(job->ctx, &job->err));
    good(dtensor_send(job->world, (job->rank + 1) % job->n, in, 1, DTENSOR_I32,
                      &job->err));
    good(dtensor_recv(job->world, (job->rank + job->n - 1) % job->n, out, 1,
                      DTENSOR_I32, &job->err));
    good(dtensor_group_start(job->ctx, &request, &job->err));
    return request;
}

/* Make the calls of the group: at once; or start them, and another group too,
 * and wait for that one first, or ask until they are done.
 */
static void group_make(struct job *job, int round)
{
    struct dtensor_request *request = NULL, *other;
    int32_t in[1], out[1] = { -1 };
    int done = 0;

    if (round == 0) {
        good(dtensor_group_end(job->ctx, &job->err));
        return;
    }
    good(dtensor_group_start(job->ctx, &request, &job->err));
    other = group_ring(job, in, out);
    if (round == 1)
        good(dtensor_wait(other, &job->err));
    while (round == 2 && !done)
        good(dtensor_test(request, &done, &job->err));
    good(dtensor_wait(request, &job->err));
    if (round == 2)
        good(dtensor_barrier(job->world, &job->err));
    if (round == 2)
        good(dtensor_wait(other, &job->err));
    need(out[0] == (job->rank + job->n - 1) % job->n, "the ring has %d",
         out[0]);
}

/* A group of no calls may end or start, but only once. */
static void group_empty(struct job *job)
{
    struct dtensor_request *request = NULL;

    good(dtensor_group_begin(job->ctx, &job->err));
    good(dtensor_group_end(job->ctx, &job->err));
    need(dtensor_group_end(job->ctx, &job->err) == DTENSOR_EINVAL,
         "no group to end");
    good(dtensor_group_begin(job->ctx, &job->err));
    good(dtensor_group_start(job->ctx, &request, &job->err));
    good(dtensor_wait(request, &job->err));
    request = NULL;
    need(dtensor_group_start(job->ctx, &request, &job->err) == DTENSOR_EINVAL
         && !request, "no group to start");
}

/* Also with a group that was started and not awaited. */
static void group_leave(struct job *job)
{
    struct dtensor_request *left;
    int32_t in[1], out[1];

    group_empty(job);
    left = group_ring(job, in, out);
    dtensor_fini(job->ctx);
    dtensor_wait(left, NULL);
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
    all = numbers(job->ctx, 4 * RANKS, registered, 0);
    for (int round = 0; round < 3; round++) {
        good(dtensor_group_begin(job->ctx, &job->err));
        need(dtensor_group_begin(job->ctx, &job->err) == DTENSOR_EINVAL,
             "a group in a group");
        for (int i = 0; i < SUMS; i++) {
            sum[i] = numbers(job->ctx, (size_t)i + 1, registered,
                             rank * 100 + i);
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
                in[p][m] = numbers(job->ctx, counts[m], registered,
                                   rank * 10 + m);
                out[p][m] = numbers(job->ctx, counts[m], registered, -1);
                good(dtensor_send(job->world, p, in[p][m], counts[m],
                                  m ? DTENSOR_I32 : DTENSOR_F32, &job->err));
            }
        for (int p = n - 1; p >= 0; p--)
            for (int m = 0; m < M; m++)
                good(dtensor_recv(job->world, p, out[p][m], counts[m],
                                  m ? DTENSOR_I32 : DTENSOR_F32, &job->err));
        group_make(job, round);
        for (int p = 0; p < n; p++)
            for (int m = 0; m < M; m++)
                group_message_check(p, m, counts[m], out[p][m]);
        for (int i = 0; i < SUMS; i++)
            group_sum_check(i, rank, sum[i]);
        for (int p = 0; p < n; p++)
            need(all[p] == p && all[RANKS + 3 * p + 2] == p, "gathered from "
                 "%d: %d, %d", p, all[p], all[RANKS + 3 * p + 2]);
    }
    group_leave(job);
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
    need(dtensor_persistent_create(job->world, &call, x, x, &persistent,
                                   &job->err)
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

int main(void)
{
    for (int i = 0; i < RANKS / 2; i++)
        gate_make(&late[i]);
    for (int registered = 0; registered < 2; registered++) {
        numbers_run(started_main, RANKS, registered, "eight calls under way on three "
            "meshes, waited for in any order");
        numbers_run(started_main, 2, registered, "eight calls under way on one mesh");
        numbers_run(ring_main, 2, registered, "sends and receives, alone and grouped");
        numbers_run(ring_main, RANKS, registered, "sends and receives in a ring");
        numbers_run(group_main, RANKS, registered, "messages and collectives in one "
            "group, on two meshes");
    }
    numbers_run(overtaking_main, RANKS, false, "calls that share no peer do not wait "
        "for each other");
    numbers_run(bad_main, 3, false,
        "bad sends, receives, starts and groups are refused "
        "in words");
    return done();
}
