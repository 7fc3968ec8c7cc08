/* predict.h - what a redistribute would cost, as other rooms ask it */
#ifndef DTN_REDIST_PREDICT_H
#define DTN_REDIST_PREDICT_H

#include "redist/cost.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds that a redistribute from src to dst, of one tensor on the mesh of
 * `cost`, takes by the route that AUTO chooses; 0 if they are equal.
 */
double dtn_redist_predict(const struct dtn_cost *cost,
                          const struct dtensor_spec *src,
                          const struct dtensor_spec *dst);

/* The same if it is below the limit, else some number that is not; found in
 * less time.
 */
double dtn_redist_predict_below(const struct dtn_cost *cost,
                                const struct dtensor_spec *src,
                                const struct dtensor_spec *dst,
                                double limit_ns);

/* least.c: no route of a tensor like `spec` from src to dst takes less than
 * this, found in less time.
 */
double dtn_redist_predict_least(const struct dtn_cost *cost,
                                const struct dtensor_spec *spec,
                                const struct dtensor_placement src[],
                                const struct dtensor_placement dst[]);

/* plan_bytes.c: bytes between all ranks of allreduces along mesh dimensions, a
 * bit set, of `each` numbers for an element of a rank's part.
 */
uint64_t dtn_allreduce_bytes(const struct dtensor_spec *spec, unsigned dims,
                             size_t each);

#endif
