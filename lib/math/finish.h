/* finish.h - what becomes of a block when the totals of its row are known */
#ifndef DTN_MATH_FINISH_H
#define DTN_MATH_FINISH_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* out = exp(in - most) times `by`, or with `logarithm` in - most - by: n
 * elements of `work`, f32 or f64.  `out` may be `in`.
 */
void dtn_finish_softmax(bool logarithm, enum dtensor_dtype work, void *out,
                        const void *in, int64_t n, const double by[2]);

/* log(x) of a sum of exponentials of `work`, f32 or f64: dtn_log_33_f64() or
 * dtn_log_f64(), with the fused multiply-add of this CPU.  In a loop for every
 * CPU each of them is a call.
 */
double dtn_finish_log(enum dtensor_dtype work, double x);

/* n totals, rounded. */
void dtn_finish_f32(float *out, const double total[], int64_t n);

/* out = (in - mean) rstd weight + bias; from is in, weight, bias, of which the
 * last two may be NULL; by is mean, rstd.
 */
void dtn_finish_norm(enum dtensor_dtype work, void *out,
                     const void *const from[], int64_t n, const double by[2]);

#endif
