/* gradient.h - gradients of redistributes */
#ifndef DTN_REDIST_GRADIENT_H
#define DTN_REDIST_GRADIENT_H

#include "dtensor.h"

/* The default spec of a tensor's gradient: that of the tensor, with R instead
 * of Partial.
 */
struct dtensor_spec dtn_gradient_spec(struct dtensor_spec spec);

#endif
