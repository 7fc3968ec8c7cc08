/* sums_bf16_lanes.h - sums of bf16, which may be exact, for one vector width
 *
 * Included by totals_lanes.h, whose macros it uses.  See totals.c.
 */
#define RANGE(x, most, least)                                                 \
    do {                                                                      \
        const uint16_t size = (x) & 0x7fff, less = (uint16_t)(size - 1);      \
                                                                              \
        most = size > most ? size : most;                                     \
        least = less < least ? less : least;                                  \
    } while (0)

LANES_TARGET static bool LANES_NAME(exact_bf16)(const uint16_t most[],
                                                const uint16_t least[],
                                                int64_t n)
{
    uint16_t high = 0, low = UINT16_MAX;

    for (int64_t i = 0; i < n; i++) {
        high = most[i] > high ? most[i] : high;
        low = least[i] < low ? least[i] : low;
    }
    return range_is_exact(high, low, EXACT_RANGE);
}

/* If the sum is exact, it is added to *sump.  Some are added while the range is
 * found, so that the numbers are read once.
 */
LANES_TARGET static bool LANES_NAME(sum_exact_bf16)(
    const uint16_t *array, int64_t n, double *sump)
{
    enum { SOME = DTN_BLOCK / EXACT_TERMS, HALF = SOME / 2 };
    uint16_t most[SOME] = { 0 }, least[SOME];
    float some[2][HALF] = { { 0 } };
    double lane[HALF];
    int64_t i = 0;

    memset(least, 0xff, sizeof least);
    for (; i + SOME <= n; i += SOME) {
        for (int j = 0; j < SOME; j++)
            RANGE(array[i + j], most[j], least[j]);
        for (int j = 0; j < HALF; j++) {
            uint32_t pair;

            memcpy(&pair, array + i + 2 * j, sizeof pair);
            some[0][j] += dtn_narrow_float(pair << 16);
            some[1][j] += dtn_narrow_float(pair & 0xffff0000);
        }
    }
    for (int j = 0; i < n; i++, j++) {
        RANGE(array[i], most[j], least[j]);
        some[j % 2][j / 2] += dtn_bf16_widen(array[i]);
    }
    if (!LANES_NAME(exact_bf16)(most, least, SOME))
        return false;
    for (int j = 0; j < HALF; j++)
        lane[j] = (double)some[0][j] + (double)some[1][j];
    HALVE(lane, 16, t + x)
    HALVE(lane, 8, t + x)
    HALVE(lane, 4, t + x)
    HALVE(lane, 2, t + x)
    *sump += lane[0] + lane[1];
    return true;
}

LANES_TARGET static double LANES_NAME(sum_bf16)(const void *elements, int64_t n,
                                                double total, double m)
{
    return n <= DTN_BLOCK && LANES_NAME(sum_exact_bf16)(elements, n, &total)
        ? total : LANES_NAME(sum_any_bf16)(elements, n, total, m);
}

/* The same of columns, eight rows at a time.  The rows are far apart: a CPU
 * does not see what is next.
 */
LANES_TARGET static bool LANES_NAME(sum_exact_columns_bf16)(
    const uint16_t *x, int64_t apart, int64_t n, int64_t width, double sum[])
{
    uint16_t most[DTN_TOTAL_WIDE] = { 0 }, least[DTN_TOTAL_WIDE];
    int64_t rows;

    memset(least, 0xff, sizeof least);
    for (; n > 0; n -= rows, x += rows * apart) {
        rows = n < EXACT_TERMS ? 1 : EXACT_TERMS;
        if (rows == 1)
            for (int64_t k = 0; k < width; k++) {
                RANGE(x[k], most[k], least[k]);
                sum[k] += (double)dtn_bf16_widen(x[k]);
            }
        else
            for (int64_t k = 0; k < width; k++) {
                float some = 0;

                for (int r = 0; r < EXACT_TERMS; r++) {
                    RANGE(x[r * apart + k], most[k], least[k]);
                    some += dtn_bf16_widen(x[r * apart + k]);
                }
                sum[k] += (double)some;
            }
    }
    return LANES_NAME(exact_bf16)(most, least, width);
}

LANES_TARGET static void LANES_NAME(sum_columns_bf16)(
    const void *elements, int64_t apart, int64_t n, int64_t width,
    double total[])
{
    double sum[DTN_TOTAL_WIDE] = { 0 };
    const uint16_t *x = elements;

    if (n <= DTN_BLOCK && LANES_NAME(sum_exact_columns_bf16)(x, apart, n, width,
                                                             sum)) {
        for (int64_t k = 0; k < width; k++)
            total[k] += sum[k];
        return;
    }
    LANES_NAME(sum_any_columns_bf16)(x, apart, n, width, total);
}

#undef RANGE
