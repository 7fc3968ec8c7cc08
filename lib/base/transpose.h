/* transpose.h - a small square of numbers, transposed in vectors
 *
 * dtn_transpose_BYTES() takes a square of 16 / BYTES numbers on a side: of 2
 * bytes 8 x 8, of 4 bytes 4 x 4, of 8 bytes 2 x 2.  Row i of the result is
 * column i of the square.  Rows are any number of bytes apart.
 */
#ifndef DTN_BASE_TRANSPOSE_H
#define DTN_BASE_TRANSPOSE_H

#include <stdint.h>
#include <string.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define DTN_TRANSPOSE 1
#endif
#endif

#ifdef DTN_TRANSPOSE
typedef uint16_t dtn_eight_16 __attribute__((vector_size(16)));
typedef uint32_t dtn_four_32 __attribute__((vector_size(16)));
typedef uint64_t dtn_two_64 __attribute__((vector_size(16)));

/* Numbers of two vectors in turn: the lower halves, the upper ones. */
#define DTN_LOW_16(a, b)                                                      \
    __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define DTN_HIGH_16(a, b)                                                     \
    __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define DTN_LOW_32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define DTN_HIGH_32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define DTN_LOW_64(a, b) __builtin_shufflevector(a, b, 0, 2)
#define DTN_HIGH_64(a, b) __builtin_shufflevector(a, b, 1, 3)

/* Vectors i and i + n / 2 of x become 2 i and 2 i + 1 of y. */
#define DTN_INTERLEAVE(bytes, y, x)                                           \
    for (int i = 0; i < (int)(sizeof(x) / sizeof(x)[0]) / 2; i++) {           \
        const int j = i + (int)(sizeof(x) / sizeof(x)[0]) / 2;                \
                                                                              \
        (y)[2 * i] = DTN_LOW_##bytes((x)[i], (x)[j]);                         \
        (y)[2 * i + 1] = DTN_HIGH_##bytes((x)[i], (x)[j]);                    \
    }

/* A square of n rows is transposed by log2(n) times of that. */
#define DTN_TRANSPOSE_OF(bytes, vector, n, steps)                             \
    static inline void dtn_transpose_##bytes(char *to, int64_t to_row,        \
                                             const char *from,                \
                                             int64_t from_row)                \
    {                                                                         \
        vector x[n], y[n];                                                    \
                                                                              \
        for (int i = 0; i < (n); i++)                                         \
            memcpy(&x[i], from + i * from_row, sizeof x[i]);                  \
        steps                                                                 \
        for (int i = 0; i < (n); i++)                                         \
            memcpy(to + i * to_row, &y[i], sizeof y[i]);                      \
    }

DTN_TRANSPOSE_OF(2, dtn_eight_16, 8,
                 DTN_INTERLEAVE(16, y, x)
                 DTN_INTERLEAVE(16, x, y)
                 DTN_INTERLEAVE(16, y, x))
DTN_TRANSPOSE_OF(4, dtn_four_32, 4,
                 DTN_INTERLEAVE(32, y, x)
                 memcpy(x, y, sizeof x);
                 DTN_INTERLEAVE(32, y, x))
DTN_TRANSPOSE_OF(8, dtn_two_64, 2,
                 DTN_INTERLEAVE(64, y, x))

#undef DTN_LOW_16
#undef DTN_HIGH_16
#undef DTN_LOW_32
#undef DTN_HIGH_32
#undef DTN_LOW_64
#undef DTN_HIGH_64
#undef DTN_INTERLEAVE
#undef DTN_TRANSPOSE_OF
#endif

#endif
