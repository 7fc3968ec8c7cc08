/* fours.h - vectorized loads and stores: four consecutive floats of any type
 *
 * They are 16 bytes of f32, 8 of f16 or bf16, 4 of f8, and begin at a multiple
 * of that.
 */
#ifndef DTN_CUDA_FOURS_H
#define DTN_CUDA_FOURS_H

#include "cuda/device.h"
#include "cuda/halves.h"
#include "cuda/numbers.h"

#include <stdbool.h>
#include <stdint.h>

/* Their bits, one below the other as in memory. */
struct dtn_four_bits {
    uint64_t half[2];                  /* the first is of lower elements      */
};

/* `one`: four times the same element. */
DTN_INLINE struct dtn_four_bits four_load(uint32_t dtype, const void *at,
                                          bool one)
{
    const uint32_t bytes = number_bytes(dtype);
    struct dtn_four_bits bits = { { 0, 0 } };

    if (one) {
        bits.half[0] = load_f32(bytes, at);
    } else if (bytes == 4) {
        const struct dtn_quad quad = *(const struct dtn_quad *)at;

        bits.half[0] = quad.word[0] | (uint64_t)quad.word[1] << 32;
        bits.half[1] = quad.word[2] | (uint64_t)quad.word[3] << 32;
    } else {
        bits.half[0] = bytes == 2 ? *(const uint64_t *)at
                                  : *(const uint32_t *)at;
    }
    return bits;
}

DTN_INLINE void four_widen(uint32_t dtype, struct dtn_four_bits bits, bool one,
                           float x[4])
{
    const uint32_t bytes = number_bytes(dtype);

    if (one) {
        x[0] = x[1] = x[2] = x[3] = widen_f32(dtype, (uint32_t)bits.half[0]);
    } else if (bytes == 4) {
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = dtn_narrow_float((uint32_t)(bits.half[k / 2]
                                               >> 32 * (k % 2)));
    } else if (dtype == DTENSOR_BF16) {
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = dtn_bf16_widen((uint16_t)(bits.half[0] >> 16 * k));
    } else if (dtype == DTENSOR_F16) {
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = f16_to_f32((uint16_t)(bits.half[0] >> 16 * k));
    } else {
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = widen_f32(dtype, (uint8_t)(bits.half[0] >> 8 * k));
    }
}

/* As put_f32() does it. */
DTN_INLINE void four_put_f32(void *at, const float values[4])
{
    struct dtn_quad quad;

    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        quad.word[k] = dtn_narrow_bits(number_f32(values[k]));
    *(struct dtn_quad *)at = quad;
}

DTN_INLINE void four_put_f8(uint32_t dtype, void *at, const float values[4])
{
    uint32_t bits = 0;

    DTN_UNROLL
    for (int k = 0; k < 4; k++) {
        const float x = number_f32(values[k]);

        bits |= (uint32_t)(dtype == DTENSOR_F8E4M3 ? dtn_f8e4m3_narrow(x)
                                                   : dtn_f8e5m2_narrow(x))
             << 8 * k;
    }
    *(uint32_t *)at = bits;
}

DTN_INLINE void four_put(uint32_t dtype, void *at, const float x[4])
{
    switch (dtype) {
    case DTENSOR_F32:
        four_put_f32(at, x);
        break;
    case DTENSOR_BF16:
        *(uint64_t *)at = bf16_pair(x[0], x[1])
                        | (uint64_t)bf16_pair(x[2], x[3]) << 32;
        break;
    case DTENSOR_F16:
        *(uint64_t *)at = f16_pair(x[0], x[1])
                        | (uint64_t)f16_pair(x[2], x[3]) << 32;
        break;
    default:
        four_put_f8(dtype, at, x);
    }
}

/* The first byte of each, which is a truth. */
DTN_INLINE void four_bytes(void *at, const float values[4])
{
    uint32_t bits = 0;

    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        bits |= (dtn_narrow_bits(values[k]) & 0xff) << 8 * k;
    *(uint32_t *)at = bits;
}

#endif
