/* elements.h - random elements of any type, with the special ones among them */
#ifndef TESTS_BASE_ELEMENTS_H
#define TESTS_BASE_ELEMENTS_H

#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* Fill `array` from the generator `seed`.  Random bits are mostly huge and tiny
 * floats; so every other element is small, and an eighth of them are zeros,
 * infinities or NaNs.
 */
void elements_fill(uint64_t *seed, enum dtensor_dtype dtype, void *array,
                   size_t count);

#endif
