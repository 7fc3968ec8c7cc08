/* reduction.c - what a reduction does to its terms and to its result
 *
 * A sum of n numbers needs an accumulator that is wider than the numbers.  bf16
 * has 8 significant bits, so 256 + 1 is 256: 1000 ones added to 256, each sum
 * rounded, are 256.  With an f32 accumulator that is rounded once they are
 * 1256.  So floats of 16 and 8 bits are added and multiplied as f32 over all
 * ranks, and the ranks send each other f32.  A minimum is one of the terms and
 * needs no wider type.  f32 stays f32, as in MPI and NCCL: its sums keep 24
 * bits, and an f64 accumulator would double the bytes on every link.
 *
 * Sums of integers wrap, as in C.  But an average fits its type even if the sum
 * does not: (100 + 100 + 100) / 3 for i8.  So averages are added in 64 bits,
 * and those of 64-bit integers in 128 bits: 2^31 ranks do not wrap.  The sum is
 * divided once, at the end, and rounded toward zero.
 */
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"

#include <stdbool.h>

struct dtn_reduction dtn_reduction(enum dtensor_dtype dtype,
                                   enum dtensor_redop op, int n)
{
    const bool grows = op == DTENSOR_SUM || op == DTENSOR_AVG
                    || op == DTENSOR_PROD;
    const enum dtensor_dtype work =
        op == DTENSOR_AVG || dtn_dtype_is_narrow(dtype) ? dtn_dtype_wide(dtype)
                                                        : dtype;

    return (struct dtn_reduction){
        .dtype = dtype, .op = op, .factor = 1, .work = work,
        .partial = grows ? work : dtype,
        .divisor = op == DTENSOR_AVG ? n : 1
    };
}

bool dtn_reduction_converts(const struct dtn_reduction *how)
{
    return how->partial != how->dtype || how->factor != 1;
}

bool dtn_reduction_finalises(const struct dtn_reduction *how)
{
    return dtn_reduction_converts(how) || how->divisor > 1;
}

size_t dtn_reduction_ratio(const struct dtn_reduction *how)
{
    return dtn_dtype_size(how->partial) / dtn_dtype_size(how->dtype);
}
