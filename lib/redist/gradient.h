/* gradient.h - gradients of redistributes */
#ifndef DTN_REDIST_GRADIENT_H
#define DTN_REDIST_GRADIENT_H

#include "dtensor.h"

/* The default placements of the gradient of a tensor: those of the tensor, with
 * R for Partial.
 */
struct dtensor_spec dtn_gradient_spec(struct dtensor_spec spec);

#endif
