/* narrow.h - the floats of 16 and 8 bits, without a branch
 *
 * A binary16 has a sign, 5 bits of exponent and 10 of fraction; a binary32 has
 * 8 and 23.  So a normal number is widened by a shift, and by 127 - 15 = 112
 * added to its exponent: 1.0 is 0x3c00, and (0x3c00 << 13) + (112 << 23) is
 * 0x3f800000.  Both directions are arithmetic and masks, without a branch, so
 * that the compiler can vectorise a loop over them.  Subnormal numbers use the
 * FPU: 0x0001 is widened as 1 * 2^-24.  To narrow one, 0.5 is added: its last
 * bit is worth 2^-24, so the addition rounds to nearest even at this bit.
 *
 * The other types differ in their widths only: f8e5m2 has 5 and 2 bits, f8e4m3
 * has 4 and 3.  f8e4m3 has no infinity: 0x7e is 448 and 0x7f is a NaN, which
 * also stands for a value that is too large.
 */
#ifndef DTN_NARROW_H
#define DTN_NARROW_H

#include "base/compiler.h"

#include <stdint.h>
#include <string.h>

DTN_DEVICE
static inline uint32_t dtn_narrow_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DTN_DEVICE
static inline float dtn_narrow_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* All ones if `yes`, else 0: a mask that selects a value without a branch. */
DTN_DEVICE
static inline uint32_t dtn_narrow_mask(int yes)
{
    return 0u - (uint32_t)yes;
}

/* The bits of the f32 that equals a narrow float without its sign.  The narrow
 * type has `digits` fraction bits and exponent bias `bias`.  From `special` on
 * it is an infinity or a NaN.
 */
DTN_DEVICE
static inline uint32_t dtn_narrow_widen(uint32_t magnitude, int digits,
                                        int bias, uint32_t special)
{
    uint32_t offset = (uint32_t)(127 - bias) << 23;
    uint32_t normal = (magnitude << (23 - digits)) + offset
                    + (dtn_narrow_mask(magnitude >= special) & offset);
    float unit = dtn_narrow_float((uint32_t)(128 - bias - digits) << 23);
    uint32_t small = dtn_narrow_bits((float)(int)magnitude * unit);
    uint32_t is_small = dtn_narrow_mask(magnitude < 1u << digits);

    return (small & is_small) | (normal & ~is_small);
}

/* The reverse: an f32 without its sign, not too large, to nearest even. */
DTN_DEVICE
static inline uint32_t dtn_narrow_round(uint32_t magnitude, int digits,
                                        int bias)
{
    const int shift = 23 - digits;
    uint32_t offset = (uint32_t)(127 - bias) << 23;
    uint32_t normal = (magnitude - offset + (1u << (shift - 1)) - 1
                       + (magnitude >> shift & 1)) >> shift;
    uint32_t unit = (uint32_t)(151 - bias - digits) << 23;
    uint32_t small =
        dtn_narrow_bits(dtn_narrow_float(magnitude) + dtn_narrow_float(unit)) -
        unit;
    uint32_t is_small = dtn_narrow_mask(magnitude < offset + (1u << 23));

    return (small & is_small) | (normal & ~is_small);
}

/* `bits`, or large_bits for a magnitude from `large` on, or nan_bits for a NaN.
 */
DTN_DEVICE
static inline uint32_t dtn_narrow_pick(uint32_t magnitude, uint32_t bits,
                                       uint32_t large, uint32_t large_bits,
                                       uint32_t nan_bits)
{
    uint32_t is_large = dtn_narrow_mask(magnitude >= large);
    uint32_t is_nan = dtn_narrow_mask(magnitude > 0x7f800000);

    return (bits & ~is_large) | (large_bits & is_large & ~is_nan)
         | (nan_bits & is_nan);
}

/* A NaN becomes quiet, as by the instruction for it. */
DTN_DEVICE
static inline float dtn_f16_widen(uint16_t f16)
{
    const uint32_t magnitude = f16 & 0x7fff;

    return dtn_narrow_float((uint32_t)(f16 & 0x8000) << 16
                            | dtn_narrow_widen(magnitude, 10, 15, 0x7c00)
                            | (dtn_narrow_mask(magnitude > 0x7c00)
                               & 0x00400000));
}

/* Infinity from 65520 on.  A NaN becomes quiet and keeps its upper payload. */
DTN_DEVICE
static inline uint16_t dtn_f16_narrow(float value)
{
    uint32_t bits = dtn_narrow_bits(value), magnitude = bits & 0x7fffffff;

    return (uint16_t)((bits >> 16 & 0x8000) |
                      dtn_narrow_pick(magnitude,
                                      dtn_narrow_round(magnitude, 10, 15),
                                      0x477ff000, 0x7c00,
                                      0x7e00 | (magnitude >> 13 & 0x3ff)));
}

DTN_DEVICE
static inline float dtn_bf16_widen(uint16_t bf16)
{
    return dtn_narrow_float((uint32_t)bf16 << 16);
}

DTN_DEVICE
static inline uint16_t dtn_bf16_narrow(float value)
{
    uint32_t bits = dtn_narrow_bits(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t quiet = bits | 0x00400000;

    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded)
                      >> 16);
}

DTN_DEVICE
static inline float dtn_f8e4m3_widen(uint8_t f8)
{
    return dtn_narrow_float((uint32_t)(f8 & 0x80) << 24
                            | dtn_narrow_widen(f8 & 0x7f, 3, 7, 0x7f));
}

/* NaN above 464, the middle between 448 and 480, which would come next. */
DTN_DEVICE
static inline uint8_t dtn_f8e4m3_narrow(float value)
{
    uint32_t bits = dtn_narrow_bits(value), magnitude = bits & 0x7fffffff;

    return (uint8_t)((bits >> 24 & 0x80) |
                     dtn_narrow_pick(magnitude,
                                     dtn_narrow_round(magnitude, 3, 7),
                                     0x43e80001, 0x7f, 0x7f));
}

DTN_DEVICE
static inline float dtn_f8e5m2_widen(uint8_t f8)
{
    return dtn_narrow_float((uint32_t)(f8 & 0x80) << 24
                            | dtn_narrow_widen(f8 & 0x7f, 2, 15, 0x7c));
}

/* Infinity from 61440 on. */
DTN_DEVICE
static inline uint8_t dtn_f8e5m2_narrow(float value)
{
    uint32_t bits = dtn_narrow_bits(value), magnitude = bits & 0x7fffffff;

    return (uint8_t)((bits >> 24 & 0x80) |
                     dtn_narrow_pick(
                         magnitude, dtn_narrow_round(magnitude, 2, 15),
                         0x47700000, 0x7c, 0x7e | (magnitude >> 21 & 3)));
}

#endif
