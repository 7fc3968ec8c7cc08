/* launch.h - ranks that the tool starts itself */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include "dtensor.h"

#include <stdbool.h>

/* Fork `n` ranks.  Each returns its rank with its DTN_ variables set; the
 * parent waits for all and returns -1 with the exit code in *codep: 0, or
 * that of the first rank that failed, after which the rest is ended.
 */
int launch_local(int n, int *codep);

/* CLOCK_MONOTONIC at which the launcher began to start ranks, as it says in
 * DTN_LAUNCH_NS; false, leaving *nsp alone, when it says nothing of use.
 */
bool launch_time_ns(int64_t *nsp);

#endif
