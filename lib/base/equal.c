/* equal.c - are two arrays the same numbers?
 *
 * Numbers are compared as IEEE 754 does, not as bytes: -0 equals 0, and a NaN
 * equals nothing, not even itself.  The bits without the sign bit show both: 0
 * is a zero of either sign, and bits above those of infinity, 0x7f800000 in
 * f32, are a NaN.  So one loop for each width compares all floats.  A complex
 * array is compared as an array of twice as many floats.
 */
#include "base/equal.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

enum { EQUAL_BLOCK = 4096 };           /* elements between two tests         */

static const uint64_t equal_limit[DTENSOR_NDTYPES] = {
    [DTENSOR_F32]    = 0x7f800000, [DTENSOR_F64]  = 0x7ff0000000000000,
    [DTENSOR_F16]    = 0x7c00,     [DTENSOR_BF16] = 0x7f80,
    [DTENSOR_C64]    = 0x7f800000, [DTENSOR_C128] = 0x7ff0000000000000,
    [DTENSOR_F8E4M3] = 0x7e,       [DTENSOR_F8E5M2] = 0x7c,
};

uint64_t dtn_equal_limit(enum dtensor_dtype dtype)
{
    return equal_limit[dtype];
}

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
