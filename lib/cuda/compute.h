/* compute.h - from a function of lib/math to a kernel and its arguments
 *
 * Each function writes a launch that makes on a GPU what the function of
 * lib/math of that name makes on the CPU, to the bit; but every NaN is the same
 * one there.  It returns false, with nothing written, if no kernel does it.
 * Addresses are not looked at.
 */
#ifndef DTN_CUDA_COMPUTE_H
#define DTN_CUDA_COMPUTE_H

#include "cuda/kernels.h"
#include "math/array.h"
#include "math/pointwise.h"

#include <stdbool.h>

/* dtn_pointwise().  false: complex numbers, and functions of libm. */
bool dtn_launch_pointwise(enum dtn_pointwise op, const struct dtn_array *out,
                          const struct dtn_array *const in[],
                          const double args[2], struct dtn_launch *launch);

/* dtn_cast() between two types.  false: complex numbers. */
bool dtn_launch_cast(const struct dtn_array *out, const struct dtn_array *in,
                     struct dtn_launch *launch);

/* dtn_where(), dtn_array_copy(), and dtn_array_fill() of an array without gaps.
 */
void dtn_launch_where(const struct dtn_array *out,
                      const struct dtn_array *condition,
                      const struct dtn_array *yes, const struct dtn_array *no,
                      struct dtn_launch *launch);
void dtn_launch_copy(const struct dtn_array *out, const struct dtn_array *in,
                     struct dtn_launch *launch);
void dtn_launch_set(const struct dtn_array *out, double value,
                    struct dtn_launch *launch);

/* Whether all elements are indices below `size`: sets *wrong, which is on the
 * device, to 1 if one is not.  It must be 0 before.
 */
void dtn_launch_index_check(const struct dtn_array *index, int64_t size,
                            uint32_t *wrong, struct dtn_launch *launch);

/* dtn_array_gather(): `index` has the shape of `out`.  An embedding and
 * dtn_index_select() are gathers, too, if `index` is broadcast, with strides of
 * 0, to the dimensions that it lacks.
 */
void dtn_launch_gather(const struct dtn_array *out, const struct dtn_array *in,
                       int dim, const struct dtn_array *index, int64_t first,
                       struct dtn_launch *launch);

/* dtn_matmul() with DTN_MATMUL_REPRO, and DTN_MATMUL_ADD if `adds`.  false:
 * integers and complex numbers.
 */
bool dtn_launch_matmul(const struct dtn_array *out, const struct dtn_array *a,
                       const struct dtn_array *b, bool adds,
                       struct dtn_launch *launch);

#endif
