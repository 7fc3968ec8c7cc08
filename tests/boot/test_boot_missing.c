/* test_boot_missing.c - ranks that do not come, or do not answer
 *
 * All ranks that are there must name the missing ones, in the same words, at
 * most a second after the deadline.
 *
 * Without this test, a rank that never starts could leave the others waiting
 * for ever, or with an error that names nobody.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"

#include <stdbool.h>

#define MISSING_MS 1200           /* timeout of jobs that lack a rank         */

/* -------------------------------------------------------------- missing --- */

static const struct missing {
    const char *what;
    int nhosts, each;
    int ranks[6], n;
    const char *words;
} missings[] = {
    { "a leaf", 1, 4, { 2 }, 1,
      "boot: rank 2 on n0 did not join within 1.2 s (is it started?)" },
    { "two leaves on two hosts", 2, 3, { 2, 4 }, 2,
      "boot: ranks 2 on n0, 4 on n1 did not join within 1.2 s (are they "
      "started?)" },
    { "rank 0 of one host", 1, 3, { 0 }, 1,
      "boot: rank 0 on n0 did not join within 1.2 s (is it started?)" },
    { "rank 0 of two hosts", 2, 2, { 0 }, 1,
      "boot: rank 0 on n0 did not join within 1.2 s (is it started? is n0 "
      "reachable on port " },
    { "the last host", 2, 2, { 2, 3 }, 2,
      "boot: ranks 2-3 on n1 did not join within 1.2 s (are they started? "
      "is n1 reachable on port " },
    { "a leader, though its ranks are there", 2, 3, { 3 }, 1,
      "boot: rank 3 on n1 did not join within 1.2 s (is it started? is n1 "
      "reachable on port " },
    { "a host in the middle, though those behind it are there", 8, 1, { 1 }, 1,
      "boot: rank 1 on n1 did not join within 1.2 s (is it started? is n1 "
      "reachable on port " },
    { "two hosts, one behind the other", 8, 1, { 1, 3 }, 2,
      "boot: ranks 1 on n1, 3 on n3 did not join within 1.2 s (are they "
      "started? are n1, n3 reachable on port " },
};

static void test_missing(void)
{
    for (size_t i = 0; i < DTN_COUNT(missings); i++) {
        const struct missing *m = &missings[i];
        struct boot_job job = job_even(m->nhosts, m->each);

        job.timeout_ms = MISSING_MS;
        for (int k = 0; k < m->n; k++)
            job_drop(&job, m->ranks[k]);
        job_run(&job, NULL);
        ok(job_failed(&job, DTENSOR_ETIME, m->ranks[0], m->words,
                      MISSING_MS + 1000), "%s missing: all others say so in "
           "the same words (%lld ms)", m->what,
           (long long)job_slowest_ms(&job));
        if (i == 0 || i == 4)
            note("%s", said[0].err.text);
    }
}

/* Whoever began first gives up first; nobody exceeds its own limit. */
static void test_missing_staggered(void)
{
    struct boot_job job = job_even(2, 2);
    bool good = true;

    job.timeout_ms = MISSING_MS;
    job_drop(&job, 3);
    job.actor[0].delay_ms = 600;
    job_run(&job, NULL);
    for (int i = 0; i < job.nactors; i++)
        good = good && said[i].rc == DTENSOR_ETIME && said[i].err.rank == 3 &&
               said[i].total_ns < (MISSING_MS + 1000) * INT64_C(1000000);
    ok(good && said[0].total_ns < 900 * INT64_C(1000000), "the deadline of the "
       "rank that began first counts, and rank 0 tells what it knows");
    if (!good)
        job_show(&job);
}

/* ---------------------------------------------------------------- stuck --- */

static void test_stuck(void)
{
    static const int stuck[] = { 0, 2, 3 };

    for (size_t i = 0; i < DTN_COUNT(stuck); i++) {
        struct boot_job job = job_even(4, 2);
        bool good = true;

        job.timeout_ms = MISSING_MS;
        job.actor[stuck[i]].skip_allgather = MISSING_MS + 1000;
        job_run(&job, NULL);
        for (int r = 0; r < job.nactors; r++)
            good = good && (r == stuck[i] ||
                            (said[r].rc == DTENSOR_ETIME &&
                             said[r].err.rank == stuck[i] &&
                             said[r].leaked_fds == 0 &&
                             said[r].total_ns < (MISSING_MS + 1000) *
                                                INT64_C(1000000)));
        ok(good, "rank %d stuck before an allgather: ETIME names it "
           "everywhere", stuck[i]);
        if (!good)
            job_show(&job);
        else
            note("%s", said[stuck[i] == 0].err.text);
    }
}

int main(void)
{
    job_init();
    test_missing();
    test_missing_staggered();
    test_stuck();
    return done();
}
