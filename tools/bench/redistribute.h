/* redistribute.h - a case of redistribute */
#ifndef BENCH_REDISTRIBUTE_H
#define BENCH_REDISTRIBUTE_H

#include "dtensor.h"

struct bench;
struct bench_case;
struct bench_job;

int redistribute_open(struct bench *b, const struct bench_case *c,
                      struct bench_job **jobp, struct dtensor_error *err);

/* The specs of the case: --from and --to, or the defaults for the mesh. */
int redistribute_specs(struct bench *b, const struct bench_case *c,
                       struct dtensor_spec *from, struct dtensor_spec *to,
                       struct dtensor_error *err);

#endif
