/* totals_lanes.h - the loops of totals.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, LANES_NAME(x), which keeps the names apart, and LANES_WIDTH.
 * There are always 32 running totals: element i goes to number i % 32, and in
 * the end the upper half is joined with the lower, five times.  So the bits do
 * not depend on the width.  A step makes a total of the total `t`, the element
 * `x` and the middle `m`.  The second function of each pair does the same for
 * many columns, row by row; of few rows, in the order in which lanes are
 * joined, so that at most six are at work.  Extremes are found faster among
 * whole numbers than among floats in vectors of AVX-512 only.
 */
#define HALVE(lane, half, join)                                               \
    for (int j = 0; j < half; j++) {                                          \
        const double t = lane[j], x = lane[j + half];                         \
                                                                              \
        lane[j] = join;                                                       \
    }
#define TOTAL(name, kind, T, first, step, join)                               \
    TOTAL_OF(name, kind, T, (double), first, step, join)
#define TOTAL_OF(name, kind, T, widen, first, step, join)                     \
    TOTAL_ROW(name, kind, T, widen, first, step, join)                        \
    TOTAL_COLUMNS(name, kind, T, widen, first, step, join)
#define TOTAL_ROW(name, kind, T, widen, first, step, join)                    \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const T *array = elements;                                            \
        double lane[32];                                                      \
        int64_t i = 0;                                                        \
                                                                              \
        for (int j = 0; j < 32; j++)                                          \
            lane[j] = first;                                                  \
        for (; i + 32 <= n; i += 32) {                                        \
            for (int j = 0; j < 16; j++) {                                    \
                const double x = widen(array[i + j]), t = lane[j];            \
                                                                              \
                lane[j] = step;                                               \
            }                                                                 \
            for (int j = 0; j < 16; j++) {                                    \
                const double x = widen(array[i + 16 + j]), t = lane[16 + j];  \
                                                                              \
                lane[16 + j] = step;                                          \
            }                                                                 \
        }                                                                     \
        for (int j = 0; i < n; i++, j++) {                                    \
            const double x = widen(array[i]), t = lane[j];                    \
                                                                              \
            lane[j] = step;                                                   \
        }                                                                     \
        HALVE(lane, 16, join)                                                 \
        HALVE(lane, 8, join)                                                  \
        HALVE(lane, 4, join)                                                  \
        HALVE(lane, 2, join)                                                  \
        HALVE(lane, 1, join)                                                  \
        const double t = total, x = lane[0];                                  \
                                                                              \
        return join;                                                          \
    }
#define ROW_AT(T) const T *row = (const T *)elements + i * apart;
#define TOTAL_SHORT(name, kind, T, widen, first, step, join)                  \
    LANES_TARGET static void LANES_NAME(name##_short_##kind)(                 \
        const T *elements, int64_t apart, int64_t n, double total[])          \
    {                                                                         \
        double lane[6][DTN_TOTAL_SHORT];                                      \
        int top = 0;                                                          \
                                                                              \
        for (int c = 0; c < 32; c++) {                                        \
            double *sum = lane[top++];                                        \
                                                                              \
            for (int k = 0; k < DTN_TOTAL_SHORT; k++)                         \
                sum[k] = first;                                               \
            for (int64_t i = total_order[c]; i < n; i += 32)                  \
                for (int k = 0; k < DTN_TOTAL_SHORT; k++) {                   \
                    const double x = widen(elements[i * apart + k]);          \
                    const double t = sum[k], m = 0;                           \
                                                                              \
                    (void)m;                                                  \
                    sum[k] = step;                                            \
                }                                                             \
            for (int odd = c; odd & 1; odd >>= 1) {                           \
                top--;                                                        \
                for (int k = 0; k < DTN_TOTAL_SHORT; k++) {                   \
                    const double t = lane[top - 1][k], x = lane[top][k];      \
                                                                              \
                    lane[top - 1][k] = join;                                  \
                }                                                             \
            }                                                                 \
        }                                                                     \
        for (int k = 0; k < DTN_TOTAL_SHORT; k++) {                           \
            const double t = total[k], x = lane[0][k];                        \
                                                                              \
            total[k] = join;                                                  \
        }                                                                     \
    }
#define TOTAL_COLUMNS(name, kind, T, widen, first, step, join)                \
    TOTAL_SHORT(name, kind, T, widen, first, step, join)                      \
    TOTAL_COLUMNS_OF(name##_long, kind, ROW_AT(T), widen, first, step, join)  \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        const T *at = elements;                                               \
        int64_t k = 0;                                                        \
                                                                              \
        for (; sizeof *at == 4 && n <= DTN_TOTAL_BLOCK &&                     \
               k + DTN_TOTAL_SHORT <= width; k += DTN_TOTAL_SHORT)            \
            LANES_NAME(name##_short_##kind)(at + k, apart, n, total + k);     \
        if (k < width)                                                        \
            LANES_NAME(name##_long_columns_##kind)(at + k, apart, n, width - k,\
                                                   total + k);                \
    }
#define TOTAL_COLUMNS_OF(name, kind, row_i, widen, first, step, join)         \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        const double m = 0;                                                   \
        double lane[32][DTN_TOTAL_COLUMNS];                                   \
                                                                              \
        for (int j = 0; j < 32; j++)                                          \
            for (int64_t k = 0; k < width; k++)                               \
                lane[j][k] = first;                                           \
        for (int64_t i = 0; i < n; i++) {                                     \
            double *sum = lane[i % 32];                                       \
            row_i                                                             \
                                                                              \
            for (int64_t k = 0; k < width; k++) {                             \
                const double x = widen(row[k]), t = sum[k];                   \
                                                                              \
                (void)m;                                                      \
                sum[k] = step;                                                \
            }                                                                 \
        }                                                                     \
        for (int half = 16; half > 0; half /= 2)                              \
            for (int j = 0; j < half; j++)                                    \
                for (int64_t k = 0; k < width; k++) {                         \
                    const double t = lane[j][k], x = lane[j + half][k];       \
                                                                              \
                    lane[j][k] = join;                                        \
                }                                                             \
        for (int64_t k = 0; k < width; k++) {                                 \
            const double t = total[k], x = lane[0][k];                        \
                                                                              \
            total[k] = join;                                                  \
        }                                                                     \
    }

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

/* Of extremes nothing is rounded, so they keep their type.  Whole numbers are
 * compared, in one instruction.  Only where there is a NaN, or the result is a
 * zero, whose sign is that of the first, the floats are, in 64 lanes: enough
 * for the compiler to leave the loop a loop, and make vectors of it.
 */
#define EXTREME(name, kind, T, worst, value, better, keys, end)               \
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

/* Sums, and those of squares, are also made by hand: a compiler takes f32 by
 * the 16, of which it then needs the halves, and keeps the lanes in memory.
 * Here x is a vector, and more(t, x) the lanes t with it.  The square of a f32
 * has 48 digits, so f64 does not round it, and a fused product has the bits of
 * the square that is added.
 */
#define MORE(t, x) _mm512_add_pd(t, x)
#define MORE_SIZE(t, x) _mm512_add_pd(t, _mm512_abs_pd(x))
#define MORE_SQUARE(t, x) _mm512_fmadd_pd(x, x, t)
#define MORE_APART(t, x) _mm512_add_pd(t, (x - m) * (x - m))
#if LANES_WIDTH == 2
#define LOAD_f32(some, x) _mm512_cvtps_pd(_mm256_maskz_loadu_ps(some, x))
#define LOAD_f64(some, x) _mm512_maskz_loadu_pd(some, x)
#define SUM_REST(lanes, kind, at, more)                                       \
    if (n - i > at) {                                                         \
        const __mmask8 some = (__mmask8)(0xff >> (n - i > at + 7              \
                                                  ? 0 : at + 8 - (n - i)));   \
        const __m512d x = LOAD_##kind(some, array + i + at);                  \
                                                                              \
        lanes = _mm512_mask_mov_pd(lanes, some, more(lanes, x));              \
    }
#define SUM_SOME(lanes, kind, at, more)                                       \
    {                                                                         \
        const __m512d x = LOAD_##kind(0xff, array + i + at);                  \
                                                                              \
        lanes = more(lanes, x);                                               \
    }
#define SUM(name, kind, T, widen, more, step)                                 \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double middle)         \
    {                                                                         \
        const T *array = elements;                                            \
        const __m512d m = _mm512_set1_pd(middle);                             \
        __m512d a = _mm512_setzero_pd(), b = a, c = a, d = a;                 \
        int64_t i = 0;                                                        \
                                                                              \
        for (; i + 32 <= n; i += 32) {                                        \
            for (int k = 0; k < (int)(32 * sizeof(T)); k += 64)               \
                __builtin_prefetch((const char *)(array + i) + AHEAD + k);    \
            SUM_SOME(a, kind, 0, more)                                        \
            SUM_SOME(b, kind, 8, more)                                        \
            SUM_SOME(c, kind, 16, more)                                       \
            SUM_SOME(d, kind, 24, more)                                       \
        }                                                                     \
        SUM_REST(a, kind, 0, more)                                            \
        SUM_REST(b, kind, 8, more)                                            \
        SUM_REST(c, kind, 16, more)                                           \
        SUM_REST(d, kind, 24, more)                                           \
        a = _mm512_add_pd(_mm512_add_pd(a, c), _mm512_add_pd(b, d));          \
                                                                              \
        const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(a),         \
                                           _mm512_extractf64x4_pd(a, 1));     \
        const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four),          \
                                       _mm256_extractf128_pd(four, 1));       \
                                                                              \
        (void)m;                                                              \
        return total + (two[0] + two[1]);                                     \
    }
#else
#define SUM(name, kind, T, widen, more, step)                                 \
    TOTAL_ROW(name, kind, T, (double)widen, 0, step, t + x)
#endif

#define TOTALS(kind, T)                                                       \
    SUM(sum, kind, T, (double), MORE, t + x)                                  \
    TOTAL_COLUMNS(sum, kind, T, (double), 0, t + x, t + x)                    \
    TOTAL(prod, kind, T, 1, t * x, t * x)                                     \
    TOTAL(count, kind, T, 0, t + (x != 0 ? 1.0 : 0.0), t + x)                 \
    TOTAL(abs, kind, T, 0, t + fabs(x), t + x)                                \
    SUM(apart, kind, T, (double), MORE_APART, t + (x - m) * (x - m))          \
    TOTAL_COLUMNS(squares, kind, T, (double), 0, t + (x - m) * (x - m), t + x) \
    EXTREME(max, kind, T, -INFINITY, e, LARGER, keys, high)                   \
    EXTREME(min, kind, T, INFINITY, e, SMALLER, keys, low)                    \
    EXTREME(most, kind, T, 0, e > 0 ? e : 0 - e, LARGER, sizes, high)         \
    EXTREME(least, kind, T, INFINITY, e > 0 ? e : 0 - e, SMALLER, sizes, low) \
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

SUM(squared, f32, float, (double), MORE_SQUARE, t + x * x)

TOTALS(f32, float)
TOTALS(f64, double)

LANES_TARGET static double LANES_NAME(squares_f32)(
    const void *elements, int64_t n, double total, double m)
{
    return m == 0 ? LANES_NAME(squared_f32)(elements, n, total, m)
                  : LANES_NAME(apart_f32)(elements, n, total, m);
}

#include "math/totals_narrow_lanes.h"
#include "math/sums_f16_lanes.h"
#include "math/sums_bf16_lanes.h"

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
    AT(SQUARES, squares_columns, kind), AT(MOST, most_columns, kind),         \
    AT(LEAST, least_columns, kind) }
#define NARROW(kind, of) {                                                    \
    AT(SUM, sum##of, kind), AT(ABS, abs##of, kind),                           \
    AT(SQUARES, squares##of, kind), AT(MAX, max##of, kind),                   \
    AT(MIN, min##of, kind) }

static const struct totals_loops LANES_NAME(loops) = {
    .of = { ROW(f32, squares), ROW(f64, apart), NARROW(bf16, ), NARROW(f16, ) },
    .columns = { COLUMNS(f32), COLUMNS(f64), NARROW(bf16, _columns),
                 NARROW(f16, _columns) },
    .exp = { LANES_NAME(made_exp_f32), LANES_NAME(made_exp_f64) },
    .place = { LANES_NAME(place_f32), LANES_NAME(place_f64) },
};

#undef HALVE
#undef TOTAL
#undef TOTAL_OF
#undef TOTAL_ROW
#undef TOTAL_COLUMNS
#undef TOTAL_SHORT
#undef LOAD_f32
#undef LOAD_f64
#undef SUM_REST
#undef SUM_SOME
#undef SUM
#undef EXTREME
#undef KEYS
#undef LARGER
#undef SMALLER
#undef TOTALS
#undef ROW_AT
#undef TOTAL_COLUMNS_OF
#undef MORE
#undef MORE_SIZE
#undef MORE_SQUARE
#undef MORE_APART
#undef NARROW
#undef AT
#undef ROW
#undef COLUMNS
#undef LANES_TARGET
#undef LANES_NAME
