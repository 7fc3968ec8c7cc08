/* cross.h - bytes that a redistribution must bring into a rank */
#ifndef BENCH_CROSS_H
#define BENCH_CROSS_H

#include "dtensor.h"

/* Elements common to two boxes. */
int64_t cross_overlap(int ndim, const int64_t shape_a[],
                      const int64_t offset_a[], const int64_t shape_b[],
                      const int64_t offset_b[]);

/* Elements that must come into a rank which has `have` elements, needs `need`
 * of which it has `both`, each the reduction of `terms` ranks' terms.
 */
double cross_incoming(double have, double need, double both, int terms);

/* Bytes into all ranks together, and into the one that gets most. */
void cross_bytes(const struct dtensor_spec *from,
                 const struct dtensor_spec *to, double *totalp,
                 double *busiestp);

#endif
