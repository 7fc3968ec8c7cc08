/* tiles.h - own products of matrices of floats, block by block */
#ifndef DTN_MATH_TILES_H
#define DTN_MATH_TILES_H

#include "math/blas.h"

/* As dtn_blas_multiply(), but of b and out neither is transposed.  Each element
 * of the result is one chain of fused multiply-adds in the order of k.
 */
void dtn_tiles_multiply(const struct dtn_blas_call *call);

#endif
