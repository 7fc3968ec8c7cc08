/* test_stopped_joining.c - a rank is stopped while all others still join
 *
 * One rank stops itself after the first exchange of dtensor_init(), in which
 * ranks learn where the heartbeats of their host are.  All others wait for it
 * in the next one.  They must name it after dead_after, in the words that ranks
 * have after joining, and not wait for connect_timeout.
 *
 * Without this test, a job whose rank is stopped by a debugger or a full disk
 * while it starts could say so only after a minute.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "job/wire.h"
#include "dtensor.h"
#include "tests/support/hosts.h"
#include "tests/support/ranks.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, DEAD_MS = 500, SOON_MS = 200, BUSY_MS = 8000 };

/* What each rank found, in memory shared with the test. */
static struct report {
    _Atomic bool ended;
    int64_t at_ns;
    struct dtensor_error err;
} *reports;                       /* [RANKS]                                  */
static _Atomic int64_t *stopped_ns;
static bool stops;                /* this rank                                */

int __wrap_dtn_wire_negotiate(struct dtensor_ctx *ctx,
                              struct dtensor_error *err);
int __real_dtn_wire_negotiate(struct dtensor_ctx *ctx,
                              struct dtensor_error *err);

int __wrap_dtn_wire_negotiate(struct dtensor_ctx *ctx,
                              struct dtensor_error *err)
{
    if (stops) {
        atomic_store(stopped_ns, dtn_now_ns());
        raise(SIGSTOP);
    }
    return __real_dtn_wire_negotiate(ctx, err);
}

static const struct stop {
    const char *claim;
    struct hosts hosts;
    int victim;
} stops_of[] = {
    { "a rank of one host", { 1, { RANKS } }, 2 },
    { "rank 0 of one host", { 1, { RANKS } }, 0 },
    { "a rank of the second of two hosts", { 2, { 2, 2 } }, 3 },
    { "the leader of the second of two hosts", { 2, { 2, 2 } }, 2 },
    { "rank 0 of two hosts", { 2, { 2, 2 } }, 0 }
};

static const char path[] = "stopped-joining.ini";

static void rank_join(int rank, int nranks, void *arg)
{
    const struct stop *stop = arg;
    struct report *report = &reports[rank];
    struct dtensor_ctx *ctx = NULL;

    stops = rank == stop->victim;
    hosts_be(&stop->hosts, rank);
    dtensor_init(path, &ctx, &report->err);
    report->at_ns = dtn_now_ns();
    report->ended = true;
    dtensor_fini(ctx);
}

/* Do all others name it, in these words and in time? */
static bool told(const struct stop *stop, int limit_ms, int64_t *slowest_ns)
{
    char words[160];
    bool good = true;

    *slowest_ns = 0;
    snprintf(words, sizeof words, "boot: while ranks joined, rank %d on h%d is "
             "stopped, for its process exists and has not run for 500.0 ms",
             stop->victim, stop->victim / stop->hosts.ranks[0]);
    for (int r = 0; r < RANKS; r++) {
        const struct report *one = &reports[r];
        const int64_t after_ns = one->at_ns - *stopped_ns;

        if (r == stop->victim)
            continue;
        *slowest_ns = after_ns > *slowest_ns ? after_ns : *slowest_ns;
        if (one->ended && one->err.rank == stop->victim
            && strstr(one->err.text, words)
            && after_ns < (int64_t)limit_ms * 1000000)
            continue;
        note("rank %d after %d ms: %s", r, (int)(after_ns / 1000000),
             one->err.text);
        good = false;
    }
    return good;
}

static void job_run(const struct stop *stop)
{
    pid_t pids[RANKS];
    char job[32];
    static int jobs;

    memset(reports, 0, RANKS * sizeof *reports);
    snprintf(job, sizeof job, "stopped-%d-%d", (int)getpid(), ++jobs);
    for (int r = 0; r < RANKS; r++)
        pids[r] = rank_fork(r, RANKS, job, rank_join, (void *)(uintptr_t)stop);
    for (int r = 0; r < RANKS; r++)
        if (r != stop->victim)
            waitpid(pids[r], NULL, 0);
    kill(pids[stop->victim], SIGKILL);
    waitpid(pids[stop->victim], NULL, 0);
}

/* A machine may be so busy that a rank does not run for long: once more then,
 * with more time.
 */
static void test_stop(const struct stop *stop)
{
    int64_t slowest_ns;
    bool good;

    hosts_write(&stop->hosts, path, "",
                "heartbeat = 50ms\ndead_after = 500ms\n");
    job_run(stop);
    good = told(stop, DEAD_MS + SOON_MS, &slowest_ns);
    if (!good) {
        job_run(stop);
        good = told(stop, DEAD_MS + BUSY_MS, &slowest_ns);
    }
    unlink(path);
    ok(good, "%s is stopped while all others join: they say so %d ms later",
       stop->claim, (int)(slowest_ns / 1000000));
}

int main(void)
{
    const size_t size = RANKS * sizeof *reports + sizeof *stopped_ns;

    reports = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (reports == MAP_FAILED)
        return 99;
    stopped_ns = (_Atomic int64_t *)(reports + RANKS);
    hosts_port();
    for (size_t i = 0; i < DTN_COUNT(stops_of); i++)
        test_stop(&stops_of[i]);
    return done();
}
