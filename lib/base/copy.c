/* copy.c - large copies with non-temporal stores, and copies of one element
 *
 * An ordinary store to a line that is not in the cache first reads the line,
 * only to overwrite it.  If another CPU read the line last, the line has to
 * come from its cache: 40 ns for each line between distant cores.  A
 * non-temporal store does neither: it writes the whole line to memory.  The
 * reader then fetches it from memory.  So non-temporal stores pay for large
 * copies, and for copies that a distant CPU reads.
 */
#include "base/copy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LINE = 64 };

#ifdef __x86_64__
#include <immintrin.h>

enum { HALF_LINE = 32 };

/* Copy whole pieces of 16 bytes.  Every x86-64 has these stores. */
static size_t past_by_16(unsigned char *to, const unsigned char *from,
                         size_t bytes)
{
    size_t at;

    for (at = 0; bytes - at >= sizeof(__m128i); at += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const void *)(from + at)));
    return at;
}

/* Copy whole pieces of 32 bytes: 8 KiB in 130 instead of 340 ns on a Zen 4.
 * Stores of a whole line are not faster.
 */
__attribute__((target("avx")))
static size_t past_by_32(unsigned char *to, const unsigned char *from,
                         size_t bytes)
{
    size_t at;

    for (at = 0; bytes - at >= sizeof(__m256i); at += sizeof(__m256i))
        _mm256_stream_si256((__m256i *)(void *)(to + at),
                            _mm256_loadu_si256((const void *)(from + at)));
    return at;
}

void dtn_copy_nt(void *dst, const void *src, size_t bytes)
{
    unsigned char *to = dst;
    const unsigned char *from = src;
    size_t head = -(uintptr_t)to % HALF_LINE, at;

    head = head < bytes ? head : bytes;
    memcpy(to, from, head);
    at = head + (__builtin_cpu_supports("avx") ? past_by_32 : past_by_16)(
                    to + head, from + head, bytes - head);
    memcpy(to + at, from + at, bytes - at);
}

void dtn_copy_fence(void)
{
    _mm_sfence();
}

/* Stores of 16 bytes take 1.7 times as long.  The words of a short element are
 * put together in a register: they have just been stored one by one, and a load
 * of four waits for all.
 */
__attribute__((target("avx")))
static size_t lines_by_32(unsigned char *to, const uint64_t line[],
                          bool is_short, size_t bytes)
{
    const __m256i word = _mm256_set1_epi64x((long long)line[0]);
    const __m256i low =
        is_short ? word : _mm256_loadu_si256((const void *)line);
    const __m256i high =
        is_short ? word : _mm256_loadu_si256((const void *)(line + 4));
    size_t at;

    for (at = 0; bytes - at >= LINE; at += LINE) {
        _mm256_storeu_si256((void *)(to + at), low);
        _mm256_storeu_si256((void *)(to + at + HALF_LINE), high);
    }
    return at;
}

static size_t lines(unsigned char *to, const uint64_t line[], bool is_short,
                    size_t bytes)
{
    return __builtin_cpu_supports("avx")
        ? lines_by_32(to, line, is_short, bytes) : 0;
}
#else
static size_t lines(unsigned char *to, const uint64_t line[], bool is_short,
                    size_t bytes)
{
    return 0;
}

void dtn_copy_nt(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void dtn_copy_fence(void)
{
}
#endif

/* An element of up to 8 bytes, again and again.  Bytes that are read at once
 * should have been stored at once, so they are put together in a register.
 */
static uint64_t repeated(const void *element, size_t size)
{
    uint64_t word = 0;
    uint32_t four;
    uint16_t two;

    switch (size) {
    case 1: word = *(const uint8_t *)element; break;
    case 2: memcpy(&two, element, sizeof two); word = two; break;
    case 4: memcpy(&four, element, sizeof four); word = four; break;
    default: memcpy(&word, element, sizeof word);
    }
    for (; size < sizeof word; size *= 2)
        word |= word << 8 * size;
    return word;
}

static void line_fill(uint64_t line[], const void *element, size_t size)
{
    const size_t whole = size > sizeof *line ? size : sizeof *line;

    if (size > sizeof *line)
        memcpy(line, element, size);
    else
        line[0] = repeated(element, size);
    for (size_t i = whole / sizeof *line; i < LINE / sizeof *line; i++)
        line[i] = line[i - whole / sizeof *line];
}

void dtn_copy_spread(void *dst, const void *element, size_t size, size_t count)
{
    const size_t bytes = size * count;
    uint64_t line[LINE / sizeof(uint64_t)];
    unsigned char *to = dst;
    size_t at;

    line_fill(line, element, size);
    for (at = lines(to, line, size <= sizeof *line, bytes);
         bytes - at >= LINE; at += LINE)
        memcpy(to + at, line, LINE);
    memcpy(to + at, line, bytes - at);
}
