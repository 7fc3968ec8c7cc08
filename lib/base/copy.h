/* copy.h - large copies with non-temporal stores */
#ifndef DTN_BASE_COPY_H
#define DTN_BASE_COPY_H

#include <stddef.h>

/* memcpy() with non-temporal stores.  The fence orders them before all later
 * stores: a CPU that sees a later store also sees the copied bytes.
 */
void dtn_copy_nt(void *dst, const void *src, size_t bytes);
void dtn_copy_fence(void);

#endif
