/* timing.h - the time of calls that all ranks begin at the same time */
#ifndef TESTS_COLL_TIMING_H
#define TESTS_COLL_TIMING_H

#include <stddef.h>

struct dtensor_mesh;
struct dtn_exec;

/* What all ranks have agreed on: the largest of their numbers. */
double timing_largest(const struct dtensor_mesh *mesh, double mine);

/* Until a call begins, longer than a hop.  On one host ranks wait for it with
 * warm caches; else they sleep, since who spins takes the CPU of another.
 */
void timing_begin_after(double ns);

/* Load every line of that memory. */
void timing_read(const void *mem, size_t bytes);

/* The mean of the middle half of runs of so many calls, in ns, of few runs the
 * median: from a time of the clock at which all ranks begin to the end of the
 * last.  The input is written before each run and the output read after it.
 * There are 5 to 401 runs, until they have taken enough_ns.
 */
double timing_exec(const struct dtensor_mesh *mesh, struct dtn_exec *exec,
                   void *in, void *out, int calls, double enough_ns);

/* The median of numbers, which are sorted. */
double timing_median(double times[], int n);

#endif
