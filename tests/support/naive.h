/* naive.h - dtn_fold() again, one element at a time */
#ifndef TESTS_NAIVE_H
#define TESTS_NAIVE_H

#include "base/reduce.h"
#include "dtensor.h"

#include <stddef.h>

void naive_fold(const struct dtn_reduction *how, unsigned partial, void *dst,
                const void *const src[], int nsrc, size_t count);

/* Elements only.  AVG is computed as SUM. */
void naive_reduce(enum dtensor_dtype dtype, enum dtensor_redop op, void *dst,
                  const void *const src[], int nsrc, size_t count);

#endif
