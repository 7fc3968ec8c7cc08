/* reduce_loops.h - the inner loops of reduce.c, for one vector width
 *
 * Included once for each width with LOOPS_TARGET, the attribute that asks the
 * compiler for it, and LOOPS_NAME(x), which keeps the names apart.  A loop is
 * dst[i] = a[i] op b[i]; no iteration touches what another reads, even with
 * dst == a, which LOOPS_INDEPENDENT tells the vectoriser.  Compilers do not
 * find the instructions for f16, so where the width has them F16_LANES says
 * how many elements F16_WIDEN and F16_NARROW convert at once.
 */
#define LOOP(name, T, result, expression)                                     \
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
            to[i] = result(expression);                                       \
        }                                                                     \
    }

#define CONVERT(name, D, S, convert)                                          \
    LOOPS_TARGET static void LOOPS_NAME(name)(D *dst, const S *src,           \
                                              size_t count)                   \
    {                                                                         \
        LOOPS_INDEPENDENT                                                     \
        for (size_t i = 0; i < count; i++)                                    \
            dst[i] = convert(src[i]);                                         \
    }

#define CONVERT_F16(name, D, S, convert_lanes, convert)                       \
    LOOPS_TARGET static void LOOPS_NAME(name)(D *dst, const S *src,           \
                                              size_t count)                   \
    {                                                                         \
        size_t i = 0;                                                         \
                                                                              \
        for (; i + F16_LANES <= count; i += F16_LANES)                        \
            convert_lanes(dst + i, src + i);                                  \
        for (; i < count; i++)                                                \
            dst[i] = convert(src[i]);                                         \
    }

#define LOOPS_FLOAT(name, T)                                                  \
    LOOP(name##_sum, T, name##_one_nan, x + y)                                \
    LOOP(name##_prod, T, name##_one_nan, x * y)                               \
    LOOP(name##_min, T, name##_one_nan, ((y < x) | (y != y)) ? y : x)         \
    LOOP(name##_max, T, name##_one_nan, ((y > x) | (y != y)) ? y : x)

#define LOOPS_ORDER(name, T)                                                  \
    LOOP(name##_min, T, (T), y < x ? y : x)                                   \
    LOOP(name##_max, T, (T), y > x ? y : x)

/* Unsigned, so that they wrap; the bits are right for signed types too. */
#define LOOPS_WRAP(name, T)                                                   \
    LOOP(name##_sum, T, (T), x + y)                                           \
    LOOP(name##_prod, T, (T), x * y)                                          \
    LOOP(name##_band, T, (T), x & y)                                          \
    LOOP(name##_bor, T, (T), x | y)                                           \
    LOOP(name##_bxor, T, (T), x ^ y)

LOOPS_FLOAT(f32, float)
LOOPS_FLOAT(f64, double)
LOOPS_ORDER(i8, int8_t)
LOOPS_ORDER(u8, uint8_t)
LOOPS_ORDER(i32, int32_t)
LOOPS_ORDER(i64, int64_t)
LOOPS_WRAP(u8, uint8_t)
LOOPS_WRAP(u32, uint32_t)
LOOPS_WRAP(u64, uint64_t)
#ifdef F16_LANES
CONVERT_F16(widen_f16, float, uint16_t, F16_WIDEN, half_from_f16)
CONVERT_F16(narrow_f16, uint16_t, float, F16_NARROW, half_to_f16)
#else
CONVERT(widen_f16, float, uint16_t, half_from_f16)
CONVERT(narrow_f16, uint16_t, float, half_to_f16)
#endif
CONVERT(widen_bf16, float, uint16_t, half_from_bf16)
CONVERT(narrow_bf16, uint16_t, float, half_to_bf16)

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

static const struct loops LOOPS_NAME(loops) = {
    .fold = {
        [DTENSOR_F32] = ROW_FLOAT(f32),
        [DTENSOR_F64] = ROW_FLOAT(f64),
        [DTENSOR_F16] = ROW_FLOAT(f32),
        [DTENSOR_BF16] = ROW_FLOAT(f32),
        [DTENSOR_I8] = ROW_INT(i8, u8),
        [DTENSOR_U8] = ROW_INT(u8, u8),
        [DTENSOR_I32] = ROW_INT(i32, u32),
        [DTENSOR_I64] = ROW_INT(i64, u64),
    },
    .widen = {
        [DTENSOR_F16] = LOOPS_NAME(widen_f16),
        [DTENSOR_BF16] = LOOPS_NAME(widen_bf16),
    },
    .narrow = {
        [DTENSOR_F16] = LOOPS_NAME(narrow_f16),
        [DTENSOR_BF16] = LOOPS_NAME(narrow_bf16),
    },
};

#undef LOOP
#undef CONVERT
#undef CONVERT_F16
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
