/* compute_backward.h - from the gradients of rows in lib/math to kernels
 *
 * As compute_rows.h.
 */
#ifndef DTN_CUDA_COMPUTE_BACKWARD_H
#define DTN_CUDA_COMPUTE_BACKWARD_H

#include "cuda/row_totals.h"
#include "math/array.h"
#include "math/norm_backward.h"

#include <stdbool.h>

/* dtn_softmax_backward(), dtn_norm_backward(), whose `sums` is not used. */
void dtn_launch_softmax_backward(bool logarithm,
                                 const struct dtn_array *in_grad,
                                 const struct dtn_array *grad,
                                 const struct dtn_array *out, int dim,
                                 void *memory, struct dtn_launches *launches);
void dtn_launch_norm_backward(const struct dtn_norm_backward *norm,
                              void *memory, struct dtn_launches *launches);

#endif
