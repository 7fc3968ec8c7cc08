/* totals_lanes.h - the loops of totals.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, LANES_NAME(x), which keeps the names apart, and LANES_WIDTH.
 * There are always 32 running totals: element i goes to number i % 32, and in
 * the end the upper half is joined with the lower, five times.  So the bits do
 * not depend on the width.  A step makes a total of the total `t`, the element
 * `x` and the middle `m`.  The second function of each pair does the same for
 * many columns.  Extremes are found faster among
 * whole numbers than among floats in vectors of AVX-512 only.
 */
#include "math/totals_f64_lanes.h"

/* The bits of a float as a whole number of the same order, and back: those of a
 * negative one are turned.  A NaN is beyond the infinities.  `sizes`: without
 * the sign.
 */
#define KEYS(kind, T, I, LARGEST, name, key)                                  \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        const T *array, int64_t n, I *lowp, I *highp)                         \
    {                                                                         \
        I low = LARGEST, high = -low - 1;                                     \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const I b = dtn_key_bits_##kind(array[i]);                        \
            const I k = key;                                                  \
                                                                              \
            low = k < low ? k : low;                                          \
            high = k > high ? k : high;                                       \
        }                                                                     \
        *lowp = low;                                                          \
        *highp = high;                                                        \
    }

KEYS(f32, float, int32_t, INT32_MAX, keys, b ^ (b >> 31 & INT32_MAX))
KEYS(f32, float, int32_t, INT32_MAX, sizes, b & INT32_MAX)
KEYS(f64, double, int64_t, INT64_MAX, keys, b ^ (b >> 63 & INT64_MAX))
KEYS(f64, double, int64_t, INT64_MAX, sizes, b & INT64_MAX)

/* Extremes of 64 columns stay in registers.  Of two zeros the instruction gives
 * its second operand, which came first; of a NaN and a number as well.  So if
 * there is a NaN, nothing is stored, and the columns are done again.
 */
#if LANES_WIDTH == 2
#define VECTOR_f32 __m512
#define VECTOR_f64 __m512d
#define ON_f32(what) _mm512_##what##_ps
#define ON_f64(what) _mm512_##what##_pd
#define IS_NAN_f32(x) _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q)
#define IS_NAN_f64(x) _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q)
#define VALUE_keys(kind, x) (x)
#define VALUE_sizes(kind, x) ON_##kind(abs)(x)
#define EXTREME_64(name, kind, T, instruction, keys)                          \
    LANES_TARGET INLINE bool LANES_NAME(name##_64_##kind)(                    \
        const T *x, int64_t apart, int64_t n, T lane[])                       \
    {                                                                         \
        enum { EACH = 64 / sizeof(T), VECTORS = 64 / EACH };                  \
        VECTOR_##kind best[VECTORS];                                          \
        unsigned nans = 0;                                                    \
                                                                              \
        for (int w = 0; w < VECTORS; w++)                                     \
            best[w] = ON_##kind(loadu)(lane + w * EACH);                      \
        for (int64_t i = 0; i < n; i++)                                       \
            for (int w = 0; w < VECTORS; w++) {                               \
                const VECTOR_##kind e =                                       \
                    ON_##kind(loadu)(x + i * apart + w * EACH);               \
                                                                              \
                nans |= IS_NAN_##kind(e);                                     \
                best[w] = ON_##kind(instruction)(VALUE_##keys(kind, e),       \
                                                 best[w]);                    \
            }                                                                 \
        for (int w = 0; w < VECTORS && !nans; w++)                            \
            ON_##kind(storeu)(lane + w * EACH, best[w]);                      \
        return !nans;                                                         \
    }
#else
#define EXTREME_64(name, kind, T, instruction, keys)                          \
    LANES_TARGET static inline bool LANES_NAME(name##_64_##kind)(             \
        const T *x, int64_t apart, int64_t n, T lane[])                       \
    {                                                                         \
        (void)x, (void)apart, (void)n, (void)lane;                            \
        return false;                                                         \
    }
#endif

/* Of extremes nothing is rounded, so they keep their type.  Whole numbers are
 * compared, in one instruction.  Only where there is a NaN, or the result is a
 * zero, whose sign is that of the first, the floats are, in 64 lanes: enough
 * for the compiler to leave the loop a loop, and make vectors of it.
 */
#define EXTREME(name, kind, T, worst, value, better, instruction, keys, end)  \
    EXTREME_64(name, kind, T, instruction, keys)                              \
    LANES_TARGET static double LANES_NAME(name##_slow_##kind)(                \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const T *array = elements;                                            \
        T lane[64], t = (T)total;                                             \
        int64_t i = 0;                                                        \
                                                                              \
        (void)m;                                                              \
        for (int j = 0; j < 64 && n >= 64; j++)                               \
            lane[j] = (T)(worst);                                             \
        for (; i + 64 <= n; i += 64)                                          \
            for (int j = 0; j < 64; j++) {                                    \
                const T e = array[i + j], x = value;                          \
                const T best = lane[j];                                       \
                                                                              \
                lane[j] = better(x, best);                                    \
            }                                                                 \
        for (int half = n < 64 ? 0 : 32; half > 0; half /= 2)                 \
            for (int j = 0; j < half; j++)                                    \
                lane[j] = better(lane[j + half], lane[j]);                    \
        if (n >= 64)                                                          \
            t = better(lane[0], t);                                           \
        for (; i < n; i++) {                                                  \
            const T e = array[i], x = value;                                  \
                                                                              \
            t = better(x, t);                                                 \
        }                                                                     \
        return (double)t;                                                     \
    }                                                                         \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const T *array = elements;                                            \
        const T t = (T)total;                                                 \
                                                                              \
        if (LANES_WIDTH == 2) {                                               \
            dtn_key_##kind low, high;                                         \
                                                                              \
            LANES_NAME(keys##_##kind)(array, n, &low, &high);                 \
            const T x = dtn_key_float_##kind(end);                            \
                                                                              \
            if (dtn_key_plain_##kind(low) && dtn_key_plain_##kind(high) &&    \
                x != 0)                                                       \
                return (double)better(x, t);                                  \
        }                                                                     \
        for (int64_t i = 0; i < n; i += DTN_BLOCK)                            \
            total = LANES_NAME(name##_slow_##kind)(                           \
                array + i, n - i < DTN_BLOCK ? n - i : DTN_BLOCK, total, m);  \
        return total;                                                         \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        T lane[DTN_TOTAL_COLUMNS];                                            \
                                                                              \
        for (int64_t k = 0; k < width; k++)                                   \
            lane[k] = (T)total[k];                                            \
        if (width == 64 &&                                                    \
            LANES_NAME(name##_64_##kind)(elements, apart, n, lane))           \
            n = 0;                                                            \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T *row = (const T *)elements + i * apart;                   \
                                                                              \
            for (int64_t k = 0; k < width; k++) {                             \
                const T e = row[k], x = value;                                \
                const T best = lane[k];                                       \
                                                                              \
                lane[k] = better(x, best);                                    \
            }                                                                 \
        }                                                                     \
        for (int64_t k = 0; k < width; k++)                                   \
            total[k] = (double)lane[k];                                       \
    }

#define LARGER(x, best) ((((x) > (best)) | ((x) != (x))) ? (x) : (best))
#define SMALLER(x, best) ((((x) < (best)) | ((x) != (x))) ? (x) : (best))

#define TOTALS(kind, T)                                                       \
    SUM(sum, kind, T, MORE, t + x)                                  \
    FOLD(prod, kind, T, 1, MORE_PRODUCT, mul, t * x)                \
    SUM(count, kind, T, MORE_COUNT, t + (x != 0 ? 1.0 : 0.0))       \
    SUM(abs, kind, T, MORE_SIZE, t + fabs(x))                       \
    SUM(apart, kind, T, MORE_APART, t + (x - m) * (x - m))          \
    EXTREME(max, kind, T, -INFINITY, e, LARGER, max, keys, high)              \
    EXTREME(min, kind, T, INFINITY, e, SMALLER, min, keys, low)               \
    EXTREME(most, kind, T, 0, e > 0 ? e : 0 - e, LARGER, max, sizes, high)    \
    EXTREME(least, kind, T, INFINITY, e > 0 ? e : 0 - e, SMALLER, min, sizes, \
            low)                                                              \
    LANES_TARGET static double LANES_NAME(made_exp_##kind)(                   \
        void *to, const void *elements, int64_t n, double total,              \
        double middle)                                                        \
    {                                                                         \
        const T *x = elements, m = (T)middle;                                 \
        T *made = to;                                                         \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++)                                       \
            made[i] = dtn_exp_below_##kind(x[i] - m);                         \
        return LANES_NAME(sum_##kind)(made, n, total, 0);                     \
    }                                                                         \
    LANES_TARGET static double LANES_NAME(exp_##kind)(                        \
        const void *elements, int64_t n, double total, double middle)         \
    {                                                                         \
        T made[DTN_BLOCK];                                                    \
                                                                              \
        return LANES_NAME(made_exp_##kind)(made, elements, n, total, middle); \
    }                                                                         \
    LANES_TARGET static int64_t LANES_NAME(place_##kind)(                     \
        const void *elements, int64_t n, double value)                        \
    {                                                                         \
        const T *x = elements, wanted = (T)value;                             \
        const int is_nan = wanted != wanted;                                  \
        int32_t found = (int32_t)n;                                           \
                                                                              \
        for (int32_t i = 0; i < (int32_t)n; i++) {                            \
            const int here = is_nan ? x[i] != x[i] : x[i] == wanted;          \
            const int32_t place = here ? i : (int32_t)n;                      \
                                                                              \
            found = place < found ? place : found;                            \
        }                                                                     \
        return found;                                                         \
    }                                                                         \
    static double LANES_NAME(powers_##kind)(                                  \
        const void *elements, int64_t n, double total, double middle)         \
    {                                                                         \
        const T *x = elements;                                                \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            total += pow(fabs((double)x[i]), middle);                         \
        return total;                                                         \
    }

FOLD_ROW(squared, f32, float, 0, MORE_SQUARE, add, t + x * x)

TOTALS(f32, float)
TOTALS(f64, double)

LANES_TARGET static double LANES_NAME(squares_f32)(
    const void *elements, int64_t n, double total, double m)
{
    return m == 0 ? LANES_NAME(squared_f32)(elements, n, total, m)
                  : LANES_NAME(apart_f32)(elements, n, total, m);
}

#include "math/totals_narrow_lanes.h"
#if LANES_WIDTH == 2
#include "math/sums_exact_lanes.h"
#else
#include "math/sums_bf16_lanes.h"
#endif

#define AT(TOTAL, name, kind) [DTN_TOTAL_##TOTAL] = LANES_NAME(name##_##kind)
#define ROW(kind, squares) {                                                  \
    AT(SUM, sum, kind), AT(PROD, prod, kind), AT(MAX, max, kind),             \
    AT(MIN, min, kind), AT(COUNT, count, kind), AT(ABS, abs, kind),           \
    AT(SQUARES, squares, kind), AT(MOST, most, kind),                         \
    AT(LEAST, least, kind), AT(EXP, exp, kind), AT(POWERS, powers, kind) }
#define COLUMNS(kind) {                                                       \
    AT(SUM, sum_columns, kind), AT(PROD, prod_columns, kind),                 \
    AT(MAX, max_columns, kind), AT(MIN, min_columns, kind),                   \
    AT(COUNT, count_columns, kind), AT(ABS, abs_columns, kind),               \
    AT(SQUARES, apart_columns, kind), AT(MOST, most_columns, kind),         \
    AT(LEAST, least_columns, kind) }
#define NARROW(kind, of) {                                                    \
    AT(SUM, sum##of, kind), AT(PROD, prod##of, kind),                         \
    AT(ABS, abs##of, kind),                                                   \
    AT(SQUARES, squares##of, kind), AT(MAX, max##of, kind),                   \
    AT(MIN, min##of, kind) }

LANES_TARGET static void LANES_NAME(begin)(double first, int64_t n,
                                           double total[])
{
    for (int64_t i = 0; i < n; i++)
        total[i] = first;
}

static const struct totals_loops LANES_NAME(loops) = {
    .begin = LANES_NAME(begin),
    .of = { ROW(f32, squares), ROW(f64, apart), NARROW(bf16, ), NARROW(f16, ) },
    .columns = { COLUMNS(f32), COLUMNS(f64), NARROW(bf16, _columns),
                 NARROW(f16, _columns) },
    .exp = { LANES_NAME(made_exp_f32), LANES_NAME(made_exp_f64) },
    .place = { LANES_NAME(place_f32), LANES_NAME(place_f64) },
};

#undef INLINE
#undef JOIN_add
#undef JOIN_mul
#undef HALVE
#undef LOAD_4_f32
#undef LOAD_4_f64
#undef LOAD_4_f16
#undef LOAD_4_bf16
#undef LOAD_8_f32
#undef LOAD_8_f64
#undef LOAD_8_f16
#undef LOAD_8_bf16
#undef MORE
#undef MORE_PRODUCT
#undef MORE_SIZE
#undef MORE_SQUARE
#undef MORE_APART
#undef MORE_COUNT
#undef MORE_BEGIN
#undef MORE_PRODUCT_BEGIN
#undef MORE_SIZE_BEGIN
#undef MORE_SQUARE_BEGIN
#undef MORE_APART_BEGIN
#undef MORE_COUNT_BEGIN
#undef FOLD_4
#undef FOLD_REST
#undef FOLD_32
#undef FOLD_LANES
#undef FOLD_ROW
#undef FOLD_COLUMNS
#undef FOLD_EIGHT
#undef LANE
#undef TWO_add
#undef TWO_mul
#undef FOLD
#undef SUM
#undef FOLD_NARROW
#undef TOTAL_BLOCK
#undef ROW_AT
#undef TOTAL_SHORT
#undef TOTAL_COLUMNS
#undef TOTAL_COLUMNS_OF
#undef TOTAL_NARROW
#undef ROW_WIDE
#undef COLUMNS_f32
#undef COLUMNS_f64
#undef COLUMNS_bf16
#undef COLUMNS_f16
#undef EXTREME
#undef EXTREME_64
#undef VECTOR_f32
#undef VECTOR_f64
#undef ON_f32
#undef ON_f64
#undef IS_NAN_f32
#undef IS_NAN_f64
#undef VALUE_keys
#undef VALUE_sizes
#undef KEYS
#undef LARGER
#undef SMALLER
#undef TOTALS
#undef NARROW
#undef AT
#undef ROW
#undef COLUMNS
#undef LANES_TARGET
#undef LANES_NAME
