/* noise.h - interruptions of CPUs */
#ifndef DTN_SCHED_PLAY_NOISE_H
#define DTN_SCHED_PLAY_NOISE_H

#include "dtensor.h"

#include <stdint.h>

struct dtn_noise;

/* Where a CPU is in its noise.  Begins as dtn_noise_begin() sets it. */
struct dtn_noise_at {
    double start_ns, length_ns;   /* the next interruption, or this one       */
    uint64_t next;                /* random state, or line of the trace       */
    double round_ns;              /* added to the times of the trace          */
};

/* Read "LENGTH/EVERY", both in ns: lengths and distances are exponential with
 * these means; or "file:PATH", a trace: lines "START LENGTH" in ns, in order,
 * the last one "end TIME".  Each rank begins at another place of a trace, which
 * goes on at its start.   Owns: *noisep is the caller's, for _free().
 * Errors: EINVAL  not so; a line of the trace, or no end;  ESYS;  ENOMEM
 */
int dtn_noise_read(const char *text, struct dtn_noise **noisep,
                   struct dtensor_error *err);
void dtn_noise_free(struct dtn_noise *noise);

void dtn_noise_begin(const struct dtn_noise *noise, int rank,
                     struct dtn_noise_at *at);

/* When work of work_ns that begins at start_ns is done. */
double dtn_noise_after(const struct dtn_noise *noise, struct dtn_noise_at *at,
                       double start_ns, double work_ns);

/* Is the trace at least as long as the run?   Errors: EINVAL */
int dtn_noise_covers(const struct dtn_noise *noise, double run_ns,
                     struct dtensor_error *err);

#endif
