/* half.h - the 16-bit floats, without a branch
 *
 * A binary16 is s eeeee ffffffffff, a binary32 the same with 8 and 23 bits, so
 * a normal number only needs its exponent moved by 127 - 15 = 112.  Both ways
 * are written as arithmetic and masks, so that a loop over them becomes vector
 * code: 1.0 = 0x3c00 -> (0x3c00 << 13) + (112 << 23) = 0x3f800000.  Subnormals
 * let the FPU do it: 0x0001 is 1 * 2^-24 one way; the other way adding 0.5,
 * whose last bit is worth 2^-24, rounds to nearest even just there.
 */
#ifndef DTN_HALF_H
#define DTN_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t half_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float half_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* All ones if `yes`: selecting by mask keeps both sides free of branches. */
static inline uint32_t half_mask(int yes)
{
    return 0u - (uint32_t)yes;
}

static inline float half_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    uint32_t normal = (magnitude << 13) + (112u << 23)
                    + (half_mask(magnitude >= 0x7c00) & 112u << 23);
    uint32_t small = half_bits((float)(int)magnitude * 0x1p-24f);
    uint32_t is_small = half_mask(magnitude < 0x0400);

    return half_float(sign | (small & is_small) | (normal & ~is_small));
}

/* Infinity from 65520 on; a NaN stays one, quiet, with its upper payload. */
static inline uint16_t half_to_f16(float value)
{
    uint32_t bits = half_bits(value);
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff
                       + (magnitude >> 13 & 1)) >> 13;
    uint32_t small = half_bits(half_float(magnitude) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
    uint32_t is_small = half_mask(magnitude < 0x38800000);
    uint32_t is_large = half_mask(magnitude >= 0x477ff000);
    uint32_t is_nan = half_mask(magnitude > 0x7f800000);

    return (uint16_t)((bits >> 16 & 0x8000) | (small & is_small)
                      | (normal & ~is_small & ~is_large)
                      | (0x7c00 & is_large & ~is_nan) | (nan & is_nan));
}

static inline float half_from_bf16(uint16_t half)
{
    return half_float((uint32_t)half << 16);
}

static inline uint16_t half_to_bf16(float value)
{
    uint32_t bits = half_bits(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t is_nan = half_mask((bits & 0x7fffffff) > 0x7f800000);

    return (uint16_t)((rounded >> 16 & ~is_nan)
                      | ((bits >> 16 | 0x40) & is_nan));
}

#endif
