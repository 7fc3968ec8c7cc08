/* calibrate.h - the costs of messages and bytes, for [tuning] */
#ifndef BENCH_CALIBRATE_H
#define BENCH_CALIBRATE_H

#include "dtensor.h"

struct bench;

/* Time calls over the mesh; rank 0 writes a [tuning] section. */
int calibrate(struct bench *b, FILE *stream, struct dtensor_error *err);

#endif
