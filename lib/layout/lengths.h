/* lengths.h - shard lengths that users chose */
#ifndef DTN_LAYOUT_LENGTHS_H
#define DTN_LAYOUT_LENGTHS_H

#include "dtensor.h"

#include <stdint.h>

/* Keep a copy of n lengths as long as the context lives.  Equal lengths are
 * kept once.   Errors: ENOMEM
 */
int dtn_lengths_keep(struct dtensor_ctx *ctx, const int64_t lengths[], int n,
                     const int64_t **keptp, struct dtensor_error *err);

#endif
