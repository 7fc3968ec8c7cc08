/* args.h - the arguments of operators that are part of what is decided */
#ifndef DTN_OP_ARGS_H
#define DTN_OP_ARGS_H

#include "dtensor.h"

#include <stdbool.h>

/* Are the fields that `reads`, of DTN_ARG_, names the same? */
bool dtn_args_equal(const struct dtensor_op_args *a,
                    const struct dtensor_op_args *b, unsigned reads);

/* Can a call have these numbers in the fields that `reads` names?
 * Errors: EINVAL  no: says which field, its value and what is expected
 */
int dtn_args_check(const struct dtensor_op_call *call, unsigned reads,
                   struct dtensor_error *err);

#endif
