/* tiles.c - own products of matrices of floats, block by block
 *
 * Four rows of the result and four rows of b at a time: of 2 KiB of each, which
 * stay in the L1 cache, an element that was loaded is used four times.  128
 * rows of b of that width stay in the L2 cache for all rows of the result.  In
 * 512 x 512 there are 4 such blocks for 512 columns, and in each the sums go on
 * where the block before ended, so that they have their terms in order.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/tiles.h"
#include "math/width.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDE_BYTES = 2048, DEEP = 128 };

typedef void tile_f(void *sums, int64_t apart, const void *factors,
                    const void *rows, int64_t stride, int64_t n);

/* Of f32, of f64. */
struct tiles_loops { tile_f *four[2], *one[2], *last[2]; };

#define LANES_TARGET
#define LANES_NAME(name) name##_plain
#include "math/tiles_lanes.h"

#ifdef DTN_WIDTHS
#define LANES_TARGET DTN_TARGET_AVX2
#define LANES_NAME(name) name##_avx2
#include "math/tiles_lanes.h"

#define LANES_TARGET DTN_TARGET_AVX512
#define LANES_NAME(name) name##_avx512
#include "math/tiles_lanes.h"
#endif

static const struct tiles_loops *const widths[] = {
    &loops_plain,
#ifdef DTN_WIDTHS
    &loops_avx2,
    &loops_avx512,
#endif
};

/* A block: columns from `column` on, `n` of them, terms k .. k + deep - 1. */
struct block {
    const struct dtn_blas_call *c;
    bool is_f64;
    int64_t size;                 /* bytes of an element                      */
    int64_t column, n, k, deep;
};

static char *sums_at(const struct block *b, int64_t row)
{
    return (char *)b->c->out.data + (row * b->c->out.stride + b->column) *
                                    b->size;
}

static const char *b_at(const struct block *b, int64_t k)
{
    return (const char *)b->c->b.data + (k * b->c->b.stride + b->column) *
                                        b->size;
}

/* `terms` factors of each of `rows` rows of a, 4 of a row beside each other. */
static void factors_take(const struct block *b, int64_t row, int rows,
                         int64_t k, int terms, char *factors)
{
    const struct dtn_blas_matrix *a = &b->c->a;
    const int64_t down = a->transposed ? 1 : a->stride;
    const int64_t right = a->transposed ? a->stride : 1;

    for (int r = 0; r < rows; r++)
        for (int t = 0; t < terms; t++)
            memcpy(factors + (r * 4 + t) * b->size, (const char *)a->data +
                   ((row + r) * down + (k + t) * right) * b->size,
                   (size_t)b->size);
}

/* 4 rows of the result, or 1. */
static void block_rows(const struct block *b, int64_t row, int rows)
{
    const struct tiles_loops *loops = widths[dtn_width()];
    _Alignas(64) char factors[16 * sizeof(double)];
    const int64_t end = b->k + b->deep;
    int64_t k = b->k;

    for (; k + 4 <= end; k += 4) {
        factors_take(b, row, rows, k, 4, factors);
        (rows == 4 ? loops->four : loops->one)[b->is_f64](
            sums_at(b, row), b->c->out.stride, factors, b_at(b, k),
            b->c->b.stride, b->n);
    }
    for (; k < end; k++)
        for (int r = 0; r < rows; r++) {
            factors_take(b, row + r, 1, k, 1, factors);
            loops->last[b->is_f64](sums_at(b, row + r), 0, factors, b_at(b, k),
                                   0, b->n);
        }
}

static void block_run(const struct block *b)
{
    int64_t row = 0;

    for (; row + 4 <= b->c->m; row += 4)
        block_rows(b, row, 4);
    for (; row < b->c->m; row++)
        block_rows(b, row, 1);
}

void dtn_tiles_multiply(const struct dtn_blas_call *c)
{
    struct block b = { .c = c, .is_f64 = c->dtype == DTENSOR_F64,
                       .size = c->dtype == DTENSOR_F64 ? 8 : 4 };
    const int64_t wide = WIDE_BYTES / b.size;

    for (int64_t row = 0; row < c->m && !c->beta; row++)
        memset(sums_at(&b, row), 0, (size_t)(c->n * b.size));
    for (b.column = 0; b.column < c->n; b.column += wide)
        for (b.k = 0; b.k < c->k; b.k += DEEP) {
            b.n = c->n - b.column < wide ? c->n - b.column : wide;
            b.deep = c->k - b.k < DEEP ? c->k - b.k : DEEP;
            block_run(&b);
        }
}
