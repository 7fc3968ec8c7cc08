/* copy.c - copying past the caches
 *
 * A store to a line that is not in the cache reads it first, only to overwrite
 * it; and where another CPU read the line last, it has to be taken from there,
 * 40 ns each between distant cores.  A store past the caches does neither: the
 * line goes to memory whole, wherever it was.  Who reads it fetches it from
 * there, so this pays for what is large, or read by a CPU that is far away.
 */
#include "base/base.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

void dtn_copy_past(void *dst, const void *src, size_t bytes)
{
    unsigned char *to = dst;
    const unsigned char *from = src;
    size_t head = -(uintptr_t)to % sizeof(__m128i), at;

    head = head < bytes ? head : bytes;
    memcpy(to, from, head);
    for (at = head; bytes - at >= sizeof(__m128i); at += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const void *)(from + at)));
    memcpy(to + at, from + at, bytes - at);
}

void dtn_copy_fence(void)
{
    _mm_sfence();
}
#else
void dtn_copy_past(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void dtn_copy_fence(void)
{
}
#endif
