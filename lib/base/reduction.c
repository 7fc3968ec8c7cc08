/* reduction.c - what a reduction does to its terms and to its result
 *
 * Adding up n numbers needs more room than they have: bf16 has 8 bits, so 256
 * + 1 is 256 again, and rounded after every term 1000 ones added to 256 are
 * 256.  As f32 they are 1256, rounded once: 1256.  So the floats of 16 and 8
 * bits are added and multiplied as f32 over all ranks, and what travels between
 * them then is f32.  Their minimum is one of the terms and needs no more room;
 * f32 itself stays f32, as in MPI and NCCL: its sums over ranks have 24 bits,
 * and twice the bytes on every wire would be a high price for the last one.
 *
 * Sums of integers wrap, as in C.  Their average would fit though the sum does
 * not: (100 + 100 + 100) / 3 of i8.  So for an average they are added in 64 bits,
 * and those of 64 bits in 128, over 2^31 ranks without a wrap; divided once, at
 * the end, toward zero.
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

bool dtn_reduction_lifts(const struct dtn_reduction *how)
{
    return how->partial != how->dtype || how->factor != 1;
}

bool dtn_reduction_drops(const struct dtn_reduction *how)
{
    return dtn_reduction_lifts(how) || how->divisor > 1;
}

size_t dtn_reduction_ratio(const struct dtn_reduction *how)
{
    return dtn_dtype_size(how->partial) / dtn_dtype_size(how->dtype);
}
