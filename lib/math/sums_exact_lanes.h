/* sums_exact_lanes.h - sums of bf16 and f16 that f32 does not round
 *
 * Included by totals_lanes.h for AVX-512.  Eight numbers are added as f32,
 * twice: once every sum is rounded down, once up.  If both come to the same,
 * nothing was rounded.  If not, the eight are added as f64.  f64 has the sum of
 * such sums in any order, so the bits are those of 32 lanes of f64: of 2^13
 * numbers of f16, which are multiples of 2^-24 below 2^16, and of a block of
 * bf16 whose exponents differ by 36 at most.
 */
struct LANES_NAME(both) {
    __m512 down, up;              /* the sum, rounded in each direction       */
};

/* Of numbers without their signs, as whole ones; `less` is the least of those
 * that are not 0, less 1.
 */
struct LANES_NAME(range) {
    __m512i most, less;
};

#define LOWER(x) _mm512_cvtps_pd(_mm512_castps512_ps256(x))
#define UPPER(x) _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))
#define BOTH_ZERO { _mm512_setzero_ps(), _mm512_setzero_ps() }

/* 32 numbers are two vectors of f32, of bf16 those with even places first. */
#define BITS(some, at) _mm512_maskz_loadu_epi16((__mmask32)(some), at)
#define HALF_f16(some, at)                                                    \
    _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(some), at))
#define FIRST_f16(some, at) HALF_f16(some, at)
#define SECOND_f16(some, at) HALF_f16((some) >> 16, (at) + 16)
#define FIRST_bf16(some, at)                                                  \
    _mm512_castsi512_ps(_mm512_slli_epi32(BITS(some, at), 16))
#define SECOND_bf16(some, at)                                                 \
    _mm512_castsi512_ps(_mm512_and_si512(                                     \
        BITS(some, at), _mm512_set1_epi32((int)0xffff0000)))
#define PLACE_f16(k) (k)
#define PLACE_bf16(k) (((k) & ~31) | ((k) & 1) << 4 | ((k) & 31) >> 1)

/* A CPU multiplies and adds in different places: both are used. */
LANES_TARGET INLINE void LANES_NAME(both_add)(struct LANES_NAME(both) *sum,
                                              __m512 x)
{
    sum->down = _mm512_fmadd_round_ps(x, _mm512_set1_ps(1), sum->down,
                                      _MM_FROUND_TO_NEG_INF |
                                      _MM_FROUND_NO_EXC);
    sum->up = _mm512_add_round_ps(sum->up, x, _MM_FROUND_TO_POS_INF |
                                              _MM_FROUND_NO_EXC);
}

/* Those that were rounded, or are NaNs. */
LANES_TARGET INLINE __mmask16 LANES_NAME(both_differ)(struct LANES_NAME(both) x)
{
    return _mm512_cmp_ps_mask(x.down, x.up, _CMP_NEQ_UQ);
}

/* The lower n of 32, which may be none or more than all. */
LANES_TARGET INLINE uint32_t LANES_NAME(some_of_32)(int64_t n)
{
    return n >= 32 ? UINT32_MAX : n <= 0 ? 0 : ((uint32_t)1 << n) - 1;
}

LANES_TARGET INLINE __m512d LANES_NAME(halves)(struct LANES_NAME(both) sum)
{
    return _mm512_add_pd(LOWER(sum.up), UPPER(sum.up));
}

LANES_TARGET INLINE void LANES_NAME(add_to)(double sum[], __m512d x)
{
    _mm512_storeu_pd(sum, _mm512_add_pd(_mm512_loadu_pd(sum), x));
}

LANES_TARGET INLINE struct LANES_NAME(range) LANES_NAME(range_none)(void)
{
    return (struct LANES_NAME(range)){ _mm512_setzero_si512(),
                                       _mm512_set1_epi16(-1) };
}

LANES_TARGET INLINE void LANES_NAME(range_add)(struct LANES_NAME(range) *range,
                                               __m512i x)
{
    const __m512i size = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));

    range->most = _mm512_max_epu16(range->most, size);
    range->less = _mm512_min_epu16(range->less, _mm512_sub_epi16(
        size, _mm512_set1_epi16(1)));
}

LANES_TARGET INLINE uint16_t LANES_NAME(least_of)(__m512i x)
{
    const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(x),
                                          _mm512_extracti64x4_epi64(x, 1));

    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_min_epu16(
        _mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1))));
}

/* Is the sum of a block exact in f64? */
LANES_TARGET INLINE bool LANES_NAME(range_exact)(struct LANES_NAME(range) range)
{
    const __m512i all = _mm512_set1_epi16(-1);
    const uint16_t rest = LANES_NAME(least_of)(_mm512_xor_si512(range.most,
                                                                all));

    return range_is_exact((uint16_t)~rest, LANES_NAME(least_of)(range.less),
                          36);
}

/* Of a row up to 512 numbers: each vector has eight terms.  If no sum was
 * rounded, it is added to *sump.  Of columns up to 32 at a time, of eight rows,
 * or fewer; a row that is added alone is not rounded.
 */
#define ADD(kind, first, second, some, at)                                    \
    do {                                                                      \
        if (ranged)                                                           \
            LANES_NAME(range_add)(&range, BITS(some, at));                    \
        LANES_NAME(both_add)(&(first), FIRST_##kind(some, at));               \
        LANES_NAME(both_add)(&(second), SECOND_##kind(some, at));             \
    } while (0)
#define EXACT(kind, is_ranged, most)                                          \
    LANES_TARGET static bool LANES_NAME(sum_exact_##kind)(                    \
        const uint16_t *x, int64_t n, double *sump)                           \
    {                                                                         \
        enum { ranged = is_ranged };                                          \
        struct LANES_NAME(range) range = LANES_NAME(range_none)();            \
        struct LANES_NAME(both) a = BOTH_ZERO, b = a, c = a, d = a;           \
                                                                              \
        for (; n >= 64; n -= 64, x += 64) {                                   \
            ADD(kind, a, b, UINT32_MAX, x);                                   \
            ADD(kind, c, d, UINT32_MAX, x + 32);                              \
        }                                                                     \
        if (n > 0) {                                                          \
            ADD(kind, a, b, LANES_NAME(some_of_32)(n), x);                    \
            ADD(kind, c, d, LANES_NAME(some_of_32)(n - 32), x + 32);          \
        }                                                                     \
        if (LANES_NAME(both_differ)(a) | LANES_NAME(both_differ)(b) |         \
            LANES_NAME(both_differ)(c) | LANES_NAME(both_differ)(d) |         \
            (ranged && !LANES_NAME(range_exact)(range)))                      \
            return false;                                                     \
        *sump += _mm512_reduce_add_pd(_mm512_add_pd(                          \
            _mm512_add_pd(LANES_NAME(halves)(a), LANES_NAME(halves)(b)),      \
            _mm512_add_pd(LANES_NAME(halves)(c), LANES_NAME(halves)(d))));    \
        return true;                                                          \
    }                                                                         \
    LANES_TARGET static double LANES_NAME(sum_##kind)(                        \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        return LANES_NAME(sum_exact_##kind)(elements, n, &total)              \
            ? total : LANES_NAME(sum_any_##kind)(elements, n, total, m);      \
    }                                                                         \
    LANES_TARGET INLINE void LANES_NAME(add_some_##kind)(                     \
        const uint16_t *x, int64_t apart, int64_t rows, uint32_t some,        \
        double sum[], struct LANES_NAME(range) *rangep)                       \
    {                                                                         \
        enum { ranged = is_ranged };                                          \
        struct LANES_NAME(range) range = *rangep;                             \
        struct LANES_NAME(both) a = BOTH_ZERO, b = a;                         \
                                                                              \
        for (int64_t r = 0; r < rows; r++)                                    \
            ADD(kind, a, b, some, x + r * apart);                             \
        *rangep = range;                                                      \
                                                                              \
        const bool alone = LANES_NAME(both_differ)(a) |                       \
                           LANES_NAME(both_differ)(b);                        \
                                                                              \
        for (int64_t r = 0; r < rows; r += alone ? 1 : rows) {                \
            if (alone) {                                                      \
                a.up = FIRST_##kind(some, x + r * apart);                     \
                b.up = SECOND_##kind(some, x + r * apart);                    \
            }                                                                 \
            LANES_NAME(add_to)(sum, LOWER(a.up));                             \
            LANES_NAME(add_to)(sum + 8, UPPER(a.up));                         \
            LANES_NAME(add_to)(sum + 16, LOWER(b.up));                        \
            LANES_NAME(add_to)(sum + 24, UPPER(b.up));                        \
        }                                                                     \
    }                                                                         \
    LANES_TARGET static bool LANES_NAME(add_columns_##kind)(                  \
        const uint16_t *x, int64_t apart, int64_t n, int64_t width,           \
        double sum[])                                                         \
    {                                                                         \
        enum { TERMS = 8 };                                                   \
        struct LANES_NAME(range) range = LANES_NAME(range_none)();            \
                                                                              \
        for (int64_t rows; n > 0; n -= rows, x += rows * apart) {             \
            rows = n < TERMS ? n : TERMS;                                     \
            for (int64_t k = 0; k < width; k += 32)                           \
                if (rows == TERMS && width - k >= 32)                         \
                    LANES_NAME(add_some_##kind)(x + k, apart, TERMS,          \
                                                UINT32_MAX, sum + k, &range); \
                else                                                          \
                    LANES_NAME(add_some_##kind)(                              \
                        x + k, apart, rows,                                   \
                        LANES_NAME(some_of_32)(width - k), sum + k, &range);  \
        }                                                                     \
        return !(is_ranged) || LANES_NAME(range_exact)(range);                \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(sum_columns_##kind)(                  \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        double sum[DTN_TOTAL_WIDE] = { 0 };                                   \
        int exact = n <= (most) &&                                            \
            LANES_NAME(add_columns_##kind)(elements, apart, n, width, sum);   \
                                                                              \
        for (int64_t k = 0; k < DTN_TOTAL_WIDE; k++)                          \
            exact &= sum[k] - sum[k] == 0;                                    \
        for (int64_t k = 0; k < width && exact; k++)                          \
            total[k] += sum[PLACE_##kind(k)];                                 \
        if (!exact)                                                           \
            LANES_NAME(sum_any_columns_##kind)(elements, apart, n, width,     \
                                               total);                        \
    }

EXACT(f16, false, 1 << 13)
EXACT(bf16, true, DTN_BLOCK)

#undef LOWER
#undef UPPER
#undef BOTH_ZERO
#undef BITS
#undef HALF_f16
#undef FIRST_f16
#undef SECOND_f16
#undef FIRST_bf16
#undef SECOND_bf16
#undef PLACE_f16
#undef PLACE_bf16
#undef ADD
#undef EXACT
