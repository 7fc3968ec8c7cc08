/* test_bench_fabric.c - dtensor-bench --check-fabric: rounds and outliers
 *
 * The rounds of the tournament are checked for up to 65 ranks; outliers in
 * matrices with a known answer.
 *
 * Without this test, a pair of ranks could be left out, or a slow link could
 * be reported as good.
 */
#include "tests/support/tap.h"
#include "tools/bench/pairs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX 66

/* Does every two of n meet exactly once, and nobody two in one round? */
static bool tournament_good(int n)
{
    static int met[MAX][MAX];

    memset(met, 0, sizeof met);
    for (int round = 0; round < pairs_rounds(n); round++)
        for (int i = 0; i < n; i++) {
            int j = pairs_opponent(n, round, i);

            if (j == i || j < -1 || j >= n)
                return false;
            if (j >= 0 && pairs_opponent(n, round, j) != i)
                return false;
            if (j >= 0)
                met[i][j]++;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (met[i][j] != (i != j))
                return false;
    return true;
}

/* Six ranks on two hosts: 1 us within, 4 us between; 20 and 10 GB/s. */
static struct pairs *pairs_made(void)
{
    static int rank[6] = { 0, 1, 2, 3, 4, 5 };
    static char host[6][64] = { "n0", "n0", "n0", "n1", "n1", "n1" };
    static double latency[36], rate[36];
    static struct pairs pairs;

    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            latency[i * 6 + j] = i == j ? 0 : i / 3 == j / 3 ? 1 : 4;
            rate[i * 6 + j] = i == j ? 0 : i / 3 == j / 3 ? 20 : 10;
        }
    pairs = (struct pairs){ 6, rank, host, latency, rate };
    return &pairs;
}

static char *pairs_text(const struct pairs *pairs)
{
    static char *text;
    size_t size;
    FILE *out;

    free(text);
    text = NULL;
    out = open_memstream(&text, &size);
    outliers_write(pairs, out);
    fclose(out);
    return text;
}

static void test_outliers(void)
{
    struct pairs *pairs = pairs_made();
    struct outlier *outliers;
    int n;

    n = outliers_find(pairs, &outliers);
    ok(n == 0 && strstr(pairs_text(pairs), "no outliers: "),
       "4 us between hosts is none where 1 us is usual within");
    free(outliers);

    pairs->latency_us[3 * 6 + 1] = pairs->latency_us[1 * 6 + 3] = 12.1;
    n = outliers_find(pairs, &outliers);
    ok(n == 1 && outliers[0].i == 1 && outliers[0].j == 3
       && outliers[0].median == 4
       && outliers_culprit(pairs, outliers, n, PAIRS_LATENCY) == -1,
       "one slow pair is found, once, and nobody is blamed");
    ok(strstr(pairs_text(pairs),
              "ranks 1-3 (n0-n1): 12.1 us, median 4.0 us\n")
       && strstr(pairs_text(pairs), "    12.10*"),
       "and said in words, and marked");
    free(outliers);
    pairs->latency_us[3 * 6 + 1] = pairs->latency_us[1 * 6 + 3] = 6;
    n = outliers_find(pairs, &outliers);
    ok(n == 0, "1.5 times the median is none yet");
    free(outliers);
}

static void test_culprit(void)
{
    struct pairs *pairs = pairs_made();
    struct outlier *outliers;
    int n;

    for (int i = 0; i < 6; i++)
        if (i != 4)
            pairs->latency_us[4 * 6 + i] = pairs->latency_us[i * 6 + 4] = 50;
    n = outliers_find(pairs, &outliers);
    ok(n == 5 && outliers_culprit(pairs, outliers, n, PAIRS_LATENCY) == 4
       && strstr(pairs_text(pairs), "rank 4 (n1): in most of its pairs the "
                 "latency is an outlier\n"),
       "a slow rank is in five slow pairs, and named");
    free(outliers);

    pairs = pairs_made();
    pairs->rate[2 * 6 + 5] = 5;
    n = outliers_find(pairs, &outliers);
    ok(n == 1 && outliers[0].what == PAIRS_RATE && outliers[0].i == 2
       && strstr(pairs_text(pairs),
                 "ranks 2->5 (n0-n1): 5.00 GB/s, median 10.00 GB/s\n"),
       "a bandwidth that is low in one direction is found in that one");
    free(outliers);
}

static void test_few(void)
{
    static int rank[4] = { 0, 1, 2, 3 };
    static char host[4][64] = { "n", "n", "n", "n" };
    double cell[16];
    struct pairs pairs = { 4, rank, host, cell, cell };

    for (int i = 0; i < 16; i++)
        cell[i] = i / 4 == 3 || i % 4 == 3 ? 9 : 2;
    ok(pairs_median(&pairs, PAIRS_LATENCY, true) == 2,
       "one slow rank of four, half of all pairs, is not usual");
    ok(pairs_median(&pairs, PAIRS_RATE, true) == 9,
       "nor is it where less is worse");
    ok(pairs_median(&pairs, PAIRS_RATE, false) == 0,
       "of no pairs the median is 0");
    pairs.n = 1;
    ok(strstr(pairs_text(&pairs), "no outliers"), "one rank has no pairs");
}

int main(void)
{
    for (int n = 0; n < MAX; n++)
        if (!tournament_good(n) || n % 16 == 1)
            ok(tournament_good(n), "every two of %d meet once, in %d rounds",
               n, pairs_rounds(n));
    test_outliers();
    test_culprit();
    test_few();
    return done();
}
