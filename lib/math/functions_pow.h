/* functions_pow.h - powers of f32 and of f64
 *
 * x^p is exp(p log x), so the product needs 10 bits more than the result: for
 * f32 it is an f64, for f64 two numbers.
 */
#ifndef DTN_MATH_FUNCTIONS_POW_H
#define DTN_MATH_FUNCTIONS_POW_H

#include "math/functions_f32.h"
#include "math/functions_f64.h"

#include <math.h>

/* The powers of 0, 1, infinities, NaN and negative numbers; `made` is that of
 * the others.
 */
#define DTN_POW_ENDS(kind, T, f)                                              \
    DTN_FUNCTION T dtn_pow_ends_##kind(T x, T p, T made)                      \
    {                                                                         \
        const T infinity = (T)INFINITY, nan = (T)NAN;                         \
        const T size = fabs##f(x), half = (T)0.5 * p;                         \
        const int whole = p == __builtin_trunc##f(p);                         \
        const int odd = whole & (half != __builtin_trunc##f(half));           \
        const T of_ends = (p < 0) == (size == 0) ? infinity : 0;              \
        const int end = (size == 0) | (size == infinity);                     \
        const T of_size = size == 1 ? 1 : end ? of_ends : made;               \
        const int real = whole | end;                                         \
        const T of_below = odd ? -of_size : real ? of_size : nan;             \
        const int swings = (size == 1) & (fabs##f(p) == infinity);            \
        const T below = swings ? 1 : of_below;                                \
        const int is_one = (p == 0) | (x == 1);                               \
        const int is_nan = (x != x) | (p != p);                               \
                                                                              \
        return is_one ? 1 : is_nan ? nan                                      \
             : copysign##f((T)1, x) < 0 ? below : of_size;                    \
    }

DTN_POW_ENDS(f32, float, f)
DTN_POW_ENDS(f64, double, )

/* log(x) with 33 bits, enough for a result of f32, for a normal x > 0: as many
 * terms of e log(2) + 2 atanh(s) as they need.
 */
DTN_FUNCTION double dtn_log_near_f64(double x)
{
    double e;
    const double f = dtn_log_parts_f64(x, &e);
    const double s = f / (2.0 + f), y = s * s;
    const double poly = dtn_fma_f64(y, DTN_HORNER_F64(atanh_f32, y),
                                    0x1.5555555555555p-1);
    const double rest = dtn_fma_f64(s * y, poly, 2.0 * s);

    return dtn_fma_f64(e, 0x1.62e42fefa39efp-1, rest);
}

/* The same for any x that is not subnormal. */
DTN_FUNCTION double dtn_log_33_f64(double x)
{
    return dtn_log_ends_f64(x, dtn_log_near_f64(x));
}

/* exp(p log |x|) in f64, with as many terms as f32 needs. */
DTN_FUNCTION float dtn_pow_f32(float x, float p)
{
    const double log = dtn_log_near_f64((double)fabsf(x));
    const double inside = dtn_between_f64((double)p * log, -120.0, 120.0);
    const double shifted = dtn_fma_f64(inside, 0x1.71547652b82fep+0,
                                       DTN_ROUNDER_F64);
    const double r = dtn_fma_f64(shifted - DTN_ROUNDER_F64,
                                 -0x1.62e42fefa39efp-1, inside);
    const double rest = dtn_fma_f64(r * r, DTN_HORNER_F64(exp_pow_f32, r), r);
    const double power = dtn_power_of_f64(shifted, 0);

    return dtn_pow_ends_f32(x, p, (float)dtn_fma_f64(power, rest, power));
}

/* exp(p log |x|); the product too is two numbers. */
DTN_FUNCTION double dtn_pow_f64(double x, double p)
{
    const double size = fabs(x);
    const int small = size < 0x1p-1022;
    double power, rest;
    const double f = dtn_log_parts_f64(small ? size * 0x1p52 : size, &power);
    const double e = small ? power - 52.0 : power;
    const struct dtn_two_f64 log = dtn_log_two_f64(f);
    const double whole = e * 0x1.62e42fefa38p-1, high = whole + log.high;
    const double low = whole - high + log.high +
                       dtn_fma_f64(e, 0x1.ef35793c7673p-45, log.low);
    const double made = p * high, inside = dtn_between_f64(made, -748.0, 710.0);
    const double left = dtn_fma_f64(p, low, dtn_fma_f64(p, high, -made));
    const double more = made == inside ? left : 0.0;
    const double k = dtn_exp_parts_f64(inside, &rest);
    const double sum = 1.0 + (rest + dtn_fma_f64(more, rest, more));

    return dtn_pow_ends_f64(x, p, dtn_times_power_f64(sum, k));
}

#endif
