/* compute_lines.h - from what lib/math does along lines to kernels
 *
 * As compute.h.
 */
#ifndef DTN_CUDA_COMPUTE_LINES_H
#define DTN_CUDA_COMPUTE_LINES_H

#include "cuda/kernels.h"
#include "math/array.h"

#include <stdbool.h>
#include <stdint.h>

/* dtn_array_scatter(), dtn_embedding_backward(), dtn_triangle(). */
void dtn_launch_scatter(const struct dtn_array *out, int dim,
                        const struct dtn_array *index,
                        const struct dtn_array *from, bool adds,
                        struct dtn_launch *launch);
void dtn_launch_embedding_backward(const struct dtn_array *table,
                                   const struct dtn_array *grad,
                                   const struct dtn_array *index,
                                   int64_t first, struct dtn_launch *launch);
void dtn_launch_triangle(bool lower, int64_t diagonal,
                         const struct dtn_array *out,
                         const struct dtn_array *in,
                         struct dtn_launch *launch);

/* dtn_cumulate().  false: complex numbers. */
bool dtn_launch_cumulate(bool product, const struct dtn_array *out,
                         const struct dtn_array *in, int dim,
                         struct dtn_launch *launch);

#endif
