/* totals_f64_lanes.h - totals that are added or multiplied as f64
 *
 * Included by totals_lanes.h for each vector width.  FOLD makes two loops: one
 * for a row, and one for neighbouring columns.  `more` is the vector t with the
 * vector x in it, `step` the same of numbers; `join` joins two lanes.
 *
 * With AVX-512 both loops are made by hand: a compiler takes f32 by the 16, of
 * which it then needs the halves, and keeps the lanes in memory.  A row has 8
 * vectors of 4, which CPUs widen faster than 4 of 8.  64 columns are 8 vectors.
 * They take every 32nd row, and so one lane after the other, in the order in
 * which lanes are joined: at most six wait in memory.  The square of a f32 has
 * 48 digits, so f64 does not round it, and a fused product has the bits of the
 * square that is added.
 */
#define INLINE static inline __attribute__((always_inline))
#define JOIN_add +
#define JOIN_mul *
#define HALVE(lane, half, join)                                               \
    for (int j = 0; j < half; j++) {                                          \
        const double t = lane[j], x = lane[j + half];                         \
                                                                              \
        lane[j] = join;                                                       \
    }

#if LANES_WIDTH == 2
#define LOAD_4_f32(some, x) _mm256_cvtps_pd(_mm_maskz_loadu_ps(some, x))
#define LOAD_4_f64(some, x) _mm256_maskz_loadu_pd(some, x)
#define LOAD_4_f16(some, x)                                                   \
    _mm256_cvtps_pd(_mm_cvtph_ps(_mm_maskz_loadu_epi16(some, x)))
#define LOAD_4_bf16(some, x)                                                  \
    _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(                          \
        _mm_cvtepu16_epi32(_mm_maskz_loadu_epi16(some, x)), 16)))
#define LOAD_8_f32(some, x) _mm512_cvtps_pd(_mm256_maskz_loadu_ps(some, x))
#define LOAD_8_f64(some, x) _mm512_maskz_loadu_pd(some, x)
#define LOAD_8_f16(some, x)                                                   \
    _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_maskz_loadu_epi16(some, x)))
#define LOAD_8_bf16(some, x)                                                  \
    _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(                    \
        _mm256_cvtepu16_epi32(_mm_maskz_loadu_epi16(some, x)), 16)))

/* Of vectors whose instructions begin with `v`.  CPUs widen and add in the same
 * place, but multiply in another: t + 1 x.
 */
#define MORE(v, t, x) v##_fmadd_pd(x, v##_set1_pd(1), t)
#define MORE_PRODUCT(v, t, x) v##_mul_pd(t, x)
#define MORE_SIZE(v, t, x) MORE(v, t, v##_andnot_pd(v##_set1_pd(-0.0), x))
#define MORE_SQUARE(v, t, x) v##_fmadd_pd(x, x, t)
#define MORE_APART(v, t, x)                                                   \
    MORE(v, t, (x - v##_set1_pd(m)) * (x - v##_set1_pd(m)))
#define MORE_COUNT(v, t, x)                                                   \
    v##_mask_add_pd(t, v##_cmp_pd_mask(x, v##_setzero_pd(), _CMP_NEQ_UQ), t,  \
                    v##_set1_pd(1))

/* The first step of a lane.  0 + x is x but for -0, and a total is never -0. */
#define MORE_BEGIN(v, t, x) (x)
#define MORE_PRODUCT_BEGIN(v, t, x) (x)
#define MORE_SIZE_BEGIN MORE_SIZE
#define MORE_SQUARE_BEGIN MORE_SQUARE
#define MORE_APART_BEGIN MORE_APART
#define MORE_COUNT_BEGIN MORE_COUNT

/* The lower ones of 8 vector elements: n, none or all. */
LANES_TARGET INLINE __mmask8 LANES_NAME(some_of_8)(int64_t n)
{
    return (__mmask8)(n >= 8 ? 0xff : n <= 0 ? 0 : (1 << n) - 1);
}

/* Lanes in an array would be stored at every step. */
#define FOLD_4(lanes, kind, at, more)                                         \
    do {                                                                      \
        const __m256d x = LOAD_4_##kind(0xff, array + (at));                  \
                                                                              \
        lanes = more(_mm256, lanes, x);                                       \
    } while (0)
#define FOLD_REST(lanes, kind, at, more)                                      \
    do {                                                                      \
        const __mmask8 some = LANES_NAME(some_of_8)(n - (at)) & 0xf;          \
        const __m256d x = LOAD_4_##kind(some, array + (at));                  \
                                                                              \
        lanes = _mm256_mask_mov_pd(lanes, some, more(_mm256, lanes, x));      \
    } while (0)
#define FOLD_32(fold, kind, more)                                             \
    do {                                                                      \
        fold(a, kind, 0, more);                                               \
        fold(b, kind, 4, more);                                               \
        fold(c, kind, 8, more);                                               \
        fold(d, kind, 12, more);                                              \
        fold(e, kind, 16, more);                                              \
        fold(f, kind, 20, more);                                              \
        fold(g, kind, 24, more);                                              \
        fold(h, kind, 28, more);                                              \
    } while (0)
#define FOLD_LANES(name, kind, T, first, more, join)                          \
    LANES_TARGET INLINE __m256d LANES_NAME(name##_lanes_##kind)(              \
        const T *array, int64_t n, double m)                                  \
    {                                                                         \
        __m256d a = _mm256_set1_pd(first), b = a, c = a, d = a;               \
        __m256d e = a, f = a, g = a, h = a;                                   \
                                                                              \
        for (; n >= 32; n -= 32, array += 32)                                 \
            FOLD_32(FOLD_4, kind, more);                                      \
        if (n > 0)                                                            \
            FOLD_32(FOLD_REST, kind, more);                                   \
        (void)m;                                                              \
        a = _mm256_##join##_pd(_mm256_##join##_pd(a, e),                      \
                               _mm256_##join##_pd(c, g));                     \
        b = _mm256_##join##_pd(_mm256_##join##_pd(b, f),                      \
                               _mm256_##join##_pd(d, h));                     \
        return _mm256_##join##_pd(a, b);                                      \
    }
/* The last four lanes of two blocks are joined at once. */
#define FOLD_ROW(name, kind, T, first, more, join, step)                      \
    FOLD_LANES(name, kind, T, first, more, join)                              \
    LANES_TARGET INLINE double LANES_NAME(name##_blocks_##kind)(              \
        const T *x, int64_t n, const T *y, int64_t rest, double total,        \
        double m)                                                             \
    {                                                                         \
        const __m256d a = LANES_NAME(name##_lanes_##kind)(x, n, m);           \
        const __m256d b = rest ? LANES_NAME(name##_lanes_##kind)(y, rest, m)  \
                               : a;                                           \
        const __m256d two = _mm256_##join##_pd(                               \
            _mm256_permute2f128_pd(a, b, 0x20),                               \
            _mm256_permute2f128_pd(a, b, 0x31));                              \
        const __m256d one = _mm256_##join##_pd(_mm256_unpacklo_pd(two, two),  \
                                               _mm256_unpackhi_pd(two, two)); \
                                                                              \
        total = total JOIN_##join one[0];                                     \
        return rest ? total JOIN_##join one[2] : total;                       \
    }                                                                         \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const T *array = elements;                                            \
                                                                              \
        for (; n >= 2 * DTN_BLOCK; n -= 2 * DTN_BLOCK, array += 2 * DTN_BLOCK)\
            total = LANES_NAME(name##_blocks_##kind)(                         \
                array, DTN_BLOCK, array + DTN_BLOCK, DTN_BLOCK, total, m);    \
        for (; n > 0; n -= DTN_BLOCK, array += DTN_BLOCK)                     \
            total = LANES_NAME(name##_blocks_##kind)(                         \
                array, n < DTN_BLOCK ? n : DTN_BLOCK, NULL, 0, total, m);     \
        return total;                                                         \
    }
/* Four columns at a time, of up to eight elements: each element is a lane. */
#define FOLD_EIGHT(name, kind, T, first, more, join)                          \
    LANES_TARGET INLINE __m256d LANES_NAME(name##_lane_##kind)(               \
        const T *x, int64_t apart, int64_t n, int64_t i, __mmask8 some)       \
    {                                                                         \
        const double m = 0;                                                   \
        const __m256d t = _mm256_set1_pd(first);                              \
                                                                              \
        (void)m;                                                              \
        if (i >= n)                                                           \
            return t;                                                         \
        return more##_BEGIN(_mm256, t, LOAD_4_##kind(some, x + i * apart));   \
    }                                                                         \
    LANES_TARGET INLINE void LANES_NAME(name##_four_##kind)(                  \
        const T *x, int64_t apart, int64_t n, __mmask8 some, double total[])  \
    {                                                                         \
        const __m256d even = TWO_##join(                                      \
            TWO_##join(LANE(name, kind, 0), LANE(name, kind, 4)),             \
            TWO_##join(LANE(name, kind, 2), LANE(name, kind, 6)));            \
        const __m256d odd = TWO_##join(                                       \
            TWO_##join(LANE(name, kind, 1), LANE(name, kind, 5)),             \
            TWO_##join(LANE(name, kind, 3), LANE(name, kind, 7)));            \
                                                                              \
        _mm256_mask_storeu_pd(total, some, TWO_##join(                        \
            _mm256_maskz_loadu_pd(some, total), TWO_##join(even, odd)));      \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_eight_##kind)(                 \
        const T *x, int64_t apart, int64_t n, int64_t width, double total[])  \
    {                                                                         \
        int64_t k = 0;                                                        \
                                                                              \
        for (; k + 4 <= width && n == 8; k += 4)                              \
            LANES_NAME(name##_four_##kind)(x + k, apart, 8, 0xff, total + k); \
        for (; k < width; k += 4)                                             \
            LANES_NAME(name##_four_##kind)(                                   \
                x + k, apart, n, LANES_NAME(some_of_8)(width - k) & 0xf,      \
                total + k);                                                   \
    }
#define LANE(name, kind, i)                                                   \
    LANES_NAME(name##_lane_##kind)(x, apart, n, i, some)
#define TWO_add(a, b) MORE(_mm256, a, b)
#define TWO_mul(a, b) MORE_PRODUCT(_mm256, a, b)
#define FOLD_COLUMNS(name, kind, T, first, more, join, step)                  \
    LANES_TARGET INLINE void LANES_NAME(name##_some_##kind)(                  \
        const T *x, int64_t apart, int64_t n, int vectors,                    \
        const __mmask8 some[8], bool whole, double total[])                   \
    {                                                                         \
        const double m = 0;                                                   \
        const int lanes = total_lanes(n);                                     \
        __m512d lane[6][8];                                                   \
        int top = 0;                                                          \
                                                                              \
        for (int c = 0; c < lanes; c++) {                                     \
            __m512d t[8];                                                     \
                                                                              \
            for (int w = 0; w < vectors; w++)                                 \
                t[w] = _mm512_set1_pd(first);                                 \
            for (int64_t i = total_order[c * 32 / lanes]; i < n; i += 32)     \
                for (int w = 0; w < vectors; w++) {                           \
                    const __m512d e = LOAD_8_##kind(whole ? 0xff : some[w],   \
                                                    x + i * apart + 8 * w);   \
                                                                              \
                    t[w] = more(_mm512, t[w], e);                             \
                }                                                             \
            for (int odd = c; odd & 1; odd >>= 1) {                           \
                top--;                                                        \
                for (int w = 0; w < vectors; w++)                             \
                    t[w] = _mm512_##join##_pd(lane[top][w], t[w]);            \
            }                                                                 \
            for (int w = 0; w < vectors; w++)                                 \
                lane[top][w] = t[w];                                          \
            top++;                                                            \
        }                                                                     \
        (void)m;                                                              \
        for (int w = 0; w < vectors; w++)                                     \
            _mm512_mask_storeu_pd(total + 8 * w, some[w], _mm512_##join##_pd( \
                _mm512_maskz_loadu_pd(some[w], total + 8 * w), lane[0][w]));  \
    }                                                                         \
    FOLD_EIGHT(name, kind, T, first, more, join)                              \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        const T *x = elements;                                                \
        __mmask8 some[8];                                                     \
                                                                              \
        if (n <= 8) {                                                         \
            LANES_NAME(name##_eight_##kind)(x, apart, n, width, total);       \
            return;                                                           \
        }                                                                     \
        for (int64_t k = 0; k < width; k += 64) {                             \
            for (int w = 0; w < 8; w++)                                       \
                some[w] = LANES_NAME(some_of_8)(width - k - 8 * w);           \
            if (width - k >= 64)                                              \
                LANES_NAME(name##_some_##kind)(x + k, apart, n, 8, some,      \
                                               true, total + k);              \
            else if (width - k == 32)                                         \
                LANES_NAME(name##_some_##kind)(x + k, apart, n, 4, some,      \
                                               true, total + k);              \
            else if (width - k == 16)                                         \
                LANES_NAME(name##_some_##kind)(x + k, apart, n, 2, some,      \
                                               true, total + k);              \
            else                                                              \
                LANES_NAME(name##_some_##kind)(x + k, apart, n, 8, some,      \
                                               false, total + k);             \
        }                                                                     \
    }
#else
#define TOTAL_BLOCK(name, kind, T, first, step, join)                         \
    LANES_TARGET INLINE double LANES_NAME(name##_block_##kind)(               \
        const T *array, int64_t n, double total, double m)                    \
    {                                                                         \
        double lane[32];                                                      \
        int64_t i = 0;                                                        \
                                                                              \
        for (int j = 0; j < 32; j++)                                          \
            lane[j] = first;                                                  \
        for (; i + 32 <= n; i += 32) {                                        \
            for (int j = 0; j < 16; j++) {                                    \
                const double x = (double)array[i + j], t = lane[j];           \
                                                                              \
                lane[j] = step;                                               \
            }                                                                 \
            for (int j = 0; j < 16; j++) {                                    \
                const double x = (double)array[i + 16 + j], t = lane[16 + j]; \
                                                                              \
                lane[16 + j] = step;                                          \
            }                                                                 \
        }                                                                     \
        for (int j = 0; i < n; i++, j++) {                                    \
            const double x = (double)array[i], t = lane[j];                   \
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
#define TOTAL_SHORT(name, kind, T, first, step, join)                         \
    LANES_TARGET static void LANES_NAME(name##_short_##kind)(                 \
        const T *elements, int64_t apart, int64_t n, double total[])          \
    {                                                                         \
        const int lanes = total_lanes(n);                                     \
        double lane[6][DTN_TOTAL_SHORT];                                      \
        int top = 0;                                                          \
                                                                              \
        for (int c = 0; c < lanes; c++) {                                     \
            double *sum = lane[top++];                                        \
                                                                              \
            for (int k = 0; k < DTN_TOTAL_SHORT; k++)                         \
                sum[k] = first;                                               \
            for (int64_t i = total_order[c * 32 / lanes]; i < n; i += 32)     \
                for (int k = 0; k < DTN_TOTAL_SHORT; k++) {                   \
                    const double x = (double)elements[i * apart + k];         \
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
#define TOTAL_COLUMNS(name, kind, T, first, step, join)                       \
    TOTAL_SHORT(name, kind, T, first, step, join)                             \
    TOTAL_COLUMNS_OF(name##_long, kind, ROW_AT(T), first, step, join)         \
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
#define TOTAL_COLUMNS_OF(name, kind, row_i, first, step, join)                \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        const double m = 0;                                                   \
        const int lanes = total_lanes(n);                                     \
        double lane[32][DTN_TOTAL_COLUMNS];                                   \
                                                                              \
        for (int j = 0; j < lanes; j++)                                       \
            for (int64_t k = 0; k < width; k++)                               \
                lane[j][k] = first;                                           \
        for (int64_t i = 0; i < n; i++) {                                     \
            double *sum = lane[i % 32];                                       \
            row_i                                                             \
                                                                              \
            for (int64_t k = 0; k < width; k++) {                             \
                const double x = (double)row[k], t = sum[k];                  \
                                                                              \
                (void)m;                                                      \
                sum[k] = step;                                                \
            }                                                                 \
        }                                                                     \
        for (int half = lanes / 2; half > 0; half /= 2)                       \
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

/* Narrow columns: widened row by row, in turns of DTN_TOTAL_COLUMNS. */
#define TOTAL_NARROW(name, kind, first, step, join)                           \
    TOTAL_COLUMNS_OF(name##_few, kind, ROW_WIDE(kind), first, step,           \
                     join)                                                    \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        for (int64_t k = 0; k < width; k += DTN_TOTAL_COLUMNS)                \
            LANES_NAME(name##_few_columns_##kind)(                            \
                (const uint16_t *)elements + k, apart, n,                     \
                width - k < DTN_TOTAL_COLUMNS ? width - k                     \
                                              : DTN_TOTAL_COLUMNS, total + k);\
    }
#define ROW_WIDE(kind)                                                        \
    float row[DTN_TOTAL_COLUMNS];                                             \
                                                                              \
    LANES_NAME(wide_##kind)(row, (const uint16_t *)elements + i * apart, width);

/* A row of any number of blocks. */
#define FOLD_ROW(name, kind, T, first, more, join, step)                      \
    TOTAL_BLOCK(name, kind, T, first, step, t JOIN_##join x)                  \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const T *array = elements;                                            \
                                                                              \
        for (; n > 0; n -= DTN_BLOCK, array += DTN_BLOCK)                     \
            total = LANES_NAME(name##_block_##kind)(                          \
                array, n < DTN_BLOCK ? n : DTN_BLOCK, total, m);              \
        return total;                                                         \
    }
#define FOLD_COLUMNS(name, kind, T, first, more, join, step)                  \
    COLUMNS_##kind(name, first, step, t JOIN_##join x)
#define COLUMNS_f32(name, first, step, join)                                  \
    TOTAL_COLUMNS(name, f32, float, first, step, join)
#define COLUMNS_f64(name, first, step, join)                                  \
    TOTAL_COLUMNS(name, f64, double, first, step, join)
#define COLUMNS_bf16(name, first, step, join)                                 \
    TOTAL_NARROW(name, bf16, first, step, join)
#define COLUMNS_f16(name, first, step, join)                                  \
    TOTAL_NARROW(name, f16, first, step, join)
#endif

#define FOLD(name, kind, T, first, more, join, step)                          \
    FOLD_ROW(name, kind, T, first, more, join, step)                          \
    FOLD_COLUMNS(name, kind, T, first, more, join, step)
#define SUM(name, kind, T, more, step) FOLD(name, kind, T, 0, more, add, step)

/* Of bf16 and f16: a block of a row is widened, and folded like f32. */
#define FOLD_NARROW(name, kind, of_f32, first, more, join, step)              \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        float wide[DTN_BLOCK];                                                \
                                                                              \
        LANES_NAME(wide_##kind)(wide, elements, n);                           \
        return LANES_NAME(of_f32##_f32)(wide, n, total, m);                   \
    }                                                                         \
    FOLD_COLUMNS(name, kind, uint16_t, first, more, join, step)
