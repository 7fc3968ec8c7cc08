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

/* Asks for the lines of memory that are overwritten next.  The CPU foresees
 * what a loop reads, but stores wait for their lines: of an output above
 * DTN_COPY_LARGE_BYTES, a common L2, which is not in the cache, it pays to ask
 * for DTN_COPY_ASKED_BYTES at a time.
 */
#define DTN_COPY_LARGE_BYTES ((size_t)1 << 20)
#define DTN_COPY_ASKED_BYTES ((size_t)2 << 10)
static inline void dtn_copy_ask(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i, 1);
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
