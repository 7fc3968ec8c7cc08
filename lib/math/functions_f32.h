/* functions_f32.h - functions of one f32
 *
 * They have no branches, so that a loop over them becomes vectors, and consist
 * of sums, products, quotients and fused multiply-adds in the order of the
 * source, so that they have the same bits on every CPU.  Errors are below 2
 * units in the last place, of those that are made of several below 5
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

/* exp(r) - 1 for |r| <= log(2) / 2: the terms up to r^7 / 7!, in pairs, so that
 * fewer products wait for another.
 */
DTN_FUNCTION float dtn_exp_rest_f32(float r)
{
    const float square = r * r;
    const float low = fma_f32(0x1.555556p-3F, r, 0.5F);
    const float middle = fma_f32(0x1.111112p-7F, r, 0x1.555556p-5F);
    const float high = fma_f32(0x1.a01a02p-13F, r, 0x1.6c16c2p-10F);

    return fma_f32(square, fma_f32(fma_f32(high, square, middle), square, low),
                   r);
}

/* Adding this leaves the nearest whole number in the lowest bits. */
#define DTN_ROUNDER_F32 0x1.8p23F

/* 2^k, where `shifted` is k + DTN_ROUNDER_F32 and -127 < k + more < 128, times
 * 2^more; an infinity for 128.  Of a NaN any number.
 */
DTN_FUNCTION float dtn_power_of_f32(float shifted, int32_t more)
{
    return dtn_narrow_float((dtn_narrow_bits(shifted) +
                             (uint32_t)(127 + more)) << 23);
}

/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2, for |x| <= 170; k as above, and
 * *restp is what exp(r) comes to without the 1.
 */
DTN_FUNCTION float dtn_exp_parts_f32(float x, float *restp)
{
    const float shifted = fma_f32(x, 0x1.715476p+0F, DTN_ROUNDER_F32);
    const float k = shifted - DTN_ROUNDER_F32;
    const float near = fma_f32(-k, 0x1.62e4p-1F, x);

    *restp = dtn_exp_rest_f32(fma_f32(-k, 0x1.7f7d1cp-20F, near));
    return shifted;
}

/* (1 + rest) 2^k for -150 <= k <= 128, rounded once if it is normal: 2^128 and
 * 2^-150 are no normal floats, so half of k is a factor of its own.
 */
DTN_FUNCTION float dtn_times_power_f32(float rest, float shifted)
{
    const uint32_t both = dtn_narrow_bits(shifted) + 2 * 127 -
                          dtn_narrow_bits(DTN_ROUNDER_F32);
    const uint32_t half = both >> 1;
    const float power = dtn_narrow_float(half << 23);

    return fma_f32(rest, power, power) * dtn_narrow_float((both - half) << 23);
}

DTN_FUNCTION float dtn_between_f32(float x, float low, float high)
{
    const float raised = x < low ? low : x;

    return raised > high ? high : raised;
}

DTN_FUNCTION float dtn_exp_f32(float x)
{
    float rest;
    const float k = dtn_exp_parts_f32(dtn_between_f32(x, -104.0F, 89.0F),
                                      &rest);

    return dtn_times_power_f32(rest, k);
}

/* The same for x <= 0. */
DTN_FUNCTION float dtn_exp_below_f32(float x)
{
    float rest;
    const float power = dtn_power_of_f32(
        dtn_exp_parts_f32(x < -104.0F ? -104.0F : x, &rest), 30);

    return fma_f32(rest, power, power) * 0x1p-30F;
}

DTN_FUNCTION float dtn_exp2_f32(float x)
{
    const float inside = dtn_between_f32(x, -150.0F, 128.0F);
    const float shifted = inside + DTN_ROUNDER_F32;
    const float r = inside - (shifted - DTN_ROUNDER_F32);
    const float rest = dtn_exp_rest_f32(fma_f32(r, 0x1.62e43p-1F,
                                                r * -0x1.05c61p-29F));

    return dtn_times_power_f32(rest, shifted);
}

/* exp(x) - 1 for |x| <= 40. */
DTN_FUNCTION float dtn_expm1_near_f32(float x)
{
    float rest;
    const float power = dtn_power_of_f32(dtn_exp_parts_f32(x, &rest), 0);

    return fma_f32(power, rest, power - 1.0F);
}

DTN_FUNCTION float dtn_expm1_f32(float x)
{
    const float near = dtn_expm1_near_f32(dtn_between_f32(x, -40.0F, 40.0F));

    return x > 40.0F ? dtn_exp_f32(x) : near;
}

/* Far from 0, half of exp(x), which alone may be too large. */
DTN_FUNCTION float dtn_sinh_f32(float x)
{
    const float size = fabsf(x);
    const float t = dtn_expm1_near_f32(dtn_between_f32(size, 0.0F, 40.0F));
    const float near = 0.5F * (t + t / (t + 1.0F));
    float rest;
    const float k = dtn_exp_parts_f32(dtn_between_f32(size, 0.0F, 90.0F),
                                      &rest);
    const float far = (1.0F + rest) * dtn_power_of_f32(k, -3) * 4.0F;

    return copysignf(size > 40.0F ? far : near, x);
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

/* x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), as log_of_f32 has it; a
 * subnormal number is first multiplied by 2^23.
 */
DTN_FUNCTION float dtn_log_parts_f32(float x, float *ep)
{
    const uint32_t root = 0x3f3504f3;                /* sqrt(1/2)             */
    const int small = x < 0x1p-126F;
    const uint32_t bits = dtn_narrow_bits(small ? x * 0x1p23F : x) - root;

    *ep = (float)((int32_t)bits >> 23) - (small ? 23.0F : 0.0F);
    return dtn_narrow_float((bits & 0x7fffff) + root) - 1.0F;
}

/* e log(2) is exact in its upper part. */
DTN_FUNCTION float dtn_log_f32(float x)
{
    float e;
    const float f = dtn_log_parts_f32(x, &e);
    const float poly = horner_f32(log_short_f32, POLY_TERMS(log_short_f32), f);
    const float rest = fma_f32(f * f, poly, e * 0x1.7f7d1cp-20F);

    return dtn_log_ends_f32(x, fma_f32(e, 0x1.62e4p-1F, f) + rest);
}

DTN_FUNCTION float dtn_log2_f32(float x)
{
    float e;
    const float f = dtn_log_parts_f32(x, &e);
    const float rest = f * f * horner_f32(log2_f32, POLY_TERMS(log2_f32), f);

    return dtn_log_ends_f32(x, e + fma_f32(f, 0x1.715476p+0F, rest));
}

/* The logarithm times `high` + `low`. */
DTN_FUNCTION float dtn_log10_f32(float x)
{
    const float high = 0x1.bcb7b2p-2F, low = -0x1.5b235ep-27F;
    const int small = x < 0x1p-126F;
    const struct dtn_two_f32 log = log_of_f32(small ? x * 0x1p23F : x);
    const float first = log.high * high;
    const float rest = fma_f32(log.high, high, -first);
    const float second = fma_f32(log.high, low, fma_f32(log.low, high, rest));
    const float less = small ? 0x1.bb1dbcp+2F : 0.0F;

    return dtn_log_ends_f32(x, (first - less) + second);
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

/* exp(x^2) erfc(x) for 0 <= x <= 10.15. */
DTN_FUNCTION float dtn_erfcx_f32(float x)
{
    const float over = 1.0F / (x + 3.0F), t = (x - 3.0F) * over;

    return horner_f32(erfcx_f32, POLY_TERMS(erfcx_f32), t) * over;
}

/* exp(-factor x^2) y, not below 2^-150.  k log(2) is exact in its upper part,
 * so the square is rounded once.
 */
DTN_FUNCTION float dtn_exp_square_f32(float x, float factor, float y)
{
    const float minus = -factor * x;
    const float shifted = fma_f32(minus * x, 0x1.715476p+0F, DTN_ROUNDER_F32);
    const float k = shifted - DTN_ROUNDER_F32;
    const float near = fma_f32(minus, x, -k * 0x1.62e4p-1F);
    const float rest = dtn_exp_rest_f32(fma_f32(-k, 0x1.7f7d1cp-20F, near));

    return fma_f32(rest, y, y) * dtn_power_of_f32(shifted, 30) * 0x1p-30F;
}

/* erfc(x) for x >= 0: 0 from 10.1 on. */
DTN_FUNCTION float dtn_erfc_above_f32(float x)
{
    const float inside = x > 10.15F ? 10.15F : x;

    return dtn_exp_square_f32(inside, 1.0F, dtn_erfcx_f32(inside));
}

DTN_FUNCTION float dtn_erfc_f32(float x)
{
    const float above = dtn_erfc_above_f32(fabsf(x));

    return x < 0.0F ? 2.0F - above : above;
}

/* Near 0 a polynomial; from 1 on 1 - erfc(x), of which few digits are needed:
 * its logarithm is a polynomial, too.
 */
DTN_FUNCTION float dtn_erf_f32(float x)
{
    const float size = fabsf(x), square = x * x;
    const float poly = horner_f32(erf_f32, POLY_TERMS(erf_f32), square);
    const float near = fma_f32(size, 0x1.20dd76p+0F,
                               size * fma_f32(square, poly, -0x1.f7ac92p-25F));
    const float inside = size > 3.92F ? 3.92F : size;
    const float log = horner_f32(erfc_log_f32, POLY_TERMS(erfc_log_f32),
                                 inside);
    const float shifted = log + DTN_ROUNDER_F32;
    const float f = log - (shifted - DTN_ROUNDER_F32);
    const float power = dtn_power_of_f32(shifted, 0);
    const float rest = f * horner_f32(exp2_f32, POLY_TERMS(exp2_f32), f);

    return copysignf(size < 1.0F ? near : 1.0F - fma_f32(rest, power, power),
                     x);
}

/* The less of two numbers that are not negative, as whole numbers: the compiler
 * makes branches of a minimum of floats, and moves other arithmetic there.
 */
DTN_FUNCTION float dtn_less_f32(float x, float most)
{
    const uint32_t a = dtn_narrow_bits(x), b = dtn_narrow_bits(most);

    return dtn_narrow_float(a < b ? a : b);
}

/* From here on GELU of -x is 0, and 2^k of the functions below, too. */
#define DTN_GELU_FAR_F32 13.27F

/* x Phi(x), where Phi is the normal distribution: x, or 0 for a negative x,
 * less |x| Phi(-|x|), which is 0 below 2^-126.  That is w = |x| / (|x| + 3.75)
 * times a polynomial of w - 1/2, times exp(-x^2 / 2) = 2^k exp(-c u).  In u =
 * x^2 + 2 k log(2) the float next to 2 log(2) is exact, and so is the sum
 * before that of the rounding error of x^2; its own error is in c.  x - x is a
 * NaN for an infinity.
 */
DTN_FUNCTION float dtn_gelu_f32(float x)
{
    const float size = dtn_less_f32(fabsf(x), DTN_GELU_FAR_F32);
    const float w = size / (size + 3.75F);
    const float y = horner_f32(gelu_f32, POLY_TERMS(gelu_f32), w - 0.5F);
    const float square = size * size;
    const float shifted = fma_f32(square, -0x1.715476p-1F, DTN_ROUNDER_F32);
    const float near = fma_f32(shifted - DTN_ROUNDER_F32, 0x1.62e43p+0F,
                               square);
    const float u = near + fma_f32(size, size, -square);
    const float rest = u * horner_f32(gelu_exp_f32, POLY_TERMS(gelu_exp_f32),
                                      u);

    return fma_f32(-fma_f32(rest, y, y), w * dtn_power_of_f32(shifted, 0),
                   x < 0.0F ? x - x : x);
}

/* The same with the digits that bf16 has, for an x of which x^2 is exact. */
DTN_FUNCTION float dtn_gelu_bf16(float x)
{
    const float size = dtn_less_f32(fabsf(x), DTN_GELU_FAR_F32);
    const float w = size / (size + 4.0F);
    const float y = horner_f32(gelu_bf16, POLY_TERMS(gelu_bf16), w - 0.5F);
    const float square = size * size;
    const float shifted = fma_f32(square, -0x1.715476p-1F, DTN_ROUNDER_F32);
    const float f = fma_f32(square, -0x1.715476p-1F,
                            DTN_ROUNDER_F32 - shifted);
    const float rest = f * horner_f32(exp2_bf16, POLY_TERMS(exp2_bf16), f);

    return fma_f32(-fma_f32(rest, y, y), w * dtn_power_of_f32(shifted, 0),
                   x < 0.0F ? x - x : x);
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
#define DTN_SINE_MOST_F32 0x1p40F
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
    return fabsf(x) < DTN_SINE_MOST_F32 ? dtn_sine_f32(x, quarters)
                                    : dtn_sine_far_f32(x, quarters);
}

/* ------------------------------------------------------ of one exponent --- */

/* 1 + exp(-x), infinite if exp(-x) is above 2^127.5. */
DTN_FUNCTION float dtn_one_exp_f32(float x)
{
    float rest;
    const float k = dtn_exp_parts_f32(dtn_between_f32(-x, -87.0F, 89.0F),
                                      &rest);

    return fma_f32(1.0F + rest, dtn_power_of_f32(k, 0), 1.0F);
}

DTN_FUNCTION float dtn_sigmoid_f32(float x)
{
    return 1.0F / dtn_one_exp_f32(x);
}

DTN_FUNCTION float dtn_silu_f32(float x)
{
    return x / dtn_one_exp_f32(x);
}

/* x, or 0 for a negative x, more log(1 + t) with t = exp(-|x|): that is twice
 * the inverse of tanh of t / (2 + t).
 */
DTN_FUNCTION float dtn_softplus_f32(float x)
{
    const float t = dtn_exp_below_f32(-fabsf(x));
    const float s = (t + t) / (t + 2.0F), square = s * s;
    const float rest = square * horner_f32(log1p_f32, POLY_TERMS(log1p_f32),
                                           square);

    return (x > 0.0F ? x : 0.0F) + fma_f32(s, rest, s);
}

#endif
