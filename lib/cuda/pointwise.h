/* pointwise.h - the kernels that compute element by element, and casts
 *
 * A thread makes one element of the result at a time, of arrays that may be
 * strided or broadcast.  What it does with it is in math/pointwise_list.h.  The
 * function is an argument, the same for all threads, and so is the type.
 */
#ifndef DTN_CUDA_POINTWISE_H
#define DTN_CUDA_POINTWISE_H

#include "cuda/numbers.h"
#include "cuda/spots.h"
#include "math/functions.h"
#include "math/integers.h"
#include "math/pointwise.h"
#include "math/pointwise_list.h"

#include <stdbool.h>
#include <string.h>

DTN_INLINE const void *operand_at(const struct dtn_pointwise_args *args,
                                  const struct dtn_spots *spot, int i)
{
    return (const char *)args->in[i] + spot->at[1 + i];
}

/* ------------------------------------------------------------ functions --- */

#define DTN_CASE(OP, name, kind, T, TO, expression)                           \
    case DTN_##OP: {                                                          \
        const TO made = (TO)(expression);                                     \
                                                                              \
        memcpy(to, &made, sizeof made);                                       \
        break;                                                                \
    }

/* Elements of type `t` were widened to T; `to` is a T, or a byte for a
 * comparison.
 */
#define DTN_APPLY(kind, T, rows)                                              \
    DTN_INLINE void apply_##kind(uint32_t op, uint32_t t, void *to, T x, T y, \
                                 T z, T p, T q)                               \
    {                                                                         \
        (void)t;                                                              \
        switch (op) {                                                         \
        rows                                                                  \
        default:                                                              \
            break;                                                            \
        }                                                                     \
    }
DTN_APPLY(f32, float, DTN_POINTWISE_FLOAT(DTN_CASE, f32, float)
          DTN_CASE(GELU, gelu, f32, float, float, t == DTENSOR_BF16
                   ? dtn_gelu_bf16(x) : dtn_gelu_f32(x))
          DTN_CASE(SIN, sin, f32, float, float, dtn_sine_any_f32(x, 0))
          DTN_CASE(COS, cos, f32, float, float, dtn_sine_any_f32(x, 1)))
DTN_APPLY(f64, double, DTN_POINTWISE_FLOAT(DTN_CASE, f64, double)
          DTN_POINTWISE_GELU(DTN_CASE, f64, double)
          DTN_CASE(SIN, sin, f64, double, double, dtn_sine_any_f64(x, 0))
          DTN_CASE(COS, cos, f64, double, double, dtn_sine_any_f64(x, 1)))
DTN_APPLY(i64, int64_t, DTN_POINTWISE_INTEGER(DTN_CASE, i64, int64_t))
DTN_APPLY(u64, uint64_t, DTN_POINTWISE_INTEGER(DTN_CASE, u64, uint64_t))

#define DTN_POINTWISE_KERNEL(kind, T)                                         \
    DTN_KERNEL(pointwise_##kind, pointwise_args)                              \
    {                                                                         \
        const bool compares = args->op >= DTN_LT && args->op <= DTN_NE;       \
        T p, q;                                                               \
                                                                              \
        memcpy(&p, &args->p, sizeof p);                                       \
        memcpy(&q, &args->q, sizeof q);                                       \
        for (uint64_t i = at.first; i < args->grid.count; i += at.step) {     \
            const struct dtn_spots spot = spot_of(&args->grid, i);             \
            void *to = (char *)args->out + spot.at[0];                        \
            const uint32_t t = args->dtype;                                   \
            const T x = get_##kind(t, operand_at(args, &spot, 0));           \
            T y = x, z = x, made = 0;                                         \
                                                                              \
            if (args->nin > 1)                                                \
                y = get_##kind(t, operand_at(args, &spot, 1));               \
            if (args->nin > 2)                                                \
                z = get_##kind(t, operand_at(args, &spot, 2));               \
            apply_##kind(args->op, t, &made, x, y, z, p, q);                  \
            if (compares)                                                     \
                memcpy(to, &made, 1);                                         \
            else                                                              \
                put_##kind(t, to, made);                                    \
        }                                                                     \
    }
DTN_POINTWISE_KERNEL(f32, float)
DTN_POINTWISE_KERNEL(f64, double)
DTN_POINTWISE_KERNEL(i64, int64_t)
DTN_POINTWISE_KERNEL(u64, uint64_t)

/* ---------------------------------------------------------------- where --- */

/* Elements of `bytes` bytes, whatever they mean. */
DTN_INLINE void element_copy(uint32_t bytes, void *to, const void *from)
{
    switch (bytes) {
    case 1: *(uint8_t *)to = *(const uint8_t *)from; break;
    case 2: *(uint16_t *)to = *(const uint16_t *)from; break;
    case 4: *(uint32_t *)to = *(const uint32_t *)from; break;
    case 8: *(uint64_t *)to = *(const uint64_t *)from; break;
    default:
        ((uint64_t *)to)[0] = ((const uint64_t *)from)[0];
        ((uint64_t *)to)[1] = ((const uint64_t *)from)[1];
    }
}

DTN_KERNEL(where, pointwise_args)
{
    for (uint64_t i = at.first; i < args->grid.count; i += at.step) {
        const struct dtn_spots spot = spot_of(&args->grid, i);
        const bool holds = *(const uint8_t *)operand_at(args, &spot, 0);

        element_copy(args->dtype, (char *)args->out + spot.at[0],
                     holds ? operand_at(args, &spot, 1)
                           : operand_at(args, &spot, 2));
    }
}

/* ----------------------------------------------------------------- cast --- */

/* See integer_of() of math/cast.c. */
DTN_INLINE int64_t whole_of(const struct dtn_cast_args *args, double x)
{
    if (args->truth)
        return x != 0;
    if (x != x)
        return 0;
    if (x >= (double)args->most)
        return (int64_t)args->most;
    if (x <= (double)args->least)
        return args->least;
    return x < 0x1p63 ? (int64_t)x : (int64_t)(uint64_t)x;
}

/* A float becomes `to`, through f32 if that is f32 or narrower. */
DTN_INLINE void cast_float(const struct dtn_cast_args *args, void *to, double x)
{
    if (args->is_float)
        put_float(args->to, to, x);
    else
        put_i64(args->to, to, whole_of(args, x));
}

DTN_INLINE void cast_whole(const struct dtn_cast_args *args, void *to,
                           int64_t x)
{
    const bool u64 = args->from == DTENSOR_U64;

    if (!args->is_float)
        put_i64(args->to, to, x);
    else if (args->to == DTENSOR_F64)
        *(double *)to = u64 ? (double)(uint64_t)x : (double)x;
    else
        put_f32(args->to, to, u64 ? (float)(uint64_t)x : (float)x);
}

DTN_KERNEL(cast, cast_args)
{
    for (uint64_t i = at.first; i < args->grid.count; i += at.step) {
        const struct dtn_spots spot = spot_of(&args->grid, i);
        void *to = (char *)args->out + spot.at[0];
        const void *in = (const char *)args->in + spot.at[1];

        if (args->was_float)
            cast_float(args, to, get_float(args->from, in));
        else
            cast_whole(args, to, get_i64(args->from, in));
    }
}

#endif
