/* compute_rows.h - from a function on rows of lib/math to kernels
 *
 * As compute.h; what is made is several launches, one after the other, and
 * memory on the device in which they leave results for the next.
 */
#ifndef DTN_CUDA_COMPUTE_ROWS_H
#define DTN_CUDA_COMPUTE_ROWS_H

#include "cuda/row_totals.h"
#include "math/array.h"
#include "math/norm.h"
#include "math/reduction.h"
#include "math/softmax.h"

#include <stdbool.h>

/* dtn_reduce_dims(), dtn_softmax(), dtn_norm() and so on, with `memory` of as
 * many bytes as came out before; at first it is NULL.  false: complex numbers,
 * and powers that are not 0, 1 or 2.  Of zeros of both signs an extreme may be
 * the other.
 */
bool dtn_launch_reduce(enum dtn_reduction_kind kind,
                       const struct dtn_array *out, const struct dtn_array *in,
                       double p, void *memory, struct dtn_launches *launches);
void dtn_launch_softmax(bool logarithm, const struct dtn_array *out,
                        const struct dtn_array *in, int dim, void *memory,
                        struct dtn_launches *launches);
void dtn_launch_softmax_finish(const struct dtn_array *out,
                               const struct dtn_array *in,
                               const struct dtn_array *most,
                               const struct dtn_array *sum, int dim,
                               void *memory, struct dtn_launches *launches);
void dtn_launch_cross_entropy(const struct dtn_row_loss *of, void *memory,
                              struct dtn_launches *launches);
void dtn_launch_norm(const struct dtn_norm *norm, void *memory,
                     struct dtn_launches *launches);

/* dtn_extreme(): of complex numbers there is none. */
void dtn_launch_extreme(bool largest, const struct dtn_array *value,
                        const struct dtn_array *index,
                        const struct dtn_array *in, int dim, void *memory,
                        struct dtn_launches *launches);

#endif
