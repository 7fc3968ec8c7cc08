/* test_beating.c - dtensor_init() returns only when the beating thread runs
 *
 * That thread tells the kernel to mark its death, so a rank that is killed
 * before it has run counts as stopped.  On a busy machine a program could make
 * many calls by then.  Here the thread does not begin before dtensor_init()
 * waits for it, and then a while later.
 *
 * Without this test, the ranks could call a rank that is killed early stopped,
 * and notice it only after dead_after.
 */
#include "boot/boot.h"
#include "boot/pulse.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { RANKS = 2, LATE_MS = 100 };

static _Atomic bool awaited;      /* dtensor_init() waits, or has returned    */
static _Atomic bool begun;        /* the thread has told the kernel           */

static void nap(int ms)
{
    nanosleep(&(struct timespec){ 0, ms * 1000000L }, NULL);
}

/* By the thread, first of all. */
void __real_dtn_pulse_begin(struct dtn_pulse *pulse);
void __wrap_dtn_pulse_begin(struct dtn_pulse *pulse);
void __wrap_dtn_pulse_begin(struct dtn_pulse *pulse)
{
    while (!atomic_load(&awaited))
        nap(1);
    nap(LATE_MS);
    __real_dtn_pulse_begin(pulse);
    atomic_store(&begun, true);
}

void __real_dtn_boot_beat_await(const struct dtn_boot *boot);
void __wrap_dtn_boot_beat_await(const struct dtn_boot *boot);
void __wrap_dtn_boot_beat_await(const struct dtn_boot *boot)
{
    atomic_store(&awaited, true);
    __real_dtn_boot_beat_await(boot);
}

static void rank_main(int rank, int nranks, void *arg)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;
    const int rc = dtensor_init(NULL, &ctx, &err);
    const bool beats = atomic_load(&begun);

    (void)rank, (void)nranks, (void)arg;
    atomic_store(&awaited, true);
    need(rc == 0, "%s", err.text);
    dtensor_fini(ctx);
    need(beats, "dtensor_init() returned before the thread had begun");
}

int main(void)
{
    ok(ranks_run(RANKS, 10, rank_main, NULL, NULL) == 0,
       "dtensor_init() returns when the rank's death would be marked");
    return done();
}
