/* ready.h - makes a plan ready to run on this rank */
#ifndef DTN_REDIST_READY_H
#define DTN_REDIST_READY_H

#include "dtensor.h"

/* Make what this rank needs to run the plan, if that is not done yet.
 * Errors: ENOMEM
 */
int dtn_redist_ready(struct dtensor_plan *plan, struct dtensor_error *err);

/* The same, and connect to the peers that its exchanges need.
 * Collective: yes, both meshes.   Blocks: until connected.
 */
int dtn_redist_connect(struct dtensor_plan *plan, struct dtensor_error *err);

#endif
