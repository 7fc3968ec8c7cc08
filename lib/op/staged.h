/* staged.h - operators on tensors in memory of a device */
#ifndef DTN_OP_STAGED_H
#define DTN_OP_STAGED_H

#include "op/bound.h"
#include "op/local/local.h"
#include "dtensor.h"

/* Run the local function on copies of the inputs, made in `work`, and copy the
 * outputs back.  The addresses of b->in and b->out change.
 * Errors: as of the local function, and of the device
 */
int dtn_op_staged(struct dtn_op_bound *b, struct dtn_parts *parts,
                  struct dtensor_error *err);

#endif
