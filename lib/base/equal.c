/* equal.c - are two arrays the same numbers?
 *
 * As IEEE compares, not as bytes: -0 is 0, and a NaN is nothing's equal, not
 * even its own.  On the bits of a float without its sign both are simple: 0 is
 * 0, and NaNs are what is above infinity, 0x7f800000 in f32.  So one loop for
 * each width serves all floats, and complex numbers as twice as many.
 */
#include "base/equal.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

enum { EQUAL_BLOCK = 4096 };           /* elements between two looks         */

/* Above which magnitude a float is a NaN; 0: there is none. */
static const uint64_t equal_limit[DTENSOR_NDTYPES] = {
    [DTENSOR_F32]    = 0x7f800000, [DTENSOR_F64]  = 0x7ff0000000000000,
    [DTENSOR_F16]    = 0x7c00,     [DTENSOR_BF16] = 0x7f80,
    [DTENSOR_C64]    = 0x7f800000, [DTENSOR_C128] = 0x7ff0000000000000,
    [DTENSOR_F8E4M3] = 0x7e,       [DTENSOR_F8E5M2] = 0x7c,
};

#define EQUAL_FLOATS(word, bits)                                              \
    static bool equal_##word(const void *left, const void *right, size_t n,   \
                             uint64_t limit)                                  \
    {                                                                         \
        const uint##bits##_t sign = (uint##bits##_t)1 << (bits - 1);          \
        const uint##bits##_t *a = left, *b = right;                           \
        unsigned differ = 0;                                                  \
                                                                              \
        for (size_t i = 0; i < n; i++) {                                      \
            uint##bits##_t x = a[i] & (uint##bits##_t)~sign;                  \
            uint##bits##_t y = b[i] & (uint##bits##_t)~sign;                  \
                                                                              \
            differ |= !(((a[i] == b[i]) & (x <= limit)) | ((x | y) == 0));    \
        }                                                                     \
        return !differ;                                                       \
    }
EQUAL_FLOATS(byte, 8)
EQUAL_FLOATS(half, 16)
EQUAL_FLOATS(single, 32)
EQUAL_FLOATS(double, 64)

typedef bool equal_f(const void *left, const void *right, size_t n,
                     uint64_t limit);

bool dtn_equal(enum dtensor_dtype dtype, const void *left, const void *right,
               size_t count)
{
    static equal_f *const by_size[] = {
        [1] = equal_byte, [2] = equal_half, [4] = equal_single,
        [8] = equal_double
    };
    const unsigned char *a = left, *b = right;
    size_t size = dtensor_dtype_size(dtype), n;

    if (count == 0)
        return true;
    if (equal_limit[dtype] == 0)
        return memcmp(a, b, count * size) == 0;
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX) {
        size /= 2;
        count *= 2;
    }
    for (size_t i = 0; i < count; i += n) {
        n = count - i < EQUAL_BLOCK ? count - i : EQUAL_BLOCK;
        if (!by_size[size](a + i * size, b + i * size, n, equal_limit[dtype]))
            return false;
    }
    return true;
}
