/* pointwise_lanes.h - the loops of pointwise.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Which loops
 * there are, and what is in them, is in pointwise_list.h.
 */
#define LOOP_FOR(target, OP, name, kind, T, TO, expression)                   \
    target static void LANES_NAME(name##_##kind)(                             \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        enum { OPERANDS_USED = DTN_##OP < DTN_ADD ? 1                         \
                             : DTN_##OP < DTN_ADDCMUL ? 2 : 3 };              \
        TO *dst = to;                                                         \
        const T *a = in[0], *b = in[OPERANDS_USED > 1];                       \
        const T *c = in[OPERANDS_USED > 2 ? 2 : 0];                           \
        const T p = ((const T *)args)[0], q = ((const T *)args)[1];           \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x = a[i], y = b[i], z = c[i];                             \
                                                                              \
            (void)x, (void)y, (void)z, (void)p, (void)q;                      \
            dst[i] = (TO)(expression);                                        \
        }                                                                     \
    }
#define LOOP(...) LOOP_FOR(LANES_TARGET, __VA_ARGS__)
#define SHORT(...) LOOP_FOR(LANES_SHORT, __VA_ARGS__)

DTN_POINTWISE_SHORT(SHORT, f32, float)
DTN_POINTWISE_LONG(LOOP, f32, float)
DTN_POINTWISE_GELU(LOOP, f32, float)
DTN_POINTWISE_GELU(LOOP, bf16, float)
DTN_POINTWISE_LIBM(LOOP, f32, float)
DTN_POINTWISE_SHORT(SHORT, f64, double)
DTN_POINTWISE_LONG(LOOP, f64, double)
DTN_POINTWISE_GELU(LOOP, f64, double)
DTN_POINTWISE_LIBM(LOOP, f64, double)
DTN_POINTWISE_INTEGER(LOOP, i64, int64_t)
DTN_POINTWISE_INTEGER(LOOP, u64, uint64_t)

/* Only a block that has large numbers takes the way that is not for vectors.
 * Bits without the sign have the order of sizes, a NaN being the largest.
 */
#define SINE(name, kind, T, I, bits_of, quarters, most)                       \
    static void LANES_NAME(name##_slow_##kind)(T *dst, const T *a, int64_t n) \
    {                                                                         \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i] = dtn_sine_any_##kind(a[i], quarters);                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        (void)args;                                                           \
        for (int64_t at = 0; at < n; at += DTN_BLOCK) {                       \
            const int64_t left = n - at < DTN_BLOCK ? n - at : DTN_BLOCK;     \
            const T *a = (const T *)in[0] + at;                               \
            T *dst = (T *)to + at;                                            \
            I largest = 0;                                                    \
                                                                              \
            for (int64_t i = 0; i < left; i++) {                              \
                const I size = (I)bits_of(a[i]) & (I)~(UINT64_C(1) <<         \
                                                       (8 * sizeof(I) - 1));  \
                                                                              \
                largest = size > largest ? size : largest;                    \
            }                                                                 \
            if (largest >= (I)bits_of(most)) {                                \
                LANES_NAME(name##_slow_##kind)(dst, a, left);                 \
                continue;                                                     \
            }                                                                 \
            DTN_INDEPENDENT                                                   \
            for (int64_t i = 0; i < left; i++)                                \
                dst[i] = dtn_sine_##kind(a[i], quarters);                     \
        }                                                                     \
    }

SINE(sin, f32, float, int32_t, dtn_narrow_bits, 0, DTN_SINE_MOST_F32)
SINE(cos, f32, float, int32_t, dtn_narrow_bits, 1, DTN_SINE_MOST_F32)
SINE(sin, f64, double, int64_t, bits_of_f64, 0, DTN_SINE_MOST_F64)
SINE(cos, f64, double, int64_t, bits_of_f64, 1, DTN_SINE_MOST_F64)

/* Few instructions are less than the passes over blocks of narrow floats. */
#if LANES_WIDTH == 2
#define INLINE static inline __attribute__((always_inline))
LANES_TARGET INLINE __m512 LANES_NAME(wide_f16)(__m256i x)
{
    return _mm512_cvtph_ps(x);
}

LANES_TARGET INLINE __m256i LANES_NAME(half_f16)(__m512 x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

LANES_TARGET INLINE __m512 LANES_NAME(wide_bf16)(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x),
                                                 16));
}

/* As dtn_bf16_narrow(). */
LANES_TARGET INLINE __m256i LANES_NAME(half_bf16)(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16),
                                         _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_mask_or_epi32(
        _mm512_add_epi32(bits, up), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
        bits, _mm512_set1_epi32(0x00400000));

    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

#define LOAD(kind, from)                                                      \
    LANES_NAME(wide_##kind)(_mm256_maskz_loadu_epi16(some, (from) + i))
#define HALF(OP, name, kind, expression)                                      \
    LANES_TARGET INLINE void LANES_NAME(name##_some_##kind)(                  \
        uint16_t *to, const uint16_t *const in[3], int64_t i, __mmask16 some, \
        __m512 p, __m512 q)                                                   \
    {                                                                         \
        const __m512 x = LOAD(kind, in[0]), y = LOAD(kind, in[1]);            \
        const __m512 z = LOAD(kind, in[2]);                                   \
                                                                              \
        (void)x, (void)y, (void)z, (void)p, (void)q;                          \
        _mm256_mask_storeu_epi16(to + i, some,                                \
                                 LANES_NAME(half_##kind)(expression));        \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        void *to, const void *const operands[], int64_t n, const void *args)  \
    {                                                                         \
        enum { USED = DTN_##OP < DTN_ADD ? 1 : DTN_##OP < DTN_ADDCMUL ? 2     \
                                                                      : 3 };  \
        const uint16_t *const in[] = { operands[0], operands[USED > 1],       \
                                       operands[USED > 2 ? 2 : 0] };          \
        const __m512 p = _mm512_set1_ps(((const float *)args)[0]);            \
        const __m512 q = _mm512_set1_ps(((const float *)args)[1]);            \
        int64_t i = 0;                                                        \
                                                                              \
        for (; i + 16 <= n; i += 16)                                          \
            LANES_NAME(name##_some_##kind)(to, in, i, 0xffff, p, q);          \
        if (i < n)                                                            \
            LANES_NAME(name##_some_##kind)(                                   \
                to, in, i, (__mmask16)((1 << (n - i)) - 1), p, q);            \
    }
/* As dtn_maximum_f32(). */
#define BETTER(best)                                                          \
    _mm512_mask_##best##_ps(y, _mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), y, x)
#define HALVES(X, kind)                                                       \
    X(RELU, relu, kind, _mm512_maskz_mov_ps(                                  \
        _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ), x))          \
    X(CLAMP, clamp, kind, _mm512_min_ps(q, _mm512_max_ps(p, x)))              \
    X(SHIFT, shift, kind, x + p)                                              \
    X(SCALE, scale, kind, p * x)                                              \
    X(ADD, add, kind, x + y)                                                  \
    X(SUB, sub, kind, x - y)                                                  \
    X(MUL, mul, kind, x * y)                                                  \
    X(DIV, div, kind, x / y)                                                  \
    X(SQRT, sqrt, kind, _mm512_sqrt_ps(x))                                    \
    X(RSQRT, rsqrt, kind, _mm512_set1_ps(1) / _mm512_sqrt_ps(x))              \
    X(MAXIMUM, maximum, kind, BETTER(max))                                    \
    X(MINIMUM, minimum, kind, BETTER(min))                                    \
    X(LERP, lerp, kind, x + z * (y - x))

HALVES(HALF, f16)
HALVES(HALF, bf16)
#endif

/* Bits are chosen, whatever they mean: each type is the one of its size.  Both
 * are read, so that there is no branch, which a CPU could not foresee.
 */
#define WHERE(bytes, T)                                                       \
    LANES_TARGET static void LANES_NAME(where_##bytes)(                       \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        T *dst = to;                                                          \
        const uint8_t *condition = in[0];                                     \
        const T *a = in[1], *b = in[2];                                       \
                                                                              \
        (void)args;                                                           \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T yes = a[i], no = b[i];                                    \
                                                                              \
            dst[i] = condition[i] ? yes : no;                                 \
        }                                                                     \
    }

WHERE(1, uint8_t)
WHERE(2, uint16_t)
WHERE(4, uint32_t)
WHERE(8, uint64_t)
WHERE(16, struct where_pair)

#define AT(OP, name, kind, ...) [DTN_##OP] = LANES_NAME(name##_##kind),

static const struct pointwise_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = { DTN_POINTWISE_FLOAT(AT, f32, float)
                          DTN_POINTWISE_GELU(AT, f32, float)
                          DTN_POINTWISE_LIBM(AT, f32, float)
                          AT(SIN, sin, f32) AT(COS, cos, f32) },
        [DTENSOR_BF16] = { DTN_POINTWISE_GELU(AT, bf16, float) },
        [DTENSOR_F64] = { DTN_POINTWISE_FLOAT(AT, f64, double)
                          DTN_POINTWISE_GELU(AT, f64, double)
                          DTN_POINTWISE_LIBM(AT, f64, double)
                          AT(SIN, sin, f64) AT(COS, cos, f64) },
        [DTENSOR_I64] = { DTN_POINTWISE_INTEGER(AT, i64, int64_t) },
        [DTENSOR_U64] = { DTN_POINTWISE_INTEGER(AT, u64, uint64_t) },
    },
#if LANES_WIDTH == 2
    .narrow = { [DTENSOR_F16] = { HALVES(AT, f16) },
                [DTENSOR_BF16] = { HALVES(AT, bf16) } },
#endif
    .where = { [1] = LANES_NAME(where_1), [2] = LANES_NAME(where_2),
               [4] = LANES_NAME(where_4), [8] = LANES_NAME(where_8),
               [16] = LANES_NAME(where_16) },
};

#undef LOOP_FOR
#undef LOOP
#undef SHORT
#undef SINE
#undef WHERE
#undef AT
#undef INLINE
#undef LOAD
#undef HALF
#undef BETTER
#undef HALVES
#undef LANES_TARGET
#undef LANES_NAME
