/* totals_narrow_lanes.h - norms and extremes of bf16 and f16, for one width
 *
 * Included by totals_lanes.h, whose macros it uses.  Squares and sizes are
 * added as f64, in the order in which those of f32 are: they have the same
 * bits.  Extremes are those of 16-bit whole numbers of the same order.  Where
 * that is not so, because there is a NaN or the result is a zero, whose sign is
 * that of the first, the elements are widened.
 */
/* A row of some columns as f32; of f16 up to the next multiple of 16. */
LANES_TARGET INLINE void LANES_NAME(wide_bf16)(float to[], const uint16_t *from,
                                               int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtn_bf16_widen(from[i]);
}

LANES_TARGET INLINE void LANES_NAME(wide_f16)(float to[], const uint16_t *from,
                                              int64_t n)
{
#if LANES_WIDTH == 2
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 some = (__mmask16)(0xffff >> (n - i < 16
                                                      ? 16 - (n - i) : 0));

        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(
            _mm256_maskz_loadu_epi16(some, from + i)));
    }
#else
    dtn_widen_f16(to, from, n);
#endif
}

#define NARROW_TOTALS(kind)                                                   \
    FOLD_NARROW(prod, kind, prod, 1, MORE_PRODUCT, mul, t * x)                \
    FOLD_NARROW(abs, kind, abs, 0, MORE_SIZE, add, t + fabs(x))               \
    FOLD_NARROW(squares, kind, squared, 0, MORE_SQUARE, add, t + x * x)

FOLD_NARROW(sum_any, bf16, sum, 0, MORE, add, t + x)
NARROW_TOTALS(bf16)
NARROW_TOTALS(f16)
#if LANES_WIDTH == 2
FOLD_NARROW(sum_any, f16, sum, 0, MORE, add, t + x)
#else
FOLD_NARROW(sum, f16, sum, 0, MORE, add, t + x)
#endif

/* ------------------------------------------------------------- extremes --- */

#define NARROW_EXTREME(name, kind, better, end)                               \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const uint16_t *x = elements;                                         \
        int16_t low = INT16_MAX, high = INT16_MIN;                            \
        float wide[DTN_BLOCK];                                                \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const int16_t key = narrow_key(x[i]);                             \
                                                                              \
            low = key < low ? key : low;                                      \
            high = key > high ? key : high;                                   \
        }                                                                     \
        if (narrow_plain_##kind(low, high, end)) {                            \
            const double e = (double)dtn_##kind##_widen(                      \
                (uint16_t)narrow_key((uint16_t)end));                         \
                                                                              \
            return better(e, total);                                          \
        }                                                                     \
        for (int64_t i = 0; i < n; i += DTN_BLOCK) {                          \
            const int64_t some = n - i < DTN_BLOCK ? n - i : DTN_BLOCK;       \
                                                                              \
            dtn_widen_##kind(wide, x + i, some);                              \
            total = LANES_NAME(name##_f32)(wide, some, total, m);             \
        }                                                                     \
        return total;                                                         \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_wide_##kind)(                  \
        const uint16_t *x, int64_t apart, int64_t n, int64_t width,           \
        double total[])                                                       \
    {                                                                         \
        float wide[DTN_TOTAL_WIDE];                                           \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            dtn_widen_##kind(wide, x + i * apart, width);                     \
            for (int64_t k = 0; k < width; k++) {                             \
                const double e = (double)wide[k];                             \
                                                                              \
                total[k] = better(e, total[k]);                               \
            }                                                                 \
        }                                                                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_columns_##kind)(               \
        const void *elements, int64_t apart, int64_t n, int64_t width,        \
        double total[])                                                       \
    {                                                                         \
        const uint16_t *x = elements;                                         \
        int16_t low[DTN_TOTAL_WIDE], high[DTN_TOTAL_WIDE];                    \
        float wide[DTN_TOTAL_WIDE];                                           \
        int16_t plain = 1;                                                    \
                                                                              \
        LANES_NAME(columns_keys)(x, apart, n, width, low, high);              \
        for (int64_t k = 0; k < width; k++)                                   \
            plain &= narrow_plain_##kind(low[k], high[k], end[k]);            \
        if (!plain) {                                                         \
            LANES_NAME(name##_wide_##kind)(x, apart, n, width, total);        \
            return;                                                           \
        }                                                                     \
        for (int64_t k = 0; k < width; k++)                                   \
            end[k] = narrow_key((uint16_t)end[k]);                            \
        LANES_NAME(wide_##kind)(wide, (const uint16_t *)end, width);          \
        for (int64_t k = 0; k < width; k++) {                                 \
            const double e = (double)wide[k];                                 \
                                                                              \
            total[k] = better(e, total[k]);                                   \
        }                                                                     \
    }

/* The rows are far apart: a CPU does not see what is next. */
LANES_TARGET static void LANES_NAME(columns_keys)(
    const uint16_t *x, int64_t apart, int64_t n, int64_t width, int16_t low[],
    int16_t high[])
{
    enum { LATER = 16, LINE = 32 };

    for (int64_t k = 0; k < width; k++) {
        low[k] = INT16_MAX;
        high[k] = INT16_MIN;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint16_t *row = x + i * apart;

        for (int64_t k = 0; k < width && i + LATER < n; k += LINE)
            __builtin_prefetch(row + LATER * apart + k);
        for (int64_t k = 0; k < width; k++) {
            const int16_t key = narrow_key(row[k]);

            low[k] = key < low[k] ? key : low[k];
            high[k] = key > high[k] ? key : high[k];
        }
    }
}

NARROW_EXTREME(max, bf16, LARGER, high)
NARROW_EXTREME(max, f16, LARGER, high)
NARROW_EXTREME(min, bf16, SMALLER, low)
NARROW_EXTREME(min, f16, SMALLER, low)

#undef NARROW_TOTALS
#undef NARROW_EXTREME
