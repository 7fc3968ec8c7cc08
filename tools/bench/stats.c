/* stats.c - min, p50, p99, max
 *
 * Percentiles are nearest rank: p99 of 20 times is the 20th smallest, since
 * ceil(0.99 x 20) = 20, and p50 the 10th.  Every figure printed is thus a time
 * that was measured, never a mean of two.
 */
#include "tools/bench/measure.h"

#include <stdlib.h>

static int stats_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double stats_percentile(const double sorted[], size_t n, double percent)
{
    double exact = percent * (double)n / 100;
    size_t nearest = (size_t)exact;

    if ((double)nearest < exact)
        nearest++;
    if (nearest < 1)
        nearest = 1;
    return sorted[nearest > n ? n - 1 : nearest - 1];
}

void stats_of(double value[], size_t n, struct stats *stats)
{
    qsort(value, n, sizeof value[0], stats_compare);
    stats->min = value[0];
    stats->p50 = stats_percentile(value, n, 50);
    stats->p99 = stats_percentile(value, n, 99);
    stats->max = value[n - 1];
}
