/* elementary.h - log, sin, cos and exp with the same bits on every CPU
 *
 * The libm of two hosts, or two versions of one libm for different CPUs, may
 * differ in the last bit.  These functions use +, -, *, /, square roots and, if
 * written so, fused multiply-add, in the order of the source.  IEEE 754 rounds
 * all of these in the same way on every CPU, and the library is built without
 * other contractions.  The functions have no branches, so that the compiler can
 * vectorise a loop over them.  Errors are below 2 units in the last place in
 * the ranges given: log 0.5f = -0.6931472f.
 *
 * A normal f32 is a product of two such values.  So each of them keeps its
 * rounding error in a second float, and the product is exact to 1 unit.
 */
#ifndef DTN_ELEMENTARY_H
#define DTN_ELEMENTARY_H

#include "base/coefficients.h"
#include "base/compiler.h"
#include "base/narrow.h"

#include <stdint.h>
#include <string.h>

#define POLY_TERMS(c) ((int)(sizeof(c) / sizeof(c)[0]))

DTN_DEVICE
static inline __attribute__((always_inline)) double poly_f64(const double c[],
                                                             int n, double x)
{
    double sum = c[n - 1];

    for (int i = n - 2; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

DTN_DEVICE
static inline uint64_t bits_of_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DTN_DEVICE
static inline double f64_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* x y + z, rounded once. */
DTN_DEVICE
static inline __attribute__((always_inline)) float fma_f32(float x, float y,
                                                           float z)
{
    return __builtin_fmaf(x, y, z);
}

DTN_DEVICE
static inline __attribute__((always_inline)) float horner_f32(const float c[],
                                                              int n, float x)
{
    float sum = c[n - 1];

    for (int i = n - 2; i >= 0; i--)
        sum = fma_f32(sum, x, c[i]);
    return sum;
}

/* A number with more bits than a float: `low` is the rounding error of `high`.
 */
struct dtn_two_f32 {
    float high, low;              /* the rounded sum, and what it lacks       */
};

/* A normal x > 0 is 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): taking the
 * bits of sqrt(1/2) off makes the exponent field e + 1 where it should be.
 * e log 2 is exact in its upper part, and so is its sum with f in two floats.
 */
DTN_DEVICE
static inline __attribute__((always_inline))
struct dtn_two_f32 log_of_f32(float x)
{
    const uint32_t root = 0x3f3504f3;                /* sqrt(1/2)             */
    const uint32_t bits = dtn_narrow_bits(x) - root;
    const float e = (float)((int32_t)bits >> 23);
    const float f = dtn_narrow_float((bits & 0x7fffff) + root) - 1.0f;
    const float sum = fma_f32(e, 0x1.62e4p-1f, f);   /* log 2, the high part  */
    const float left = fma_f32(e, 0x1.62e4p-1f, -sum) + f;
    const float square = f * f;
    const float poly = horner_f32(log_f32, POLY_TERMS(log_f32), f);
    const float rest = fma_f32(-0.5f, square, fma_f32(square * f, poly,
                               fma_f32(e, 0x1.7f7d1cp-20f, left)));
    const float high = sum + rest;

    return (struct dtn_two_f32){ high, rest - (high - sum) };
}

/* The square root of a number that is not negative.  What is left of the upper
 * part, over twice the root; of 1/root the first digits will do: those that
 * an exponent taken from another has, and one step by Newton, 1.5% at worst.
 */
DTN_DEVICE
static inline __attribute__((always_inline)) struct dtn_two_f32
sqrt_of_two(struct dtn_two_f32 x)
{
    const float root = __builtin_sqrtf(x.high);
    const float left = fma_f32(-root, root, x.high) + x.low;
    const float near = dtn_narrow_float(0x7ef311c7 - dtn_narrow_bits(root));
    const float half = near * fma_f32(-0.5f * root, near, 1.0f);

    return (struct dtn_two_f32){ root, left * half };
}

/* x y, computed from nearly all their bits and rounded once. */
DTN_DEVICE
static inline __attribute__((always_inline)) float
times_two(struct dtn_two_f32 x, struct dtn_two_f32 y)
{
    return fma_f32(x.high, y.high, fma_f32(x.high, y.low, x.low * y.high));
}

DTN_DEVICE
static inline __attribute__((always_inline)) float pick_f32(uint32_t mask,
                                                            float yes, float no)
{
    return dtn_narrow_float((dtn_narrow_bits(yes) & mask) |
                            (dtn_narrow_bits(no) & ~mask));
}

/* s sin(x) and s cos(x), for x in [0, 2 pi].  The first part of pi/2 has so few
 * bits that its product with the number of the quarter, and the difference, are
 * exact.
 */
DTN_DEVICE
static inline __attribute__((always_inline)) void
sin_cos_times(float x, struct dtn_two_f32 s, float *sinp, float *cosp)
{
    const int32_t quarter = (int32_t)fma_f32(x, 0x1.45f306p-1f, 0.5f);
    const float q = (float)quarter;
    const float near = fma_f32(-q, 0x1.921f8p+0f, x);
    const float r = fma_f32(-q, 0x1.aa22p-19f, near);
    const float left = fma_f32(-q, 0x1.68c234p-39f,
                               fma_f32(-q, 0x1.aa22p-19f, near - r));
    const float y = r * r, half = 0.5f * r;
    const float c = fma_f32(-half, r, 1.0f);
    const struct dtn_two_f32 sine = { r, fma_f32(left, c, r * y *
                                 horner_f32(sin_f32, POLY_TERMS(sin_f32), y)) };
    const struct dtn_two_f32 cosine = { c, fma_f32(-half, r, 1.0f - c) +
                                    fma_f32(-r, left, y * y *
                                 horner_f32(cos_f32, POLY_TERMS(cos_f32), y)) };
    const float a = times_two(s, sine), b = times_two(s, cosine);
    const uint32_t swap = dtn_narrow_mask(quarter & 1);
    const uint32_t sin_sign = (uint32_t)(quarter & 2) << 30;
    const uint32_t cos_sign = (uint32_t)((quarter + 1) & 2) << 30;

    *sinp = dtn_narrow_float(dtn_narrow_bits(pick_f32(swap, b, a)) ^ sin_sign);
    *cosp = dtn_narrow_float(dtn_narrow_bits(pick_f32(swap, a, b)) ^ cos_sign);
}

/* As log_of_f32; x is normal and positive. */
DTN_DEVICE
static inline double log_of_f64(double x)
{
    const uint64_t root = 0x3fe6a09e667f3bcd;        /* sqrt(1/2)             */
    const uint64_t bits = bits_of_f64(x) - root;
    const double e = (double)((int32_t)(bits >> 32) >> 20);
    const double f = f64_of_bits((bits & 0xfffffffffffff) + root) - 1.0;
    const double s = f / (2.0 + f), y = s * s;
    const double rest = s * y * poly_f64(log_f64, POLY_TERMS(log_f64), y)
                      + e * 0x1.ef35793c7673p-45;    /* log 2, the low part   */

    return e * 0x1.62e42fefa38p-1 + (2.0 * s + rest);
}

/* sin(pi x) and cos(pi x) for x in [0, 2]. */
DTN_DEVICE
static inline void sin_cos_pi_f64(double x, double *sinp, double *cosp)
{
    const int32_t quarter = (int32_t)(2.0 * x + 0.5);
    const double r = x - 0.5 * (double)quarter, y = r * r;
    const double s = r * 0x1.921fb54442d18p+1 + (r * 0x1.1a62633145c07p-53
                   + r * y * poly_f64(sinpi_f64, POLY_TERMS(sinpi_f64), y));
    const double c = 1.0 + y * poly_f64(cospi_f64, POLY_TERMS(cospi_f64), y);
    const uint64_t swap = 0 - (uint64_t)(quarter & 1);
    const uint64_t sin_sign = (uint64_t)(quarter & 2) << 62;
    const uint64_t cos_sign = (uint64_t)((quarter + 1) & 2) << 62;

    *sinp = f64_of_bits(((bits_of_f64(c) & swap) | (bits_of_f64(s) & ~swap))
                        ^ sin_sign);
    *cosp = f64_of_bits(((bits_of_f64(s) & swap) | (bits_of_f64(c) & ~swap))
                        ^ cos_sign);
}

/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2, for -1500 <= x <= 1500; *restp is
 * what exp(r) comes to without the 1.  Adding 1.5 * 2^52 leaves the nearest
 * integer in the lowest bits.
 */
DTN_DEVICE
static inline __attribute__((always_inline)) int64_t
exp_parts_of_f64(double x, double *restp)
{
    const double magic = 0x1.8p52;
    const double shifted = x * 0x1.71547652b82fep+0 + magic;
    const double n = shifted - magic;
    const double r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;

    *restp = r + r * r * poly_f64(exp_f64, POLY_TERMS(exp_f64), r);
    return (int64_t)(bits_of_f64(shifted) - bits_of_f64(magic));
}

/* 2^k x for |k| <= 2000. */
DTN_DEVICE
static inline __attribute__((always_inline)) double
times_power_f64(double x, int64_t k)
{
    const int64_t half = k / 2;
    const double first = f64_of_bits((uint64_t)(1023 + half) << 52);
    const double second = f64_of_bits((uint64_t)(1023 + k - half) << 52);

    return x * first * second;
}

DTN_DEVICE
static inline double exp_of_f64(double x)
{
    double rest;
    const int64_t k = exp_parts_of_f64(x < -750.0 ? -750.0
                                       : x > 710.0 ? 710.0 : x, &rest);

    return times_power_f64(1.0 + rest, k);
}

/* The inverse of the normal distribution function, for p in (0, 1/2]: in the
 * tail, by pieces.
 */
DTN_DEVICE
static inline double normal_quantile_of_tail(double p)
{
    const double t = __builtin_sqrt(-log_of_f64(p));
    int piece = 0;

    while (piece < (int)DTN_COUNT(quantile_tail) - 1 &&
           t >= quantile_bound[piece + 1])
        piece++;
    const double low = quantile_bound[piece], high = quantile_bound[piece + 1];

    return -poly_f64(quantile_tail[piece], POLY_TERMS(quantile_tail[0]),
                     (t - 0.5 * (low + high)) / (0.5 * (high - low)));
}

DTN_DEVICE
static inline double normal_quantile(double p)
{
    const double q = p - 0.5;

    if (q >= -0.35)
        return q * poly_f64(quantile_middle, POLY_TERMS(quantile_middle),
                            q * q);
    return normal_quantile_of_tail(p < 1e-300 ? 1e-300 : p);
}

#endif
