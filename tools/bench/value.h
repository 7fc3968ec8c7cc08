/* value.h - small integers in and out of every dtype */
#ifndef BENCH_VALUE_H
#define BENCH_VALUE_H

#include "dtensor.h"

#include <stdbool.h>

/* Element i of an array of `dtype`: an integer that the type represents
 * exactly in, any value out.
 */
void value_store(enum dtensor_dtype dtype, void *array, size_t i, int64_t v);
double value_load(enum dtensor_dtype dtype, const void *array, size_t i);

/* The largest integer up to which the type (or we) represent all: 256 for
 * bf16, 2048 for f16, 127 for i8.
 */
int64_t value_limit(enum dtensor_dtype dtype);

/* Does the type have the reduction?  Floats have no bit operations, complex
 * numbers no order, bool no average.
 */
bool value_op_fits(enum dtensor_dtype dtype, enum dtensor_redop op);

#endif
