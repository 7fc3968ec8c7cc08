/* test_simulated_exchanges.c - losses while ranks exchange what they need
 *
 * After the first exchange a rank that joins knows of losses what ranks that
 * have joined know.  A leader dies in the last exchange; or a rank is stopped
 * or its host goes off before the second one, while all others wait for it.
 * All name the same rank, in time.
 *
 *     test_simulated_exchanges [SHIFTS [FIRST]]
 *
 * Each rank makes a number of calls of the kernel before it joins, FIRST or 0
 * at first.  So each shift is another order of what happens.
 *
 * Without this test, ranks that still join could name another rank than those
 * that have joined, or wait for a stopped one until connect_timeout.
 */
#include "base/compiler.h"
#include "boot/boot.h"
#include "dtensor.h"
#include "tests/sim/job.h"
#include "tests/sim/member.h"
#include "tests/sim/sim.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS INT64_C(1000000)
#define WATCHED_NS (12000 * MS)
enum { RANKS_MAX = 8 };

static struct outcome {
    bool ended;
    int named;                    /* the rank that is lost; -1: none          */
    int64_t known_ns;             /* when it knew                             */
    char text[500];               /* of an error while joining                */
} outcomes[RANKS_MAX];
static int bad;

static void sleep_until(int ms)
{
    const struct timespec nap = { 0, 5000000 };

    while (sim_now() < ms * MS)
        nanosleep(&nap, NULL);
}

/* As a call that waits: it looks, and tells why it gives up. */
static void rank_watch(struct dtn_boot *boot, struct outcome *mine)
{
    const struct timespec nap = { 0, 5000000 };
    enum dtn_loss loss;
    int lost = -1;

    dtn_boot_watch_start(boot);
    while (lost < 0 && sim_now() < WATCHED_NS) {
        nanosleep(&nap, NULL);
        dtn_boot_watch(boot);
        lost = dtn_boot_first_loss(boot);
    }
    if (lost < 0)
        return;
    mine->named = dtn_boot_agree(boot, lost, &loss);
    dtn_boot_report_failure(boot, mine->named, DTENSOR_EPEER,
                            &(struct dtn_mismatch){ .rank = 0 });
}

static void job_play(int hosts, int per_host, struct sim_options *options,
                     struct sim_result *result)
{
    memset(outcomes, 0, sizeof outcomes);
    bad = 0;
    sim_job_play(hosts, per_host, options, result);
}

/* -------------------------------------------------------- a death, last --- */

/* A leader dies in the last exchange, when some have joined and those behind it
 * have not, and another rank a moment later.
 */
static const struct last {
    const char *claim;
    int hosts, per_host;
    int leader, other;
    int heard_ms, other_ms;       /* after which their kernels say so         */
} lasts[] = {
    { "rank 0, and ranks behind the leader hear of it late",
      5, 1, 1, 0, 200, 1 },
    { "rank 0, whose kernel is late to say so", 4, 1, 1, 0, 1, 200 },
    { "rank 0, and the leader's host is the last", 3, 2, 4, 0, 200, 30 },
    { "a lower rank, and a host joins behind the leader",
      4, 2, 2, 1, 200, 100 },
    { "a leader beside it", 6, 1, 2, 1, 30, 200 },
};
enum { LAST_CALLS = 40 };         /* of the kernel, in the last exchange      */
enum { SHIFTS = 3 };
static int not_joined;
static int shift;                 /* calls of each rank before it joins       */

static void rank_join(int rank)
{
    struct outcome *mine = &outcomes[rank];
    struct dtensor_error err = { .rank = -1 };
    struct sim_member member;
    bool right;
    int rc;

    for (int i = 0; i < shift; i++)
        sched_yield();
    rc = sim_member_open(&member, "", &err);
    mine->named = -1;
    if (rc == 0)
        rc = sim_member_gather(&member, &right, &err);
    sim_mark();
    if (rc == 0)
        rc = sim_member_meet(&member, &err);
    if (rc == 0)
        rank_watch(member.boot, mine);
    else
        mine->named = err.rank;
    mine->known_ns = sim_now();
    snprintf(mine->text, sizeof mine->text, "%s", rc == 0 ? "" : err.text);
    sim_member_close(&member);
    mine->ended = true;
}

/* Did it fail in its first exchange?  Then it had only its parent, and could
 * hear of no other loss.
 */
static bool failed_early(const struct outcome *one)
{
    return *one->text != '\0' && !strstr(one->text, "while ranks joined");
}

/* All name the same of the two; one that names nobody has named -1. */
static void last_check(const struct sim_options *options)
{
    int named = -1;

    for (int r = 0; r < options->nranks; r++) {
        const struct outcome *one = &outcomes[r];
        const bool early = failed_early(one);

        if (sim_lost(r))
            continue;
        named = named < 0 && !early ? one->named : named;
        if (!one->ended || one->named < 0 || !sim_lost(one->named)
            || (one->named != named && !early) || one->known_ns > 1000 * MS) {
            note("shift %d, call %d: rank %d names %d, others %d: %s", shift,
                 (int)options->fault.call, r, one->named, named, one->text);
            bad++;
        }
        not_joined += *one->text != '\0';
    }
}

static int test_calls(const struct last *last, uint64_t *leaked)
{
    struct sim_result result;
    int all_bad = 0;

    for (uint64_t call = 1; call <= LAST_CALLS; call++) {
        struct sim_options options = {
            .main = rank_join, .end = last_check,
            .fault = { .kind = SIM_KILL, .rank = last->leader, .later = true,
                       .call = call, .ns = last->heard_ms * MS },
            .second = { .kind = SIM_KILL, .rank = last->other, .at_ns = 1,
                        .ns = last->other_ms * MS }
        };

        job_play(last->hosts, last->per_host, &options, &result);
        all_bad += bad > 0;
        *leaked += result.leaked;
    }
    return all_bad;
}

static void test_last(const struct last *last, int first, int shifts)
{
    uint64_t leaked = 0;
    int all_bad = 0;

    not_joined = 0;
    for (shift = first; shift < first + shifts; shift++)
        all_bad += test_calls(last, &leaked);
    shift = 0;
    ok(all_bad == 0 && leaked == 0 && not_joined > 0, "a leader dies at each "
       "call of its last exchange, and %s: in %d of %d jobs ranks differ; %d "
       "ranks had not joined", last->claim, all_bad, shifts * LAST_CALLS,
       not_joined);
}

/* ----------------------------------------------- a stop, in the second --- */

/* All but one start the second exchange after 0.1 s; that one is lost after 0.5
 * s, and is found after dead_after, 1 s.
 */
enum { MEETS_MS = 100, LOST_MS = 500, FOUND_MS = LOST_MS + 1000 };
static const struct stop {
    const char *claim;
    int hosts, per_host;
    enum sim_fault_kind kind;
    int victim;
    const char *words;            /* of all errors                            */
} stops[] = {
    { "a rank is stopped", 2, 3, SIM_STOP, 4,
      "boot: while ranks joined, rank 4 on n2 is stopped, for its process "
      "exists and has not run for 1.0 s" },
    { "the leader of a host is stopped", 3, 2, SIM_STOP, 2,
      "boot: while ranks joined, rank 2 on n2 is stopped, for its process "
      "exists and has not run for 1.0 s" },
    { "a rank of one host is stopped", 1, 4, SIM_STOP, 0,
      "boot: while ranks joined, rank 0 on n1 is stopped, for its process "
      "exists and has not run for 1.0 s" },
    { "a host goes off", 3, 1, SIM_POWER, 2,
      "boot: while ranks joined, rank 2 on n3 is out of reach: its host, "
      "silent for 1.0 s, is dead or cut off" },
    { "the host of rank 0 goes off", 5, 1, SIM_POWER, 0,
      "boot: while ranks joined, rank 0 on n1 is out of reach: its host, "
      "silent for 1.0 s, is dead or cut off" },
};
static const struct stop *stop;

static void rank_meet(int rank)
{
    struct outcome *mine = &outcomes[rank];
    struct dtensor_error err = { .rank = -1 };
    struct sim_member member;
    bool right;
    int rc = sim_member_open(&member, "", &err);

    if (rc == 0)
        rc = sim_member_gather(&member, &right, &err);
    sleep_until(rank == stop->victim ? 2 * FOUND_MS : MEETS_MS);
    if (rc == 0)
        rc = sim_member_meet(&member, &err);
    mine->named = err.rank;
    mine->known_ns = sim_now();
    snprintf(mine->text, sizeof mine->text, "%s", rc == 0 ? "" : err.text);
    sim_member_close(&member);
    mine->ended = true;
}

static int64_t slowest_ns;

/* A host that goes off is judged later than a rank that is stopped. */
static void stop_check(const struct sim_options *options)
{
    const int soon_ms = stop->kind == SIM_STOP ? 100 : 500;

    for (int r = 0; r < options->nranks; r++) {
        const struct outcome *one = &outcomes[r];

        if (sim_lost(r))
            continue;
        slowest_ns = one->known_ns > slowest_ns ? one->known_ns : slowest_ns;
        if (one->ended && one->named == stop->victim
            && strstr(one->text, stop->words)
            && one->known_ns < (FOUND_MS + soon_ms) * MS)
            continue;
        note("rank %d names %d after %d ms: %s", r, one->named,
             (int)(one->known_ns / MS), one->text);
        bad++;
    }
}

static void test_stop(const struct stop *of)
{
    struct sim_options options = {
        .main = rank_meet, .end = stop_check,
        .fault = { .kind = of->kind, .rank = of->victim,
                   .at_ns = LOST_MS * MS }
    };
    struct sim_result result;

    stop = of;
    slowest_ns = 0;
    job_play(of->hosts, of->per_host, &options, &result);
    ok(bad == 0 && result.lost > 0 && result.leaked == 0, "%s before the second "
       "exchange: all others name it %d ms later", of->claim,
       (int)(slowest_ns / MS) - LOST_MS);
}

int main(int argc, char **argv)
{
    const int shifts = argc > 1 ? atoi(argv[1]) : SHIFTS;
    const int first = argc > 2 ? atoi(argv[2]) : 0;

    if (sanitized())
        return skip_all("sanitizers do not know coroutines");
    for (size_t i = 0; i < DTN_COUNT(lasts); i++)
        test_last(&lasts[i], first, shifts);
    for (size_t i = 0; i < DTN_COUNT(stops); i++)
        test_stop(&stops[i]);
    return done();
}
