/* bundle.h - neighbouring rows that lie apart, as rows without gaps
 *
 * Columns of a matrix are rows whose elements are far apart: to gather one
 * takes a cache line for each element.  A bundle of neighbours is transposed to
 * a buffer, where its rows are computed like any, and if need be back.
 */
#ifndef DTN_MATH_BUNDLE_H
#define DTN_MATH_BUNDLE_H

#include "math/array.h"
#include "math/strips.h"

#include <stdint.h>

/* Bytes of the buffer, which is in the room (room.h): it fits the L2 cache. */
enum { DTN_BUNDLE_BYTES = 128 << 10 };

/* How many of `beside` rows, `apart` elements apart, of n elements, a stride of
 * `step` apart, to take at once; 0: they are as well computed where they lie.
 */
int64_t dtn_bundle_rows(int64_t beside, int64_t apart, int64_t n, int64_t step,
                        size_t size);

/* The same of the rows of array i from the present one on. */
int64_t dtn_bundle_strips(const struct dtn_strips *rows, int i);

/* `rows` rows of array i from the present one on: rows x elements, or rows x 1
 * if there is one for each row.
 */
struct dtn_array dtn_bundle_view(const struct dtn_strips *rows, int i,
                                 int64_t count);

/* A copy of a view in the buffer. */
struct dtn_array dtn_bundle_take(const struct dtn_array *view, void *room);

#endif
