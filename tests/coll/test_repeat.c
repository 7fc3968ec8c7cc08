/* test_repeat.c - calls that repeat are run without a check
 *
 * A call with the arguments of an earlier one is not checked and not looked up.
 * Calls that differ in one argument only take turns, on the same two buffers;
 * executables are evicted and made again; a group of calls records what would
 * repeat; a call that is refused stays refused; repro is switched on.
 *
 * Without this test, a call could run the executable of another one, or one
 * that is no longer there.
 */
#include "base/compiler.h"
#include "base/lru.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <string.h>

enum { RANKS = 2, MOST = DTN_LRU_LIMIT + 40, ROUNDS = 3 };

struct job {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world, *self;
    int rank;
    struct dtensor_error err;
    int32_t *in, *out;
};

#define good(call) need((call) == 0, "%s", job->err.text)

static void job_open(struct job *job, int rank)
{
    void *mem;

    *job = (struct job){ .rank = rank };
    good(dtensor_init(NULL, &job->ctx, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &job->world, &job->err));
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 1 }, "one", &rank,
                             &job->self, &job->err));
    good(dtensor_alloc(job->ctx, 2 * MOST * sizeof *job->in, &mem, &job->err));
    job->in = mem;
    good(dtensor_alloc(job->ctx, 2 * MOST * sizeof *job->out, &mem, &job->err));
    job->out = mem;
    for (int i = 0; i < 2 * MOST; i++)
        job->in[i] = 10 * i + rank + 1;
}

static void job_close(struct job *job)
{
    dtensor_free(job->ctx, job->in);
    dtensor_free(job->ctx, job->out);
    dtensor_fini(job->ctx);
}

/* Run a call; element `at` of its output is `expected`, the next is untouched.
 */
static void run(struct job *job, const struct dtensor_mesh *mesh,
                const struct dtensor_call *call, int at, int32_t expected,
                int n)
{
    memset(job->out, 0xff, 2 * MOST * sizeof *job->out);
    good(dtensor_call_run(mesh, call, job->in, job->out, &job->err));
    need(job->out[at] == expected, "%s of %zu: element %d is %d, not %d",
         dtensor_last_plan(job->ctx), call->count, at, job->out[at], expected);
    need(job->out[n] == -1, "%s of %zu: element %d was written",
         dtensor_last_plan(job->ctx), call->count, n);
}

/* Calls that differ in one argument. */
static void arguments_main(int rank, int n, void *arg)
{
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 4,
                                 .dtype = DTENSOR_I32 };
    struct job job_here, *job = &job_here;

    (void)n;
    (void)arg;
    job_open(job, rank);
    for (int round = 0; round < ROUNDS; round++) {
        run(job, job->world, &call, 3, 63, 4);
        run(job, job->self, &call, 3, 31 + rank, 4);
        call.op = DTENSOR_MAX;
        run(job, job->world, &call, 3, 32, 4);
        call.op = DTENSOR_SUM;
        call.count = 3;
        run(job, job->world, &call, 2, 43, 3);
        call.coll = DTENSOR_ALLGATHER;
        run(job, job->world, &call, 5, 22, 6);
        call.count = 4;
        run(job, job->world, &call, 7, 32, 8);
        call.dtype = DTENSOR_U8;
        run(job, job->world, &call, 1, 2, 2);
        call.coll = DTENSOR_ALLREDUCE;
        call.dtype = DTENSOR_I32;
        for (int root = 0; root < RANKS; root++) {
            need(dtensor_scatter(job->world, root, job->in, job->out, 2,
                                 DTENSOR_I32, &job->err) == 0, "%s",
                 job->err.text);
            need(job->out[1] == 20 * rank + 10 + root + 1, "from %d: %d", root,
                 job->out[1]);
        }
        need(dtensor_call_run(job->world, &call, job->in, NULL, &job->err)
             == DTENSOR_EINVAL, "no output");
        need(dtensor_call_run(job->world, &call, job->in, job->in + 1,
                              &job->err) == DTENSOR_EINVAL, "overlap");
    }
    job_close(job);
}

/* More calls than executables are kept: the oldest are made again. */
static void evicted_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;

    (void)n;
    (void)arg;
    job_open(job, rank);
    for (int round = 0; round < ROUNDS; round++)
        for (int count = 1; count < MOST; count++) {
            struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                         .count = (size_t)count,
                                         .dtype = DTENSOR_I32 };

            for (int i = 0; i < 2; i++)
                run(job, job->world, &call, count - 1, 20 * (count - 1) + 3,
                    count);
            call.count = 1;
            run(job, job->world, &call, 0, 3, 1);
        }
    job_close(job);
}

static void twice(void *dst, const void *left, const void *right, size_t count,
                  enum dtensor_dtype dtype, void *arg)
{
    const int32_t *a = left, *b = right;
    int32_t *to = dst;

    (void)dtype;
    for (size_t i = 0; i < count; i++)
        to[i] = *(const int32_t *)arg * (a[i] + b[i]);
}

/* A group runs at its end what would repeat; a program's function comes and
 * goes, and so does repro.
 */
static void others_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    enum dtensor_redop op;
    int32_t factor = 2;

    (void)n;
    (void)arg;
    job_open(job, rank);
    for (int round = 0; round < ROUNDS; round++) {
        struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 4,
                                     .dtype = DTENSOR_I32 };

        run(job, job->world, &call, 3, 63, 4);
        memset(job->out, 0xff, 4 * sizeof *job->out);
        good(dtensor_group_begin(job->ctx, &job->err));
        good(dtensor_call_run(job->world, &call, job->in, job->out,
                              &job->err));
        need(job->out[3] == -1, "it ran before the end of its group");
        good(dtensor_group_end(job->ctx, &job->err));
        need(job->out[3] == 63, "%d", job->out[3]);
        good(dtensor_redop_create(job->ctx, twice, &factor, 0, &op,
                                  &job->err));
        call.op = op;
        run(job, job->world, &call, 3, 126, 4);
        run(job, job->world, &call, 3, 126, 4);
        dtensor_redop_destroy(job->ctx, op);
        need(dtensor_call_run(job->world, &call, job->in, job->out, &job->err)
             == DTENSOR_EINVAL, "the reduction is gone");
    }
    if (rank == 1)                /* the call that repeats is another one     */
        dtensor_set_repro(job->ctx, 1);
    need(dtensor_allreduce(job->world, job->in, job->out, 4, DTENSOR_I32,
                           DTENSOR_SUM, &job->err) == DTENSOR_EMISMATCH,
         "only one rank reduces in order");
    job_close(job);
}

static void check(rank_main_f *fn, const char *claim)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        const char *path = ranks_file(wires[w], RANKS, NULL);

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(RANKS, 60, fn, NULL, NULL) == 0, "%s: %s", wires[w],
           claim);
        unlink(path);
    }
}

int main(void)
{
    check(arguments_main, "calls that differ in one argument take turns");
    check(evicted_main, "executables that were evicted are made again");
    check(others_main, "calls in a group, of a program's reduction, and with repro");
    return done();
}
