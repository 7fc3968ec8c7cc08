/* sample.h - arrays to compute with in tests */
#ifndef TESTS_MATH_SAMPLE_H
#define TESTS_MATH_SAMPLE_H

#include "math/array.h"

#include <stdbool.h>
#include <stdint.h>

/* An array of its own memory, zeroed.  `odd`: its dimensions lie in a random
 * order, with gaps.
 */
struct dtn_array sample_new(uint64_t *seed, enum dtensor_dtype dtype, int ndim,
                            const int64_t shape[], bool odd);
void sample_free(struct dtn_array *array);

/* Random values: whole numbers and fractions of few digits; `special`: also
 * zeros of both signs, infinities and NaN.
 */
void sample_fill(uint64_t *seed, const struct dtn_array *array, bool special);

/* A random shape of `ndim` dimensions; now and then one of them is 0 or 1. */
void sample_shape(uint64_t *seed, int ndim, int most, int64_t shape[]);

/* The element at `index`, as an address. */
void *sample_at(const struct dtn_array *array, const int64_t index[]);

/* The next index of an array of that shape, in row-major order; false: it was
 * the last.
 */
bool sample_next(const struct dtn_array *array, int64_t index[]);

/* The index in an operand that is broadcast to an array of `ndim` dimensions.
 */
void sample_broadcast(const struct dtn_array *operand, int ndim,
                      const int64_t index[], int64_t found[]);

/* Is `got` the value `want`, rounded to the type, but for `ulps` units in its
 * last place, or for an error of `least`?  Two NaN are equal.
 */
bool sample_close(enum dtensor_dtype dtype, double got, double want,
                  double ulps, double least);

#endif
