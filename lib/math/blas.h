/* blas.h - the matrix product of a BLAS that is loaded when it is needed */
#ifndef DTN_MATH_BLAS_H
#define DTN_MATH_BLAS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is there a BLAS?  The first call loads it. */
bool dtn_blas_ok(void);

/* Are own loops faster: has this CPU AVX-512, and are the vectors of the BLAS
 * narrower, or is the product `slow` for a BLAS with AVX-512, too?  Not if it
 * has several threads, or DTN_BLAS of the environment names it.
 */
bool dtn_blas_behind(bool slow);

/* One line about the two: "libopenblas.so.0 (kernels for Haswell) multiplies
 * matrices".
 */
void dtn_blas_describe(char *text, size_t size);

/* A matrix as a BLAS takes it. */
struct dtn_blas_matrix {
    void *data;                   /* its first element                        */
    bool transposed;              /* columns are contiguous, not rows         */
    int64_t stride;               /* from a row (or column) to the next       */
};

/* out = a b + beta out: m x k by k x n, f32 or f64.  `out` is not transposed.
 * Sizes and strides are below 2^31.
 */
struct dtn_blas_call {
    enum dtensor_dtype dtype;     /* DTENSOR_F32 or DTENSOR_F64               */
    int64_t m, n, k;              /* rows and columns of out, terms           */
    struct dtn_blas_matrix out, a, b; /* see above                            */
    double beta;                  /* 0: out is not read                       */
};
void dtn_blas_multiply(const struct dtn_blas_call *call);

/* `count` of them: out, a and b of the next are `apart` bytes further. */
void dtn_blas_multiply_each(const struct dtn_blas_call *call, int64_t count,
                            const int64_t apart[3]);

#endif
