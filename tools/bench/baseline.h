/* baseline.h - results of an earlier run, to compare with */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include "dtensor.h"

struct bench_result;

struct baseline;

/* Read what --json wrote.  Owns: *baselinep is for baseline_destroy().
 * Errors: EINVAL  it cannot be read, or is no such file: says where
 */
int baseline_read(const char *path, struct baseline **baselinep,
                  struct dtensor_error *err);
void baseline_destroy(struct baseline *baseline);      /* NULL is a no-op     */

struct verdict {
    int found;                    /* 1: the baseline has such a row           */
    int below;                    /* 1: this one is worse than tolerated      */
    double now, then;             /* GB/s, or of what moves nothing us        */
    const char *unit;             /* "GB/s" or "us"                           */
};

/* The row of the same test, size, type and reduction on as many ranks. */
struct verdict baseline_compare(const struct baseline *baseline,
                                const struct bench_result *result,
                                double tolerance);

#endif
