/* result.h - how many results an operator has, and their shapes */
#ifndef DTN_OP_RESULT_H
#define DTN_OP_RESULT_H

#include "dtensor.h"

#include <stdint.h>

struct dtn_signature;

/* Why the numbers of args do not fit a dimension of `size`; NULL: they do. */
const char *dtn_result_refused(const struct dtn_signature *sig, int64_t size);

/* How many outputs there are. */
int dtn_result_count(const struct dtn_signature *sig);

/* The shape of output i of those. */
void dtn_result_shape(const struct dtn_signature *sig, int i,
                      int64_t shape[DTENSOR_MAX_DIMS]);

#endif
