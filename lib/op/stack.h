/* stack.h - the placements of stack */
#ifndef DTN_OP_STACK_H
#define DTN_OP_STACK_H

#include "dtensor.h"

/* How every input of stack should lie, in *want, and its output in *out.
 * Errors: EINVAL  the inputs have other shapes, or args.dim
 */
int dtn_stack_infer(const struct dtensor_op_call *call,
                    struct dtensor_spec *want, struct dtensor_spec *out,
                    struct dtensor_error *err);

#endif
