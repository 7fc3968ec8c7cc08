/* timing.c - the time of calls that all ranks begin at the same time */
#include "base/wait.h"
#include "coll/exec.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/coll/timing.h"
#include "tests/support/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMES_MAX = 401, RUNS_MIN = 5, WARM_UP = 2, FEW = 32 };

static volatile unsigned sink;    /* where results are read to                */
static double begin_ns = 20000;

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

double timing_median(double times[], int n)
{
    qsort(times, (size_t)n, sizeof times[0], ascending);
    return times[n / 2];
}

/* The mean of the middle half: of times of two kinds a median is one or the
 * other by chance.  Of few it is the median.
 */
static double middle(double times[], int n)
{
    const int first = n / 4;
    double sum = 0;

    qsort(times, (size_t)n, sizeof times[0], ascending);
    if (n < FEW)
        return times[n / 2];
    for (int i = first; i < n - first; i++)
        sum += times[i];
    return sum / (n - 2 * first);
}

void timing_begin_after(double ns)
{
    begin_ns = ns;
}

double timing_largest(const struct dtensor_mesh *mesh, double mine)
{
    struct dtensor_error err;
    double most;

    need(dtensor_allreduce(mesh, &mine, &most, 1, DTENSOR_F64, DTENSOR_MAX,
                           &err) == 0, "%s", err.text);
    return most;
}

void timing_read(const void *mem, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8)
        sink += ((const unsigned char *)mem)[i];
}

static double run_ns(const struct dtensor_mesh *mesh, struct dtn_exec *exec,
                     void *in, void *out, int calls, int run)
{
    const size_t *bytes = dtn_exec_sched(exec)->bytes;
    double begin, end, rest_ns;

    memset(in, run, bytes[DTN_IN]);
    begin = timing_largest(mesh, (double)dtn_now_ns() + begin_ns);
    rest_ns = begin - (double)dtn_now_ns();
    if (rest_ns > 1e6)
        nanosleep(&(struct timespec){ .tv_nsec = (long)rest_ns }, NULL);
    while ((double)dtn_now_ns() < begin)
        ;
    for (int i = 0; i < calls; i++)
        need(dtn_exec_run(exec, in, out, 7, NULL) == 0, "run");
    end = (double)dtn_now_ns();
    timing_read(out, bytes[DTN_OUT]);
    return timing_largest(mesh, end) - begin;
}

/* Signals of shm go through 16 lines in turn, and one takes 140 ns more if its
 * peer's CPU has prefetched the line.  An odd number of signals in two runs
 * makes all begin at each of them.
 */
double timing_exec(const struct dtensor_mesh *mesh, struct dtn_exec *exec,
                   void *in, void *out, int calls, double enough_ns)
{
    static double times[TIMES_MAX];
    const int64_t first = dtn_now_ns();
    int runs = 0;

    for (int i = 0; i < WARM_UP; i++)
        run_ns(mesh, exec, in, out, calls, i);
    while (runs < TIMES_MAX
           && (runs < RUNS_MIN
               || timing_largest(mesh, (double)(dtn_now_ns() - first))
                  < enough_ns)) {
        times[runs] = run_ns(mesh, exec, in, out, calls, runs);
        runs++;
        if (runs % 2 == 0)
            timing_largest(mesh, 0);
    }
    return middle(times, runs);
}
