/* test_wait.c - waiting: deadlines, polling, and what a wait costs
 *
 * A wait spins, then yields, then sleeps.  The test counts its steps and
 * measures the CPU time.
 *
 * Without this test, a deadline could be missed, or a long wait could burn a
 * CPU that another rank needs.
 */
#include "base/wait.h"
#include "tests/support/tap.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000 };

static int64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct outcome {
    bool expired;
    int64_t wall_ns, cpu_ns;
    int looks;
};

/* Wait for nothing until the deadline, or at most `most_ns`. */
static struct outcome wait_out(int64_t timeout_ns, bool oversubscribed,
                               int64_t most_ns)
{
    const int64_t start = dtn_now_ns(), start_cpu = cpu_ns();
    struct outcome out = { 0 };
    struct dtn_wait wait;
    enum dtn_wait_next turn;

    dtn_wait_init(&wait, timeout_ns, oversubscribed);
    do {
        turn = dtn_wait_pause(&wait);
        out.looks += turn == DTN_WAIT_CHECK;
    } while (turn != DTN_WAIT_EXPIRED && dtn_now_ns() - start < most_ns);
    out.expired = turn == DTN_WAIT_EXPIRED;
    out.wall_ns = dtn_now_ns() - start;
    out.cpu_ns = cpu_ns() - start_cpu;
    return out;
}

static void test_deadline(bool oversubscribed)
{
    const char *mode = oversubscribed ? "oversubscribed" : "alone";
    struct outcome out;

    /* A busy machine is slow now and then. */
    for (int i = 0; i == 0 || (i < 10 && out.wall_ns > 2000 * (int64_t)MS); i++)
        out = wait_out(200 * MS, oversubscribed, 10000 * (int64_t)MS);
    ok(out.expired && out.wall_ns >= 200 * MS, "%s: 200 ms expire, not before "
       "(%.1f ms)", mode, (double)out.wall_ns / MS);
    ok(out.cpu_ns < out.wall_ns / 2, "%s: a long wait sleeps (%.1f ms of CPU)",
       mode, (double)out.cpu_ns / MS);
    /* A yield to many other processes may take 100 ms. */
    for (int64_t ms = 400; out.looks < 5 && ms <= 6400; ms *= 2)
        out = wait_out(ms * MS, oversubscribed, 20000 * (int64_t)MS);
    ok(out.looks >= 5 && out.looks <= out.wall_ns / MS,
       "%s: the waiter is told to look, at most each ms (%d times)", mode,
       out.looks);
    out = wait_out(0, oversubscribed, 10000 * (int64_t)MS);
    ok(out.expired, "%s: no time at all expires (%.3f ms)",
       mode, (double)out.wall_ns / MS);
    out = wait_out(INT64_MAX, oversubscribed, 20 * MS);
    ok(out.wall_ns >= 20 * MS, "%s: for ever does not overflow", mode);
}

/* The first turns of a wait alone must not enter the kernel: they are the
 * latency of an answer that comes at once.
 */
static void test_spin(void)
{
    struct dtn_wait wait;
    int64_t best = INT64_MAX, start, took;
    bool polled = true;

    for (int i = 0; i < 200; i++) {
        dtn_wait_init(&wait, 1000 * MS, false);
        start = dtn_now_ns();
        for (int t = 0; t < 10; t++)
            polled &= dtn_wait_pause(&wait) == DTN_WAIT_POLL;
        took = dtn_now_ns() - start;
        best = took < best ? took : best;
    }
    ok(polled && best < 10000, "ten first turns spin (%d ns)", (int)best);
}

/* One side of a ball game: wait for the other's number, then say the next.
 * Returns the best time of ten rounds.
 */
static int64_t play(_Atomic uint32_t *ball, uint32_t mine, bool learns)
{
    int64_t best = INT64_MAX, start = 0, took;
    struct dtn_wait wait;
    bool sharing = false;

    for (uint32_t n = mine; n < 4000; n += 2) {
        dtn_wait_init(&wait, 1000 * MS, false);
        wait.sharing = learns ? &sharing : NULL;
        while (atomic_load(ball) != n &&
               dtn_wait_pause(&wait) != DTN_WAIT_EXPIRED)
            ;
        atomic_store(ball, n + 1);
        if (n % 20 >= 2)
            continue;
        took = dtn_now_ns() - start;
        best = start && took < best ? took : best;
        start = dtn_now_ns();
    }
    return best;
}

/* A game of two processes. */
static int64_t game(_Atomic uint32_t *ball, bool learns)
{
    int64_t best;
    pid_t pid;

    atomic_store(ball, 0);
    pid = fork();
    if (pid == 0) {
        play(ball, 1, learns);
        _exit(0);
    }
    best = play(ball, 0, learns);
    waitpid(pid, NULL, 0);
    return best;
}

/* A third process on that CPU can spoil a game, so there are several. */
static void test_sharing(void)
{
    _Atomic uint32_t *ball = mmap(NULL, sizeof *ball, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const int64_t end = dtn_now_ns() + 20000 * (int64_t)MS;
    int64_t best[2] = { INT64_MAX, INT64_MAX };   /* [1]: who learn           */
    cpu_set_t usable, one;

    if (ball == MAP_FAILED || sched_getaffinity(0, sizeof usable, &usable) < 0)
        abort();
    CPU_ZERO(&one);
    for (int c = CPU_SETSIZE; c-- > 0;)
        if (CPU_ISSET(c, &usable)) {
            CPU_ZERO(&one);
            CPU_SET(c, &one);
        }
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; best[1] >= best[0] / 2 && dtn_now_ns() < end; i++) {
        const int64_t took = game(ball, i % 2 != 0);

        best[i % 2] = took < best[i % 2] ? took : best[i % 2];
    }
    sched_setaffinity(0, sizeof usable, &usable);
    ok(best[1] < best[0] / 2, "two waiters on one CPU learn to let each other "
       "run: a round takes %.1f us, else %.1f", (double)best[1] / 1e4,
       (double)best[0] / 1e4);
}

/* A rank that got a CPU of its own spins again: the next yields find nobody. */
static void test_unlearned(void)
{
    bool sharing = true;
    int waits = 0;

    for (; sharing && waits < 1000; waits++) {
        struct dtn_wait wait;

        dtn_wait_init(&wait, MS, false);
        wait.sharing = &sharing;
        while (sharing && dtn_wait_pause(&wait) != DTN_WAIT_EXPIRED)
            ;
    }
    ok(!sharing, "what was learned is forgotten after %d waits alone", waits);
}

int main(void)
{
    const int64_t before = dtn_now_ns();

    ok(dtn_now_ns() >= before, "the clock does not go back");
    test_deadline(false);
    test_deadline(true);
    test_spin();
    test_sharing();
    test_unlearned();
    return done();
}
