/* soak.h - --loop and --startup */
#ifndef BENCH_SOAK_H
#define BENCH_SOAK_H

#include "dtensor.h"

struct bench;
struct bench_job;

/* What a process holds. */
struct footprint {
    int64_t rss_kib;              /* resident memory, KiB                     */
    int64_t fds;                  /* open file descriptors                    */
};
void soak_footprint(struct footprint *fp);

/* Growth of the rank that grew most between 10 % of --loop and its end. */
int soak_run(struct bench_job *job, struct footprint *growth,
             uint64_t *wrongp, struct dtensor_error *err);

/* Milliseconds from the launch to the end of a first allreduce, of the slowest
 * rank.
 */
int soak_startup(struct bench *b, int64_t launch_ns, double *msp,
                 struct dtensor_error *err);

#endif
