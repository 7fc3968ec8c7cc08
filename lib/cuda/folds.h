/* folds.h - the kernels that fold terms: reductions, averages, products
 *
 * A thread takes 16 bytes of elements: 8 bf16, say.  It loads them from each
 * source, in order, keeps 8 sums in f32, and stores them as bf16 once, to each
 * destination.  The operation is the same for all threads, so to ask which
 * costs little beside loading.
 *
 * A GPU makes other NaNs than a CPU.  They stay NaNs to the end, where they
 * become the one that lib/base/reduce.c makes.
 */
#ifndef DTN_CUDA_FOLDS_H
#define DTN_CUDA_FOLDS_H

#include "base/narrow.h"
#include "cuda/halves.h"
#include "cuda/places.h"

#include <stdbool.h>

/* -------------------------------------------------------------- numbers --- */

DTN_INLINE double f64_from(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

DTN_INLINE uint64_t f64_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A NaN of a division keeps its bits and becomes quiet, or becomes the one. */
DTN_INLINE float f32_nan(float x, bool one)
{
    return dtn_narrow_float(one ? 0x7fc00000
                                : dtn_narrow_bits(x) | 0x00400000);
}

DTN_INLINE double f64_nan(double x, bool one)
{
    return f64_from(one ? 0x7ff8000000000000
                        : f64_bits(x) | 0x0008000000000000);
}

/* The result of a float: divided if it is an average. */
#define DTN_FLOAT_END(name, T)                                                \
    DTN_INLINE T name##_end(const struct dtn_fold_args *args, T x)            \
    {                                                                         \
        const bool one = args->flags & DTN_FOLD_ONE_NAN;                      \
                                                                              \
        if (x != x)                                                           \
            return one || args->divisor != 0 ? name##_nan(x, one) : x;        \
        return args->divisor != 0 ? x / (T)args->divisor : x;                 \
    }
DTN_FLOAT_END(f32, float)
DTN_FLOAT_END(f64, double)

/* ---------------------------------------------------------------- lanes --- */

#define DTN_EACH(COUNT, statement)                                            \
    do {                                                                      \
        DTN_UNROLL                                                            \
        for (int k = 0; k < COUNT; k++) {                                     \
            statement;                                                        \
        }                                                                     \
    } while (0)

/* The address of this thread's elements in a source, or a destination. */
DTN_INLINE const char *fold_from(const struct dtn_fold_args *args,
                                 struct dtn_where place, int s, uint64_t bytes)
{
    const bool onto = s == 0 && args->flags & DTN_FOLD_ONTO_DST;

    return (const char *)args->src[s] + (onto ? place.dst : place.src)
         + place.unit * bytes;
}

DTN_INLINE char *fold_to(const struct dtn_fold_args *args,
                         struct dtn_where place, int d, uint64_t bytes)
{
    return (char *)args->dst[d] + place.dst + place.unit * bytes;
}

/* Which flags are about source s. */
DTN_INLINE uint32_t fold_is(const struct dtn_fold_args *args, int s,
                            uint32_t first, uint32_t rest)
{
    return args->flags & (s == 0 ? first : rest);
}

/* name_terms(): this thread's elements of source s, in the type W.  `widen`
 * converts an element, E; `times` multiplies by the factor.
 */
#define DTN_TERMS(name, E, W, COUNT, widen, times)                            \
    DTN_LOAD(name##_load, E, COUNT)                                           \
    DTN_LOAD(name##_load_wide, W, COUNT)                                      \
    DTN_STORE(name##_store, E, COUNT)                                         \
    DTN_STORE(name##_store_wide, W, COUNT)                                    \
    DTN_INLINE void name##_terms(const struct dtn_fold_args *args,            \
                                 struct dtn_where place, bool whole, int n,   \
                                 int s, W x[COUNT])                           \
    {                                                                         \
        E e[COUNT];                                                           \
                                                                              \
        if (fold_is(args, s, DTN_FOLD_WIDE_FIRST, DTN_FOLD_WIDE_REST)) {      \
            name##_load_wide(fold_from(args, place, s, COUNT * sizeof(W)),    \
                             whole, n, x);                                    \
            return;                                                           \
        }                                                                     \
        name##_load(fold_from(args, place, s, COUNT * sizeof(E)), whole, n,   \
                    e);                                                       \
        DTN_EACH(COUNT, x[k] = widen(e[k], args));                            \
        if (fold_is(args, s, DTN_FOLD_TIMES_FIRST, DTN_FOLD_TIMES_REST))      \
            DTN_EACH(COUNT, x[k] = times(x[k], args->factor));                \
    }

/* name_unit(): fold this thread's elements.  `fold` folds lanes, `end` finishes
 * one of them, `narrow` rounds it to an element.
 */
#define DTN_UNIT(name, E, W, COUNT, fold, end, narrow)                        \
    DTN_INLINE void name##_unit(const struct dtn_fold_args *args, uint64_t u) \
    {                                                                         \
        const struct dtn_where place = place_of(&args->box, u);               \
        const uint64_t left = args->box.run - place.unit * COUNT;             \
        const int n = left < COUNT ? (int)left : COUNT;                       \
        const bool whole = n == COUNT && args->flags & DTN_FOLD_ALIGNED;      \
        W sum[COUNT], term[COUNT];                                            \
        E e[COUNT];                                                           \
                                                                              \
        name##_terms(args, place, whole, n, 0, sum);                          \
        for (int s = 1; s < args->nsrc; s++) {                                \
            name##_terms(args, place, whole, n, s, term);                     \
            fold(args->op, sum, term);                                        \
        }                                                                     \
        DTN_EACH(COUNT, sum[k] = end(args, sum[k]));                          \
        DTN_EACH(COUNT, e[k] = narrow(sum[k]));                               \
        for (int d = 0; d < args->ndst; d++)                                  \
            if (args->flags & DTN_FOLD_WIDE_DST)                              \
                name##_store_wide(fold_to(args, place, d,                     \
                                          COUNT * sizeof(W)), whole, n, sum); \
            else                                                              \
                name##_store(fold_to(args, place, d, COUNT * sizeof(E)),      \
                             whole, n, e);                                    \
    }

#define DTN_FOLD(name, E, W, COUNT, fold, end, narrow)                        \
    DTN_UNIT(name, E, W, COUNT, fold, end, narrow)                            \
    DTN_KERNEL(name, fold_args)                                               \
    {                                                                         \
        for (uint64_t u = at.first; u < args->box.units; u += at.step)        \
            name##_unit(args, u);                                             \
    }

/* ----------------------------------------------------------- flat sums --- */

/* name_flat(): the unit of a sum that has nothing special: see DTN_FOLD_FLAT.
 * Up to DTN_BATCH terms are loaded before the first is added.  -0 + x is x.
 */
#define DTN_FLAT(name, W, COUNT, widen, narrow)                               \
    DTN_INLINE void name##_flat(const struct dtn_fold_args *args, uint64_t u) \
    {                                                                         \
        struct dtn_quad quad[DTN_BATCH];                                      \
        W sum[COUNT], term[COUNT];                                            \
                                                                              \
        DTN_EACH(COUNT, sum[k] = -(W)0);                                      \
        for (int s = 0; s < args->nsrc; s += DTN_BATCH) {                     \
            DTN_UNROLL                                                        \
            for (int b = 0; b < DTN_BATCH; b++)                               \
                if (s + b < args->nsrc)                                       \
                    quad[b] = ((const struct dtn_quad *)args->src[s + b])[u]; \
            DTN_UNROLL                                                        \
            for (int b = 0; b < DTN_BATCH; b++)                               \
                if (s + b < args->nsrc) {                                     \
                    widen(quad[b], term);                                     \
                    DTN_EACH(COUNT, sum[k] = sum[k] + term[k]);               \
                }                                                             \
        }                                                                     \
        if (args->divisor != 0)                                               \
            DTN_EACH(COUNT, sum[k] = sum[k] / (W)args->divisor);              \
        quad[0] = narrow(sum);                                                \
        for (int d = 0; d < args->ndst; d++)                                  \
            ((struct dtn_quad *)args->dst[d])[u] = quad[0];                   \
    }

#define DTN_FOLD_FLOAT(name, E, W, COUNT, fold, end, narrow)                  \
    DTN_UNIT(name, E, W, COUNT, fold, end, narrow)                            \
    DTN_KERNEL(name, fold_args)                                               \
    {                                                                         \
        const uint64_t flat = args->flags & DTN_FOLD_FLAT                     \
                            ? args->box.run / COUNT : 0;                      \
                                                                              \
        for (uint64_t u = at.first; u < args->box.units; u += at.step)        \
            if (u < flat)                                                     \
                name##_flat(args, u);                                         \
            else                                                              \
                name##_unit(args, u);                                         \
    }

/* 16 bytes of elements as numbers, and back, where every NaN becomes one. */
DTN_INLINE void f32_from_quad(struct dtn_quad quad, float x[4])
{
    DTN_EACH(4, x[k] = dtn_narrow_float(quad.word[k]));
}

DTN_INLINE void f64_from_quad(struct dtn_quad quad, double x[2])
{
    DTN_EACH(2, x[k] = f64_from(quad.word[2 * k]
                                | (uint64_t)quad.word[2 * k + 1] << 32));
}

DTN_INLINE void f16_from_quad(struct dtn_quad quad, float x[8])
{
    DTN_EACH(8, x[k] = f16_to_f32((uint16_t)(quad.word[k / 2]
                                             >> 16 * (k % 2))));
}

DTN_INLINE void bf16_from_quad(struct dtn_quad quad, float x[8])
{
    DTN_EACH(8, x[k] = dtn_narrow_float(k % 2 ? quad.word[k / 2] & 0xffff0000
                                              : quad.word[k / 2] << 16));
}

DTN_INLINE struct dtn_quad f32_to_quad(const float x[4])
{
    struct dtn_quad quad;

    DTN_EACH(4, quad.word[k] = x[k] != x[k] ? 0x7fc00000
                                            : dtn_narrow_bits(x[k]));
    return quad;
}

DTN_INLINE struct dtn_quad f64_to_quad(const double x[2])
{
    struct dtn_quad quad;

    DTN_EACH(4, quad.word[k] = (uint32_t)(
        (x[k / 2] != x[k / 2] ? 0x7ff8000000000000 : f64_bits(x[k / 2]))
        >> 32 * (k % 2)));
    return quad;
}

DTN_INLINE struct dtn_quad f16_to_quad(const float x[8])
{
    struct dtn_quad quad;

    DTN_EACH(4, quad.word[k] = f16_pair(x[2 * k], x[2 * k + 1]));
    return quad;
}

DTN_INLINE struct dtn_quad bf16_to_quad(const float x[8])
{
    struct dtn_quad quad;

    DTN_EACH(4, quad.word[k] = bf16_pair(x[2 * k], x[2 * k + 1]));
    return quad;
}

DTN_FLAT(fold_f32, float, 4, f32_from_quad, f32_to_quad)
DTN_FLAT(fold_f64, double, 2, f64_from_quad, f64_to_quad)
DTN_FLAT(fold_f16, float, 8, f16_from_quad, f16_to_quad)
DTN_FLAT(fold_bf16, float, 8, bf16_from_quad, bf16_to_quad)

/* --------------------------------------------------------------- floats --- */

#define DTN_LANES_FLOAT(name, T, COUNT)                                       \
    DTN_INLINE void name(uint32_t op, T x[COUNT], const T y[COUNT])           \
    {                                                                         \
        switch (op) {                                                         \
        case DTN_FOLD_PROD:                                                   \
            DTN_EACH(COUNT, x[k] = x[k] * y[k]);                              \
            break;                                                            \
        case DTN_FOLD_MIN:                                                    \
            DTN_EACH(COUNT, x[k] = y[k] < x[k] || y[k] != y[k] ? y[k]         \
                                                               : x[k]);       \
            break;                                                            \
        case DTN_FOLD_MAX:                                                    \
            DTN_EACH(COUNT, x[k] = y[k] > x[k] || y[k] != y[k] ? y[k]         \
                                                               : x[k]);       \
            break;                                                            \
        default:                                                              \
            DTN_EACH(COUNT, x[k] = x[k] + y[k]);                              \
        }                                                                     \
    }
DTN_LANES_FLOAT(f32_lanes4, float, 4)
DTN_LANES_FLOAT(f32_lanes8, float, 8)
DTN_LANES_FLOAT(f32_lanes16, float, 16)
DTN_LANES_FLOAT(f64_lanes2, double, 2)

#define DTN_AS_IT_IS(x, ...) (x)
#define DTN_TIMES_F32(x, by) ((x) * (float)(by))
#define DTN_TIMES_F64(x, by) ((x) * (by))
#define DTN_WIDEN_F16(x, args) dtn_f16_widen(x)
#define DTN_WIDEN_BF16(x, args) dtn_bf16_widen(x)
#define DTN_WIDEN_F8E4M3(x, args) dtn_f8e4m3_widen(x)
#define DTN_WIDEN_F8E5M2(x, args) dtn_f8e5m2_widen(x)

DTN_TERMS(fold_f32, float, float, 4, DTN_AS_IT_IS, DTN_TIMES_F32)
DTN_FOLD_FLOAT(fold_f32, float, float, 4, f32_lanes4, f32_end, DTN_AS_IT_IS)
DTN_TERMS(fold_f64, double, double, 2, DTN_AS_IT_IS, DTN_TIMES_F64)
DTN_FOLD_FLOAT(fold_f64, double, double, 2, f64_lanes2, f64_end, DTN_AS_IT_IS)
DTN_TERMS(fold_f16, uint16_t, float, 8, DTN_WIDEN_F16, DTN_TIMES_F32)
DTN_FOLD_FLOAT(fold_f16, uint16_t, float, 8, f32_lanes8, f32_end,
               dtn_f16_narrow)
DTN_TERMS(fold_bf16, uint16_t, float, 8, DTN_WIDEN_BF16, DTN_TIMES_F32)
DTN_FOLD_FLOAT(fold_bf16, uint16_t, float, 8, f32_lanes8, f32_end,
               dtn_bf16_narrow)
DTN_TERMS(fold_f8e4m3, uint8_t, float, 16, DTN_WIDEN_F8E4M3, DTN_TIMES_F32)
DTN_FOLD(fold_f8e4m3, uint8_t, float, 16, f32_lanes16, f32_end,
         dtn_f8e4m3_narrow)
DTN_TERMS(fold_f8e5m2, uint8_t, float, 16, DTN_WIDEN_F8E5M2, DTN_TIMES_F32)
DTN_FOLD(fold_f8e5m2, uint8_t, float, 16, f32_lanes16, f32_end,
         dtn_f8e5m2_narrow)

/* ------------------------------------------------------------- integers --- */

/* U is unsigned, which wraps; S has its bits with a sign. */
#define DTN_LANES_INT(name, U, S, COUNT)                                      \
    DTN_INLINE void name(uint32_t op, U x[COUNT], const U y[COUNT])           \
    {                                                                         \
        switch (op) {                                                         \
        case DTN_FOLD_PROD:                                                   \
            DTN_EACH(COUNT, x[k] = (U)((uint64_t)x[k] * y[k]));               \
            break;                                                            \
        case DTN_FOLD_MIN:                                                    \
            DTN_EACH(COUNT, x[k] = y[k] < x[k] ? y[k] : x[k]);                \
            break;                                                            \
        case DTN_FOLD_MAX:                                                    \
            DTN_EACH(COUNT, x[k] = y[k] > x[k] ? y[k] : x[k]);                \
            break;                                                            \
        case DTN_FOLD_MIN_SIGNED:                                             \
            DTN_EACH(COUNT, x[k] = (S)y[k] < (S)x[k] ? y[k] : x[k]);          \
            break;                                                            \
        case DTN_FOLD_MAX_SIGNED:                                             \
            DTN_EACH(COUNT, x[k] = (S)y[k] > (S)x[k] ? y[k] : x[k]);          \
            break;                                                            \
        case DTN_FOLD_BAND:                                                   \
            DTN_EACH(COUNT, x[k] = (U)(x[k] & y[k]));                         \
            break;                                                            \
        case DTN_FOLD_BOR:                                                    \
            DTN_EACH(COUNT, x[k] = (U)(x[k] | y[k]));                         \
            break;                                                            \
        case DTN_FOLD_BXOR:                                                   \
            DTN_EACH(COUNT, x[k] = (U)(x[k] ^ y[k]));                         \
            break;                                                            \
        default:                                                              \
            DTN_EACH(COUNT, x[k] = (U)(x[k] + y[k]));                         \
        }                                                                     \
    }
DTN_LANES_INT(int8_lanes, uint8_t, int8_t, 16)
DTN_LANES_INT(int16_lanes, uint16_t, int16_t, 8)
DTN_LANES_INT(int32_lanes, uint32_t, int32_t, 4)
DTN_LANES_INT(int64_lanes, uint64_t, int64_t, 2)

#define DTN_UNCHANGED(args, x) (x)

DTN_TERMS(fold_int8, uint8_t, uint8_t, 16, DTN_AS_IT_IS, DTN_AS_IT_IS)
DTN_FOLD(fold_int8, uint8_t, uint8_t, 16, int8_lanes, DTN_UNCHANGED,
         DTN_AS_IT_IS)
DTN_TERMS(fold_int16, uint16_t, uint16_t, 8, DTN_AS_IT_IS, DTN_AS_IT_IS)
DTN_FOLD(fold_int16, uint16_t, uint16_t, 8, int16_lanes, DTN_UNCHANGED,
         DTN_AS_IT_IS)
DTN_TERMS(fold_int32, uint32_t, uint32_t, 4, DTN_AS_IT_IS, DTN_AS_IT_IS)
DTN_FOLD(fold_int32, uint32_t, uint32_t, 4, int32_lanes, DTN_UNCHANGED,
         DTN_AS_IT_IS)
DTN_TERMS(fold_int64, uint64_t, uint64_t, 2, DTN_AS_IT_IS, DTN_AS_IT_IS)
DTN_FOLD(fold_int64, uint64_t, uint64_t, 2, int64_lanes, DTN_UNCHANGED,
         DTN_AS_IT_IS)

/* ------------------------------------------------------------- averages --- */

/* Integers are added in 64 bits, and those of 64 bits in 128. */
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

#define DTN_LANES_AVERAGE(name, W, U, COUNT)                                  \
    DTN_INLINE void name(uint32_t op, W x[COUNT], const W y[COUNT])           \
    {                                                                         \
        DTN_EACH(COUNT, x[k] = (W)((U)x[k] + (U)y[k]));                       \
    }
DTN_LANES_AVERAGE(average_lanes16, int64_t, uint64_t, 16)
DTN_LANES_AVERAGE(average_lanes8, int64_t, uint64_t, 8)
DTN_LANES_AVERAGE(average_lanes4, int64_t, uint64_t, 4)
DTN_LANES_AVERAGE(average_lanes2, int128, uint128, 2)

/* 32 bits at a time, from the top; `by` < 2^31. */
DTN_INLINE int128 int128_over(int128 x, uint32_t by)
{
    const bool negative = x < 0;
    const uint128 size = negative ? -(uint128)x : (uint128)x;
    uint128 quotient = 0;
    uint64_t rest = 0;

    DTN_UNROLL
    for (int shift = 96; shift >= 0; shift -= 32) {
        rest = rest << 32 | (uint32_t)(size >> shift);
        quotient = quotient << 32 | (uint32_t)(rest / by);
        rest %= by;
    }
    return (int128)(negative ? -quotient : quotient);
}

DTN_INLINE int64_t average_end(const struct dtn_fold_args *args, int64_t x)
{
    return args->divisor != 0 ? x / args->divisor : x;
}

DTN_INLINE int128 average_end_128(const struct dtn_fold_args *args, int128 x)
{
    return args->divisor != 0 ? int128_over(x, (uint32_t)args->divisor) : x;
}

#define DTN_WIDEN_8(x, args)                                                  \
    ((args)->flags & DTN_FOLD_SIGNED ? (int64_t)(int8_t)(x) : (int64_t)(x))
#define DTN_WIDEN_16(x, args)                                                 \
    ((args)->flags & DTN_FOLD_SIGNED ? (int64_t)(int16_t)(x) : (int64_t)(x))
#define DTN_WIDEN_32(x, args)                                                 \
    ((args)->flags & DTN_FOLD_SIGNED ? (int64_t)(int32_t)(x) : (int64_t)(x))
#define DTN_WIDEN_64(x, args)                                                 \
    ((args)->flags & DTN_FOLD_SIGNED ? (int128)(int64_t)(x) : (int128)(x))

DTN_TERMS(average_int8, uint8_t, int64_t, 16, DTN_WIDEN_8, DTN_AS_IT_IS)
DTN_FOLD(average_int8, uint8_t, int64_t, 16, average_lanes16, average_end,
         (uint8_t))
DTN_TERMS(average_int16, uint16_t, int64_t, 8, DTN_WIDEN_16, DTN_AS_IT_IS)
DTN_FOLD(average_int16, uint16_t, int64_t, 8, average_lanes8, average_end,
         (uint16_t))
DTN_TERMS(average_int32, uint32_t, int64_t, 4, DTN_WIDEN_32, DTN_AS_IT_IS)
DTN_FOLD(average_int32, uint32_t, int64_t, 4, average_lanes4, average_end,
         (uint32_t))
DTN_TERMS(average_int64, uint64_t, int128, 2, DTN_WIDEN_64, DTN_AS_IT_IS)
DTN_FOLD(average_int64, uint64_t, int128, 2, average_lanes2, average_end_128,
         (uint64_t))

/* ----------------------------------------------------- complex products --- */

#define DTN_COMPLEX(name, T, COUNT, end)                                      \
    struct dtn_##name {                                                       \
        T re, im;                                                             \
    };                                                                        \
    DTN_INLINE void name##_lanes(uint32_t op, struct dtn_##name x[COUNT],     \
                                 const struct dtn_##name y[COUNT])            \
    {                                                                         \
        DTN_UNROLL                                                            \
        for (int k = 0; k < COUNT; k++) {                                     \
            const T re = x[k].re * y[k].re - x[k].im * y[k].im;               \
                                                                              \
            x[k].im = x[k].re * y[k].im + x[k].im * y[k].re;                  \
            x[k].re = re;                                                     \
        }                                                                     \
    }                                                                         \
    DTN_INLINE struct dtn_##name name##_end(const struct dtn_fold_args *args, \
                                            struct dtn_##name x)              \
    {                                                                         \
        x.re = end(args, x.re);                                               \
        x.im = end(args, x.im);                                               \
        return x;                                                             \
    }
DTN_COMPLEX(c64, float, 2, f32_end)
DTN_COMPLEX(c128, double, 1, f64_end)

DTN_TERMS(product_c64, struct dtn_c64, struct dtn_c64, 2, DTN_AS_IT_IS,
          DTN_AS_IT_IS)
DTN_FOLD(product_c64, struct dtn_c64, struct dtn_c64, 2, c64_lanes, c64_end,
         DTN_AS_IT_IS)
DTN_TERMS(product_c128, struct dtn_c128, struct dtn_c128, 1, DTN_AS_IT_IS,
          DTN_AS_IT_IS)
DTN_FOLD(product_c128, struct dtn_c128, struct dtn_c128, 1, c128_lanes,
         c128_end, DTN_AS_IT_IS)

#endif
