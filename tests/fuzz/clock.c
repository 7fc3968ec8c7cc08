/* clock.c - a clock that sleeping moves, for the fuzzer
 *
 * dtensor_fini() waits 50 ms after a loss, so that others hear of it.  Of a
 * fuzzer's input nobody else hears, and 20 inputs a second are too few.  So a
 * sleep takes no time: it moves the clock that the library looks at.  Each look
 * moves it by a microsecond; so a loop that waits by looking ends, too.
 *
 * The engine times its runs by other clocks, which are the kernel's.
 */
#include <stdint.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)
#define LOOK_NS 1000

static int64_t now_ns = 1000 * SECOND_NS;

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
    (void)left;
    now_ns += wait->tv_sec * SECOND_NS + wait->tv_nsec;
    return 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, ts);
    now_ns += LOOK_NS;
    *ts = (struct timespec){ now_ns / SECOND_NS, now_ns % SECOND_NS };
    return 0;
}
