/* sums_f16_lanes.h - sums of f16, for one vector width
 *
 * Included by totals_lanes.h, whose macros it uses.  With AVX-512 eight numbers
 * are added as f32, twice: once every sum is rounded down, once up.  If both
 * come to the same, nothing was rounded, and f64 has the sum of such sums: the
 * bits are those of sums of f64 in any order.  If not, the eight are added as
 * f64.
 */
#if LANES_WIDTH == 2
struct LANES_NAME(both) {
    __m512 down, up;              /* the sum, rounded in each direction       */
};

#define LOWER(x) _mm512_cvtps_pd(_mm512_castps512_ps256(x))
#define UPPER(x) _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))
#define ADD(sum, some, x) LANES_NAME(both_add)(&sum, WIDEN(some, x))
#define WIDEN(some, x) _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, x))

LANES_TARGET INLINE struct LANES_NAME(both) LANES_NAME(both_zero)(void)
{
    return (struct LANES_NAME(both)){ _mm512_setzero_ps(),
                                      _mm512_setzero_ps() };
}

LANES_TARGET INLINE void LANES_NAME(both_add)(struct LANES_NAME(both) *sum,
                                              __m512 x)
{
    const __m512 one = _mm512_set1_ps(1);

    sum->down = _mm512_fmadd_round_ps(x, one, sum->down, _MM_FROUND_TO_NEG_INF |
                                                         _MM_FROUND_NO_EXC);
    sum->up = _mm512_fmadd_round_ps(x, one, sum->up, _MM_FROUND_TO_POS_INF |
                                                     _MM_FROUND_NO_EXC);
}

/* Those that were rounded, or are NaNs. */
LANES_TARGET INLINE __mmask16 LANES_NAME(both_differ)(struct LANES_NAME(both) x)
{
    return _mm512_cmp_ps_mask(x.down, x.up, _CMP_NEQ_UQ);
}

/* The lower n of 16, which may be none or more than all. */
LANES_TARGET INLINE __mmask16 LANES_NAME(some_of)(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

LANES_TARGET INLINE __m512d LANES_NAME(halves)(struct LANES_NAME(both) sum)
{
    return _mm512_add_pd(LOWER(sum.up), UPPER(sum.up));
}

/* If no sum was rounded, it is added to *sump.  Of a block of 512 each vector
 * has eight terms.
 */
LANES_TARGET static bool LANES_NAME(sum_exact_f16)(const uint16_t *x, int64_t n,
                                                   double *sump)
{
    enum { STEP = 64 };
    struct LANES_NAME(both) a = LANES_NAME(both_zero)(), b = a, c = a, d = a;

    for (; n > 0; n -= STEP, x += STEP) {
        const __mmask16 all = 0xffff;
        const bool whole = n >= STEP;

        ADD(a, whole ? all : LANES_NAME(some_of)(n), x);
        ADD(b, whole ? all : LANES_NAME(some_of)(n - 16), x + 16);
        ADD(c, whole ? all : LANES_NAME(some_of)(n - 32), x + 32);
        ADD(d, whole ? all : LANES_NAME(some_of)(n - 48), x + 48);
    }
    if (LANES_NAME(both_differ)(a) | LANES_NAME(both_differ)(b) |
        LANES_NAME(both_differ)(c) | LANES_NAME(both_differ)(d))
        return false;
    *sump += _mm512_reduce_add_pd(_mm512_add_pd(
        _mm512_add_pd(LANES_NAME(halves)(a), LANES_NAME(halves)(b)),
        _mm512_add_pd(LANES_NAME(halves)(c), LANES_NAME(halves)(d))));
    return true;
}

LANES_TARGET static double LANES_NAME(sum_f16)(const void *elements, int64_t n,
                                               double total, double m)
{
    return LANES_NAME(sum_exact_f16)(elements, n, &total)
        ? total : LANES_NAME(sum_any_f16)(elements, n, total, m);
}

/* The sums of up to 16 columns.  A row that is added alone is not rounded. */
LANES_TARGET INLINE void LANES_NAME(add_some_f16)(
    const uint16_t *x, int64_t apart, int64_t rows, __mmask16 some,
    double sum[])
{
    struct LANES_NAME(both) few = LANES_NAME(both_zero)();

    for (int64_t r = 0; r < rows; r++)
        ADD(few, some, x + r * apart);

    const int64_t each = LANES_NAME(both_differ)(few) ? 1 : rows;

    for (int64_t r = 0; r < rows; r += each) {
        if (each == 1)
            few.up = WIDEN(some, x + r * apart);
        _mm512_storeu_pd(sum, _mm512_add_pd(_mm512_loadu_pd(sum),
                                            LOWER(few.up)));
        _mm512_storeu_pd(sum + 8, _mm512_add_pd(_mm512_loadu_pd(sum + 8),
                                                UPPER(few.up)));
    }
}

/* Eight rows at a time. */
LANES_TARGET static void LANES_NAME(add_columns_f16)(
    const uint16_t *x, int64_t apart, int64_t n, int64_t width, double sum[])
{
    enum { TERMS = 8 };

    for (int64_t rows; n > 0; n -= rows, x += rows * apart) {
        rows = n < TERMS ? n : TERMS;
        for (int64_t k = 0; k < width; k += 16)
            if (rows == TERMS && width - k >= 16)
                LANES_NAME(add_some_f16)(x + k, apart, TERMS, 0xffff, sum + k);
            else
                LANES_NAME(add_some_f16)(x + k, apart, rows,
                                         LANES_NAME(some_of)(width - k),
                                         sum + k);
    }
}
#undef LOWER
#undef UPPER
#undef ADD
#undef WIDEN
#else
LANES_TARGET static double LANES_NAME(sum_f16)(const void *elements, int64_t n,
                                               double total, double m)
{
    return LANES_NAME(sum_any_f16)(elements, n, total, m);
}

LANES_TARGET static void LANES_NAME(add_columns_f16)(
    const uint16_t *x, int64_t apart, int64_t n, int64_t width, double sum[])
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            sum[k] += (double)dtn_f16_widen(x[i * apart + k]);
}
#endif

/* Numbers of f16 are multiples of 2^-24 below 2^16, so that f64 has the sum of
 * 2^13 of them without rounding, in any order.
 */
LANES_TARGET static void LANES_NAME(sum_columns_f16)(
    const void *elements, int64_t apart, int64_t n, int64_t width,
    double total[])
{
    double sum[DTN_TOTAL_WIDE] = { 0 };
    const uint16_t *x = elements;
    int finite = n <= 1 << 13;

    if (finite)
        LANES_NAME(add_columns_f16)(x, apart, n, width, sum);
    for (int64_t k = 0; k < width; k++)
        finite &= sum[k] - sum[k] == 0;
    for (int64_t k = 0; k < width && finite; k++)
        total[k] += sum[k];
    if (!finite)
        LANES_NAME(sum_any_columns_f16)(x, apart, n, width, total);
}
