/* scratch.h - memory for the results between the steps of a plan */
#ifndef DTN_REDIST_SCRATCH_H
#define DTN_REDIST_SCRATCH_H

#include "dtensor.h"

/* Make the scratch large enough for the plan.   Errors: ENOMEM */
int dtn_redist_scratch(const struct dtensor_plan *plan,
                       struct dtensor_error *err);

/* hold: the same for one holder, if the plan needs scratch.  release: give it
 * back. Errors: EAGAIN  another holder has it; ENOMEM
 */
int dtn_redist_hold(const struct dtensor_plan *plan, const void *holder,
                    struct dtensor_error *err);
void dtn_redist_release(struct dtensor_ctx *ctx, const void *holder);

/* Where the result of step i goes. */
void *dtn_redist_target(const struct dtensor_plan *plan, int i, void *out);

#endif
