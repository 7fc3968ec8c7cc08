/* copy.h - large copies */
#ifndef DTN_BASE_COPY_H
#define DTN_BASE_COPY_H

#include <stddef.h>
#include <string.h>

/* memcpy(), piece by piece.  glibc copies up to the size of the L2 cache with
 * one instruction, rep movsb, whose stores do not read the lines that they
 * overwrite; above that its stores do.  4 MiB of a peer and 4 MiB of its own
 * take a rank 305 us in pieces and 337 us at once.
 */
#define DTN_COPY_PIECE_BYTES ((size_t)512 << 10)     /* half of a common L2   */

static inline void dtn_copy(void *dst, const void *src, size_t bytes)
{
    unsigned char *to = dst;
    const unsigned char *from = src;

    for (; bytes > DTN_COPY_PIECE_BYTES; bytes -= DTN_COPY_PIECE_BYTES) {
        memcpy(to, from, DTN_COPY_PIECE_BYTES);
        to += DTN_COPY_PIECE_BYTES;
        from += DTN_COPY_PIECE_BYTES;
    }
    memcpy(to, from, bytes);
}

/* `count` copies of an element of `size` bytes, a divisor of 64, one after the
 * other.
 */
void dtn_copy_spread(void *dst, const void *element, size_t size, size_t count);

/* memcpy() with non-temporal stores.  The fence orders them before all later
 * stores: a CPU that sees a later store also sees the copied bytes.
 */
void dtn_copy_nt(void *dst, const void *src, size_t bytes);
void dtn_copy_fence(void);

#endif
