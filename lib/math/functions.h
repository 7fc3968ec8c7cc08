/* functions.h - functions of one number, for f32 and for f64
 *
 * The names end with _f32 or _f64, so that one macro can write both loops.
 * Those of f32 are in functions_f32.h.  exp, log, tanh and error functions of
 * f64 have no branches either, and errors below 4 units in the last place.  The
 * others are those of libm.
 */
#ifndef DTN_MATH_FUNCTIONS_H
#define DTN_MATH_FUNCTIONS_H

#include "math/functions_f32.h"
#include "base/elementary.h"

#include <math.h>
#include <stdint.h>

/* ------------------------------------------------------------ own ones --- */

/* As pick_f32(): `yes` or `no` without a branch, so that compilers do not move
 * the way to `no` into one.
 */
DTN_FUNCTION double dtn_pick_f64(int which, double yes, double no)
{
    const uint64_t mask = 0 - (uint64_t)which;

    return f64_of_bits((bits_of_f64(yes) & mask) | (bits_of_f64(no) & ~mask));
}

DTN_FUNCTION double dtn_exp_f64(double x)
{
    return x != x ? x : exp_of_f64(x);
}

/* exp(x) - 1 for |x| <= 50. */
DTN_FUNCTION double dtn_expm1_near_f64(double x)
{
    double rest;
    const int64_t k = exp_parts_of_f64(x, &rest);
    const double power = f64_of_bits((uint64_t)(1023 + k) << 52);

    return power * rest + (power - 1.0);
}

DTN_FUNCTION double dtn_expm1_f64(double x)
{
    const double near = dtn_expm1_near_f64(x < -50.0 ? -50.0
                                           : x > 50.0 ? 50.0 : x);

    return x > 50.0 ? exp_of_f64(x) : near;
}

/* From 50 on half of exp(x), which alone may be too large. */
DTN_FUNCTION double dtn_sinh_f64(double x)
{
    const double size = fabs(x);
    const double t = dtn_expm1_near_f64(size > 50.0 ? 50.0 : size);
    const double near = 0.5 * (t + t / (t + 1.0));
    double rest;
    const int64_t k = exp_parts_of_f64(size > 720.0 ? 720.0 : size, &rest);
    const double far = times_power_f64(0.5 + 0.5 * rest, k);

    return copysign(size > 50.0 ? far : near, x);
}

DTN_FUNCTION double dtn_tanh_f64(double x)
{
    const double size = fabs(x);
    const double t = dtn_expm1_near_f64(size > 25.0 ? -50.0 : -2.0 * size);

    return copysign(-t / (t + 2.0), x);
}

/* `inside`, the logarithm of a normal number, or what x has instead. */
DTN_FUNCTION double dtn_log_ends_f64(double x, double inside)
{
    return x > 0 ? (x < (double)INFINITY ? inside : (double)INFINITY)
         : x == 0 ? (double)-INFINITY : (double)NAN;
}

/* A subnormal number is first multiplied by 2^52. */
DTN_FUNCTION double dtn_log_f64(double x)
{
    const int small = x < 0x1p-1022;
    const double log = log_of_f64(small ? x * 0x1p52 : x);

    return dtn_log_ends_f64(x, log - (small ? 0x1.205966f2b4f12p+5 : 0.0));
}

/* As dtn_log1p_f32(). */
DTN_FUNCTION double dtn_log1p_f64(double x)
{
    const double u = 1.0 + x;
    const double left = x < 1.0 ? x - (u - 1.0) : 0.0;

    return dtn_pick_f64(fabs(x) < 0x1p-60, x,
                    dtn_log_ends_f64(u, log_of_f64(u) + left / u));
}

/* exp(x^2) erfc(x) for 0 <= x <= 27.5.  A compiler makes no vectors of a loop
 * that has a loop of more than 16 terms in it.
 */
DTN_FUNCTION double dtn_erfcx_f64(double x)
{
    const double t = (x - 3.0) / (x + 3.0), t4 = t * t * t * t;

    return poly_f64(erfcx_f64, 12, t) +
           t4 * t4 * t4 * poly_f64(erfcx_f64 + 12,
                                   POLY_TERMS(erfcx_f64) - 12, t);
}

/* exp(-factor x^2) y for x <= 40, with the rounding error of x^2. */
DTN_FUNCTION double dtn_exp_square_f64(double x, double factor, double y)
{
    const double square = x * x;
    const double left = factor * __builtin_fma(x, x, -square);
    double rest;
    const int64_t k = exp_parts_of_f64(-factor * square, &rest);
    const double made = y - left * y;

    return times_power_f64(made + made * rest, k);
}

/* erfc(x) for x >= 0. */
DTN_FUNCTION double dtn_erfc_above_f64(double x)
{
    const double inside = x > 27.5 ? 27.5 : x;

    return dtn_exp_square_f64(inside, 1.0, dtn_erfcx_f64(inside));
}

DTN_FUNCTION double dtn_erfc_f64(double x)
{
    const double above = dtn_erfc_above_f64(fabs(x));

    return x < 0 ? 2.0 - above : above;
}

DTN_FUNCTION double dtn_erf_f64(double x)
{
    const double size = fabs(x), square = x * x;
    const double poly = poly_f64(erf_f64, POLY_TERMS(erf_f64), square);
    const double near = size * 0x1.20dd750429b6dp+0 +
                        size * (square * poly + 0x1.1ae3a914fed8p-56);

    return copysign(size < 0.72 ? near : 1.0 - dtn_erfc_above_f64(size), x);
}

/* x times half of erfc(-x / sqrt(2)). */
DTN_FUNCTION double dtn_gelu_f64(double x)
{
    const double size = fabs(x) > 38.8 ? 38.8 : fabs(x);
    const double above = dtn_exp_square_f64(size, 0.5, 0.5 *
        dtn_erfcx_f64(0.70710678118654752440 * size));

    return x * (x < 0 ? above : x != x ? x : 1.0 - above);
}

/* As dtn_one_exp_f32(). */
DTN_FUNCTION double dtn_one_exp_f64(double x)
{
    double rest;
    const int64_t k = exp_parts_of_f64(x > 708.0 ? -708.0
                                       : x < -710.0 ? 710.0 : -x, &rest);

    return 1.0 + (1.0 + rest) * f64_of_bits((uint64_t)(1023 + k) << 52);
}

DTN_FUNCTION double dtn_sigmoid_f64(double x)
{
    return 1.0 / dtn_one_exp_f64(x);
}

DTN_FUNCTION double dtn_silu_f64(double x)
{
    return x / dtn_one_exp_f64(x);
}

DTN_FUNCTION double dtn_softplus_f64(double x)
{
    return (x > 0 || x != x ? x : 0) + dtn_log1p_f64(dtn_exp_f64(-fabs(x)));
}

/* --------------------------------------------------------------- libm's --- */

DTN_FUNCTION double dtn_exp2_f64(double x) { return exp2(x); }
DTN_FUNCTION double dtn_log2_f64(double x) { return log2(x); }
DTN_FUNCTION double dtn_log10_f64(double x) { return log10(x); }
DTN_FUNCTION double dtn_sin_f64(double x) { return sin(x); }
DTN_FUNCTION double dtn_cos_f64(double x) { return cos(x); }
DTN_FUNCTION double dtn_pow_f64(double x, double p) { return pow(x, p); }

#define DTN_FUNCTIONS(kind, T, f)                                             \
    DTN_FUNCTION T dtn_asinh_##kind(T x) { return asinh##f(x); }              \
    DTN_FUNCTION T dtn_atan_##kind(T x) { return atan##f(x); }                \
    DTN_FUNCTION T dtn_abs_##kind(T x) { return fabs##f(x); }                 \
    DTN_FUNCTION T dtn_sqrt_##kind(T x) { return sqrt##f(x); }                \
    DTN_FUNCTION T dtn_ceil_##kind(T x) { return ceil##f(x); }                \
    DTN_FUNCTION T dtn_floor_##kind(T x) { return floor##f(x); }              \
    DTN_FUNCTION T dtn_round_##kind(T x) { return rint##f(x); }               \
    DTN_FUNCTION T dtn_trunc_##kind(T x) { return trunc##f(x); }

DTN_FUNCTIONS(f32, float, f)
DTN_FUNCTIONS(f64, double, )

#endif
