/* widen_lanes.h - the loops of widen.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, LANES_NAME(x), which keeps the names apart, and LANES_WIDTH.
 */
#if LANES_WIDTH == 2
#define SOME 16
#define WIDEN(x) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x)))
#define WIDE_STORE _mm512_storeu_ps
#define NARROW(x)                                                             \
    _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT)
#define NARROW_STORE(to, x) _mm256_storeu_si256((__m256i *)(to), x)
#elif LANES_WIDTH == 1 && defined(DTN_HAS_F16C)
#define SOME 8
#define WIDEN(x) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x)))
#define WIDE_STORE _mm256_storeu_ps
#define NARROW(x)                                                             \
    _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT)
#define NARROW_STORE(to, x) _mm_storeu_si128((__m128i *)(to), x)
#endif

LANES_TARGET static void LANES_NAME(widen_bf16)(float *to, const uint16_t *from,
                                                int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtn_bf16_widen(from[i]);
}

#if LANES_WIDTH == 2
/* Of 16 numbers the upper halves are what dtn_bf16_narrow() makes of them. */
LANES_TARGET static inline __attribute__((always_inline)) __m512i
LANES_NAME(rounded_bf16)(const float *from)
{
    const __m512 x = _mm512_loadu_ps(from);
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16),
                                         _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));

    return _mm512_mask_or_epi32(_mm512_add_epi32(bits, up),
                                _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits,
                                _mm512_set1_epi32(0x00400000));
}
#endif

LANES_TARGET static void LANES_NAME(narrow_bf16)(uint16_t *to,
                                                 const float *from, int64_t n)
{
    int64_t i = 0;

#if LANES_WIDTH == 2
    static const uint16_t upper[] = {
        1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37,
        39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63
    };
    const __m512i places = _mm512_loadu_si512(upper);

    for (; i + 32 <= n; i += 32)
        _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(
            LANES_NAME(rounded_bf16)(from + i), places,
            LANES_NAME(rounded_bf16)(from + i + 16)));
#endif
    for (; i < n; i++)
        to[i] = dtn_bf16_narrow(from[i]);
}

LANES_TARGET static void LANES_NAME(widen_f16)(float *to, const uint16_t *from,
                                               int64_t n)
{
    int64_t i = 0;

#ifdef SOME
    for (; i + SOME <= n; i += SOME)
        WIDE_STORE(to + i, WIDEN(from + i));
#endif
    for (; i < n; i++)
        to[i] = dtn_f16_widen(from[i]);
}

LANES_TARGET static void LANES_NAME(narrow_f16)(uint16_t *to, const float *from,
                                                int64_t n)
{
    int64_t i = 0;

#ifdef SOME
    for (; i + SOME <= n; i += SOME)
        NARROW_STORE(to + i, NARROW(from + i));
#endif
    for (; i < n; i++)
        to[i] = dtn_f16_narrow(from[i]);
}

#define ROWS(kind)                                                            \
    LANES_TARGET static void LANES_NAME(widen_rows_##kind)(                   \
        float *to, const uint16_t *from, int64_t apart, int64_t rows)         \
    {                                                                         \
        for (int64_t i = 0; i < rows; i++) {                                  \
            const uint16_t *row = from + i * apart;                           \
                                                                              \
            LANES_NAME(widen_##kind)(to + i * DTN_WIDEN_ROW, row,             \
                                     DTN_WIDEN_ROW);                          \
        }                                                                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(narrow_rows_##kind)(                  \
        uint16_t *to, int64_t apart, const float *from, int64_t rows)         \
    {                                                                         \
        for (int64_t i = 0; i < rows; i++) {                                  \
            uint16_t *row = to + i * apart;                                   \
                                                                              \
            LANES_NAME(narrow_##kind)(row, from + i * DTN_WIDEN_ROW,          \
                                      DTN_WIDEN_ROW);                         \
        }                                                                     \
    }

ROWS(bf16)
ROWS(f16)

static const struct widen_loops LANES_NAME(loops) = {
    { LANES_NAME(widen_bf16), LANES_NAME(widen_f16) },
    { LANES_NAME(narrow_bf16), LANES_NAME(narrow_f16) },
    { LANES_NAME(widen_rows_bf16), LANES_NAME(widen_rows_f16) },
    { LANES_NAME(narrow_rows_bf16), LANES_NAME(narrow_rows_f16) }
};

#undef ROWS
#undef SOME
#undef WIDEN
#undef WIDE_STORE
#undef NARROW
#undef NARROW_STORE
#undef LANES_TARGET
#undef LANES_NAME
