/* reduce_loops.h - the inner loops of reduce.c, for one vector width
 *
 * This file is included once for each width.  LOOPS_TARGET is the attribute
 * that selects the width in the compiler; LOOPS_NAME(x) gives each width its
 * own names.  A loop is dst[i] = a[i] op b[i].  Its iterations are independent,
 * even if dst == a: LOOPS_INDEPENDENT tells the vectoriser so.  Compilers do
 * not use the f16 instructions by themselves.  If the width has them, F16_WIDEN
 * and F16_NARROW convert F16_LANES elements at once.  LOOPS_PRODUCT(x) names
 * the complex product of another width, if that is used instead.
 */
#define LOOP(name, T, expression)                                             \
    LOOPS_TARGET static void LOOPS_NAME(name)(void *dst, const void *a,       \
                                              const void *b, size_t count)    \
    {                                                                         \
        T *to = dst;                                                          \
        const T *left = a;                                                    \
        const T *right = b;                                                   \
                                                                              \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++) {                                  \
            const T x = left[i];                                              \
            const T y = right[i];                                             \
                                                                              \
            to[i] = (T)(expression);                                          \
        }                                                                     \
    }

#define LOOP_FLOAT(name, kind, T, bits, expression)                           \
    LOOPS_TARGET static void LOOPS_NAME(name)(void *dst, const void *a,       \
                                              const void *b, size_t count)    \
    {                                                                         \
        T *to = dst;                                                          \
        const T *left = a;                                                    \
        const T *right = b;                                                   \
        bits seen = 0;                                                        \
                                                                              \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++) {                                  \
            const T x = left[i];                                              \
            const T y = right[i];                                             \
            const T z = expression;                                           \
                                                                              \
            seen |= kind##_nan_bit(z);                                        \
            to[i] = z;                                                        \
        }                                                                     \
        if (seen >> (8 * sizeof seen - 1) == 0)                               \
            return;                                                           \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++)                                    \
            to[i] = kind##_one_nan(to[i]);                                    \
    }

/* dst[i] = src[i] of another type. */
#define CONVERT(name, TO, FROM, convert)                                      \
    LOOPS_TARGET static void LOOPS_NAME(name)(void *to, const void *from,     \
                                              size_t count)                   \
    {                                                                         \
        TO *dst = to;                                                         \
        const FROM *src = from;                                               \
                                                                              \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++)                                    \
            dst[i] = convert(src[i]);                                         \
    }

#define CONVERT_FLOAT(name, T)                                                \
    CONVERT(name##_widen, float, T, dtn_##name##_widen)                       \
    CONVERT(name##_narrow, T, float, dtn_##name##_narrow)

#define CONVERT_INT(name, T)                                                  \
    CONVERT(name##_widen, int64_t, T, )                                       \
    CONVERT(name##_narrow, T, int64_t, (T))

#define PRODUCT(name, T, one_nan)                                             \
    LOOPS_TARGET static void LOOPS_NAME(name##_prod)(void *dst,               \
                                                     const void *a,           \
                                                     const void *b,           \
                                                     size_t count)            \
    {                                                                         \
        T(*to)[2] = dst;                                                      \
        const T(*x)[2] = a;                                                   \
        const T(*y)[2] = b;                                                   \
                                                                              \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++) {                                  \
            const T re = x[i][0] * y[i][0] - x[i][1] * y[i][1];               \
            const T im = x[i][0] * y[i][1] + x[i][1] * y[i][0];               \
                                                                              \
            to[i][0] = one_nan(re);                                           \
            to[i][1] = one_nan(im);                                           \
        }                                                                     \
    }

/* A sum of n complex numbers is a sum of 2 n parts. */
#define SUM_OF_PARTS(name, part)                                              \
    LOOPS_TARGET static void LOOPS_NAME(name##_sum)(void *dst, const void *a, \
                                                    const void *b,            \
                                                    size_t count)             \
    {                                                                         \
        LOOPS_NAME(part##_sum)(dst, a, b, 2 * count);                         \
    }

/* dst[i] = src[i] op by; `by` rounded to the type once. */
#define SCALE(name, T, one_nan, op)                                           \
    LOOPS_TARGET static void LOOPS_NAME(name)(void *dst, const void *array,   \
                                              double by, size_t count)        \
    {                                                                         \
        T *to = dst;                                                          \
        const T *src = array;                                                 \
        const T y = (T)by;                                                    \
                                                                              \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++)                                    \
            to[i] = one_nan(src[i] op y);                                     \
    }

#define SCALE_OF_PARTS(name, part)                                            \
    LOOPS_TARGET static void LOOPS_NAME(name)(void *dst, const void *array,   \
                                              double by, size_t count)        \
    {                                                                         \
        LOOPS_NAME(part)(dst, array, by, 2 * count);                          \
    }

#define LOOPS_FLOAT(kind, T, bits)                                            \
    LOOP_FLOAT(kind##_sum, kind, T, bits, x + y)                              \
    LOOP_FLOAT(kind##_prod, kind, T, bits, x * y)                             \
    LOOP_FLOAT(kind##_min, kind, T, bits, ((y < x) | (y != y)) ? y : x)       \
    LOOP_FLOAT(kind##_max, kind, T, bits, ((y > x) | (y != y)) ? y : x)

#define LOOPS_ORDER(name, T)                                                  \
    LOOP(name##_min, T, y < x ? y : x)                                        \
    LOOP(name##_max, T, y > x ? y : x)

/* Unsigned types, which wrap around.  Signed types have the same bits.  u16
 * would be promoted to int, and a product of int can overflow.
 */
#define LOOPS_WRAP(name, T)                                                   \
    LOOP(name##_sum, T, x + y)                                                \
    LOOP(name##_prod, T, 1u * x * y)                                          \
    LOOP(name##_band, T, x & y)                                               \
    LOOP(name##_bor, T, x | y)                                                \
    LOOP(name##_bxor, T, x ^ y)

LOOPS_FLOAT(f32, float, uint32_t)
LOOPS_FLOAT(f64, double, uint64_t)
LOOPS_ORDER(i8, int8_t)
LOOPS_ORDER(i16, int16_t)
LOOPS_ORDER(i32, int32_t)
LOOPS_ORDER(i64, int64_t)
LOOPS_ORDER(u8, uint8_t)
LOOPS_ORDER(u16, uint16_t)
LOOPS_ORDER(u32, uint32_t)
LOOPS_ORDER(u64, uint64_t)
LOOPS_WRAP(u8, uint8_t)
LOOPS_WRAP(u16, uint16_t)
LOOPS_WRAP(u32, uint32_t)
LOOPS_WRAP(u64, uint64_t)
SCALE(f32_times, float, f32_one_nan, *)
SCALE(f64_times, double, f64_one_nan, *)
SCALE(f32_over, float, f32_one_nan, /)
SCALE(f64_over, double, f64_one_nan, /)
SCALE_OF_PARTS(c64_times, f32_times)
SCALE_OF_PARTS(c128_times, f64_times)
SCALE_OF_PARTS(c64_over, f32_over)
SCALE_OF_PARTS(c128_over, f64_over)
SUM_OF_PARTS(c64, f32)
SUM_OF_PARTS(c128, f64)
#ifndef LOOPS_PRODUCT
#define LOOPS_PRODUCT(name) LOOPS_NAME(name##_prod)
PRODUCT(c64, float, f32_one_nan)
PRODUCT(c128, double, f64_one_nan)
#endif
CONVERT_FLOAT(bf16, uint16_t)
CONVERT_FLOAT(f8e4m3, uint8_t)
CONVERT_FLOAT(f8e5m2, uint8_t)
CONVERT_INT(i8, int8_t)
CONVERT_INT(i16, int16_t)
CONVERT_INT(i32, int32_t)
CONVERT_INT(u8, uint8_t)
CONVERT_INT(u16, uint16_t)
CONVERT_INT(u32, uint32_t)

#ifdef F16_LANES
LOOPS_TARGET static void LOOPS_NAME(f16_widen)(void *to, const void *from,
                                               size_t count)
{
    float *dst = to;
    const uint16_t *src = from;
    size_t i = 0;

    for (; i + F16_LANES <= count; i += F16_LANES)
        F16_WIDEN(dst + i, src + i);
    for (; i < count; i++)
        dst[i] = dtn_f16_widen(src[i]);
}

LOOPS_TARGET static void LOOPS_NAME(f16_narrow)(void *to, const void *from,
                                                size_t count)
{
    uint16_t *dst = to;
    const float *src = from;
    size_t i = 0;

    for (; i + F16_LANES <= count; i += F16_LANES)
        F16_NARROW(dst + i, src + i);
    for (; i < count; i++)
        dst[i] = dtn_f16_narrow(src[i]);
}
#else
CONVERT_FLOAT(f16, uint16_t)
#endif

#define ROW_FLOAT(name) {                                                     \
    [DTENSOR_SUM] = LOOPS_NAME(name##_sum),                                   \
    [DTENSOR_AVG] = LOOPS_NAME(name##_sum),                                   \
    [DTENSOR_PROD] = LOOPS_NAME(name##_prod),                                 \
    [DTENSOR_MIN] = LOOPS_NAME(name##_min),                                   \
    [DTENSOR_MAX] = LOOPS_NAME(name##_max) }

#define ROW_INT(order, wrap) {                                                \
    [DTENSOR_SUM] = LOOPS_NAME(wrap##_sum),                                   \
    [DTENSOR_AVG] = LOOPS_NAME(wrap##_sum),                                   \
    [DTENSOR_PROD] = LOOPS_NAME(wrap##_prod),                                 \
    [DTENSOR_MIN] = LOOPS_NAME(order##_min),                                  \
    [DTENSOR_MAX] = LOOPS_NAME(order##_max),                                  \
    [DTENSOR_BAND] = LOOPS_NAME(wrap##_band),                                 \
    [DTENSOR_BOR] = LOOPS_NAME(wrap##_bor),                                   \
    [DTENSOR_BXOR] = LOOPS_NAME(wrap##_bxor) }

#define ROW_COMPLEX(name) {                                                   \
    [DTENSOR_SUM] = LOOPS_NAME(name##_sum),                                   \
    [DTENSOR_AVG] = LOOPS_NAME(name##_sum),                                   \
    [DTENSOR_PROD] = LOOPS_PRODUCT(name) }

/* Bytes that are 0 or 1. */
#define ROW_BOOL {                                                            \
    [DTENSOR_SUM] = LOOPS_NAME(u8_bor),                                       \
    [DTENSOR_PROD] = LOOPS_NAME(u8_band),                                     \
    [DTENSOR_MIN] = LOOPS_NAME(u8_band),                                      \
    [DTENSOR_MAX] = LOOPS_NAME(u8_bor),                                       \
    [DTENSOR_BAND] = LOOPS_NAME(u8_band),                                     \
    [DTENSOR_BOR] = LOOPS_NAME(u8_bor),                                       \
    [DTENSOR_BXOR] = LOOPS_NAME(u8_bxor) }

static const struct loops LOOPS_NAME(loops) = {
    .fold = {
        [DTENSOR_F32] = ROW_FLOAT(f32),
        [DTENSOR_F64] = ROW_FLOAT(f64),
        [DTENSOR_F16] = ROW_FLOAT(f32),
        [DTENSOR_BF16] = ROW_FLOAT(f32),
        [DTENSOR_F8E4M3] = ROW_FLOAT(f32),
        [DTENSOR_F8E5M2] = ROW_FLOAT(f32),
        [DTENSOR_I8] = ROW_INT(i8, u8),
        [DTENSOR_I16] = ROW_INT(i16, u16),
        [DTENSOR_I32] = ROW_INT(i32, u32),
        [DTENSOR_I64] = ROW_INT(i64, u64),
        [DTENSOR_U8] = ROW_INT(u8, u8),
        [DTENSOR_U16] = ROW_INT(u16, u16),
        [DTENSOR_U32] = ROW_INT(u32, u32),
        [DTENSOR_U64] = ROW_INT(u64, u64),
        [DTENSOR_BOOL] = ROW_BOOL,
        [DTENSOR_C64] = ROW_COMPLEX(c64),
        [DTENSOR_C128] = ROW_COMPLEX(c128),
        [DTN_I128] = {
            [DTENSOR_AVG] = i128_sum,
        },
    },
    .widen = {
        [DTENSOR_F16] = LOOPS_NAME(f16_widen),
        [DTENSOR_BF16] = LOOPS_NAME(bf16_widen),
        [DTENSOR_F8E4M3] = LOOPS_NAME(f8e4m3_widen),
        [DTENSOR_F8E5M2] = LOOPS_NAME(f8e5m2_widen),
        [DTENSOR_I8] = LOOPS_NAME(i8_widen),
        [DTENSOR_I16] = LOOPS_NAME(i16_widen),
        [DTENSOR_I32] = LOOPS_NAME(i32_widen),
        [DTENSOR_I64] = i64_widen,
        [DTENSOR_U8] = LOOPS_NAME(u8_widen),
        [DTENSOR_U16] = LOOPS_NAME(u16_widen),
        [DTENSOR_U32] = LOOPS_NAME(u32_widen),
        [DTENSOR_U64] = u64_widen,
    },
    .narrow = {
        [DTENSOR_F16] = LOOPS_NAME(f16_narrow),
        [DTENSOR_BF16] = LOOPS_NAME(bf16_narrow),
        [DTENSOR_F8E4M3] = LOOPS_NAME(f8e4m3_narrow),
        [DTENSOR_F8E5M2] = LOOPS_NAME(f8e5m2_narrow),
        [DTENSOR_I8] = LOOPS_NAME(i8_narrow),
        [DTENSOR_I16] = LOOPS_NAME(i16_narrow),
        [DTENSOR_I32] = LOOPS_NAME(i32_narrow),
        [DTENSOR_I64] = i64_narrow,
        [DTENSOR_U8] = LOOPS_NAME(u8_narrow),
        [DTENSOR_U16] = LOOPS_NAME(u16_narrow),
        [DTENSOR_U32] = LOOPS_NAME(u32_narrow),
        [DTENSOR_U64] = u64_narrow,
    },
    .times = {
        [DTENSOR_F32] = LOOPS_NAME(f32_times),
        [DTENSOR_F64] = LOOPS_NAME(f64_times),
        [DTENSOR_C64] = LOOPS_NAME(c64_times),
        [DTENSOR_C128] = LOOPS_NAME(c128_times),
    },
    .over = {
        [DTENSOR_F32] = LOOPS_NAME(f32_over),
        [DTENSOR_F64] = LOOPS_NAME(f64_over),
        [DTENSOR_C64] = LOOPS_NAME(c64_over),
        [DTENSOR_C128] = LOOPS_NAME(c128_over),
    },
};

#undef LOOP
#undef LOOP_FLOAT
#undef CONVERT
#undef CONVERT_FLOAT
#undef CONVERT_INT
#undef PRODUCT
#undef LOOPS_PRODUCT
#undef SUM_OF_PARTS
#undef SCALE
#undef SCALE_OF_PARTS
#undef F16_LANES
#undef F16_WIDEN
#undef F16_NARROW
#undef LOOPS_TARGET
#undef LOOPS_NAME
#undef LOOPS_FLOAT
#undef LOOPS_ORDER
#undef LOOPS_WRAP
#undef ROW_FLOAT
#undef ROW_INT
#undef ROW_COMPLEX
#undef ROW_BOOL
