/* array.h - arrays that grow */
#ifndef DTN_BASE_ARRAY_H
#define DTN_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Make room for `n` elements of `size` bytes in the array *(T **)arrayp, which
 * has room for *capacity elements.  An array of capacity 0 is NULL.  It at
 * least doubles when it grows, so that n appends copy O(n) elements.  False:
 * not enough memory, and nothing has changed.
 */
bool dtn_array_reserve(void *arrayp, int *capacity, int n, size_t size);

#endif
