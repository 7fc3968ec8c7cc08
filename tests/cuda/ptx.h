/* ptx.h - what the C that ptx2c.py writes consists of */
#ifndef TESTS_CUDA_PTX_H
#define TESTS_CUDA_PTX_H

#include "base/narrow.h"
#include "cuda/kernels.h"
#include "tests/cuda/ptx_approximate.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel of the translated PTX: as struct dtn_twin.  The last has no name. */
struct ptx_kernel {
    const char *name;                  /* in the image                        */
    size_t args_bytes;                 /* of its struct                       */
    void (*run)(const void *args, uint64_t block, uint64_t blocks);
};
extern const struct ptx_kernel ptx_kernels[];  /* of the oldest GPU          */
extern const struct ptx_kernel ptx_newest[];   /* of the newest              */
extern const struct ptx_kernel ptx_curand[];   /* curand.c, of the oldest    */

static inline float f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t f64_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The NaN that a GPU makes. */
static inline float f32_nan(float x)
{
    return x != x ? f32_of(0x7fffffff) : x;
}

static inline double f64_nan(double x)
{
    return x != x ? f64_of(0x7fffffffffffffff) : x;
}

/* cvt.rn.bf16x2.f32 and of f16: two floats, rounded; a NaN is all ones but the
 * sign.
 */
static inline uint32_t pair_of_bf16x2(float low, float high)
{
    const uint32_t l = low != low ? 0x7fff : dtn_bf16_narrow(low);
    const uint32_t h = high != high ? 0x7fff : dtn_bf16_narrow(high);

    return l | h << 16;
}

static inline uint32_t pair_of_f16x2(float low, float high)
{
    const uint32_t l = low != low ? 0x7fff : dtn_f16_narrow(low);
    const uint32_t h = high != high ? 0x7fff : dtn_f16_narrow(high);

    return l | h << 16;
}

/* max.f32: of a number and a NaN the number, of zeros the positive one. */
static inline float max_f32(float a, float b)
{
    if (a != a || b != b)
        return a != a ? b : a;
    return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
}

static inline int32_t toward_zero_s32(double x)
{
    return x != x ? 0 : x >= 0x1p31 ? INT32_MAX
         : x <= -0x1p31 ? INT32_MIN : (int32_t)x;
}

static inline int64_t toward_zero_s64(double x)
{
    return x != x ? INT64_MIN : x >= 0x1p63 ? INT64_MAX
         : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

static inline uint64_t toward_zero_u64(double x)
{
    return x != x ? UINT64_C(1) << 63 : x >= 0x1p64 ? UINT64_MAX
         : x <= 0 ? 0 : (uint64_t)x;
}

static inline void ptx_stop(const char *what)
{
    fprintf(stderr, "ptx: %s\n", what);
    abort();
}

/* A GPU faults where an address is not a multiple of what is accessed. */
static inline void aligned(uint64_t at, uint64_t bytes)
{
    if (at % bytes != 0)
        ptx_stop("an access that is not aligned");
}

#define nonzero(x) ((x) != 0 ? (x) : (ptx_stop("a division by 0"), 1))

#define PTX_CARRY(width)                                                      \
    static inline unsigned add_carry_##width(uint##width##_t a,               \
                                             uint##width##_t b,               \
                                             unsigned carry,                  \
                                             uint##width##_t *sum)            \
    {                                                                         \
        *sum = a + b + carry;                                                 \
        return carry ? *sum <= a : *sum < a;                                  \
    }                                                                         \
    static inline unsigned sub_carry_##width(uint##width##_t a,               \
                                             uint##width##_t b,               \
                                             unsigned borrow,                 \
                                             uint##width##_t *sum)            \
    {                                                                         \
        *sum = a - b - borrow;                                                \
        return borrow ? a <= b : a < b;                                       \
    }
PTX_CARRY(32)
PTX_CARRY(64)

/* prmt: four bytes of eight; bit 3 of a choice repeats the sign instead. */
static inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t choices)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t out = 0;

    for (int i = 0; i < 4; i++) {
        const uint32_t choice = choices >> 4 * i & 15;
        uint32_t byte = (uint32_t)(both >> 8 * (choice & 7)) & 255;

        if (choice & 8)
            byte = byte & 128 ? 255 : 0;
        out |= byte << 8 * i;
    }
    return out;
}

/* bfi: `length` bits of `bits` into `into`, from `at` on. */
static inline uint64_t inserted(uint64_t bits, uint64_t into, uint64_t at,
                                uint64_t length, unsigned width)
{
    const uint64_t some = (length & 255) >= 64 ? UINT64_MAX
                        : (UINT64_C(1) << (length & 255)) - 1;

    at &= 255;
    return at >= width ? into
                       : (into & ~(some << at)) | ((bits & some) << at);
}

#endif
