/* sweep.h - from the options to the list of cases */
#ifndef BENCH_SWEEP_H
#define BENCH_SWEEP_H

#include "dtensor.h"

struct bench;
struct bench_case;

/* All cases the options ask for, in order.  The caller frees *casesp. */
int sweep_make(const struct bench *b, struct bench_case **casesp, int *np,
               struct dtensor_error *err);

#endif
