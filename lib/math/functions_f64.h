/* functions_f64.h - functions of one f64
 *
 * As those of f32, without branches and with the same bits on every CPU.
 * Errors are below 2 units in the last place, of those that are made of several
 * below 5 (tests/math/test_functions.c).  A number that needs more than 53 bits
 * on its way, a logarithm that is multiplied by an exponent of 1000, or what is
 * left of 1e9 after a multiple of pi/2, is two numbers, the second of which is
 * the rounding error of the first.
 */
#ifndef DTN_MATH_FUNCTIONS_F64_H
#define DTN_MATH_FUNCTIONS_F64_H

#include "math/functions_f32.h"
#include "base/elementary.h"

#include <math.h>
#include <stdint.h>

/* x y + z, rounded once. */
DTN_FUNCTION double dtn_fma_f64(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}

DTN_FUNCTION double dtn_horner_f64(const double c[], int n, double x)
{
    double sum = c[n - 1];

    for (int i = n - 2; i >= 0; i--)
        sum = dtn_fma_f64(sum, x, c[i]);
    return sum;
}

#define DTN_HORNER_F64(c, x) dtn_horner_f64(c, POLY_TERMS(c), x)

/* As pick_f32(): `yes` or `no` without a branch, so that compilers do not move
 * the way to `no` into one.
 */
DTN_FUNCTION double dtn_pick_f64(int which, double yes, double no)
{
    const uint64_t mask = 0 - (uint64_t)which;

    return f64_of_bits((bits_of_f64(yes) & mask) | (bits_of_f64(no) & ~mask));
}

DTN_FUNCTION double dtn_between_f64(double x, double low, double high)
{
    const double raised = x < low ? low : x;

    return raised > high ? high : raised;
}

/* ---------------------------------------------------------- exponential --- */

/* Adding this leaves the nearest whole number in the lowest bits. */
#define DTN_ROUNDER_F64 0x1.8p52

/* 2^k, where `shifted` is k + DTN_ROUNDER_F64 and -1023 < k + more < 1024,
 * times 2^more; an infinity for 1024.  Of a NaN any number.
 */
DTN_FUNCTION double dtn_power_of_f64(double shifted, int64_t more)
{
    return f64_of_bits((bits_of_f64(shifted) + (uint64_t)(1023 + more)) << 52);
}

/* exp(r) - 1 for |r| <= log(2) / 2. */
DTN_FUNCTION double dtn_exp_rest_f64(double r)
{
    return dtn_fma_f64(r * r, DTN_HORNER_F64(exp_short, r), r);
}

/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2, for |x| <= 1500; k as above, and
 * *restp is what exp(r) comes to without the 1.
 */
DTN_FUNCTION double dtn_exp_parts_f64(double x, double *restp)
{
    const double shifted = dtn_fma_f64(x, 0x1.71547652b82fep+0,
                                       DTN_ROUNDER_F64);
    const double k = shifted - DTN_ROUNDER_F64;
    const double near = dtn_fma_f64(-k, 0x1.62e42fefa39efp-1, x);

    *restp = dtn_exp_rest_f64(dtn_fma_f64(-k, 0x1.abc9e3b39803fp-56, near));
    return shifted;
}

/* x 2^k for -1080 <= k <= 1024, rounded once: 2^1024 and 2^-1080 are no normal
 * numbers, so half of k is a factor of its own.
 */
DTN_FUNCTION double dtn_times_power_f64(double x, double shifted)
{
    const uint64_t both = bits_of_f64(shifted) + 2 * 1023 -
                          bits_of_f64(DTN_ROUNDER_F64);
    const uint64_t half = both >> 1;

    return x * f64_of_bits(half << 52) * f64_of_bits((both - half) << 52);
}

DTN_FUNCTION double dtn_exp_f64(double x)
{
    double rest;
    const double k = dtn_exp_parts_f64(dtn_between_f64(x, -748.0, 710.0),
                                       &rest);

    return dtn_times_power_f64(1.0 + rest, k);
}

/* The same for x <= 0. */
DTN_FUNCTION double dtn_exp_below_f64(double x)
{
    double rest;
    const double k = dtn_exp_parts_f64(x < -748.0 ? -748.0 : x, &rest);

    return (1.0 + rest) * dtn_power_of_f64(k, 60) * 0x1p-60;
}

DTN_FUNCTION double dtn_exp2_f64(double x)
{
    const double inside = dtn_between_f64(x, -1080.0, 1024.0);
    const double shifted = inside + DTN_ROUNDER_F64;
    const double r = inside - (shifted - DTN_ROUNDER_F64);
    const double near = r * 0x1.62e42fefa39efp-1;
    const double left = dtn_fma_f64(r, 0x1.62e42fefa39efp-1, -near);
    const double rest = dtn_exp_rest_f64(near) +
                        dtn_fma_f64(r, 0x1.abc9e3b39803fp-56, left);

    return dtn_times_power_f64(1.0 + rest, shifted);
}

/* exp(x) - 1 for |x| <= 50. */
DTN_FUNCTION double dtn_expm1_near_f64(double x)
{
    double rest;
    const double power = dtn_power_of_f64(dtn_exp_parts_f64(x, &rest), 0);

    return dtn_fma_f64(power, rest, power - 1.0);
}

DTN_FUNCTION double dtn_expm1_f64(double x)
{
    const double near = dtn_expm1_near_f64(dtn_between_f64(x, -50.0, 50.0));

    return x > 50.0 ? dtn_exp_f64(x) : near;
}

/* From 50 on half of exp(x), which alone may be too large. */
DTN_FUNCTION double dtn_sinh_f64(double x)
{
    const double size = fabs(x);
    const double t = dtn_expm1_near_f64(size > 50.0 ? 50.0 : size);
    const double near = 0.5 * (t + t / (t + 1.0));
    double rest;
    const double k = dtn_exp_parts_f64(size > 711.0 ? 711.0 : size, &rest);
    const double far = (1.0 + rest) * dtn_power_of_f64(k, -3) * 4.0;

    return copysign(size > 50.0 ? far : near, x);
}

DTN_FUNCTION double dtn_tanh_f64(double x)
{
    const double size = fabs(x);
    const double t = dtn_expm1_near_f64(size > 25.0 ? -50.0 : -2.0 * size);

    return copysign(-t / (t + 2.0), x);
}

/* 1 + exp(-x), infinite if exp(-x) is above 2^1023. */
DTN_FUNCTION double dtn_one_exp_f64(double x)
{
    double rest;
    const double k = dtn_exp_parts_f64(dtn_between_f64(-x, -708.0, 710.0),
                                       &rest);

    return dtn_fma_f64(1.0 + rest, dtn_power_of_f64(k, 0), 1.0);
}

DTN_FUNCTION double dtn_sigmoid_f64(double x)
{
    return 1.0 / dtn_one_exp_f64(x);
}

DTN_FUNCTION double dtn_silu_f64(double x)
{
    return x / dtn_one_exp_f64(x);
}

/* ------------------------------------------------------------ logarithm --- */

/* A normal x > 0 as 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).  Other numbers
 * give any.
 */
DTN_FUNCTION double dtn_log_parts_f64(double x, double *ep)
{
    const uint64_t root = 0x3fe6a09e667f3bcd;        /* sqrt(1/2)             */
    const uint64_t bits = bits_of_f64(x) - root;

    *ep = (double)((int32_t)(bits >> 32) >> 20);
    return f64_of_bits((bits & 0xfffffffffffff) + root) - 1.0;
}

/* e log(2) + log(1 + f).  With s = f / (2 + f) the second is 2 atanh(s), that
 * is f - s f + s y (2/3 + ...), of y = s^2.
 */
DTN_FUNCTION double dtn_log_joined_f64(double e, double f)
{
    const double s = f / (2.0 + f), y = s * s, half = 0.5 * f * f;
    const double rest = y * dtn_fma_f64(y, DTN_HORNER_F64(atanh_short, y),
                                        0x1.5555555555555p-1);
    const double low = dtn_fma_f64(s, half + rest, e * 0x1.ef35793c7673p-45);

    return dtn_fma_f64(e, 0x1.62e42fefa38p-1, f - (half - low));
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
    double e;
    const double f = dtn_log_parts_f64(small ? x * 0x1p52 : x, &e);

    return dtn_log_ends_f64(x, dtn_log_joined_f64(small ? e - 52.0 : e, f));
}

/* With u = 1 + x rounded, what u lacks is added to f.  2^-1024 is no number, so
 * 1/4 is a factor of its own.
 */
DTN_FUNCTION double dtn_log1p_f64(double x)
{
    const double u = 1.0 + x;
    const double left = x < 1.0 ? x - (u - 1.0) : 0.0;
    double e;
    const double f = dtn_log_parts_f64(u, &e);
    const double over = dtn_power_of_f64(DTN_ROUNDER_F64 - e, 2);
    const double inside = dtn_log_joined_f64(e, dtn_fma_f64(0.25 * left, over,
                                                            f));

    return dtn_pick_f64(fabs(x) < 0x1p-60, x, dtn_log_ends_f64(u, inside));
}

DTN_FUNCTION double dtn_softplus_f64(double x)
{
    return (x > 0 || x != x ? x : 0) + dtn_log1p_f64(dtn_exp_f64(-fabs(x)));
}

/* A number with more bits than an f64. */
struct dtn_two_f64 {
    double high, low;             /* the rounded sum, and what it lacks       */
};

/* log(1 + f) with 66 bits: s, its cube and the first term are two numbers. */
DTN_FUNCTION struct dtn_two_f64 dtn_log_two_f64(double f)
{
    const double u = 2.0 + f, over = 1.0 / u, s = f * over;
    const double s_low = dtn_fma_f64(-s, f - (u - 2.0),
                                     dtn_fma_f64(-s, u, f)) * over;
    const double y = s * s;
    const double y_low = dtn_fma_f64(2.0 * s, s_low, dtn_fma_f64(s, s, -y));
    const double cube = s * y;
    const double cube_low = dtn_fma_f64(s_low, y, dtn_fma_f64(s, y_low,
                            dtn_fma_f64(s, y, -cube)));
    const double rest = y * DTN_HORNER_F64(atanh_f64, y);
    const double p = 0x1.5555555555555p-1 + rest;    /* 2/3 and the rest      */
    const double p_low = 0x1.5555555555555p-1 - p + rest +
                         0x1.5555555555555p-55;
    const double made = cube * p;
    const double made_low = dtn_fma_f64(cube, p_low, dtn_fma_f64(cube_low, p,
                            dtn_fma_f64(cube, p, -made)));
    const double high = dtn_fma_f64(2.0, s, made);
    const double left = dtn_fma_f64(2.0, s, -high) + made;

    return (struct dtn_two_f64){ high, left + dtn_fma_f64(2.0, s_low,
                                                          made_low) };
}

/* To another base: log(x) times `by`, of which `two` is for powers of 2. */
DTN_FUNCTION double dtn_log_base_f64(double x, struct dtn_two_f64 by,
                                     struct dtn_two_f64 two)
{
    const int small = x < 0x1p-1022;
    double power;
    const double f = dtn_log_parts_f64(small ? x * 0x1p52 : x, &power);
    const double e = small ? power - 52.0 : power;
    const struct dtn_two_f64 log = dtn_log_two_f64(f);
    const double first = log.high * by.high;
    const double left = dtn_fma_f64(log.high, by.high, -first);
    const double second = dtn_fma_f64(log.high, by.low,
                                      dtn_fma_f64(log.low, by.high, left));
    const double whole = e * two.high, sum = whole + first;
    const double lost = whole - sum + first;

    return dtn_log_ends_f64(x, sum + (lost + dtn_fma_f64(e, two.low, second)));
}

DTN_FUNCTION double dtn_log2_f64(double x)
{
    return dtn_log_base_f64(x,
        (struct dtn_two_f64){ 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56 },
        (struct dtn_two_f64){ 1.0, 0.0 });
}

/* log10(2) is cut so that e times its upper part is exact. */
DTN_FUNCTION double dtn_log10_f64(double x)
{
    return dtn_log_base_f64(x,
        (struct dtn_two_f64){ 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57 },
        (struct dtn_two_f64){ 0x1.34413509f7p-2, 0x1.3fde623e2566bp-43 });
}

/* ------------------------------------------------------- error function --- */

/* exp(x^2) erfc(x) for 0 <= x <= 27.5.  A compiler makes no vectors of a loop
 * that has a loop of more than 16 terms in it.
 */
DTN_FUNCTION double dtn_erfcx_f64(double x)
{
    const double over = 1.0 / (x + 3.5), t = (x - 3.5) * over;
    const double t2 = t * t, t4 = t2 * t2;
    const double high = dtn_horner_f64(erfcx_f64 + 12,
                                       POLY_TERMS(erfcx_f64) - 12, t);
    const double low = dtn_horner_f64(erfcx_f64, 12, t);

    return dtn_fma_f64(t4 * t4 * t4, high, low) * over;
}

/* exp(-factor x^2) y for x <= 40.  k log(2) is exact in its upper part, so the
 * square is rounded once.
 */
DTN_FUNCTION double dtn_exp_square_f64(double x, double factor, double y)
{
    const double minus = -factor * x;
    const double shifted = dtn_fma_f64(minus * x, 0x1.71547652b82fep+0,
                                       DTN_ROUNDER_F64);
    const double k = shifted - DTN_ROUNDER_F64;
    const double near = dtn_fma_f64(minus, x, -k * 0x1.62e42fefa38p-1);
    const double r = dtn_fma_f64(-k, 0x1.ef35793c7673p-45, near);

    return dtn_times_power_f64(dtn_fma_f64(dtn_exp_rest_f64(r), y, y), shifted);
}

/* erfc(x) for x >= 0. */
DTN_FUNCTION double dtn_erfc_above_f64(double x)
{
    const double inside = x > 27.3 ? 27.3 : x;

    return dtn_exp_square_f64(inside, 1.0, dtn_erfcx_f64(inside));
}

DTN_FUNCTION double dtn_erfc_f64(double x)
{
    const double above = dtn_erfc_above_f64(fabs(x));

    return x < 0 ? 2.0 - above : above;
}

/* From 0.72 on erfc(x) needs less digits, and from 5.93 on none. */
DTN_FUNCTION double dtn_erf_f64(double x)
{
    const double size = fabs(x), square = x * x;
    const double poly = DTN_HORNER_F64(erf_short, square);
    const double near = dtn_fma_f64(size, 0x1.20dd750429b6dp+0, size *
        dtn_fma_f64(square, poly, 0x1.1ae3a914fed8p-56));
    const double inside = dtn_between_f64(size, 0.72, 5.95);
    const double over = 1.0 / (inside + 3.0), t = (inside - 3.0) * over;
    const double far = dtn_exp_square_f64(inside, 1.0, over *
                                          DTN_HORNER_F64(erfcx_short, t));

    return copysign(size < 0.72 ? near : 1.0 - far, x);
}

/* x times half of erfc(-x / sqrt(2)). */
DTN_FUNCTION double dtn_gelu_f64(double x)
{
    const double size = fabs(x) > 38.5 ? 38.5 : fabs(x);
    const double above = dtn_exp_square_f64(size, 0.5, 0.5 *
        dtn_erfcx_f64(0.70710678118654752440 * size));

    return x * (x < 0 ? above : x != x ? x : 1.0 - above);
}

/* --------------------------------------------------------- sine, cosine --- */

/* The sine of r + quarter pi/2, for |r| <= pi/4. */
DTN_FUNCTION double dtn_sine_turned_f64(struct dtn_two_f64 r, uint64_t quarter)
{
    const double x = r.high, y = x * x, half = 0.5 * y, one = 1.0 - half;
    const double sine = x + dtn_fma_f64(x * y, DTN_HORNER_F64(sin_f64, y),
                                        r.low * one);
    const double left = 1.0 - one - half - x * r.low;
    const double cosine = one + dtn_fma_f64(y * y, DTN_HORNER_F64(cos_f64, y),
                                            left);
    const double found = dtn_pick_f64((int)(quarter & 1), cosine, sine);

    return f64_of_bits(bits_of_f64(found) ^ (quarter & 2) << 62);
}

/* The sine of x + quarters pi/2, for |x| below this; x less the next multiple
 * of pi/2 is found from 158 bits of pi, the first step of it exact.
 */
#define DTN_SINE_MOST_F64 0x1p40
DTN_FUNCTION double dtn_sine_f64(double x, int quarters)
{
    const double shifted = dtn_fma_f64(x, 0x1.45f306dc9c883p-1,
                                       DTN_ROUNDER_F64);
    const double n = shifted - DTN_ROUNDER_F64;
    const double near = dtn_fma_f64(-n, 0x1.921fb54442d18p+0, x);
    const double next = n * 0x1.1a62633145c07p-54, high = near - next;
    const double back = high - near;
    const double lost = near - (high - back) - (next + back) -
                        dtn_fma_f64(n, 0x1.1a62633145c07p-54, -next);
    const double low = dtn_fma_f64(-n, -0x1.f1976b7ed8fbcp-110, lost);
    const struct dtn_two_f64 r = { high, low };
    const double sine = dtn_sine_turned_f64(r, bits_of_f64(shifted) +
                                               (uint64_t)quarters);

    return x == 0 && quarters == 0 ? x : sine;
}

/* m 2^e 2/pi without multiples of 4, times 2^190, in words of 32 bits, lowest
 * first.  Of 2/pi, what is a multiple of 4 2^-e does not matter.
 */
DTN_FUNCTION void dtn_turns_f64(uint64_t m, int e, uint32_t turns[6])
{
    const int from = e + 30, shift = from & 31;
    const uint32_t *two = two_over_pi + (from >> 5);

    for (int i = 0; i < 6; i++)
        turns[i] = 0;
    for (int i = 0; i < 6; i++) {
        const uint64_t pair = (uint64_t)two[5 - i] << 32 | two[6 - i];
        const uint64_t word = pair << shift >> 32;
        uint64_t carry = 0;

        for (int j = 0; i + j < 6; j++) {
            const uint32_t part = j == 0 ? (uint32_t)m
                                : j == 1 ? (uint32_t)(m >> 32) : 0;

            carry += word * part + turns[i + j];
            turns[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
    }
}

/* The sine of a larger x.  Half a quarter is added and taken off again, so that
 * the rest is signed, and then its words are added up in two numbers.
 */
DTN_FUNCTION double dtn_sine_far_f64(double x, int quarters)
{
    const uint64_t bits = bits_of_f64(x) & 0x7fffffffffffffff;
    const int e = (int)(bits >> 52) - 1075;
    uint32_t turns[6];
    struct dtn_two_f64 r = { 0, 0 };

    if (x - x != 0)
        return x - x;
    dtn_turns_f64((bits & 0xfffffffffffff) | UINT64_C(1) << 52, e, turns);
    const uint32_t half = turns[5] + (UINT32_C(1) << 29);
    double scale = 0x1p-30;

    for (int i = 5; i >= 0; i--, scale *= 0x1p-32) {
        const double word = i < 5 ? (double)turns[i]
            : (double)(half & 0x3fffffff) - 0x1p29;
        const double sum = r.high + word * scale;

        r.low += word * scale - (sum - r.high);
        r.high = sum;
    }
    const double turned = r.high * 0x1.921fb54442d18p+0;
    const double left = dtn_fma_f64(r.high, 0x1.921fb54442d18p+0, -turned);
    const double low = dtn_fma_f64(r.low, 0x1.921fb54442d18p+0,
                       dtn_fma_f64(r.high, 0x1.1a62633145c07p-54, left));
    const uint64_t quarter = half >> 30;

    return x < 0 ? dtn_sine_turned_f64((struct dtn_two_f64){ -turned, -low },
                                       (uint64_t)quarters - quarter)
                 : dtn_sine_turned_f64((struct dtn_two_f64){ turned, low },
                                       (uint64_t)quarters + quarter);
}

DTN_FUNCTION double dtn_sine_any_f64(double x, int quarters)
{
    return fabs(x) < DTN_SINE_MOST_F64 ? dtn_sine_f64(x, quarters)
                                       : dtn_sine_far_f64(x, quarters);
}

#endif
