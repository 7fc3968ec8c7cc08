/* result.h - how many results an operator has, and their shapes */
#ifndef DTN_OP_RESULT_H
#define DTN_OP_RESULT_H

#include "dtensor.h"

#include <stdint.h>

struct dtn_signature;

/* Do the numbers of args fit the first dimension that args.dim names?
 * Errors: EINVAL  no: says which, and what is expected
 */
int dtn_result_check(const struct dtn_signature *sig,
                     struct dtensor_error *err);

/* How many outputs there are. */
int dtn_result_count(const struct dtn_signature *sig);

/* The shape of output i of those. */
void dtn_result_shape(const struct dtn_signature *sig, int i,
                      int64_t shape[DTENSOR_MAX_DIMS]);

#endif
