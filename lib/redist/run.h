/* run.h - runs a plan on this rank */
#ifndef DTN_REDIST_RUN_H
#define DTN_REDIST_RUN_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_phase;
struct dtn_redist_step;

/* Tell the watcher that a run begins or continues; watcher->end() ends that. */
void dtn_redist_tell(const struct dtensor_plan *plan, bool continues);

/* Run it to its end.  `in` and `out` are this rank's parts. */
int dtn_redist_run(struct dtensor_plan *plan, const void *in, void *out,
                   struct dtensor_error *err);

/* ------------------------------------------- step by step, for requests --- */

/* The number of the next redistribute among all calls over its ranks.  A
 * redistribute that moves no data is not counted.
 */
uint32_t dtn_redist_number(const struct dtensor_plan *plan);

/* Make an executable for every allreduce and broadcast of the plan, so that
 * they can be started.   Errors: ENOMEM
 */
int dtn_redist_calls(struct dtensor_plan *plan, struct dtensor_error *err);

/* Has this rank no part in the step? */
bool dtn_redist_idle(const struct dtn_redist_step *step);

/* After a broadcast, divide the `count` elements of the result if the phase
 * says so.  Exchanges and reductions have divided before rounding.
 */
int dtn_phase_finish(const struct dtn_phase *phase, void *out, size_t count,
                     struct dtensor_error *err);

#endif
