/* pairs.h - --check-fabric: every pair of ranks alone, and the outliers */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

#include "dtensor.h"

#include <stdbool.h>

struct bench;

enum pairs_what { PAIRS_LATENCY, PAIRS_RATE, PAIRS_NWHATS };

/* What every two of n ranks measured. */
struct pairs {
    int n;                        /* number of ranks                          */
    int *rank;                    /* [n] world ranks                          */
    char (*host)[64];             /* [n] names of their hosts                 */
    double *latency_us;           /* [n * n], symmetric                       */
    double *rate;                 /* [n * n] GB/s from row to column          */
};

/* The position that `position` of n meets in a round, 0..pairs_rounds(n) - 1,
 * or -1.  In all rounds together every two meet once.
 */
int pairs_opponent(int n, int round, int position);
int pairs_rounds(int n);

/* Collective.  Owns: pairs_fini(), in any case. */
int pairs_measure(struct pairs *pairs, struct bench *b,
                  struct dtensor_error *err);
void pairs_fini(struct pairs *pairs);

struct outlier {
    enum pairs_what what;         /* latency or bandwidth                     */
    int i;                        /* position of one rank                     */
    int j;                        /* position of the other                    */
    double value;                 /* of the pair, us or GB/s                  */
    double median;                /* of all pairs of its kind                 */
};

bool pairs_same_host(const struct pairs *pairs, int i, int j);

/* The median over the pairs in one host, or over those between hosts. */
double pairs_median(const struct pairs *pairs, enum pairs_what what,
                    bool same_host);
bool pairs_outlier(enum pairs_what what, double value, double median);

/* All outliers; returns how many.  The caller frees *outliersp. */
int outliers_find(const struct pairs *pairs, struct outlier **outliersp);

/* The position that is in most of them, when that is more than half of its own
 * pairs; else -1.
 */
int outliers_culprit(const struct pairs *pairs, const struct outlier *outliers,
                     int n, enum pairs_what what);

/* Both matrices, and the outliers in words. */
void outliers_write(const struct pairs *pairs, FILE *out);

#endif
