/* args.h - the arguments of operators that are part of what is decided */
#ifndef DTN_OP_ARGS_H
#define DTN_OP_ARGS_H

#include "dtensor.h"

#include <stdbool.h>

/* Are the fields that `reads`, of DTN_ARG_, names the same? */
bool dtn_args_equal(const struct dtensor_op_args *a,
                    const struct dtensor_op_args *b, unsigned reads);

#endif
