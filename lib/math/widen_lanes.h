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

LANES_TARGET static void LANES_NAME(narrow_bf16)(uint16_t *to,
                                                 const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
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

static const struct widen_loops LANES_NAME(loops) = {
    { LANES_NAME(widen_bf16), LANES_NAME(widen_f16) },
    { LANES_NAME(narrow_bf16), LANES_NAME(narrow_f16) }
};

#undef SOME
#undef WIDEN
#undef WIDE_STORE
#undef NARROW
#undef NARROW_STORE
#undef LANES_TARGET
#undef LANES_NAME
