/* test_out_of_memory.c - a whole life when the n-th allocation fails, for
 * every n
 *
 * A life: join, lay out meshes, make tensors, move them, leave.  The linker
 * sends malloc() and its kin and the allocations of the arena here (--wrap).
 * Alone, a rank gets ENOMEM in words, nothing else has changed, and it can
 * repeat the step and go on: at the end it holds as much memory as if nothing
 * had happened.  Of two ranks the other is told who ran out.
 *
 *     test_out_of_memory [WIRE]   two ranks over that wire only
 *
 * DTN_TEST_ROUNDS says how many of a hundred allocations fail.
 *
 * Without this test, a rank that runs out of memory could crash, leak, or
 * leave its peers waiting.
 */
#include "base/wait.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/job/held.h"
#include "tests/job/life.h"
#include "tests/support/ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- alone --- */

struct held {
    long blocks;
    size_t arena_bytes;
};

/* The n-th allocation fails once, and the step is done again.  Returns true
 * when there were fewer.
 */
static bool live_alone(long n, struct held *held, const char **wrong)
{
    static struct life life;
    struct dtensor_error err;
    bool unused;
    int rc;

    life_begin(&life, NULL);
    allocations_left = n;
    for (int s = 0; s < NSTEPS && !*wrong; s++) {
        rc = life_step(&life, &steps[s], &err, wrong);
        if (rc == 0)
            continue;
        if (rc != DTENSOR_ENOMEM || !says_memory(&err) || allocations_left >= 0)
            *wrong = "another error";
        else if (life_step(&life, &steps[s], &err, wrong) != 0)
            *wrong = "the step cannot be done again";
        if (*wrong)
            note("allocation %ld, %s: %s", n, steps[s].name, err.text);
    }
    unused = allocations_left >= 0;
    allocations_left = -1;
    held->blocks = nlive;
    if (!*wrong)
        held->arena_bytes = life.made[CTX].ctx->arena.extents.used_bytes;
    life_end(&life);
    return unused;
}

static void test_alone(void)
{
    struct held clean, held;
    const char *wrong = NULL;
    int fds = open_fds();
    long n;

    live_alone(1000000, &clean, &wrong);
    ok(!wrong && nlive == 0 && open_fds() == fds,
       "a life of one rank leaves no memory and no descriptor behind");
    for (n = 0; !wrong && !live_alone(n, &held, &wrong); n++) {
        if (nlive != 0 || open_fds() != fds)
            wrong = "something is left behind";
        else if (!wrong && (held.blocks != clean.blocks ||
                            held.arena_bytes != clean.arena_bytes))
            wrong = "memory is lost while the context lives";
        if (wrong)
            note("allocation %ld: %ld blocks left, %d fds more; %ld blocks "
                 "and %zu bytes held at the end, otherwise %ld and %zu", n,
                 nlive, open_fds() - fds, held.blocks, held.arena_bytes,
                 clean.blocks, clean.arena_bytes);
    }
    ok(!wrong && n > 40, "each of %ld allocations may fail: ENOMEM in words, "
       "nothing lost, and the step can be done again%s%s", n, wrong ? ", but "
       : "", wrong ? wrong : "");
}

/* --------------------------------------------------------------- of two --- */

enum { PATIENCE_MS = 3000, PATIENCE_S = 20, PARALLEL = 16, TRIES_MAX = 1200 };
#define SOON_NS INT64_C(8000000000)

/* What two ranks find, in memory they share with the test. */
struct trial {
    struct report {
        int rc, step;
        struct dtensor_error err;
        int64_t at_ns;
        char wrong[64];
    } report[2];
    _Atomic bool survivor_done;
    bool unused;                    /* fewer allocations than that           */
    int bad;                        /* ranks that crashed or hung            */
};

struct attempt {
    struct trial *trial;
    const char *path;
    long n;
};

/* Rank 1 runs out of memory.  Where others wait for it, it stays: that it is
 * gone must not be all that they are told.
 */
static void rank_life(int rank, int nranks, void *arg)
{
    static struct life life;
    const struct attempt *attempt = arg;
    struct report *report = &attempt->trial->report[rank];
    const struct timespec tick = { 0, 1000000 };
    const char *wrong = NULL;
    int fds = open_fds(), s = 0;

    life_begin(&life, attempt->path);
    allocations_left = rank == 1 ? attempt->n : -1;
    while (s < NSTEPS && report->rc == 0)
        report->rc = life_step(&life, &steps[s++], &report->err, &wrong);
    report->step = s - 1;
    report->at_ns = dtn_now_ns();
    if (rank == 1) {
        attempt->trial->unused = allocations_left >= 0;
        allocations_left = -1;
    } else {
        atomic_store(&attempt->trial->survivor_done, true);
    }
    for (int i = 0; i < 5000 && rank == 1 && steps[s - 1].collective &&
         report->rc != 0 && !atomic_load(&attempt->trial->survivor_done); i++)
        nanosleep(&tick, NULL);
    life_end(&life);
    snprintf(report->wrong, sizeof report->wrong, "%s", wrong ? wrong : "");
    if (!wrong && (nlive != 0 || open_fds() != fds))
        snprintf(report->wrong, sizeof report->wrong, "%ld blocks and %d "
                 "descriptors are left behind", nlive, open_fds() - fds);
}

static bool trial_good(const struct trial *t)
{
    const struct report *survivor = &t->report[0], *poor = &t->report[1];

    if (t->bad || *survivor->wrong || *poor->wrong)
        return false;
    if (poor->rc == 0)              /* enough, or it found another way       */
        return survivor->rc == 0;
    return poor->rc == DTENSOR_ENOMEM && says_memory(&poor->err) &&
           survivor->rc != 0 && survivor->err.rank == 1 &&
           (timeless() || survivor->at_ns - poor->at_ns < SOON_NS);
}

static void trial_show(const struct trial *t, long n)
{
    note("allocation %ld: %d ranks crashed or hung", n, t->bad);
    for (int r = 0; r < 2; r++)
        note("rank %d, %s: %s %s%s%s, %lld ms after rank 1", r,
             steps[t->report[r].step].name, dtensor_errname(t->report[r].rc),
             t->report[r].err.text, *t->report[r].wrong ? "; " : "",
             t->report[r].wrong, (long long)(t->report[r].at_ns -
                                             t->report[1].at_ns) / 1000000);
}

/* Most of the time is waiting for a rank that never comes: many at once. */
static void try_some(struct trial *trials, const char *path, long first,
                     long parallel)
{
    const int patience_s = timeless() ? 4 * PATIENCE_S : PATIENCE_S;
    const long every = 100 / rounds_of(100);

    for (long n = first * every; n < TRIES_MAX; n += parallel * every) {
        struct attempt attempt = { &trials[n], path, n };

        trials[n].bad = ranks_run(2, patience_s, rank_life, &attempt, NULL);
        if (trials[n].unused || trials[n].bad)
            return;
    }
}

static void test_two(const char *wire)
{
    struct trial *trials = mmap(NULL, sizeof *trials * TRIES_MAX,
                                PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const long parallel = timeless() ? PARALLEL / 4 : PARALLEL;
    char patience[96];
    const char *path;
    long n = 0, bad = 0;

    if (trials == MAP_FAILED)
        exit(99);
    snprintf(patience, sizeof patience, "connect_timeout = %dms\n"
             "[redistribute]\npipeline = 4K\n",
             timeless() ? 10 * PATIENCE_MS : PATIENCE_MS);
    path = ranks_file(wire, 2, patience);
    for (long i = 0; i < parallel; i++) {
        fflush(stdout);
        if (fork() == 0) {
            if (i % 4 != 0)
                one_cpu((int)i);
            try_some(trials, path, i, parallel);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    remove(path);
    do {
        if (!trial_good(&trials[n]) && bad++ < 5)
            trial_show(&trials[n], n);
    } while (!trials[n++].unused && n < TRIES_MAX);
    ok(n > 60 && n < TRIES_MAX && bad == 0, "two ranks over %s: each of %ld "
       "allocations of rank 1 may fail, and rank 0 is told (%d in 100 tried)",
       wire, n - 1, rounds_of(100));
    munmap(trials, sizeof *trials * TRIES_MAX);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        test_two(argv[1]);
        return done();
    }
    test_alone();
    test_two("shm");
    test_two("tcp");
    return done();
}
