/* compute_order.h - from dtn_order() to kernels
 *
 * As compute.h.
 */
#ifndef DTN_CUDA_COMPUTE_ORDER_H
#define DTN_CUDA_COMPUTE_ORDER_H

#include "cuda/kernels.h"
#include "math/array.h"
#include "math/order.h"

#include <stdbool.h>
#include <stddef.h>

/* dtn_order() is the launches 0, 1, ... until one is false, with memory on the
 * device of as many bytes.
 */
size_t dtn_launch_order_bytes(const struct dtn_order *order,
                              const struct dtn_array *in);
bool dtn_launch_order(const struct dtn_order *order, const struct dtn_array *in,
                      void *memory, int number, struct dtn_launch *launch);

#endif
