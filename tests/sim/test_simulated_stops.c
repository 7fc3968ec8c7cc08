/* test_simulated_stops.c - ranks are stopped while all others wait
 *
 * A rank of each job is stopped at each of many moments between two of its
 * heartbeats; or two are, up to two heartbeats apart.  All others must name it
 * at most 100 ms after dead_after; of two, all must name the same one.
 *
 * Without this test, a stopped rank could be named later than dead_after says,
 * because another might have been stopped too; or of two that are, ranks could
 * name different ones, because their last heartbeats are apart.
 */
#include "base/compiler.h"
#include "boot/boot.h"
#include "dtensor.h"
#include "tests/sim/job.h"
#include "tests/sim/member.h"
#include "tests/sim/sim.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MS INT64_C(1000000)
enum { RANKS_MAX = 8, STOP_MS = 500, DEAD_MS = 1000, SOON_MS = 100,
       LAST_MS = 4000 };          /* job.c has this dead_after                */

static struct outcome {
    bool ended;
    int named;                    /* the rank that is lost; -1: none          */
    enum dtn_loss loss;
    int64_t known_ns;
} outcomes[RANKS_MAX];

/* As a call that waits: it looks, and tells why it gives up. */
static void rank_watch(struct dtn_boot *boot, struct outcome *mine)
{
    const struct timespec nap = { 0, 5000000 };
    int lost = -1;

    dtn_boot_watch_start(boot);
    while (lost < 0 && sim_now() < LAST_MS * MS) {
        nanosleep(&nap, NULL);
        dtn_boot_watch(boot);
        lost = dtn_boot_first_loss(boot);
    }
    if (lost < 0)
        return;
    mine->named = dtn_boot_agree(boot, lost, &mine->loss);
    mine->known_ns = sim_now();
    dtn_boot_report_failure(boot, mine->named, DTENSOR_EPEER,
                            &(struct dtn_mismatch){ .rank = 0 });
}

static void rank_run(int rank)
{
    struct outcome *mine = &outcomes[rank];
    struct dtensor_error err;
    struct sim_member member;
    bool right;

    mine->named = -1;
    if (sim_member_open(&member, "", &err) == 0
        && sim_member_gather(&member, &right, &err) == 0)
        rank_watch(member.boot, mine);
    sim_member_close(&member);
    mine->ended = true;
}

/* Of this job and of all. */
static int64_t slowest_ns;
static int bad, all_bad, jobs;

/* All name the same, which is lost, and say that it is stopped. */
static void check(const struct sim_options *options)
{
    int named = -1;

    slowest_ns = 0;
    for (int r = 0; r < options->nranks; r++) {
        const struct outcome *one = &outcomes[r];

        if (sim_lost(r))
            continue;
        named = named < 0 ? one->named : named;
        slowest_ns = one->known_ns > slowest_ns ? one->known_ns : slowest_ns;
        if (one->ended && one->named == named && named >= 0 && sim_lost(named)
            && one->loss == DTN_LOSS_STOPPED)
            continue;
        note("stops of ranks %d and %d, %d ms apart: rank %d names %d, others "
             "%d, loss %d", options->fault.rank, options->second.rank,
             (int)(options->second.at_ns / MS), r, one->named, named,
             (int)one->loss);
        bad++;
    }
}

static void job_play(int hosts, int per_host, int at_ms, int first, int second,
                     int apart_ms)
{
    struct sim_options options = {
        .main = rank_run, .end = check,
        .fault = { .kind = SIM_STOP, .rank = first, .at_ns = at_ms * MS }
    };
    struct sim_result result;

    if (second >= 0)
        options.second = (struct sim_fault){
            .kind = SIM_STOP, .rank = second, .at_ns = 1 + apart_ms * MS };
    memset(outcomes, 0, sizeof outcomes);
    bad = 0;
    sim_job_play(hosts, per_host, &options, &result);
    all_bad += bad > 0 || result.leaked > 0;
    jobs++;
}

static const struct shape {
    int hosts, per_host;
} shapes[] = { { 1, 4 }, { 2, 1 }, { 2, 4 }, { 3, 2 }, { 4, 2 }, { 8, 1 } };

/* Each rank, at four moments of the 100 ms between two heartbeats. */
static void test_one(const struct shape *of)
{
    int64_t late_ns = 0;

    all_bad = jobs = 0;
    for (int victim = 0; victim < of->hosts * of->per_host; victim++)
        for (int at = STOP_MS; at < STOP_MS + 100; at += 31) {
            job_play(of->hosts, of->per_host, at, victim, -1, 0);
            slowest_ns -= (at + DEAD_MS) * MS;
            late_ns = jobs == 1 || slowest_ns > late_ns ? slowest_ns : late_ns;
        }
    ok(all_bad == 0 && late_ns <= SOON_MS * MS, "a rank of %dx%d is stopped, "
       "%d jobs: all others know %+d ms after dead_after at most", of->hosts,
       of->per_host, jobs, (int)(late_ns / MS));
}

/* Each pair, at five distances. */
static void test_two(const struct shape *of)
{
    const int n = of->hosts * of->per_host;

    all_bad = jobs = 0;
    for (int first = 0; first < n; first++)
        for (int second = 0; second < n; second++)
            for (int apart = 0; apart < 250 && second != first; apart += 49)
                job_play(of->hosts, of->per_host, STOP_MS + 13 * (jobs % 7),
                         first, second, apart);
    ok(all_bad == 0, "two ranks of %dx%d are stopped, up to 250 ms apart, %d "
       "jobs: in %d ranks differ", of->hosts, of->per_host, jobs, all_bad);
}

int main(void)
{
    if (sanitized())
        return skip_all("sanitizers do not know coroutines");
    for (size_t i = 0; i < DTN_COUNT(shapes); i++)
        test_one(&shapes[i]);
    for (size_t i = 0; i < DTN_COUNT(shapes); i++)
        if (shapes[i].hosts > 3)
            test_two(&shapes[i]);
    return done();
}
