/* tiles.c - products of matrices of floats without a BLAS, tile by tile
 *
 * The result is made in tiles that fit the registers: with AVX-512 12 x 32 of
 * f32.  256 terms of 512 columns of b are copied to panels.  They stay in the
 * L2 cache for all rows of the result.  The panel of 12 rows of a, 12 KiB,
 * stays in the L1 cache for all these columns.  The next block of terms
 * continues the same sums, so the terms of a sum are added in order.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "math/tiles.h"
#include "math/pair_panels.h"
#include "math/pairs.h"
#include "math/panels.h"
#include "math/width.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>
#endif

enum {
    WIDE_BYTES = 2048,            /* of a row of a block of b                 */
    HIGH = 96,                    /* rows of a block of a                     */
    MOST_ROWS = 12, MOST_COLUMNS = 32
};

typedef void tile_f(const void *a, const void *b, int64_t terms, void *out,
                    int64_t apart, bool adds);

struct tiles_loops {
    int rows, columns;            /* of a tile                                */
    tile_f *all, *four, *one;     /* rows at a time                           */
};

#ifdef __clang__
#define TILES_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILES_UNROLL _Pragma("GCC unroll 16")
#endif

#define VECTOR(name, T, bytes)                                                \
    typedef T name __attribute__((vector_size(bytes), aligned(sizeof(T)),     \
                                  may_alias));
VECTOR(v4_f32, float, 16)
VECTOR(v2_f64, double, 16)

static inline v4_f32 fma_v4(v4_f32 x, v4_f32 y, v4_f32 sum)
{
    for (int i = 0; i < 4; i++)
        sum[i] = __builtin_fmaf(x[i], y[i], sum[i]);
    return sum;
}

static inline v2_f64 fma_v2(v2_f64 x, v2_f64 y, v2_f64 sum)
{
    for (int i = 0; i < 2; i++)
        sum[i] = __builtin_fma(x[i], y[i], sum[i]);
    return sum;
}

#define LANES_T float
#define LANES_V v4_f32
#define LANES_SET(x) (v4_f32){ x, x, x, x }
#define LANES_FMA fma_v4
#define LANES_ROWS 4
#define LANES_VECTORS 2
#define LANES_TARGET
#define LANES_NAME(name) name##_f32_plain
#include "math/tiles_lanes.h"

#define LANES_T double
#define LANES_V v2_f64
#define LANES_SET(x) (v2_f64){ x, x }
#define LANES_FMA fma_v2
#define LANES_ROWS 4
#define LANES_VECTORS 2
#define LANES_TARGET
#define LANES_NAME(name) name##_f64_plain
#include "math/tiles_lanes.h"

#ifdef DTN_WIDTHS
VECTOR(v8_f32, float, 32)
VECTOR(v4_f64, double, 32)
VECTOR(v16_f32, float, 64)
VECTOR(v8_f64, double, 64)

#define LANES_T float
#define LANES_V v8_f32
#define LANES_SET _mm256_set1_ps
#define LANES_FMA _mm256_fmadd_ps
#define LANES_ROWS 4
#define LANES_VECTORS 3
#define LANES_TARGET DTN_TARGET_AVX2
#define LANES_NAME(name) name##_f32_avx2
#include "math/tiles_lanes.h"

#define LANES_T double
#define LANES_V v4_f64
#define LANES_SET _mm256_set1_pd
#define LANES_FMA _mm256_fmadd_pd
#define LANES_ROWS 4
#define LANES_VECTORS 3
#define LANES_TARGET DTN_TARGET_AVX2
#define LANES_NAME(name) name##_f64_avx2
#include "math/tiles_lanes.h"

#define LANES_T float
#define LANES_V v16_f32
#define LANES_SET _mm512_set1_ps
#define LANES_FMA _mm512_fmadd_ps
#define LANES_ROWS 12
#define LANES_VECTORS 2
#define LANES_TARGET DTN_TARGET_AVX512
#define LANES_NAME(name) name##_f32_avx512
#include "math/tiles_lanes.h"

#define LANES_T double
#define LANES_V v8_f64
#define LANES_SET _mm512_set1_pd
#define LANES_FMA _mm512_fmadd_pd
#define LANES_ROWS 12
#define LANES_VECTORS 2
#define LANES_TARGET DTN_TARGET_AVX512
#define LANES_NAME(name) name##_f64_avx512
#include "math/tiles_lanes.h"

/* A number of 32 bits is a pair of bf16 (pairs.h). */
#define LANES_T float
#define LANES_V v16_f32
#define LANES_SET _mm512_set1_ps
#define LANES_FMA(x, y, sum)                                                  \
    _mm512_dpbf16_ps(sum, (__m512bh)(x), (__m512bh)(y))
#define LANES_ROWS 12
#define LANES_VECTORS 2
#define LANES_TARGET DTN_TARGET_BF16
#define LANES_NAME(name) name##_bf16_avx512
#include "math/tiles_lanes.h"
#endif

/* Of f32, of f64. */
static const struct tiles_loops *const widths[][2] = {
    { &loops_f32_plain, &loops_f64_plain },
#ifdef DTN_WIDTHS
    { &loops_f32_avx2, &loops_f64_avx2 },
    { &loops_f32_avx512, &loops_f64_avx512 },
#endif
};

static const struct tiles_loops *loops_of(enum dtensor_dtype work, bool pairs)
{
#ifdef DTN_WIDTHS
    if (pairs)
        return &loops_bf16_avx512;
#endif
    (void)pairs;
    return widths[dtn_width()][work == DTENSOR_F64];
}

/* -------------------------------------------------------------- blocks --- */

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* The product, and the block that is being made. */
struct block {
    const struct dtn_tiles_call *c;
    const struct tiles_loops *loops;
    dtn_panels_f *take;           /* copies to panels                         */
    int64_t size, terms;          /* bytes of an element; terms, or pairs     */
    struct dtn_panels a, b;
    char *panels_a, *panels_b;    /* in the scratch memory                    */
    int64_t column, wide, term, deep, row, high;
    bool adds;                    /* sums go on                               */
};

static int64_t columns_most(const struct block *b)
{
    const int64_t whole = WIDE_BYTES / b->size;

    return whole - whole % b->loops->columns;
}

static int64_t rows_most(const struct block *b)
{
    return HIGH - HIGH % b->loops->rows;
}

static int64_t whole_panels(int64_t n, int64_t lanes, int64_t most)
{
    return least((n + lanes - 1) / lanes * lanes, most);
}

static struct dtn_panels panels_of(const struct dtn_tiles_call *c,
                                   const struct dtn_tiles_matrix *m, int along,
                                   int lanes)
{
    return (struct dtn_panels){ .data = m->data, .dtype = m->dtype,
                                .work = c->work, .lane = m->stride[along],
                                .term = m->stride[1 - along], .terms = c->k,
                                .lanes = lanes };
}

static dtn_panels_f *take_of(bool pairs)
{
#ifdef DTN_WIDTHS
    if (pairs)
        return dtn_pair_panels_take;
#endif
    (void)pairs;
    return dtn_panels_take;
}

/* An odd number of terms is padded with 0 and -0.  Their product is -0, which
 * changes no sum.
 */
static struct block block_of(const struct dtn_tiles_call *c, bool pairs,
                             char *room)
{
    const struct tiles_loops *loops = loops_of(c->work, pairs);
    struct block b = { .c = c, .loops = loops, .take = take_of(pairs),
                       .panels_b = room,
                       .size = c->work == DTENSOR_F64 ? 8 : 4,
                       .terms = pairs ? (c->k + 1) / 2 : c->k };

    b.a = panels_of(c, &c->a, 0, loops->rows);
    b.b = panels_of(c, &c->b, 1, loops->columns);
    b.b.odd = 0x8000;
    b.panels_a = room + whole_panels(c->n, loops->columns, columns_most(&b)) *
                 least(b.terms, DTN_PANELS_DEEP) * b.size;
    return b;
}

size_t dtn_tiles_bytes(const struct dtn_tiles_call *c)
{
    const struct block b = block_of(c, false, NULL);

    return (size_t)((whole_panels(c->n, b.loops->columns, columns_most(&b)) +
                     whole_panels(c->m, b.loops->rows, rows_most(&b))) *
                    least(b.terms, DTN_PANELS_DEEP) * b.size);
}

/* `rows` rows of a tile. */
static void rows_multiply(const struct block *b, const char *a,
                          const char *from, int rows, char *out,
                          int64_t apart)
{
    const struct tiles_loops *l = b->loops;
    int done = 0;

    while (done < rows) {
        const int left = rows - done;
        tile_f *tile = left == l->rows ? l->all : left >= 4 ? l->four : l->one;

        tile(a + done * b->size, from, b->deep, out + done * apart * b->size,
             apart, b->adds);
        done += left == l->rows ? left : left >= 4 ? 4 : 1;
    }
}

/* At the right edge a tile is made beside the result. */
static void edge_multiply(const struct block *b, const char *a,
                          const char *from, int rows, int64_t columns,
                          char *out)
{
    _Alignas(64) char tile[MOST_ROWS * MOST_COLUMNS * sizeof(double)];
    const int64_t apart = b->loops->columns * b->size;
    const int64_t row = b->c->apart * b->size;
    const size_t bytes = (size_t)(columns * b->size);

    memset(tile, 0, sizeof tile);
    for (int r = 0; b->adds && r < rows; r++)
        memcpy(tile + r * apart, out + r * row, bytes);
    rows_multiply(b, a, from, rows, tile, b->loops->columns);
    for (int r = 0; r < rows; r++)
        memcpy(out + r * row, tile + r * apart, bytes);
}

/* A panel of a times all panels of b. */
static void panel_multiply(const struct block *b, const char *a, int64_t row,
                           int rows)
{
    const int64_t columns = b->loops->columns, size = b->size;
    char *out = (char *)b->c->out + (row * b->c->apart + b->column) * size;
    const char *from = b->panels_b;
    int64_t at = 0;

    for (; at + columns <= b->wide; at += columns) {
        rows_multiply(b, a, from, rows, out + at * size, b->c->apart);
        from += columns * b->deep * size;
    }
    if (at < b->wide)
        edge_multiply(b, a, from, rows, b->wide - at, out + at * size);
}

static void block_multiply(struct block *b)
{
    const int rows = b->loops->rows;

    b->take(&b->b, b->column, b->wide, b->term, b->deep, b->panels_b);
    for (b->row = 0; b->row < b->c->m; b->row += b->high) {
        b->high = least(b->c->m - b->row, rows_most(b));
        b->take(&b->a, b->row, b->high, b->term, b->deep, b->panels_a);
        for (int64_t at = 0; at < b->high; at += rows)
            panel_multiply(b, b->panels_a + at * b->deep * b->size, b->row + at,
                           (int)least(b->high - at, rows));
    }
}

void dtn_tiles_multiply(const struct dtn_tiles_call *c, void *room)
{
    struct block b = block_of(c, dtn_pairs_fit(c), room);
    const int64_t wide = columns_most(&b);

    for (b.column = 0; b.column < c->n; b.column += wide)
        for (b.term = 0; b.term < b.terms; b.term += DTN_PANELS_DEEP) {
            b.wide = least(c->n - b.column, wide);
            b.deep = least(b.terms - b.term, DTN_PANELS_DEEP);
            b.adds = c->adds || b.term > 0;
            block_multiply(&b);
        }
}
