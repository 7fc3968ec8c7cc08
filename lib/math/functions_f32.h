/* functions_f32.h - functions of one f32
 *
 * They have no branches, so that a loop over them becomes vectors, and consist
 * of sums, products, quotients and fused multiply-adds in the order of the
 * source, so that they have the same bits on every CPU.  Errors are below 2
 * units in the last place, of those that are made of several below 4
 * (tests/math/test_functions.c).
 */
#ifndef DTN_MATH_FUNCTIONS_F32_H
#define DTN_MATH_FUNCTIONS_F32_H

#include "base/compiler.h"
#include "base/elementary.h"
#include "base/narrow.h"

#include <math.h>
#include <stdint.h>

#define DTN_FUNCTION                                                          \
    DTN_DEVICE static inline __attribute__((always_inline, unused))

/* ---------------------------------------------------------- exponential --- */

/* exp(r) - 1 for |r| <= log(2) / 2: the terms up to r^7 / 7!. */
DTN_FUNCTION float dtn_exp_rest_f32(float r)
{
    float p = 0x1.a01a02p-13F;                       /* 1/7!                  */

    p = fma_f32(p, r, 0x1.6c16c2p-10F);              /* 1/6!                  */
    p = fma_f32(p, r, 0x1.111112p-7F);
    p = fma_f32(p, r, 0x1.555556p-5F);
    p = fma_f32(p, r, 0x1.555556p-3F);
    p = fma_f32(p, r, 0.5F);
    return fma_f32(r * r, p, r);
}

/* Adding this leaves the nearest whole number in the lowest bits. */
#define DTN_ROUNDER_F32 0x1.8p23F

/* That number; of a NaN also one that is small. */
DTN_FUNCTION int32_t dtn_whole_f32(float shifted)
{
    const uint32_t bits = dtn_narrow_bits(shifted) -
                          dtn_narrow_bits(DTN_ROUNDER_F32);
    const int32_t k = (int32_t)(bits & 0x1ff);

    return k - ((k & 0x100) << 1);
}

/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2, for |x| <= 170; *restp is what
 * exp(r) comes to without the 1.
 */
DTN_FUNCTION int32_t dtn_exp_parts_f32(float x, float *restp)
{
    const float shifted = fma_f32(x, 0x1.715476p+0F, DTN_ROUNDER_F32);
    const float k = shifted - DTN_ROUNDER_F32;
    const float near = fma_f32(-k, 0x1.62e4p-1F, x);

    *restp = dtn_exp_rest_f32(fma_f32(-k, 0x1.7f7d1cp-20F, near));
    return dtn_whole_f32(shifted);
}

/* 2^k for -126 <= k <= 127. */
DTN_FUNCTION float dtn_power_of_two(int32_t k)
{
    return dtn_narrow_float((uint32_t)(127 + k) << 23);
}

/* 2^k x for |k| <= 250, in two factors: 2^128 and 2^-140 are no normal floats.
 */
DTN_FUNCTION float dtn_times_power_f32(float x, int32_t k)
{
    const int32_t half = k >> 1;

    return x * dtn_power_of_two(half) * dtn_power_of_two(k - half);
}

DTN_FUNCTION float dtn_between_f32(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* y exp(x), rounded well also if exp(x) alone is subnormal. */
DTN_FUNCTION float dtn_exp_times_f32(float x, float y)
{
    float rest;
    const int32_t k = dtn_exp_parts_f32(dtn_between_f32(x, -125.0F, 91.0F),
                                        &rest);

    return dtn_times_power_f32(fma_f32(rest, y, y), k);
}

DTN_FUNCTION float dtn_exp_f32(float x)
{
    float rest;
    const int32_t k = dtn_exp_parts_f32(dtn_between_f32(x, -104.0F, 89.0F),
                                        &rest);

    return dtn_times_power_f32(1.0F + rest, k);
}

DTN_FUNCTION float dtn_exp2_f32(float x)
{
    const float inside = dtn_between_f32(x, -152.0F, 129.0F);
    const float shifted = inside + DTN_ROUNDER_F32;
    const float r = inside - (shifted - DTN_ROUNDER_F32);
    const float rest = dtn_exp_rest_f32(fma_f32(r, 0x1.62e43p-1F,
                                                r * -0x1.05c61p-29F));

    return dtn_times_power_f32(1.0F + rest, dtn_whole_f32(shifted));
}

/* exp(x) - 1 for |x| <= 40. */
DTN_FUNCTION float dtn_expm1_near_f32(float x)
{
    float rest;
    const float power = dtn_power_of_two(dtn_exp_parts_f32(x, &rest));

    return fma_f32(power, rest, power - 1.0F);
}

DTN_FUNCTION float dtn_expm1_f32(float x)
{
    const float near = dtn_expm1_near_f32(dtn_between_f32(x, -40.0F, 40.0F));

    return x > 40.0F ? dtn_exp_f32(x) : near;
}

DTN_FUNCTION float dtn_sinh_f32(float x)
{
    const float size = fabsf(x);
    const float t = dtn_expm1_near_f32(dtn_between_f32(size, 0.0F, 40.0F));
    const float near = 0.5F * (t + t / (t + 1.0F));

    return copysignf(size > 40.0F ? dtn_exp_times_f32(size, 0.5F) : near, x);
}

DTN_FUNCTION float dtn_tanh_f32(float x)
{
    const float size = fabsf(x);
    const float t = dtn_expm1_near_f32(size > 20.0F ? -40.0F : -2.0F * size);

    return copysignf(-t / (t + 2.0F), x);
}

/* ------------------------------------------------------------ logarithm --- */

/* `inside`, the logarithm of a normal number, or what x has instead. */
DTN_FUNCTION float dtn_log_ends_f32(float x, float inside)
{
    return x > 0.0F ? (x < INFINITY ? inside : INFINITY)
         : x == 0.0F ? -INFINITY : NAN;
}

/* A subnormal number is first multiplied by 2^23. */
DTN_FUNCTION float dtn_log_f32(float x)
{
    const int small = x < 0x1p-126F;
    const struct dtn_two_f32 log = log_of_f32(small ? x * 0x1p23F : x);

    return dtn_log_ends_f32(x, log.high + (log.low -
                                           (small ? 0x1.fe2804p3F : 0.0F)));
}

/* To another base: times `high` + `low`; `less` is the logarithm of 2^23. */
DTN_FUNCTION float dtn_log_base_f32(float x, float high, float low, float less)
{
    const int small = x < 0x1p-126F;
    const struct dtn_two_f32 log = log_of_f32(small ? x * 0x1p23F : x);
    const float first = log.high * high;
    const float rest = fma_f32(log.high, high, -first);
    const float second = fma_f32(log.high, low, fma_f32(log.low, high, rest));

    return dtn_log_ends_f32(x, (first - (small ? less : 0.0F)) + second);
}

DTN_FUNCTION float dtn_log2_f32(float x)
{
    return dtn_log_base_f32(x, 0x1.715476p+0F, 0x1.4ae0cp-26F, 23.0F);
}

DTN_FUNCTION float dtn_log10_f32(float x)
{
    return dtn_log_base_f32(x, 0x1.bcb7b2p-2F, -0x1.5b235ep-27F,
                            0x1.bb1dbcp+2F);
}

/* With u = 1 + x rounded, log(1 + x) = log(u) + (1 + x - u) / u, nearly. */
DTN_FUNCTION float dtn_log1p_f32(float x)
{
    const float u = 1.0F + x;
    const float left = x < 1.0F ? x - (u - 1.0F) : 0.0F;
    const struct dtn_two_f32 log = log_of_f32(u);
    const float inside = log.high + (log.low + left / u);

    return pick_f32(dtn_narrow_mask(fabsf(x) < 0x1p-30F), x,
                    dtn_log_ends_f32(u, inside));
}

/* ------------------------------------------------------- error function --- */

/* exp(x^2) erfc(x) for 0 <= x <= 11. */
DTN_FUNCTION float dtn_erfcx_f32(float x)
{
    return horner_f32(erfcx_f32, POLY_TERMS(erfcx_f32),
                      (x - 3.0F) / (x + 3.0F));
}

/* exp(-factor x^2) y, with the rounding error of x^2. */
DTN_FUNCTION float dtn_exp_square_f32(float x, float factor, float y)
{
    const float square = x * x;
    const float left = factor * fma_f32(x, x, -square);

    return dtn_exp_times_f32(-factor * square, fma_f32(-left, y, y));
}

/* erfc(x) for x >= 0. */
DTN_FUNCTION float dtn_erfc_above_f32(float x)
{
    const float inside = x > 11.0F ? 11.0F : x;

    return dtn_exp_square_f32(inside, 1.0F, dtn_erfcx_f32(inside));
}

DTN_FUNCTION float dtn_erfc_f32(float x)
{
    const float above = dtn_erfc_above_f32(fabsf(x));

    return x < 0.0F ? 2.0F - above : above;
}

DTN_FUNCTION float dtn_erf_f32(float x)
{
    const float size = fabsf(x), square = x * x;
    const float poly = horner_f32(erf_f32, POLY_TERMS(erf_f32), square);
    const float near = fma_f32(size, 0x1.20dd76p+0F,
                               size * fma_f32(square, poly, -0x1.f7ac92p-25F));

    return copysignf(size < 0.72F ? near : 1.0F - dtn_erfc_above_f32(size), x);
}

/* x times half of erfc(-x / sqrt(2)). */
DTN_FUNCTION float dtn_gelu_f32(float x)
{
    const float size = fabsf(x) > 15.0F ? 15.0F : fabsf(x);
    const float above = dtn_exp_square_f32(size, 0.5F, 0.5F *
                                           dtn_erfcx_f32(0.70710678F * size));

    return x * (x < 0.0F ? above : x != x ? x : 1.0F - above);
}

/* --------------------------------------------------------- sine, cosine --- */

/* The sine of r + quarter pi/2, for |r| <= pi/4. */
DTN_FUNCTION float dtn_sine_turned_f32(float r, int quarter)
{
    const float y = r * r;
    const float sine = fma_f32(r * y, horner_f32(sin_f32, POLY_TERMS(sin_f32),
                                                 y), r);
    const float cosine = fma_f32(y * y, horner_f32(cos_f32, POLY_TERMS(cos_f32),
                                                   y), fma_f32(-0.5F, y, 1.0F));
    const float found = quarter & 1 ? cosine : sine;

    return quarter & 2 ? -found : found;
}

/* The sine of x + quarters pi/2, for |x| below this; x less the next multiple
 * of pi/2 is found in f64, from 106 bits of pi.
 */
#define DTN_SINE_MOST 0x1p40F
DTN_FUNCTION float dtn_sine_f32(float x, int quarters)
{
    const double rounder = 0x1.8p52;
    const double shifted = (double)x * 0x1.45f306dc9c883p-1 + rounder;
    const double n = shifted - rounder;
    const double near = __builtin_fma(-n, 0x1.921fb54442d18p+0, (double)x);
    const float r = (float)__builtin_fma(-n, 0x1.1a62633145c07p-54, near);

    return dtn_sine_turned_f32(r, (int)(bits_of_f64(shifted) & 3) + quarters);
}

/* The bits of 2/pi, the first one worth 1/2. */
DTN_TABLE uint64_t dtn_two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561
};

/* The same of a larger x.  It is m 2^e with m < 2^24; so of 2/pi 2^e what is a
 * multiple of 4 does not matter, and 128 bits of the rest say which quarter it
 * is and, to 2^-38, where in it.
 */
DTN_FUNCTION float dtn_sine_far_f32(float x, int quarters)
{
    const uint32_t bits = dtn_narrow_bits(x);
    const int from = (int)(bits >> 23 & 255) - 152;
    const int word = from >> 6 & 1, shift = from & 63;
    const uint64_t m = (bits & 0x7fffff) | 0x800000;
    const uint64_t *two = dtn_two_over_pi + word;
    const uint64_t high = two[0] << shift | two[1] >> 1 >> (63 - shift);
    const uint64_t low = two[1] << shift | two[2] >> 1 >> (63 - shift);
    const uint64_t turned = m * high + (m * (low >> 32) >> 32);
    const uint64_t quarter = (turned + (UINT64_C(1) << 61)) >> 62;
    const double left = (double)(int64_t)(turned - (quarter << 62));
    const float r = (float)(left * 0x1.921fb54442d18p-62);
    const int back = bits >> 31 != 0;

    return x - x != 0.0F ? x - x
         : dtn_sine_turned_f32(back ? -r : r, (back ? -(int)quarter
                                                    : (int)quarter) + quarters);
}

DTN_FUNCTION float dtn_sine_any_f32(float x, int quarters)
{
    return fabsf(x) < DTN_SINE_MOST ? dtn_sine_f32(x, quarters)
                                    : dtn_sine_far_f32(x, quarters);
}

/* ---------------------------------------------------------------- power --- */

/* The powers of 0, 1, infinities, NaN and negative numbers; `made` is that of
 * the others.
 */
DTN_FUNCTION float dtn_pow_ends_f32(float x, float p, float made)
{
    const float size = fabsf(x), half = 0.5F * p;
    const int whole = p == __builtin_truncf(p);
    const int odd = whole & (half != __builtin_truncf(half));
    const float of_ends = (p < 0.0F) == (size == 0.0F) ? INFINITY : 0.0F;
    const int end = (size == 0.0F) | (size == INFINITY);
    const float of_size = size == 1.0F ? 1.0F : end ? of_ends : made;
    const int real = whole | end;
    const float of_below = odd ? -of_size : real ? of_size : NAN;
    const int swings = (size == 1.0F) & (fabsf(p) == INFINITY);
    const float below = swings ? 1.0F : of_below;
    const int is_one = (p == 0.0F) | (x == 1.0F);
    const int is_nan = (x != x) | (p != p);

    return is_one ? 1.0F : is_nan ? NAN
         : copysignf(1.0F, x) < 0.0F ? below : of_size;
}

/* exp(p log |x|) in f64. */
DTN_FUNCTION float dtn_pow_f32(float x, float p)
{
    const double log = log_of_f64((double)fabsf(x));

    return dtn_pow_ends_f32(x, p, (float)exp_of_f64((double)p * log));
}

/* ------------------------------------------------------ of one exponent --- */

/* 1 + exp(-x), infinite if exp(-x) is above 2^127.5.  The power of two is one
 * factor, that of an exponent of 128 being infinity.
 */
DTN_FUNCTION float dtn_one_exp_f32(float x)
{
    float rest;
    const int32_t k = dtn_exp_parts_f32(dtn_between_f32(-x, -87.0F, 89.0F),
                                        &rest);

    return 1.0F + (1.0F + rest) * dtn_power_of_two(k);
}

DTN_FUNCTION float dtn_sigmoid_f32(float x)
{
    return 1.0F / dtn_one_exp_f32(x);
}

DTN_FUNCTION float dtn_silu_f32(float x)
{
    return x / dtn_one_exp_f32(x);
}

DTN_FUNCTION float dtn_softplus_f32(float x)
{
    return (x > 0.0F || x != x ? x : 0.0F) +
           dtn_log1p_f32(dtn_exp_f32(-fabsf(x)));
}

#endif
