/* copy.h - large copies with non-temporal stores */
#ifndef DTN_BASE_COPY_H
#define DTN_BASE_COPY_H

#include <stddef.h>

/* memcpy() past the caches.  Other CPUs may see the bytes when they see what
 * this one stores after the fence.
 */
void dtn_copy_past(void *dst, const void *src, size_t bytes);
void dtn_copy_fence(void);

#endif
