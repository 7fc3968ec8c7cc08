/* types.h - the element types of inputs and outputs */
#ifndef DTN_OP_TYPES_H
#define DTN_OP_TYPES_H

#include "op/rule.h"
#include "dtensor.h"

/* Do the inputs have the types that the rule asks for?   Errors: EINVAL */
int dtn_types_check(const struct dtn_rule *rule,
                    const struct dtensor_op_call *call,
                    struct dtensor_error *err);

/* The type of output i. */
enum dtensor_dtype dtn_types_out(const struct dtn_rule *rule,
                                 const struct dtensor_op_call *call, int i);

#endif
