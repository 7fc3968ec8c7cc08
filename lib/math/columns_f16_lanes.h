/* columns_f16_lanes.h - sums of columns of f16, for one vector width
 *
 * Included by totals_lanes.h, whose macros it uses.
 */

/* Of f16, row after row. */
#if LANES_WIDTH == 2
LANES_TARGET static void LANES_NAME(add_columns_f16)(
    const uint16_t *x, int64_t apart, int64_t n, int64_t width, double sum[])
{
    enum { VECTORS = DTN_TOTAL_COLUMNS / 8, LATER = 16 };
    __m512d lane[VECTORS];
    __mmask8 some[VECTORS];

    for (int v = 0; v < VECTORS; v++) {
        const int64_t left = width - 8 * v;

        lane[v] = _mm512_setzero_pd();
        some[v] = (__mmask8)(left >= 8 ? 0xff
                             : left > 0 ? (1 << left) - 1 : 0);
    }
    for (int64_t i = 0; i < n; i++, x += apart) {
        for (int64_t k = 0; k < width && i + LATER < n; k += 32)
            __builtin_prefetch(x + LATER * apart + k);
        for (int v = 0; v < VECTORS; v++)
            lane[v] = _mm512_add_pd(lane[v], LOAD_f16(some[v], x + 8 * v));
    }
    for (int v = 0; v < VECTORS; v++)
        _mm512_mask_storeu_pd(sum + 8 * v, some[v], lane[v]);
}
#else
LANES_TARGET static void LANES_NAME(add_columns_f16)(
    const uint16_t *x, int64_t apart, int64_t n, int64_t width, double sum[])
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            sum[k] += (double)dtn_f16_widen(x[i * apart + k]);
}
#endif

TOTAL_COLUMNS(sum_any, f16, uint16_t, dtn_f16_widen, 0, t + x, t + x)

/* Numbers of f16 are multiples of 2^-24 below 2^16, so that f64 has the sum of
 * 2^13 of them without rounding, in any order.
 */
LANES_TARGET static void LANES_NAME(sum_columns_f16)(
    const void *elements, int64_t apart, int64_t n, int64_t width,
    double total[])
{
    double sum[DTN_TOTAL_COLUMNS] = { 0 };
    bool finite = n <= 1 << 13;

    if (finite)
        LANES_NAME(add_columns_f16)(elements, apart, n, width, sum);
    for (int64_t k = 0; k < width; k++)
        finite = finite && sum[k] - sum[k] == 0;
    if (!finite)
        LANES_NAME(sum_any_columns_f16)(elements, apart, n, width, total);
    for (int64_t k = 0; k < width && finite; k++)
        total[k] += sum[k];
}
