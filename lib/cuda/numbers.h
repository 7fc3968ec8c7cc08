/* numbers.h - one element of any type as a number that is computed with
 *
 * As lib/math/block.h does it for many: f32, f16, bf16 and f8 are computed with
 * as f32, f64 as f64, u64 as u64 and all other integers, and bool, as i64.
 */
#ifndef DTN_CUDA_NUMBERS_H
#define DTN_CUDA_NUMBERS_H

#include "base/narrow.h"
#include "cuda/device.h"
#include "dtensor.h"

#include <stdint.h>
#include <string.h>

/* A GPU makes other NaNs than a CPU: each becomes the one that is quiet and has
 * no sign and no payload.
 */
DTN_INLINE float number_f32(float x)
{
    return x != x ? dtn_narrow_float(0x7fc00000) : x;
}

DTN_INLINE double number_f64(double x)
{
    const uint64_t bits = 0x7ff8000000000000;
    double nan;

    memcpy(&nan, &bits, sizeof nan);
    return x != x ? nan : x;
}

/* ----------------------------------------------------------------- load --- */

/* To load bits and to widen them are two steps: see DTN_BATCH. */
DTN_INLINE uint32_t number_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTENSOR_F16: case DTENSOR_BF16: case DTENSOR_I16: case DTENSOR_U16:
        return 2;
    case DTENSOR_F32: case DTENSOR_I32: case DTENSOR_U32:
        return 4;
    case DTENSOR_F64: case DTENSOR_I64: case DTENSOR_U64:
        return 8;
    default:
        return 1;
    }
}

DTN_INLINE uint32_t load_f32(uint32_t bytes, const void *at)
{
    return bytes == 4 ? *(const uint32_t *)at
         : bytes == 2 ? *(const uint16_t *)at : *(const uint8_t *)at;
}

DTN_INLINE uint64_t load_i64(uint32_t bytes, const void *at)
{
    return bytes == 8 ? *(const uint64_t *)at : load_f32(bytes, at);
}

DTN_INLINE uint64_t load_f64(uint32_t bytes, const void *at)
{
    return *(const uint64_t *)at;
}

DTN_INLINE uint64_t load_u64(uint32_t bytes, const void *at)
{
    return *(const uint64_t *)at;
}

/* What the bits of an element of the type are. */
DTN_INLINE float widen_f32(uint32_t dtype, uint32_t bits)
{
    switch (dtype) {
    case DTENSOR_F16:    return dtn_f16_widen((uint16_t)bits);
    case DTENSOR_BF16:   return dtn_bf16_widen((uint16_t)bits);
    case DTENSOR_F8E4M3: return dtn_f8e4m3_widen((uint8_t)bits);
    case DTENSOR_F8E5M2: return dtn_f8e5m2_widen((uint8_t)bits);
    default:             return dtn_narrow_float(bits);
    }
}

DTN_INLINE double widen_f64(uint32_t dtype, uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

DTN_INLINE int64_t widen_i64(uint32_t dtype, uint64_t bits)
{
    switch (dtype) {
    case DTENSOR_I8:   return (int8_t)bits;
    case DTENSOR_I16:  return (int16_t)bits;
    case DTENSOR_I32:  return (int32_t)bits;
    case DTENSOR_BOOL: return bits != 0;
    default:           return (int64_t)bits;
    }
}

DTN_INLINE uint64_t widen_u64(uint32_t dtype, uint64_t bits)
{
    return bits;
}

/* An f32 or f64 of any type of float. */
DTN_INLINE double widen_float(uint32_t dtype, uint64_t bits)
{
    return dtype == DTENSOR_F64 ? widen_f64(dtype, bits)
                                : (double)widen_f32(dtype, (uint32_t)bits);
}

/* Both steps at once. */
#define DTN_GET(kind, T, load)                                                \
    DTN_INLINE T get_##kind(uint32_t dtype, const void *at)                   \
    {                                                                         \
        return widen_##kind(dtype, load(number_bytes(dtype), at));            \
    }
DTN_GET(f32, float, load_f32)
DTN_GET(f64, double, load_f64)
DTN_GET(i64, int64_t, load_i64)
DTN_GET(float, double, load_i64)

/* ---------------------------------------------------------------- store --- */

DTN_INLINE void put_f32(uint32_t dtype, void *at, float value)
{
    const float x = number_f32(value);

    switch (dtype) {
    case DTENSOR_F16:    *(uint16_t *)at = dtn_f16_narrow(x); break;
    case DTENSOR_BF16:   *(uint16_t *)at = dtn_bf16_narrow(x); break;
    case DTENSOR_F8E4M3: *(uint8_t *)at = dtn_f8e4m3_narrow(x); break;
    case DTENSOR_F8E5M2: *(uint8_t *)at = dtn_f8e5m2_narrow(x); break;
    default:             *(float *)at = x;
    }
}

DTN_INLINE void put_f64(uint32_t dtype, void *at, double value)
{
    *(double *)at = number_f64(value);
}

/* The lowest bits; bool is whether it differs from 0. */
DTN_INLINE void put_i64(uint32_t dtype, void *at, int64_t x)
{
    switch (dtype) {
    case DTENSOR_I8: case DTENSOR_U8:
        *(uint8_t *)at = (uint8_t)x;
        break;
    case DTENSOR_I16: case DTENSOR_U16:
        *(uint16_t *)at = (uint16_t)x;
        break;
    case DTENSOR_I32: case DTENSOR_U32:
        *(uint32_t *)at = (uint32_t)x;
        break;
    case DTENSOR_BOOL: *(uint8_t *)at = x != 0; break;
    default:           *(int64_t *)at = x;
    }
}

DTN_INLINE void put_u64(uint32_t dtype, void *at, uint64_t x)
{
    *(uint64_t *)at = x;
}

/* A double, rounded once, or to f32 first if the type is narrow. */
DTN_INLINE void put_float(uint32_t dtype, void *at, double value)
{
    if (dtype == DTENSOR_F64)
        put_f64(dtype, at, value);
    else
        put_f32(dtype, at, (float)value);
}

#endif
