/* collective.h - what an operator reduces over the ranks by itself */
#ifndef DTN_OP_COLLECTIVE_H
#define DTN_OP_COLLECTIVE_H

#include "op/cache.h"
#include "op/choose.h"
#include "op/combine.h"
#include "dtensor.h"

/* The mesh dimensions along which it does so with a choice, a bit set. */
unsigned dtn_collective_dims(const struct dtn_options *options,
                             const struct dtn_tuple *choice);

/* What that costs; 0 if it does not. */
double dtn_collective_cost(const struct dtn_options *options,
                           const struct dtn_tuple *choice,
                           const struct dtn_costs *costs);

/* In a context that only plans: tell who counts of the allreduces of a run,
 * with the bytes of all ranks.   Errors: as of dtn_signature_init()
 */
int dtn_collective_follow(const struct dtn_decision *d,
                          struct dtensor_error *err);

#endif
