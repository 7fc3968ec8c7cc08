/* test_nonblocking_start.c - a started call does not wait for a peer
 *
 * Two ranks start a call, meet outside the library, over a pair of pipes, and
 * only then wait for the call.  A start that waits for the peer would block
 * until op_timeout.  The rank that starts second finds everything that the
 * first could do without it, and also tests several times.  Every kind of
 * call, from 4 B to 64 MiB, over shm, tcp, tcp that often returns EAGAIN, and
 * in a guest rc; and the first call of a job, which connects.
 *
 * Without this test, two ranks that start calls and then wait for each other
 * could deadlock.
 */
#include "base/wait.h"
#include "coll/request.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum { TESTS = 3, MOST = 64 << 20, LEAST = 4 };

static int pipes[2][2];           /* [r]: what rank r is told                 */

struct job {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    int rank;
    int first;                    /* rank that starts first                   */
    int64_t longest_ns;           /* start or test                            */
    struct dtensor_error err;
    int32_t *in, *out;
};

#define good(call) need((call) == 0, "%s", job->err.text)

/* ----------------------------------------------------------------- meeting */

static void tell(const struct job *job)
{
    need(write(pipes[1 - job->rank][1], "x", 1) == 1, "a pipe");
}

static void hear(const struct job *job)
{
    char byte;

    need(read(pipes[job->rank][0], &byte, 1) == 1, "a pipe");
}

/* What is started, and how long that took. */
typedef int start_f(struct job *job, const void *arg,
                    struct dtensor_request **request);

static void started(struct job *job, start_f *start, const void *arg)
{
    struct dtensor_request *request = NULL;
    const bool second = job->rank != job->first;
    int64_t began;
    int done = 0;

    if (second)
        hear(job);
    began = dtn_now_ns();
    good(start(job, arg, &request));
    for (int i = 0; second && i < TESTS && !done; i++)
        good(dtensor_test(request, &done, &job->err));
    if (dtn_now_ns() - began > job->longest_ns)
        job->longest_ns = dtn_now_ns() - began;
    tell(job);
    if (!second)
        hear(job);
    good(dtensor_wait(request, &job->err));
    job->first = 1 - job->first;
}

/* ------------------------------------------------------------- collectives */

static int start_call(struct job *job, const void *arg,
                      struct dtensor_request **request)
{
    return dtensor_call_start(job->world, arg, job->in, job->out, request,
                              &job->err);
}

static int start_again(struct job *job, const void *arg,
                       struct dtensor_request **request)
{
    return dtensor_persistent_start((struct dtensor_persistent *)(uintptr_t)arg,
                                    request, &job->err);
}

/* Element i of rank r's input: i + r. */
static int32_t expected(const struct dtensor_call *call, int me, size_t i)
{
    const size_t n = call->count;
    const int32_t at = (int32_t)i;

    switch (call->coll) {
    case DTENSOR_ALLREDUCE:
    case DTENSOR_REDUCE:
        return 2 * at + 1;
    case DTENSOR_BROADCAST:
        return at + call->root;
    case DTENSOR_REDUCE_SCATTER:
        return 2 * (at + me * (int32_t)n) + 1;
    case DTENSOR_SCATTER:
        return at + me * (int32_t)n + call->root;
    case DTENSOR_ALLGATHER:
    case DTENSOR_GATHER:
        return i < n ? at : at - (int32_t)n + 1;
    case DTENSOR_ALL_TO_ALL:
        return i < n ? at + me * (int32_t)n
                     : at - (int32_t)n + me * (int32_t)n + 1;
    default:
        return 0;
    }
}

static bool gathers(const struct dtensor_call *call)
{
    return call->coll == DTENSOR_ALLGATHER || call->coll == DTENSOR_GATHER
        || call->coll == DTENSOR_ALL_TO_ALL;
}

static void check_call(struct job *job, const struct dtensor_call *call)
{
    const size_t count = gathers(call) ? 2 * call->count : call->count;

    if ((call->coll == DTENSOR_REDUCE || call->coll == DTENSOR_GATHER)
        && job->rank != call->root)
        return;
    for (size_t i = 0; i < count; i += i < 1000 ? 1 : 997)
        need(job->out[i] == expected(call, job->rank, i), "collective %d of "
             "%zu: element %zu is %" PRId32 ", not %" PRId32, (int)call->coll,
             call->count, i, job->out[i], expected(call, job->rank, i));
}

/* Of this many bytes on the wire or more. */
static void calls_of(struct job *job, size_t bytes, bool persistent)
{
    struct dtensor_persistent *again;

    for (int c = 0; c < DTENSOR_NCOLLECTIVES; c++) {
        const struct dtensor_call call = {
            .coll = (enum dtensor_collective)c, .dtype = DTENSOR_I32,
            .count = c == DTENSOR_BARRIER ? 0 : bytes / 4,
            .root = bytes & 16 ? 1 : 0 };
        void *in = job->in, *out = job->out;

        if (call.coll == DTENSOR_BROADCAST) {
            job->in = out;                 /* the root's is not touched      */
            for (size_t i = 0; i < call.count; i++)
                job->in[i] = (int32_t)i + job->rank;
        }
        if (persistent) {
            good(dtensor_persistent_create(job->world, &call, job->in, job->out,
                                           &again, &job->err));
            started(job, start_again, again);
            dtensor_persistent_destroy(again);
        } else {
            started(job, start_call, &call);
        }
        if (c != DTENSOR_BARRIER)
            check_call(job, &call);
        job->in = in;
    }
}

/* ----------------------------------------------------------- redistributes */

struct turn {
    struct dtensor_plan *plan;
    struct dtensor *from, *to;
};

static int start_turn(struct job *job, const void *arg,
                      struct dtensor_request **request)
{
    const struct turn *turn = arg;

    return dtensor_plan_start(turn->plan, turn->from, turn->to, request,
                              &job->err);
}

/* [rows, 64] of i32, in one part for each rank: 0, 1, 2, ... */
static void turn_of(struct job *job, size_t bytes, const char *from,
                    const char *to)
{
    const int64_t shape[] = { (int64_t)(bytes > 256 ? bytes / 256 : 1), 64 };
    int64_t local[2], offset[2];
    struct dtensor_spec src, dst;
    const int32_t *at;
    struct turn turn = { NULL, NULL, NULL };

    good(dtensor_spec_init(&src, job->ctx, "world", from, DTENSOR_I32, 2,
                           shape, &job->err));
    good(dtensor_spec_init(&dst, job->ctx, "world", to, DTENSOR_I32, 2, shape,
                           &job->err));
    good(dtensor_plan_create(&src, &dst, NULL, &turn.plan, &job->err));
    good(dtensor_arange(&src, &turn.from, &job->err));
    good(dtensor_empty(&dst, &turn.to, &job->err));
    started(job, start_turn, &turn);
    dtensor_spec_local(&dst, job->rank, local, offset);
    at = dtensor_to_local(turn.to);
    for (int64_t i = 0; i < local[0]; i += i < 100 ? 1 : 97)
        for (int64_t j = 0; j < local[1]; j++)
            need(at[i * local[1] + j] == (offset[0] + i) * 64 + offset[1] + j,
                 "%s to %s of %zu bytes: element %" PRId64 ",%" PRId64, from,
                 to, bytes, i, j);
    dtensor_destroy(turn.from);
    dtensor_destroy(turn.to);
    dtensor_plan_destroy(turn.plan);
}

/* -------------------------------------------------------------------- jobs */

struct what {
    const char *path, *fault;
    size_t most;
    int64_t *longest_ns;          /* shared: [2]                              */
};

static void job_open(struct job *job, int rank, const struct what *what)
{
    *job = (struct job){ .rank = rank };
    setenv("DTN_FAULT", what->fault, 1);
    good(dtensor_init(what->path, &job->ctx, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &job->world, &job->err));
    job->in = malloc(2 * what->most);
    job->out = malloc(2 * what->most);
    need(job->in && job->out, "memory");
    for (size_t i = 0; i < what->most / 2; i++)
        job->in[i] = (int32_t)i + rank;
}

static void job_close(struct job *job)
{
    free(job->in);
    free(job->out);
    dtensor_fini(job->ctx);
}

static void all_sizes(int rank, int n, void *arg)
{
    const struct what *what = arg;
    struct job the_job, *job = &the_job;

    job_open(job, rank, what);
    for (size_t bytes = LEAST; bytes <= what->most; bytes *= 4) {
        calls_of(job, bytes, false);
        if (bytes <= 4 << 20)
            calls_of(job, bytes, true);
        turn_of(job, bytes, "S(0)", "S(1)");
        turn_of(job, bytes, "S(1)", "R");
    }
    what->longest_ns[rank] = job->longest_ns;
    job_close(job);
}

/* Each is the first call of a job. */
static void first_calls(int rank, int n, void *arg)
{
    static const struct dtensor_call few = { .coll = DTENSOR_ALLREDUCE,
                                             .dtype = DTENSOR_I32, .count = 1 };
    static const struct dtensor_call many = { .coll = DTENSOR_ALL_TO_ALL,
                                              .dtype = DTENSOR_I32,
                                              .count = 1 << 18 };
    struct job the_job, *job = &the_job;

    for (int i = 0; i < 6; i++) {
        job_open(job, rank, arg);
        job->first = i % 2;
        if (i < 4)
            started(job, start_call, i < 2 ? &few : &many);
        else
            turn_of(job, 1 << 20, "S(0)", "S(1)");
        if (i < 4)
            check_call(job, i < 2 ? &few : &many);
        job_close(job);
    }
}

/* Whether the first start is over or not: refused alike, until it is waited
 * for.
 */
static void twice(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                       .dtype = DTENSOR_I32, .count = 100 };
    struct dtensor_persistent *again;
    struct dtensor_request *request, *other = NULL;
    struct job the_job, *job = &the_job;
    int done = 0;

    job_open(job, rank, arg);
    good(dtensor_persistent_create(job->world, &call, job->in, job->out, &again,
                                   &job->err));
    for (int i = 0; i < 4; i++) {
        good(dtensor_persistent_start(again, &request, &job->err));
        while (!done && (i + rank) % 2 == 0)
            good(dtensor_test(request, &done, &job->err));
        need(dtensor_persistent_start(again, &other, &job->err)
             == DTENSOR_EINVAL && !other && strstr(job->err.text, "waited"),
             "start %d twice: %s", i, job->err.text);
        good(dtensor_wait(request, &job->err));
        check_call(job, &call);
        done = 0;
    }
    dtensor_persistent_destroy(again);
    job_close(job);
}

static void over(const char *wire, const char *fault, size_t most)
{
    static int64_t *longest_ns;
    struct what what = { .fault = fault, .most = most };

    if (!longest_ns)
        longest_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    what.longest_ns = longest_ns;
    what.path = ranks_file(wire, 2, "op_timeout = 8s\n");
    for (int r = 0; r < 2; r++)
        if (pipe(pipes[r]) != 0)
            exit(99);
    ok(ranks_run(2, 30, first_calls, &what, NULL) == 0, "over %s%s%s the first "
       "call of a job is started without waiting for the peer", wire,
       *fault ? " with " : "", fault);
    ok(ranks_run(2, 30, twice, &what, NULL) == 0,
       "over %s%s%s a persistent call "
       "that was not waited for is not started again on any rank", wire,
       *fault ? " with " : "", fault);
    for (int r = 0; r < 2; r++) {
        close(pipes[r][0]);
        close(pipes[r][1]);
        if (pipe(pipes[r]) != 0)
            exit(99);
    }
    ok(ranks_run(2, 30, all_sizes, &what, NULL) == 0,
       "over %s%s%s no call of 4 B"
       " to %zu MiB waits for the peer when it is started", wire,
       *fault ? " with " : "", fault, most >> 20);
    note("over %s the longest start took %.1f and %.1f ms", wire,
         (double)longest_ns[0] / 1e6, (double)longest_ns[1] / 1e6);
    remove(what.path);
}

/* Usage: test_start [rc] */
int main(int argc, char **argv)
{
    const size_t most = timeless() ? MOST / 16 : MOST;

    if (argc > 1) {
        over(argv[1], "", most);
        return done();
    }
    over("shm", "", most);
    over("shm", "again_every=2", 1 << 20);
    over("tcp", "", most);
    over("tcp", "again_every=2", 1 << 20);
    return done();
}
