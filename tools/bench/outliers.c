/* outliers.c - which pairs of --check-fabric differ from the others
 *
 * A pair is compared with those of its kind, in one host or between hosts: if
 * 28 pairs between hosts take 4.0 us in the median and one takes 12.1 us,
 * more than 1.5 times as much, that one is an outlier.  A rank that is in more
 * than half of its pairs' outliers is named: it, not its peers, is slow.
 */
#include "tools/bench/measure.h"
#include "tools/bench/pairs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OUTLIER_FACTOR 1.5

bool pairs_same_host(const struct pairs *pairs, int i, int j)
{
    return strcmp(pairs->host[i], pairs->host[j]) == 0;
}

static const double *pairs_cells(const struct pairs *pairs,
                                 enum pairs_what what)
{
    return what == PAIRS_LATENCY ? pairs->latency_us : pairs->rate;
}

/* Of an even number of values the better of the two middle ones: one slow rank
 * of four is in half of all pairs, and must not become the median.
 */
double pairs_median(const struct pairs *pairs, enum pairs_what what,
                    bool same_host)
{
    const double *cell = pairs_cells(pairs, what);
    double *value = calloc((size_t)pairs->n * (size_t)pairs->n + 1,
                           sizeof *value);
    double median = 0;
    struct stats stats;
    size_t n = 0;

    for (int i = 0; value && i < pairs->n; i++)
        for (int j = 0; j < pairs->n; j++)
            if (i != j && pairs_same_host(pairs, i, j) == same_host
                && cell[i * pairs->n + j] > 0)
                value[n++] = what == PAIRS_LATENCY ? cell[i * pairs->n + j]
                                                   : 1 / cell[i * pairs->n + j];
    if (n > 0) {
        stats_of(value, n, &stats);
        median = what == PAIRS_LATENCY ? stats.p50 : 1 / stats.p50;
    }
    free(value);
    return median;
}

bool pairs_outlier(enum pairs_what what, double value, double median)
{
    if (value <= 0 || median <= 0)
        return false;
    return what == PAIRS_LATENCY ? value > OUTLIER_FACTOR * median
                                 : value * OUTLIER_FACTOR < median;
}

int outliers_find(const struct pairs *pairs, struct outlier **outliersp)
{
    size_t cells = 2 * (size_t)pairs->n * (size_t)pairs->n;
    struct outlier *outliers = calloc(cells + 1, sizeof *outliers);
    int n = 0;

    for (int what = 0; outliers && what < PAIRS_NWHATS; what++) {
        const double *cell = pairs_cells(pairs, (enum pairs_what)what);
        double median[] = {
            pairs_median(pairs, (enum pairs_what)what, false),
            pairs_median(pairs, (enum pairs_what)what, true)
        };

        for (int i = 0; i < pairs->n; i++)
            for (int j = 0; j < pairs->n; j++) {
                double value = cell[i * pairs->n + j];
                double usual = median[pairs_same_host(pairs, i, j)];

                if (i == j || (what == PAIRS_LATENCY && j < i)
                    || !pairs_outlier((enum pairs_what)what, value, usual))
                    continue;
                outliers[n++] = (struct outlier){ (enum pairs_what)what, i, j,
                                                  value, usual };
            }
    }
    *outliersp = outliers;
    return n;
}

/* In how many of these is position i? */
static int outliers_with(const struct outlier *outliers, int n,
                         enum pairs_what what, int i)
{
    int count = 0;

    for (int k = 0; k < n; k++)
        count += outliers[k].what == what
              && (outliers[k].i == i || outliers[k].j == i);
    return count;
}

int outliers_culprit(const struct pairs *pairs, const struct outlier *outliers,
                     int n, enum pairs_what what)
{
    int each = what == PAIRS_LATENCY ? 1 : 2, best = -1, most = 0;

    for (int i = 0; i < pairs->n; i++) {
        int count = outliers_with(outliers, n, what, i);

        if (count > most) {
            most = count;
            best = i;
        }
    }
    return 2 * most > each * (pairs->n - 1) && pairs->n > 2 ? best : -1;
}

/* --------------------------------------------------------------- words --- */

static const struct {
    const char *title, *unit, *arrow;
} words[PAIRS_NWHATS] = {
    [PAIRS_LATENCY] = { "latency, us: an 8-byte allreduce of the two, median",
                        "us", "-" },
    [PAIRS_RATE] = { "bandwidth, GB/s: a 1 MiB broadcast, row to column, "
                     "median", "GB/s", "->" }
};

static void outliers_matrix(const struct pairs *pairs, enum pairs_what what,
                            FILE *out)
{
    const double *cell = pairs_cells(pairs, what);
    double median[] = { pairs_median(pairs, what, false),
                        pairs_median(pairs, what, true) };

    fprintf(out, "# %s\n%7s", words[what].title, "");
    for (int j = 0; j < pairs->n; j++)
        fprintf(out, " %8d ", pairs->rank[j]);
    fprintf(out, "  host\n");
    for (int i = 0; i < pairs->n; i++) {
        fprintf(out, "%7d", pairs->rank[i]);
        for (int j = 0; j < pairs->n; j++) {
            double value = cell[i * pairs->n + j];

            if (i == j)
                fprintf(out, " %8s ", "-");
            else
                fprintf(out, " %8.2f%c", value, pairs_outlier(what, value,
                        median[pairs_same_host(pairs, i, j)]) ? '*' : ' ');
        }
        fprintf(out, "  %s\n", pairs->host[i]);
    }
}

void outliers_write(const struct pairs *pairs, FILE *out)
{
    struct outlier *outliers;
    int n = outliers_find(pairs, &outliers);

    for (int what = 0; what < PAIRS_NWHATS; what++)
        outliers_matrix(pairs, (enum pairs_what)what, out);
    for (int k = 0; k < n; k++)
        fprintf(out, outliers[k].what == PAIRS_LATENCY
                ? "ranks %d%s%d (%s-%s): %.1f %s, median %.1f %s\n"
                : "ranks %d%s%d (%s-%s): %.2f %s, median %.2f %s\n",
                pairs->rank[outliers[k].i], words[outliers[k].what].arrow,
                pairs->rank[outliers[k].j], pairs->host[outliers[k].i],
                pairs->host[outliers[k].j], outliers[k].value,
                words[outliers[k].what].unit, outliers[k].median,
                words[outliers[k].what].unit);
    for (int what = 0; n > 0 && what < PAIRS_NWHATS; what++) {
        int culprit = outliers_culprit(pairs, outliers, n,
                                       (enum pairs_what)what);

        if (culprit >= 0)
            fprintf(out, "rank %d (%s): in most of its pairs the %s is an "
                    "outlier\n", pairs->rank[culprit], pairs->host[culprit],
                    what == PAIRS_LATENCY ? "latency" : "bandwidth");
    }
    if (n == 0)
        fprintf(out, "no outliers: no pair is 1.5 times worse than the median "
                "of its kind\n");
    free(outliers);
}
