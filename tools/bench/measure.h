/* measure.h - the timed loop, and its results */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "dtensor.h"

struct bench_case;
struct bench_job;

struct stats {
    double min;                   /* smallest value                           */
    double p50;                   /* median                                   */
    double p99;                   /* 99th percentile                          */
    double max;                   /* largest value                            */
};

/* The nearest-rank percentile of sorted values: the smallest value such that
 * at least `percent` of all are no larger.
 */
double stats_percentile(const double sorted[], size_t n, double percent);

/* Sorts `value`. */
void stats_of(double value[], size_t n, struct stats *stats);

struct bench_result {
    const struct bench_case *c;   /* the case                                 */
    const char *dim;              /* name of the mesh or dimensions           */
    int ranks;                    /* ranks of the group                       */
    struct stats time_us;         /* microseconds of an iteration             */
    double algbw;                 /* GB/s                                     */
    double busbw;                 /* GB/s                                     */
    double bound;                 /* GB/s                                     */
    uint64_t wrong;               /* wrong elements on all ranks              */
    uint64_t copied_bytes;        /* by all CPUs in all timed calls           */
    char plan[200];               /* dtensor_last_plan()                      */
};

int measure(struct bench_job *job, struct bench_result *result,
            struct dtensor_error *err);

#endif
