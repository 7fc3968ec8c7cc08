/* redops.h - reductions made at run time */
#ifndef DTN_COLL_REDOPS_H
#define DTN_COLL_REDOPS_H

#include "dtensor.h"

struct dtn_call;
struct dtn_redops;

void dtn_redops_destroy(struct dtn_redops *redops);

/* For tests: skip that many numbers. */
void dtn_redops_skip(struct dtensor_ctx *ctx, int numbers);

/* Fill in the reduction of a call, and the order that it and the context
 * require.
 * Errors: EINVAL  there is none, or it does not support this type or mode
 */
int dtn_call_resolve(const struct dtensor_ctx *ctx, struct dtn_call *call,
                     struct dtensor_error *err);

#endif
