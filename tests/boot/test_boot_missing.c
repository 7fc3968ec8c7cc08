/* test_boot_missing.c - ranks that do not come, or do not answer
 *
 * All ranks that are there must name the missing ones, in the same words, at
 * most a second after the deadline.  On a machine so busy that a rank does not
 * run for a second, that cannot be seen: a trial that fails is repeated once,
 * with eight times as long for everything.
 *
 * Without this test, a rank that never starts could leave the others waiting
 * for ever, or with an error that names nobody.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"

#include <stdbool.h>

static int patience;              /* 1, and then 8                            */

/* The timeout of jobs that lack a rank, and the latest that all have failed. */
static int missing_ms(void)
{
    return 600 * patience;
}

static int latest_ms(void)
{
    return missing_ms() + 1000 * patience;
}

static bool patiently(bool (*trial)(size_t i), size_t i)
{
    for (patience = 1; patience <= 8; patience += 7)
        if (trial(i))
            return true;
    return false;
}

/* -------------------------------------------------------------- missing --- */

static const struct missing {
    const char *what;
    int nhosts, each;
    int ranks[6], n;
    const char *words;            /* and the time                             */
} missings[] = {
    { "a leaf", 1, 4, { 2 }, 1,
      "boot: rank 2 on n0 did not join within %s (is it started?)" },
    { "two leaves on two hosts", 2, 3, { 2, 4 }, 2,
      "boot: ranks 2 on n0, 4 on n1 did not join within %s (are they "
      "started?)" },
    { "rank 0 of one host", 1, 3, { 0 }, 1,
      "boot: rank 0 on n0 did not join within %s (is it started?)" },
    { "rank 0 of two hosts", 2, 2, { 0 }, 1,
      "boot: rank 0 on n0 did not join within %s (is it started? is n0 "
      "reachable on port " },
    { "the last host", 2, 2, { 2, 3 }, 2,
      "boot: ranks 2-3 on n1 did not join within %s (are they started? "
      "is n1 reachable on port " },
    { "a leader, though its ranks are there", 2, 3, { 3 }, 1,
      "boot: rank 3 on n1 did not join within %s (is it started? is n1 "
      "reachable on port " },
    { "a host in the middle, though those behind it are there", 8, 1, { 1 }, 1,
      "boot: rank 1 on n1 did not join within %s (is it started? is n1 "
      "reachable on port " },
    { "two hosts, one behind the other", 8, 1, { 1, 3 }, 2,
      "boot: ranks 1 on n1, 3 on n3 did not join within %s (are they "
      "started? are n1, n3 reachable on port " },
};

static bool missing_trial(size_t i)
{
    const struct missing *m = &missings[i];
    struct boot_job job = job_even(m->nhosts, m->each);
    char words[256];

    snprintf(words, sizeof words, m->words, patience == 1 ? "600.0 ms" : "4.8 s");
    job.timeout_ms = missing_ms();
    for (int k = 0; k < m->n; k++)
        job_drop(&job, m->ranks[k]);
    job_run(&job, NULL);
    return job_failed(&job, DTENSOR_ETIME, m->ranks[0], words, latest_ms());
}

static void test_missing(void)
{
    for (size_t i = 0; i < DTN_COUNT(missings); i++) {
        ok(patiently(missing_trial, i), "%s missing: all others say so in the "
           "same words", missings[i].what);
        if (i == 0 || i == 4)
            note("%s", said[0].err.text);
    }
}

/* Whoever began first gives up first; nobody exceeds its own limit. */
static bool staggered_trial(size_t i)
{
    struct boot_job job = job_even(2, 2);
    bool good;

    job.timeout_ms = missing_ms();
    job_drop(&job, 3);
    job.actor[0].delay_ms = missing_ms() / 2;
    job_run(&job, NULL);
    good = said[0].total_ns < missing_ms() * 3 / 4 * INT64_C(1000000);
    for (i = 0; i < (size_t)job.nactors; i++)
        good = good && said[i].rc == DTENSOR_ETIME && said[i].err.rank == 3 &&
               said[i].total_ns < latest_ms() * INT64_C(1000000);
    if (!good)
        job_show(&job);
    return good;
}

/* ---------------------------------------------------------------- stuck --- */

static bool stuck_trial(size_t stuck)
{
    struct boot_job job = job_even(4, 2);
    bool good = true;

    job.timeout_ms = missing_ms();
    job.actor[stuck].skips = STUCK;
    job_run(&job, NULL);
    for (size_t r = 0; r < (size_t)job.nactors; r++)
        good = good && (r == stuck ||
                        (said[r].rc == DTENSOR_ETIME &&
                         said[r].err.rank == (int)stuck &&
                         said[r].leaked_fds == 0 &&
                         said[r].total_ns - said[r].open_ns
                         < latest_ms() * INT64_C(1000000)));
    if (!good)
        job_show(&job);
    return good;
}

static void test_stuck(void)
{
    static const size_t stuck[] = { 0, 2, 3 };

    for (size_t i = 0; i < DTN_COUNT(stuck); i++) {
        ok(patiently(stuck_trial, stuck[i]), "rank %zu stuck before an "
           "allgather: ETIME names it everywhere", stuck[i]);
        note("%s", said[stuck[i] == 0].err.text);
    }
}

int main(void)
{
    job_init();
    test_missing();
    ok(patiently(staggered_trial, 0), "the deadline of the rank that began "
       "first counts, and rank 0 tells what it knows");
    test_stuck();
    return done();
}
