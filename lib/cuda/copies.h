/* copies.h - the kernels that copy, set, compare, count and drop elements */
#ifndef DTN_CUDA_COPIES_H
#define DTN_CUDA_COPIES_H

#include "base/narrow.h"
#include "cuda/places.h"
#include "dtensor.h"

#include <stdbool.h>

/* ---------------------------------------------------------------- boxes --- */

#define DTN_COPY(name, T)                                                     \
    DTN_KERNEL(name, copy_args)                                               \
    {                                                                         \
        const uint64_t units = args->box.units, step = at.step;               \
                                                                              \
        for (uint64_t u = at.first; u < units; u += DTN_BATCH * step) {       \
            T *to[DTN_BATCH], x[DTN_BATCH];                                   \
                                                                              \
            DTN_UNROLL                                                        \
            for (int k = 0; k < DTN_BATCH; k++) {                             \
                const struct dtn_where place = place_of(                      \
                    &args->box, in_batch(units, u, k, step));                 \
                                                                              \
                to[k] = (T *)((char *)args->dst + place.dst) + place.unit;    \
                x[k] = ((const T *)((const char *)args->src + place.src))     \
                    [place.unit];                                             \
            }                                                                 \
            DTN_UNROLL                                                        \
            for (int k = 0; k < DTN_BATCH; k++)                               \
                if (u + (uint64_t)k * step < units)                           \
                    *to[k] = x[k];                                            \
        }                                                                     \
    }
DTN_COPY(copy_1, uint8_t)
DTN_COPY(copy_2, uint16_t)
DTN_COPY(copy_4, uint32_t)
DTN_COPY(copy_8, uint64_t)
DTN_COPY(copy_16, struct dtn_quad)

/* -------------------------------------------------------------- pattern --- */

/* Units of 16 bytes; the last unit is the bytes before and after them. */
DTN_KERNEL(pattern, pattern_args)
{
    const uint64_t quads = (args->bytes - args->head) / 16;
    const uint64_t tail = args->head + 16 * quads;
    union {
        struct dtn_quad quad;
        uint64_t half[2];
    } both;

    both.half[0] = args->pattern[0];
    both.half[1] = args->pattern[1];
    for (uint64_t u = at.first; u < quads; u += at.step)
        ((struct dtn_quad *)((char *)args->dst + args->head))[u] = both.quad;
    for (uint64_t u = at.first; u < 32; u += at.step) {
        const uint64_t i = u < 16 ? u : tail + u - 16;
        const uint64_t byte = (u - args->head) % 16;
        const uint64_t mine = u < 16 ? byte : u - 16;

        if (u < 16 ? i < args->head : i < args->bytes)
            ((uint8_t *)args->dst)[i] = (uint8_t)(args->pattern[mine / 8]
                                                  >> 8 * (mine % 8));
    }
}

/* ---------------------------------------------------------------- equal --- */

#define DTN_EQUAL(name, T)                                                    \
    DTN_KERNEL(name, equal_args)                                              \
    {                                                                         \
        const T mask = (T)args->mask, limit = (T)args->limit;                 \
        bool differ = false;                                                  \
                                                                              \
        for (uint64_t i = at.first; i < args->count; i += at.step) {          \
            const T a = ((const T *)args->left)[i];                           \
            const T b = ((const T *)args->right)[i];                          \
            const T x = a & mask, y = b & mask;                               \
                                                                              \
            differ |= !((a == b && x <= limit) || (x | y) == 0);              \
        }                                                                     \
        if (differ)                                                           \
            *args->differ = 1;                                                \
    }
DTN_EQUAL(equal_1, uint8_t)
DTN_EQUAL(equal_2, uint16_t)
DTN_EQUAL(equal_4, uint32_t)
DTN_EQUAL(equal_8, uint64_t)

/* --------------------------------------------------------------- arange --- */

/* As dtn_store() rounds it; of an integer its lowest bits. */
DTN_INLINE void arange_store(uint32_t dtype, void *to, uint64_t i,
                             int64_t value)
{
    const double exact = (double)value;
    const float single = (float)exact;

    switch (dtype) {
    case DTENSOR_F32:    ((float *)to)[i] = single; break;
    case DTENSOR_F64:    ((double *)to)[i] = exact; break;
    case DTENSOR_F16:    ((uint16_t *)to)[i] = dtn_f16_narrow(single); break;
    case DTENSOR_BF16:   ((uint16_t *)to)[i] = dtn_bf16_narrow(single); break;
    case DTENSOR_F8E4M3: ((uint8_t *)to)[i] = dtn_f8e4m3_narrow(single); break;
    case DTENSOR_F8E5M2: ((uint8_t *)to)[i] = dtn_f8e5m2_narrow(single); break;
    case DTENSOR_C64:
        ((float *)to)[2 * i] = single;
        ((float *)to)[2 * i + 1] = 0;
        break;
    case DTENSOR_C128:
        ((double *)to)[2 * i] = exact;
        ((double *)to)[2 * i + 1] = 0;
        break;
    case DTENSOR_BOOL: ((uint8_t *)to)[i] = value != 0; break;
    case DTENSOR_I8: case DTENSOR_U8:
        ((uint8_t *)to)[i] = (uint8_t)value;
        break;
    case DTENSOR_I16: case DTENSOR_U16:
        ((uint16_t *)to)[i] = (uint16_t)value;
        break;
    case DTENSOR_I32: case DTENSOR_U32:
        ((uint32_t *)to)[i] = (uint32_t)value;
        break;
    default: ((uint64_t *)to)[i] = (uint64_t)value;
    }
}

DTN_KERNEL(arange, arange_args)
{
    for (uint64_t i = at.first; i < args->count; i += at.step)
        arange_store(args->dtype, args->dst, i, args->first + (int64_t)i);
}

/* -------------------------------------------------------------- dropout --- */

DTN_INLINE float dropped_f32(float x, bool keep, float scale)
{
    const float y = keep ? x * scale : 0.0f * x;

    return y != y ? dtn_narrow_float(0x7fc00000) : y;
}

DTN_INLINE double dropped_f64(double x, bool keep, double scale)
{
    const double y = keep ? x * scale : 0.0 * x;
    const uint64_t bits = 0x7ff8000000000000;
    double nan;

    memcpy(&nan, &bits, sizeof nan);
    return y != y ? nan : y;
}

#define DTN_DROPOUT(name, T, real, dropped, widen, narrow)                    \
    DTN_KERNEL(name, dropout_args)                                            \
    {                                                                         \
        const uint8_t *keep = (const uint8_t *)args->keep;                    \
        const real scale = (real)args->scale;                                 \
                                                                              \
        for (uint64_t i = at.first; i < args->count; i += at.step)            \
            ((T *)args->dst)[i] = narrow(dropped(                             \
                widen(((const T *)args->in)[i]), keep[i] != 0, scale));       \
    }
DTN_DROPOUT(dropout_f32, float, float, dropped_f32, , )
DTN_DROPOUT(dropout_f64, double, double, dropped_f64, , )
DTN_DROPOUT(dropout_f16, uint16_t, float, dropped_f32, dtn_f16_widen,
            dtn_f16_narrow)
DTN_DROPOUT(dropout_bf16, uint16_t, float, dropped_f32, dtn_bf16_widen,
            dtn_bf16_narrow)
DTN_DROPOUT(dropout_f8e4m3, uint8_t, float, dropped_f32, dtn_f8e4m3_widen,
            dtn_f8e4m3_narrow)
DTN_DROPOUT(dropout_f8e5m2, uint8_t, float, dropped_f32, dtn_f8e5m2_widen,
            dtn_f8e5m2_narrow)

#endif
