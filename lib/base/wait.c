/* wait.c - the wait policy: spin, yield, sleep
 *
 * A peer on the same chip answers in 0.1 us, a descheduled peer in
 * milliseconds, a dead peer never.  So a wait first spins for about 20 us, then
 * yields the CPU, and after 2 ms sleeps 50 us at a time.  Every millisecond it
 * tells the caller to check whether the peer is alive.  If the host is
 * oversubscribed (more ranks than CPUs), spinning keeps the peer from running;
 * then a wait yields after one pause.  A peer on another CPU may answer in it.
 *
 * On a busy host the kernel may put two ranks on one CPU, even if there are two
 * CPUs.  The duration of a yield shows this.  After 0.4 us, nobody else wanted
 * the CPU.  After 2-50 us, a peer ran that had little to do.  After
 * milliseconds, another program used its time slice.  In the second case the
 * next wait yields after 8 pauses: a message takes 2 instead of 45 us.  Each
 * yield is measured again, so a rank that gets its own CPU spins one wait
 * later.
 */
#include "base/wait.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("isb")  /* yield takes no time there   */
#else
#define cpu_relax() ((void)0)
#endif

enum {
    SPIN_TURNS = 1000,             /* x 20-40 ns pause                       */
    SHARING_TURNS = 8,             /* the peer is on this CPU                */
    OVERSUBSCRIBED_TURNS = 2,      /* one pause, then a yield                */
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

void dtn_wait_init(struct dtn_wait *wait, int64_t timeout_ns,
                   bool oversubscribed)
{
    wait->timeout_ns = timeout_ns;
    wait->start_ns = 0;
    wait->next_look_ns = 0;
    wait->npauses = 0;
    wait->checked = false;
    wait->sleeping = false;
    wait->oversubscribed = oversubscribed;
    wait->sharing = NULL;
}

/* Yield the CPU; learn from the duration whether a peer shares it. */
static void wait_yield(const struct dtn_wait *wait)
{
    int64_t start, away;

    if (!wait->sharing || wait->oversubscribed) {
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
    if (wait->oversubscribed)
        return OVERSUBSCRIBED_TURNS;
    return wait->sharing && *wait->sharing ? SHARING_TURNS : SPIN_TURNS;
}

/* After the clock was read: is it time to check the peers, or is the wait over?
 */
static enum dtn_wait_next wait_look(struct dtn_wait *wait, int64_t now)
{
    if (wait->start_ns == 0) {
        wait->start_ns = now;
        wait->next_look_ns = now + LOOK_NS;
        return DTN_WAIT_POLL;
    }
    if (now - wait->start_ns > wait->timeout_ns)
        return DTN_WAIT_EXPIRED;
    if (now < wait->next_look_ns)
        return DTN_WAIT_POLL;
    wait->sleeping = wait->checked;
    wait->checked = true;
    wait->next_look_ns = now + LOOK_NS;
    return DTN_WAIT_CHECK;
}

enum dtn_wait_next dtn_wait_pause(struct dtn_wait *wait)
{
    static const struct timespec nap = { 0, SLEEP_NS };
    enum dtn_wait_next turn = DTN_WAIT_POLL;

    wait->npauses++;
    if (wait->npauses < wait_spins(wait)) {
        cpu_relax();
        return DTN_WAIT_POLL;
    }
    if (wait->sleeping)
        nanosleep(&nap, NULL);
    else
        wait_yield(wait);
    if (wait->sleeping || wait->npauses % CLOCK_TURNS == 0)
        turn = wait_look(wait, dtn_now_ns());
    return turn;
}
