/* cast_lanes.h - the loops of cast.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.
 */
#define CAST_FOR(target, from, FROM, T, wide, to, TO, convert)                \
    target static void LANES_NAME(from##_to_##to)(                            \
        void *out, const void *in, int64_t n)                                 \
    {                                                                         \
        TO *dst = out;                                                        \
        const FROM *src = in;                                                 \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x = wide(src[i]);                                         \
                                                                              \
            dst[i] = convert;                                                 \
        }                                                                     \
    }
#define CAST_OF(...) CAST_FOR(LANES_TARGET, __VA_ARGS__)
#define CAST(from, FROM, to, TO, convert)                                     \
    CAST_OF(from, FROM, FROM, , to, TO, convert)

/* Toward zero, clamped; 0 for a NaN.  `high` is the largest float of the type
 * that is not above `most`, which is an integer.
 */
#define WHOLE(I, low, high, most)                                             \
    (I)(x != x ? 0 : x > (high) ? (most)                                      \
        : (I)(x < (low) ? (low) : x > (high) ? (high) : x))

/* From f32, or what becomes one. */
#define FROM_FLOAT(from, FROM, wide)                                          \
    CAST_OF(from, FROM, float, wide, rest_i32, int32_t,                       \
            WHOLE(int32_t, -0x1p31F, 0x1.fffffep30F, INT32_MAX))              \
    CAST_OF(from, FROM, float, wide, i64, int64_t,                            \
            WHOLE(int64_t, -0x1p63F, 0x1.fffffep62F, INT64_MAX))              \
    CAST_OF(from, FROM, float, wide, u8, uint8_t,                             \
            (uint8_t)WHOLE(int32_t, 0, 255, 255))                             \
    CAST_OF(from, FROM, float, wide, truth, uint8_t, x != 0)
#define TO_FLOAT(to, TO)                                                      \
    CAST(i32, int32_t, to, TO, (TO)x)                                         \
    CAST(i64, int64_t, to, TO, (TO)x)                                         \
    CAST(u8, uint8_t, to, TO, (TO)x)                                          \
    CAST(truth, uint8_t, to, TO, (TO)(x != 0))

FROM_FLOAT(f32, float, )
FROM_FLOAT(bf16, uint16_t, dtn_bf16_widen)
CAST(f64, double, rest_i32, int32_t,
     WHOLE(int32_t, -0x1p31, 2147483647.0, INT32_MAX))
CAST(f64, double, i64, int64_t,
     WHOLE(int64_t, -0x1p63, 0x1.fffffffffffffp62, INT64_MAX))
CAST(f64, double, u8, uint8_t, (uint8_t)WHOLE(int32_t, 0, 255, 255))
CAST(f64, double, truth, uint8_t, x != 0)
TO_FLOAT(f32, float)
TO_FLOAT(f64, double)
CAST_FOR(LANES_SHORT, f32, float, float, , f64, double, (double)x)
CAST_FOR(LANES_SHORT, bf16, uint16_t, float, dtn_bf16_widen, f64, double,
         (double)x)
CAST_FOR(LANES_SHORT, f64, double, double, , f32, float, (float)x)

/* By hand: a compiler turns the clamping into more choices than are needed.
 * What is too small becomes INT32_MIN without one.
 */
#if LANES_WIDTH == 2
LANES_TARGET static inline void LANES_NAME(i32_of_f32)(int32_t *out, __m512 x)
{
    const __mmask16 large = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31F),
                                               _CMP_GE_OQ);
    const __m512i whole = _mm512_maskz_cvttps_epi32(
        _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);

    _mm512_storeu_si512(out, _mm512_mask_mov_epi32(
        whole, large, _mm512_set1_epi32(INT32_MAX)));
}

LANES_TARGET static inline void LANES_NAME(i32_of_f64)(int32_t *out, __m512d x)
{
    const __m512d inside = _mm512_min_pd(x, _mm512_set1_pd(2147483647.0));

    _mm256_storeu_si256((void *)out, _mm512_maskz_cvttpd_epi32(
        _mm512_cmp_pd_mask(x, x, _CMP_ORD_Q), inside));
}

#define VECTOR_f32(x) _mm512_loadu_ps(x)
#define VECTOR_f64(x) _mm512_loadu_pd(x)
#define VECTOR_bf16(x)                                                        \
    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(              \
        _mm256_loadu_si256((const void *)(x))), 16))
#define TO_I32(from, FROM, kind, some)                                        \
    LANES_TARGET static void LANES_NAME(from##_to_i32)(                       \
        void *out, const void *in, int64_t n)                                 \
    {                                                                         \
        const FROM *src = in;                                                 \
        int32_t *dst = out;                                                   \
        int64_t i = 0;                                                        \
                                                                              \
        for (; i + some <= n; i += some)                                      \
            LANES_NAME(i32_of_##kind)(dst + i, VECTOR_##from(src + i));       \
        LANES_NAME(from##_to_rest_i32)(dst + i, src + i, n - i);              \
    }
TO_I32(f32, float, f32, 16)
TO_I32(f64, double, f64, 8)
TO_I32(bf16, uint16_t, f32, 16)
#define I32 i32

/* By way of f32, as through a block of them; by vectors of LANES_SHORT. */
LANES_TARGET static void LANES_NAME(f64_to_f16)(void *out, const void *in,
                                                int64_t n)
{
    const double *src = in;
    uint16_t *dst = out;
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m128 low = _mm256_cvtpd_ps(_mm256_loadu_pd(src + i));
        const __m128 high = _mm256_cvtpd_ps(_mm256_loadu_pd(src + i + 4));

        _mm_storeu_si128((void *)(dst + i), _mm256_cvtps_ph(
            _mm256_set_m128(high, low), _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < n; i++)
        dst[i] = dtn_f16_narrow((float)src[i]);
}
#define F64_TO_F16 , AT(F16, f64, f16)
#else
#define F64_TO_F16
#define I32 rest_i32
#endif

#define NAMED(from, to) LANES_NAME(from##_to_##to)
#define AT(TO, from, to) [DTENSOR_##TO] = NAMED(from, to)
#define INTEGERS(from)                                                        \
    AT(I32, from, I32), AT(I64, from, i64), AT(U8, from, u8),                 \
    AT(BOOL, from, truth)
#define FLOATS(from) { AT(F32, from, f32), AT(F64, from, f64) }

static const struct cast_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = { AT(F64, f32, f64), INTEGERS(f32) },
        [DTENSOR_BF16] = { AT(F64, bf16, f64), INTEGERS(bf16) },
        [DTENSOR_F64] = { AT(F32, f64, f32), INTEGERS(f64) F64_TO_F16 },
        [DTENSOR_I32] = FLOATS(i32),
        [DTENSOR_I64] = FLOATS(i64),
        [DTENSOR_U8] = FLOATS(u8),
        [DTENSOR_BOOL] = FLOATS(truth),
    },
};

#undef CAST
#undef CAST_OF
#undef CAST_FOR
#undef TO_I32
#undef I32
#undef F64_TO_F16
#undef NAMED
#undef VECTOR_f32
#undef VECTOR_f64
#undef VECTOR_bf16
#undef WHOLE
#undef FROM_FLOAT
#undef TO_FLOAT
#undef AT
#undef INTEGERS
#undef FLOATS
#undef LANES_TARGET
#undef LANES_NAME
