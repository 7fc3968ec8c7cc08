/* life_values.h - what a life gives to each step, and what it must get */
#ifndef TESTS_LIFE_VALUES_H
#define TESTS_LIFE_VALUES_H

#include "dtensor.h"
#include "tests/job/life.h"

#include <stddef.h>

/* Element i of buffer[0] of a rank. */
float life_given(int rank, size_t i);

/* After a call that returned `rc` and gave blocks of `count` elements in `out`:
 * note in life->wrong if they are wrong.
 */
void life_expect(struct life *life, int rc, enum dtensor_collective coll,
                 size_t count, const float *out);

#endif
