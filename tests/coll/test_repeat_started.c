/* test_repeat_started.c - started groups of messages that repeat
 *
 * A started group with the messages of an earlier one, started or not, runs the
 * executable of that time.  Here blocking and started groups take turns; two
 * equal groups are under way at the same time, and the later one is awaited
 * first; executables are evicted before a group is awaited; one rank repeats
 * and the other does not, or is killed.
 *
 * Without this test, a started group could allocate in each round, use an
 * executable that is no longer there, or take the buffers of another group.
 */
#include "base/compiler.h"
#include "base/lru.h"
#include "dtensor.h"
#include "tests/support/allocations.h"
#include "tests/support/ranks.h"
#include "tests/support/world.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, ROUNDS = 42, PERIOD = 6, COUNT = 5, MOST = DTN_LRU_LIMIT + 40,
       LONG = 100000, GROUPS = 12 };

struct job {
    struct world w;
    int32_t *in, *out;            /* [LONG] in the arena                      */
    size_t parts;                 /* messages of a group each way: packed if  */
                                  /* there are several                        */
};

#define good(call) need((call) == 0, "%s", job->w.err.text)

static void job_open(struct job *job, size_t parts)
{
    void *mem;

    world_open(&job->w);
    job->parts = parts;
    good(dtensor_alloc(job->w.ctx, LONG * sizeof *job->in, &mem, &job->w.err));
    job->in = mem;
    good(dtensor_alloc(job->w.ctx, LONG * sizeof *job->out, &mem,
                       &job->w.err));
    job->out = mem;
}

static void job_close(struct job *job)
{
    dtensor_free(job->w.ctx, job->in);
    dtensor_free(job->w.ctx, job->out);
    dtensor_fini(job->w.ctx);
}

/* `count` numbers at `at` go to the next rank and come from the one before: of
 * 5 numbers in 2 parts 2 and 3.
 */
static void ring_messages(struct job *job, int at, size_t count)
{
    const int me = job->w.rank, n = job->w.n;

    for (size_t part = 0; part < job->parts; part++) {
        const size_t from = count * part / job->parts;
        const size_t some = count * (part + 1) / job->parts - from;

        good(dtensor_send(job->w.mesh, (me + 1) % n,
                          job->in + at + (int)from, some, DTENSOR_I32,
                          &job->w.err));
        good(dtensor_recv(job->w.mesh, (me + n - 1) % n,
                          job->out + at + (int)from, some, DTENSOR_I32,
                          &job->w.err));
    }
}

static void ring_record(struct job *job, int at, size_t count)
{
    good(dtensor_group_begin(job->w.ctx, &job->w.err));
    ring_messages(job, at, count);
}

static struct dtensor_request *ring_start(struct job *job, int at, size_t count)
{
    struct dtensor_request *request = NULL;

    ring_record(job, at, count);
    good(dtensor_group_start(job->w.ctx, &request, &job->w.err));
    return request;
}

static void ring_run(struct job *job, int at, size_t count)
{
    ring_record(job, at, count);
    good(dtensor_group_end(job->w.ctx, &job->w.err));
}

static int32_t number(int rank, int round, int i)
{
    return 1000000 * rank + 1000 * round + i;
}

static void ring_fill(struct job *job, int round, int n)
{
    for (int i = 0; i < n; i++) {
        job->in[i] = number(job->w.rank, round, i);
        job->out[i] = -1;
    }
}

static void ring_check(const struct job *job, int round, int n)
{
    const int from = (job->w.rank + job->w.n - 1) % job->w.n;

    for (int i = 0; i < n; i++)
        need(job->out[i] == number(from, round, i), "round %d: element %d is "
             "%d", round, i, job->out[i]);
}

/* More calls than executables are kept. */
static void job_evict(struct job *job)
{
    for (size_t count = 1; count < MOST; count++)
        good(dtensor_allreduce(job->w.mesh, job->in, job->out, count,
                               DTENSOR_I32, DTENSOR_SUM, &job->w.err));
}

/* A started group, a blocking one with the same messages, or both. */
static void turns_round(struct job *job, int round)
{
    struct dtensor_request *request;
    int done = 0;

    ring_fill(job, round, COUNT);
    if (round % 3 != 1) {
        request = ring_start(job, 0, COUNT);
        while (round % 2 == 0 && !done)
            good(dtensor_test(request, &done, &job->w.err));
        good(dtensor_wait(request, &job->w.err));
        ring_check(job, round, COUNT);
    }
    if (round % 3 != 0) {
        ring_fill(job, round, COUNT);
        ring_run(job, 0, COUNT);
        ring_check(job, round, COUNT);
    }
}

/* Two groups with equal messages, one with others, and a blocking or started
 * one.  All may be under way; the first is awaited last.
 */
static void together_round(struct job *job, int round)
{
    struct dtensor_request *first, *again, *other, *last;

    ring_fill(job, round, 3 * COUNT);
    first = ring_start(job, 0, COUNT);
    again = ring_start(job, 0, COUNT);
    other = ring_start(job, COUNT, COUNT);
    if (round % 2) {
        ring_run(job, 2 * COUNT, COUNT);
    } else {
        last = ring_start(job, 2 * COUNT, COUNT);
        good(dtensor_wait(last, &job->w.err));
    }
    good(dtensor_wait(other, &job->w.err));
    good(dtensor_wait(again, &job->w.err));
    good(dtensor_wait(first, &job->w.err));
    ring_check(job, round, 3 * COUNT);
}

/* After PERIOD rounds the next ones allocate nothing: the least of periods
 * counts, since a long wait may hear from the bootstrap, which allocates.
 */
static void rounds_run(void (*play)(struct job *job, int round),
                       const size_t *parts)
{
    struct job job_here, *job = &job_here;
    long before = 0, least = LONG_MAX;

    job_open(job, *parts);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % PERIOD == 0)
            before = allocations;
        play(job, round);
        if (round >= PERIOD && round % PERIOD == PERIOD - 1 &&
            allocations - before < least)
            least = allocations - before;
    }
    need(least == 0, "%ld allocations in %d rounds", least, PERIOD);
    job_close(job);
}

static void turns_main(int rank, int n, void *arg)
{
    (void)rank;
    (void)n;
    rounds_run(turns_round, arg);
}

static void together_main(int rank, int n, void *arg)
{
    (void)rank;
    (void)n;
    rounds_run(together_round, arg);
}

/* More groups are under way than are kept. */
static void many_main(int rank, int n, void *arg)
{
    struct dtensor_request *request[GROUPS];
    struct job job_here, *job = &job_here;

    (void)rank;
    (void)n;
    job_open(job, *(const size_t *)arg);
    for (int round = 0; round < ROUNDS; round++) {
        ring_fill(job, round, GROUPS * COUNT);
        for (int g = 0; g < GROUPS; g++)
            request[g] = ring_start(job, g * COUNT, COUNT);
        for (int g = 0; g < GROUPS; g++)
            good(dtensor_wait(request[round % 2 ? g : GROUPS - 1 - g],
                              &job->w.err));
        ring_check(job, round, GROUPS * COUNT);
    }
    job_close(job);
}

/* A group is over, but not awaited, when its executable would be evicted; at
 * the end the context is, too.
 */
static void evicted_main(int rank, int n, void *arg)
{
    struct dtensor_request *request;
    struct job job_here, *job = &job_here;

    (void)rank;
    (void)n;
    job_open(job, *(const size_t *)arg);
    for (int round = 0; round < 3; round++) {
        ring_fill(job, round, MOST);
        request = ring_start(job, 0, MOST);
        good(dtensor_barrier(job->w.mesh, &job->w.err));
        ring_check(job, round, MOST);
        job_evict(job);
        good(dtensor_wait(request, &job->w.err));
        job_evict(job);
    }
    request = ring_start(job, 0, MOST);
    good(dtensor_barrier(job->w.mesh, &job->w.err));
    job_close(job);
    need(dtensor_wait(request, NULL) == 0, "it had ended");
}

/* ------------------------------------------------------------- failures --- */

/* Two groups are under way.  Both fail, and no number has come.  The failure of
 * the first may come before the second is begun.
 */
static void both_fail(struct job *job, size_t count, int expected)
{
    struct dtensor_request *first, *second = NULL;
    int rc;

    ring_fill(job, ROUNDS, 2 * (int)count);
    first = ring_start(job, 0, count);
    rc = dtensor_group_begin(job->w.ctx, &job->w.err);
    if (rc == 0) {
        ring_messages(job, 0, count);
        rc = dtensor_group_start(job->w.ctx, &second, &job->w.err);
    }
    need(rc == 0 || rc == expected, "%s", job->w.err.text);
    rc = dtensor_wait(first, &job->w.err);
    need(rc == expected, "%s: %s", dtensor_errname(rc), job->w.err.text);
    need(!second || dtensor_wait(second, NULL) == expected, "it came");
    for (size_t i = 0; i < 2 * count; i++)
        need(job->out[i] == -1, "element %zu was written", i);
    need(dtensor_group_begin(job->w.ctx, NULL) == expected, "it goes on");
}

/* Numbers of a group, and in how many messages. */
struct shape {
    size_t count, parts;
};

/* Rank 1 is killed when the groups have repeated. */
static void killed_main(int rank, int n, void *arg)
{
    const struct shape *shape = arg;
    struct job job_here, *job = &job_here;

    (void)n;
    job_open(job, shape->parts);
    for (int round = 0; round < PERIOD; round++)
        good(dtensor_wait(ring_start(job, 0, shape->count), &job->w.err));
    if (rank == 1)
        raise(SIGKILL);
    both_fail(job, shape->count, DTENSOR_EPEER);
    job_close(job);
}

/* The messages of rank 0 repeat, those of rank 1 have another length. */
static void longer_main(int rank, int n, void *arg)
{
    const struct shape *shape = arg;
    struct job job_here, *job = &job_here;

    (void)n;
    job_open(job, shape->parts);
    for (int round = 0; round < PERIOD; round++)
        good(dtensor_wait(ring_start(job, 0, shape->count), &job->w.err));
    both_fail(job, shape->count + (size_t)(rank == 1), DTENSOR_EMISMATCH);
    job_close(job);
}

static void fail(const char *wire, size_t count, size_t parts)
{
    struct shape shape = { count, parts };
    int status[2], bad;

    bad = ranks_run(2, 30, killed_main, &shape, status);
    ok(bad == 1 && WIFSIGNALED(status[1]) && status[0] == 0,
       "%s, %zu numbers in %zu: a rank is killed, both groups fail", wire,
       count, parts);
    ok(ranks_run(2, 30, longer_main, &shape, NULL) == 0,
       "%s, %zu numbers in %zu: one rank repeats, the other sends more", wire,
       count, parts);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };
    static struct {
        rank_main_f *fn;
        size_t parts;
        const char *claim;
    } cases[] = {
        { turns_main, 1, "started and blocking groups in turn allocate "
                         "nothing" },
        { turns_main, 2, "the same of groups that are packed" },
        { together_main, 1, "equal groups are under way together" },
        { together_main, 3, "equal groups that are packed" },
        { many_main, 1, "more groups than are kept are under way" },
        { many_main, 2, "more packed groups than are kept" },
        { evicted_main, 1, "executables are evicted before a group is "
                           "awaited" },
        { evicted_main, 2, "the same of groups that are packed" },
    };

    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        const char *path = ranks_file(wires[w], RANKS, NULL);

        setenv("DTN_CLUSTER", path, 1);
        for (size_t c = 0; c < DTN_COUNT(cases); c++)
            ok(ranks_run(RANKS, 60, cases[c].fn, &cases[c].parts, NULL) == 0,
               "%s: %s", wires[w], cases[c].claim);
        unlink(path);
        path = ranks_file(wires[w], 2, NULL);
        setenv("DTN_CLUSTER", path, 1);
        fail(wires[w], COUNT, 1);
        fail(wires[w], COUNT, 2);
        fail(wires[w], LONG / 2, 1);
        fail(wires[w], LONG / 2, 2);
        unlink(path);
    }
    return done();
}
