/* backward.h - the gradients of softmax and of norms, for one element
 *
 * For the loops of the CPU and for kernels: both have the same bits.
 */
#ifndef DTN_MATH_BACKWARD_H
#define DTN_MATH_BACKWARD_H

#include "math/functions.h"

/* Of g, what came out (y), and the sum of g y over the row; of the logarithm of
 * softmax exp(y) in place of y, and the sum of g.
 */
#define DTN_SOFTMAX_BACK(kind, T)                                             \
    DTN_FUNCTION T dtn_softmax_back_##kind(T g, T y, T sum)                   \
    {                                                                         \
        return y * (g - sum);                                                 \
    }                                                                         \
    DTN_FUNCTION T dtn_log_softmax_back_##kind(T g, T y, T sum)               \
    {                                                                         \
        return g - y * sum;                                                   \
    }
DTN_SOFTMAX_BACK(f32, float)
DTN_SOFTMAX_BACK(f64, double)

/* x' of norm_backward.h. */
DTN_FUNCTION double dtn_norm_unit(double x, double mean, double rstd)
{
    return (x - mean) * rstd;
}

/* Of d = g weight, x', and the means of d and of d x'. */
DTN_FUNCTION double dtn_norm_back(double d, double unit, double rstd,
                                  double mean, double mean_unit)
{
    return rstd * (d - mean - unit * mean_unit);
}

/* The sums of a weight and a bias are those of 64 rows, added up. */
enum { DTN_NORM_ROWS = 64 };

#endif
