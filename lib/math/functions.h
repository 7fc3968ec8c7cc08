/* functions.h - functions of one number, for f32 and for f64
 *
 * The names end with _f32 or _f64, so that one macro can write both loops.
 * exp, log, tanh and what is made of them have no branches, so that a loop over
 * them becomes vectors; their errors are below 2 units in the last place (a
 * test tries every 10,007th float).  The others are those of libm.
 */
#ifndef DTN_MATH_FUNCTIONS_H
#define DTN_MATH_FUNCTIONS_H

#include "base/elementary.h"
#include "base/narrow.h"

#include <math.h>
#include <stdint.h>

#define DTN_FUNCTION static inline __attribute__((always_inline))
/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2.  Adding 1.5 2^23 leaves k in the
 * lowest bits.  Of exp(r) the terms up to r^7 / 7! are taken; *restp is what
 * they come to without the 1.
 */
DTN_FUNCTION int32_t dtn_exp_parts_f32(float x, float *restp)
{
    const float magic = 0x1.8p23F;
    const float shifted = fma_f32(x, 0x1.715476p+0F, magic);
    const float k = shifted - magic;
    const float near = fma_f32(-k, 0x1.62e4p-1F, x);
    const float r = fma_f32(-k, 0x1.7f7d1cp-20F, near);
    float p = 0x1.a01a02p-13F;                       /* 1/7!                  */

    p = fma_f32(p, r, 0x1.6c16c2p-10F);              /* 1/6!                  */
    p = fma_f32(p, r, 0x1.111112p-7F);
    p = fma_f32(p, r, 0x1.555556p-5F);
    p = fma_f32(p, r, 0x1.555556p-3F);
    p = fma_f32(p, r, 0.5F);
    *restp = fma_f32(r * r, p, r);
    return (int32_t)(dtn_narrow_bits(shifted) - dtn_narrow_bits(magic));
}

/* 2^k for -126 <= k <= 127. */
DTN_FUNCTION float dtn_power_of_two(int32_t k)
{
    return dtn_narrow_float((uint32_t)(127 + k) << 23);
}

/* The power is two factors, because 2^128 and 2^-140 are no normal floats. */
DTN_FUNCTION float dtn_exp_f32(float x)
{
    const float inside = x < -104.0F ? -104.0F : x > 89.0F ? 89.0F : x;
    float rest;
    const int32_t k = dtn_exp_parts_f32(inside, &rest) & 0x1ff;
    const int32_t power = k - ((k & 0x100) << 1);    /* also of a NaN small   */
    const int32_t half = power >> 1;

    return (1.0F + rest) * dtn_power_of_two(half) *
           dtn_power_of_two(power - half);
}

/* exp(x) - 1 for -40 <= x <= 0. */
DTN_FUNCTION float dtn_expm1_below_f32(float x)
{
    float rest;
    const int32_t k = dtn_exp_parts_f32(x, &rest) & 0x1ff;
    const float power = dtn_power_of_two(k - ((k & 0x100) << 1));

    return fma_f32(power, rest, power - 1.0F);
}

DTN_FUNCTION float dtn_tanh_f32(float x)
{
    const float size = fabsf(x);
    const float t = dtn_expm1_below_f32(size > 20.0F ? -40.0F : -2.0F * size);

    return copysignf(-t / (t + 2.0F), x);
}

/* A subnormal number is first multiplied by 2^23. */
DTN_FUNCTION float dtn_log_f32(float x)
{
    const int small = x < 0x1p-126F;
    const struct dtn_two_f32 log = log_of_f32(small ? x * 0x1p23F : x);
    const float inside = log.high + (log.low - (small ? 0x1.fe2804p3F : 0.0F));

    return x > 0.0F ? (x < INFINITY ? inside : INFINITY)
         : x == 0.0F ? -INFINITY : NAN;
}

DTN_FUNCTION double dtn_exp_f64(double x)
{
    return x != x ? x : exp_of_f64(x);
}

DTN_FUNCTION double dtn_tanh_f64(double x) { return tanh(x); }
DTN_FUNCTION double dtn_log_f64(double x) { return log(x); }

#define DTN_FUNCTIONS(kind, T, f)                                             \
    DTN_FUNCTION T dtn_exp2_##kind(T x) { return exp2##f(x); }                \
    DTN_FUNCTION T dtn_expm1_##kind(T x) { return expm1##f(x); }              \
    DTN_FUNCTION T dtn_sinh_##kind(T x) { return sinh##f(x); }                \
    DTN_FUNCTION T dtn_asinh_##kind(T x) { return asinh##f(x); }              \
    DTN_FUNCTION T dtn_atan_##kind(T x) { return atan##f(x); }                \
    DTN_FUNCTION T dtn_erf_##kind(T x) { return erf##f(x); }                  \
    DTN_FUNCTION T dtn_erfc_##kind(T x) { return erfc##f(x); }                \
    DTN_FUNCTION T dtn_log2_##kind(T x) { return log2##f(x); }                \
    DTN_FUNCTION T dtn_log10_##kind(T x) { return log10##f(x); }              \
    DTN_FUNCTION T dtn_log1p_##kind(T x) { return log1p##f(x); }              \
    DTN_FUNCTION T dtn_sin_##kind(T x) { return sin##f(x); }                  \
    DTN_FUNCTION T dtn_cos_##kind(T x) { return cos##f(x); }                  \
    DTN_FUNCTION T dtn_pow_##kind(T x, T y) { return pow##f(x, y); }          \
    DTN_FUNCTION T dtn_abs_##kind(T x) { return fabs##f(x); }                 \
    DTN_FUNCTION T dtn_sqrt_##kind(T x) { return sqrt##f(x); }                \
    DTN_FUNCTION T dtn_ceil_##kind(T x) { return ceil##f(x); }                \
    DTN_FUNCTION T dtn_floor_##kind(T x) { return floor##f(x); }              \
    DTN_FUNCTION T dtn_round_##kind(T x) { return rint##f(x); }               \
    DTN_FUNCTION T dtn_trunc_##kind(T x) { return trunc##f(x); }              \
    DTN_FUNCTION T dtn_sigmoid_##kind(T x)                                    \
    {                                                                         \
        return 1 / (1 + dtn_exp_##kind(-x));                                  \
    }                                                                         \
    DTN_FUNCTION T dtn_gelu_##kind(T x)                                       \
    {                                                                         \
        return x * (T)0.5 * dtn_erfc_##kind(-x * (T)0.70710678118654752440);  \
    }                                                                         \
    DTN_FUNCTION T dtn_softplus_##kind(T x)                                   \
    {                                                                         \
        return (x > 0 || x != x ? x : 0) +                                    \
               dtn_log1p_##kind(dtn_exp_##kind(-dtn_abs_##kind(x)));          \
    }

DTN_FUNCTIONS(f32, float, f)
DTN_FUNCTIONS(f64, double, )

#endif
