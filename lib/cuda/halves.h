/* halves.h - f16 and bf16 by the instructions that a GPU has for them
 *
 * narrow.h rounds in some ten instructions, a GPU rounds two floats in one.
 * Only its NaN differs: here each becomes the one without sign and payload.
 */
#ifndef DTN_CUDA_HALVES_H
#define DTN_CUDA_HALVES_H

#include "base/narrow.h"
#include "cuda/device.h"

#include <stdint.h>

/* A NaN may get another sign and payload. */
DTN_INLINE float f16_to_f32(uint16_t bits)
{
#ifdef __CUDA_ARCH__
    float x;

    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#else
    return dtn_f16_widen(bits);
#endif
}

/* The elements of a pair, in place of those that are NaNs. */
DTN_INLINE uint32_t pair_with_nan(uint32_t pair, float low, float high,
                                  uint32_t nan)
{
    pair = low != low ? (pair & 0xffff0000) | nan : pair;
    return high != high ? (pair & 0xffff) | nan << 16 : pair;
}

/* Two floats, rounded to nearest even; `low` has the lower address. */
#ifdef __CUDA_ARCH__
#define DTN_PAIR(name, instruction, narrow, nan)                              \
    DTN_INLINE uint32_t name(float low, float high)                           \
    {                                                                         \
        uint32_t pair;                                                        \
                                                                              \
        asm(instruction " %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));   \
        return pair_with_nan(pair, low, high, nan);                           \
    }
#else
#define DTN_PAIR(name, instruction, narrow, nan)                              \
    DTN_INLINE uint32_t name(float low, float high)                           \
    {                                                                         \
        return pair_with_nan(narrow(low) | (uint32_t)narrow(high) << 16,      \
                             low, high, nan);                                 \
    }
#endif
DTN_PAIR(f16_pair, "cvt.rn.f16x2.f32", dtn_f16_narrow, 0x7e00)
DTN_PAIR(bf16_pair, "cvt.rn.bf16x2.f32", dtn_bf16_narrow, 0x7fc0)

#endif
