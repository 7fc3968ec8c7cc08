/* matmul.h - products of matrices */
#ifndef DTN_MATH_MATMUL_H
#define DTN_MATH_MATMUL_H

#include "math/array.h"

#include <stdbool.h>
#include <stddef.h>

enum dtn_matmul_flags {
    DTN_MATMUL_ADD = 1,           /* out += a b, instead of out = a b         */
    DTN_MATMUL_REPRO = 2          /* own loops, in which an element of the    */
                                  /* result has the same bits in a matrix of  */
                                  /* any size, on any CPU                     */
};

/* Bytes of scratch memory that dtn_matmul() takes for arrays of these shapes
 * and types; data is not looked at.
 */
size_t dtn_matmul_workspace(const struct dtn_array *out,
                            const struct dtn_array *a,
                            const struct dtn_array *b, unsigned flags);

/* out[..., i, j] = the sum over k of a[..., i, k] b[..., k, j].  All have the
 * same number of dimensions, 2 or more, and one type that is not bool; the
 * sizes of the dimensions before the last two are those of `out`, or 1 in an
 * operand, which is then used for all.  Strides are free: a transposed operand
 * is dtn_array_swapped().  `out` overlaps none of the operands.
 *
 * Floats of 16 and 8 bits are multiplied and added as f32, and rounded once.
 * Integers wrap around.  Of no terms the sum is 0.
 */
void dtn_matmul(const struct dtn_array *out, const struct dtn_array *a,
                const struct dtn_array *b, unsigned flags, void *workspace);

#endif
