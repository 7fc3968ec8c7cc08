/* reduction.h - one element of the result from many */
#ifndef DTN_MATH_REDUCTION_H
#define DTN_MATH_REDUCTION_H

#include "math/array.h"

#include <stdbool.h>

enum dtn_reduction_kind {
    DTN_REDUCE_SUM,
    DTN_REDUCE_MEAN,              /* of no element NaN                        */
    DTN_REDUCE_PROD,
    DTN_REDUCE_MAX,               /* a NaN anywhere gives a NaN               */
    DTN_REDUCE_MIN,
    DTN_REDUCE_ANY,               /* does one differ from 0?                  */
    DTN_REDUCE_ALL,               /* do all differ from 0?                    */
    DTN_REDUCE_POWSUM,            /* the sum of |x|^p; of p = 0: how many     */
                                  /* differ from 0                            */
    DTN_REDUCE_NORM,              /* its p-th root; of p = 0 itself; of p =   */
                                  /* inf the largest |x|, of -inf the least   */
    DTN_REDUCE_LOGSUMEXP,
    DTN_REDUCE_VAR,               /* of n elements, the divisor is n - p      */
    DTN_REDUCE_STD,               /* its square root                          */
    DTN_REDUCTIONS
};

/* Does it exist for elements of this type?  See dtn_reduce_dims(). */
bool dtn_reduction_ok(enum dtn_reduction_kind kind, enum dtensor_dtype dtype);

/* out = in, reduced along the dimensions where `out` has size 1.  Both have as
 * many dimensions; elsewhere the sizes are the same.  They have one type, but
 * of ANY and ALL `out` is bool, and of floats it may have any type of floats,
 * such as f32 for a sum of bf16 over a part of the elements.  `p` is that of
 * POWSUM, NORM, VAR and STD.
 *
 * Of no elements the result is the neutral one: 0, 1, -inf or the least value
 * of the type.  Floats are added as f64 and rounded once; integers wrap around.
 * Order is for all types but complex ones, sums and products are not for bool,
 * and from MEAN and POWSUM on it takes a float.  `room`: see room.h.
 */
void dtn_reduce_dims(enum dtn_reduction_kind kind, const struct dtn_array *out,
                     const struct dtn_array *in, double p, void *room);

/* index = where the largest element (or the least) along dimension `dim` is,
 * the first of equal ones, a NaN before all; and `value` that element, or NULL.
 * Both have size 1 along `dim`; `index` is i64.  There is an element along
 * `dim`; no complex numbers.  `room`: see room.h.
 */
void dtn_extreme(bool largest, const struct dtn_array *value,
                 const struct dtn_array *index, const struct dtn_array *in,
                 int dim, void *room);

#endif
