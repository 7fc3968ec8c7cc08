/* equal.h - are two arrays the same numbers */
#ifndef DTN_BASE_EQUAL_H
#define DTN_BASE_EQUAL_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Are both arrays the same numbers?  -0 equals 0; a NaN equals nothing.  Both
 * are aligned for their type.
 */
bool dtn_equal(enum dtensor_dtype dtype, const void *left, const void *right,
               size_t count);

/* The bits of infinity, above which a float is a NaN; 0: the type has none. */
uint64_t dtn_equal_limit(enum dtensor_dtype dtype);

#endif
