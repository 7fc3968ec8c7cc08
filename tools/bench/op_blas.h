/* op_blas.h - the BLAS that the library has loaded, called directly */
#ifndef BENCH_OP_BLAS_H
#define BENCH_OP_BLAS_H

#include "dtensor.h"

#include <stdbool.h>

/* out = a b, of m x k and k x n numbers, all in rows without gaps; a matrix
 * that is transposed lies as k x m, or n x k.
 */
struct op_gemm {
    enum dtensor_dtype dtype;     /* f32 or f64                               */
    int m, n, k;                  /* sizes                                    */
    bool a_transposed, b_transposed;  /* how the factors lie                  */
    const void *a, *b;            /* the factors                              */
    void *out;                    /* the product                              */
};

/* false: the library has loaded none by now.  Loading it here would start its
 * threads.
 */
bool op_blas_multiply(const struct op_gemm *gemm);

#endif
