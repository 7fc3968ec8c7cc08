/* wait.c - patience
 *
 * A peer on the same chip answers in a tenth of a microsecond, a peer that
 * was descheduled in milliseconds, a dead one never.  So a wait first spins,
 * about 20 us, then yields the CPU, and after 2 ms sleeps 50 us at a time;
 * every millisecond it tells the waiter to look whether the peer still lives.
 * When ranks outnumber CPUs, spinning only keeps the peer from running: then
 * it yields from the first turn on.
 *
 * Two ranks on two CPUs may still be put on one when others are at work.  A
 * yield tells: back in 0.4 us, nobody else was there; gone for 2-50 us, it was
 * a peer that had little to do; for milliseconds, a stranger's time slice.  In
 * the second case the next wait yields after 8 turns: 2 instead of 45 us for a
 * message.  Those yields tell anew, so that a rank with a CPU of its own spins
 * again one wait later.
 */
#include "base/wait.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("yield")
#else
#define cpu_relax() ((void)0)
#endif

enum {
    SPIN_TURNS = 1000,             /* x 20-40 ns pause                       */
    SHARING_TURNS = 8,             /* the peer is on this CPU                */
    SHARING_MIN_NS = 1500,         /* a yield of this time went to a peer    */
    SHARING_MAX_NS = 100000,
    CLOCK_TURNS = 16,              /* yields between looks at the clock: one */
                                   /* yield may cost a time slice, 4 ms      */
    LOOK_NS = 1000000,             /* between looks at peers' health         */
    SLEEP_NS = 50000
};

int64_t dtn_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void dtn_wait_init(struct dtn_wait *wait, int64_t timeout_ns, bool crowded)
{
    wait->timeout_ns = timeout_ns;
    wait->start_ns = 0;
    wait->next_look_ns = 0;
    wait->turns = 0;
    wait->looked = false;
    wait->sleeping = false;
    wait->crowded = crowded;
    wait->sharing = NULL;
}

/* Let somebody else run, and learn who. */
static void wait_yield(const struct dtn_wait *wait)
{
    int64_t start, away;

    if (!wait->sharing || wait->crowded) {
        sched_yield();
        return;
    }
    start = dtn_now_ns();
    sched_yield();
    away = dtn_now_ns() - start;
    *wait->sharing = away > SHARING_MIN_NS && away < SHARING_MAX_NS;
}

static uint32_t wait_spins(const struct dtn_wait *wait)
{
    if (wait->crowded)
        return 0;
    return wait->sharing && *wait->sharing ? SHARING_TURNS : SPIN_TURNS;
}

/* The clock was read: is it time to look around, or too late? */
static enum dtn_turn wait_look(struct dtn_wait *wait, int64_t now)
{
    if (wait->start_ns == 0) {
        wait->start_ns = now;
        wait->next_look_ns = now + LOOK_NS;
        return DTN_TURN_POLL;
    }
    if (now - wait->start_ns > wait->timeout_ns)
        return DTN_TURN_EXPIRED;
    if (now < wait->next_look_ns)
        return DTN_TURN_POLL;
    wait->sleeping = wait->looked;
    wait->looked = true;
    wait->next_look_ns = now + LOOK_NS;
    return DTN_TURN_LOOK;
}

enum dtn_turn dtn_wait_pause(struct dtn_wait *wait)
{
    static const struct timespec nap = { 0, SLEEP_NS };
    enum dtn_turn turn = DTN_TURN_POLL;

    wait->turns++;
    if (wait->turns < wait_spins(wait)) {
        cpu_relax();
        return DTN_TURN_POLL;
    }
    if (wait->sleeping)
        nanosleep(&nap, NULL);
    else
        wait_yield(wait);
    if (wait->sleeping || wait->turns % CLOCK_TURNS == 0)
        turn = wait_look(wait, dtn_now_ns());
    return turn;
}
