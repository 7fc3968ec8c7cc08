/* pointwise.h - the kernels that compute element by element, and casts
 *
 * A thread makes one element of the result at a time, of arrays that may be
 * strided or broadcast.  What it does with it is in math/pointwise_list.h.  The
 * function is an argument, the same for all threads, and so is the type.
 */
#ifndef DTN_CUDA_POINTWISE_H
#define DTN_CUDA_POINTWISE_H

#include "cuda/fours.h"
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

/* ------------------------------------------------------ fours of floats --- */

/* Where no array has gaps a thread makes four neighbours.  It asks once for the
 * type and the function, of which the answers take longer than most functions.
 */
#define DTN_CASE_FOUR(OP, name, kind, T, TO, expression)                      \
    case DTN_##OP:                                                            \
        DTN_UNROLL                                                            \
        for (int k = 0; k < 4; k++) {                                         \
            const float x = to[k], y = ys[k], z = zs[k];                      \
            const TO made = (TO)(expression);                                 \
                                                                              \
            (void)y;                                                          \
            (void)z;                                                          \
            memcpy(&to[k], &made, sizeof made);                               \
        }                                                                     \
        break;

/* `to` are the operands x, and then the results. */
DTN_INLINE void apply_four(uint32_t op, uint32_t t, float to[4],
                           const float ys[4], const float zs[4], float p,
                           float q)
{
    switch (op) {
    DTN_POINTWISE_FLOAT(DTN_CASE_FOUR, f32, float)
    DTN_CASE_FOUR(GELU, gelu, f32, float, float, t == DTENSOR_BF16
                  ? dtn_gelu_bf16(x) : dtn_gelu_f32(x))
    DTN_CASE_FOUR(SIN, sin, f32, float, float, dtn_sine_any_f32(x, 0))
    DTN_CASE_FOUR(COS, cos, f32, float, float, dtn_sine_any_f32(x, 1))
    default:
        break;
    }
}

DTN_INLINE void pointwise_fours(const struct dtn_pointwise_args *args,
                                struct dtn_thread at)
{
    const bool compares = args->op >= DTN_LT && args->op <= DTN_NE;
    const uint32_t t = args->dtype;
    float p, q;

    memcpy(&p, &args->p, sizeof p);
    memcpy(&q, &args->q, sizeof q);
    for (uint64_t u = at.first; u < args->fours; u += at.step) {
        char *out = (char *)args->out + 4 * (int64_t)u * args->grid.step[0];
        struct dtn_four_bits bits[3] = { { { 0, 0 } }, { { 0, 0 } },
                                         { { 0, 0 } } };
        float x[4], y[4] = { 0, 0, 0, 0 }, z[4] = { 0, 0, 0, 0 };

        DTN_UNROLL
        for (int i = 0; i < 3; i++)
            if (i < (int)args->nin)
                bits[i] = four_load(t, (const char *)args->in[i] + 4
                                       * (int64_t)u * args->grid.step[1 + i],
                                    args->grid.step[1 + i] == 0);
        four_widen(t, bits[0], args->grid.step[1] == 0, x);
        if (args->nin > 1)
            four_widen(t, bits[1], args->grid.step[2] == 0, y);
        if (args->nin > 2)
            four_widen(t, bits[2], args->grid.step[3] == 0, z);
        apply_four(args->op, t, x, y, z, p, q);
        if (compares)
            four_bytes(out, x);
        else
            four_put(t, out, x);
    }
}

/* ------------------------------------------------------------ kernels --- */

DTN_INLINE uint64_t pointwise_f32_first(const struct dtn_pointwise_args *args,
                                        struct dtn_thread at)
{
    pointwise_fours(args, at);
    return at.first + 4 * args->fours;
}

#define DTN_ALL_ELEMENTS(args, at) ((at).first)

/* `from` is the first element of this thread that is not made otherwise. */
#define DTN_POINTWISE_KERNEL(kind, T, BITS, from)                             \
    DTN_INLINE void compute_##kind(const struct dtn_pointwise_args *args,     \
                                   uint64_t i, BITS x, BITS y, BITS z)        \
    {                                                                         \
        const bool compares = args->op >= DTN_LT && args->op <= DTN_NE;       \
        const uint32_t t = args->dtype;                                       \
        void *to = (char *)args->out + spot_of(&args->grid, i).at[0];         \
        T p, q, made = 0;                                                     \
                                                                              \
        memcpy(&p, &args->p, sizeof p);                                       \
        memcpy(&q, &args->q, sizeof q);                                       \
        apply_##kind(args->op, t, &made, widen_##kind(t, x),                  \
                     widen_##kind(t, y), widen_##kind(t, z), p, q);           \
        if (compares)                                                         \
            memcpy(to, &made, 1);                                             \
        else                                                                  \
            put_##kind(t, to, made);                                          \
    }                                                                         \
    DTN_KERNEL(pointwise_##kind, pointwise_args)                              \
    {                                                                         \
        const uint64_t count = args->grid.count, step = at.step;              \
        const uint32_t bytes = number_bytes(args->dtype);                     \
                                                                              \
        for (uint64_t i = from(args, at); i < count; i += DTN_BATCH * step) { \
            BITS x[DTN_BATCH], y[DTN_BATCH], z[DTN_BATCH];                    \
                                                                              \
            DTN_UNROLL                                                        \
            for (int k = 0; k < DTN_BATCH; k++) {                             \
                const struct dtn_spots spot = spot_of(                        \
                    &args->grid, in_batch(count, i, k, step));                \
                                                                              \
                x[k] = load_##kind(bytes, operand_at(args, &spot, 0));        \
                y[k] = z[k] = 0;                                              \
                if (args->nin > 1)                                            \
                    y[k] = load_##kind(bytes, operand_at(args, &spot, 1));    \
                if (args->nin > 2)                                            \
                    z[k] = load_##kind(bytes, operand_at(args, &spot, 2));    \
            }                                                                 \
            DTN_ROLLED                                                        \
            for (uint64_t e = i, n = 0; n < DTN_BATCH && e < count;           \
                 n++, e += step) {                                            \
                compute_##kind(args, e, x[0], y[0], z[0]);                    \
                DTN_UNROLL                                                    \
                for (int k = 1; k < DTN_BATCH; k++) {                         \
                    x[k - 1] = x[k];                                          \
                    y[k - 1] = y[k];                                          \
                    z[k - 1] = z[k];                                          \
                }                                                             \
            }                                                                 \
        }                                                                     \
    }
DTN_POINTWISE_KERNEL(f32, float, uint32_t, pointwise_f32_first)
DTN_POINTWISE_KERNEL(f64, double, uint64_t, DTN_ALL_ELEMENTS)
DTN_POINTWISE_KERNEL(i64, int64_t, uint64_t, DTN_ALL_ELEMENTS)
DTN_POINTWISE_KERNEL(u64, uint64_t, uint64_t, DTN_ALL_ELEMENTS)

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
    const uint64_t count = args->grid.count, step = at.step;
    const uint32_t bytes = number_bytes(args->from);

    for (uint64_t i = at.first; i < count; i += DTN_BATCH * step) {
        uint64_t x[DTN_BATCH];

        DTN_UNROLL
        for (int k = 0; k < DTN_BATCH; k++) {
            const struct dtn_spots spot = spot_of(
                &args->grid, in_batch(count, i, k, step));

            x[k] = load_i64(bytes, (const char *)args->in + spot.at[1]);
        }
        DTN_UNROLL
        for (int k = 0; k < DTN_BATCH; k++) {
            const uint64_t e = i + (uint64_t)k * step;
            void *to = (char *)args->out + spot_of(&args->grid, e).at[0];

            if (e < count && args->was_float)
                cast_float(args, to, widen_float(args->from, x[k]));
            else if (e < count)
                cast_whole(args, to, widen_i64(args->from, x[k]));
        }
    }
}

#endif
