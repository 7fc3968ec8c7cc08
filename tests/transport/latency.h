/* latency.h - how long a signal takes from one rank to another
 *
 * Rank 0 and rank 1 answer each other at once, so a turn there and back is two
 * signals; of 100 runs of 100 turns the fastest counts, since whoever disturbs
 * a run on a busy machine only makes it longer.
 */
#ifndef TESTS_LATENCY_H
#define TESTS_LATENCY_H

#include "tests/support/wire.h"

/* The best of many short runs: what the machine can do undisturbed. */
void latency_rank(int rank, int n, void *arg);

#endif
