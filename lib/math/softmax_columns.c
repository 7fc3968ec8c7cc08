/* softmax_columns.c - softmax of neighbouring columns, going down them at once
 *
 * A tile is 32 columns of f32 or 16 of f64, up to 1024 elements of each: 128
 * KiB.  It is copied, and widened, from where the columns lie.  Three passes
 * over it find the largest elements, make and add the exponentials, and write
 * the results.  Longer columns are several tiles, which each pass copies again.
 * Short columns are up to eight tiles, of 128 elements together, which stay in
 * the L1 cache: each pass waits for the last results of the one before.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/softmax_columns.h"
#include "math/block.h"
#include "math/functions.h"
#include "math/totals.h"
#include "math/widen.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDE_BYTES = 128, LONG = 1024, TILES = 8, SHORT = 128 };
#define WIDE(T) (WIDE_BYTES / (int)sizeof(T))

/* The next loop is over a row of a tile.  If GCC unrolls it first, it makes no
 * vectors of what is left.
 */
#if defined(__GNUC__) && !defined(__clang__)
#define ACROSS _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define ACROSS
#endif

/* Of f32, of f64. */
struct columns_loops {
    /* n rows, `apart` from one to the next, to a tile; and the largest yet */
    void (*take[2])(void *tile, const void *from, int64_t apart, int64_t n,
                    void *most);
    /* the exponentials of n rows of a tile, which they may replace */
    void (*exp[2])(void *to, const void *tile, int64_t n, const void *most);
    void (*finish[2])(bool logarithm, void *to, int64_t apart, const void *tile,
                      int64_t n, const void *most, const double ends[]);
    /* what the end of each of n columns needs of its sum; false: one is NaN */
    bool (*ends)(bool logarithm, double total[], int64_t n);
};

/* A CPU does not foresee rows that are far apart.  When row i of n is read or
 * written this element is asked for: of row i + 16, or of the next columns.
 */
static inline int64_t ahead(int64_t i, int64_t n, int64_t apart, int64_t wide)
{
    const int64_t next = i + 16;

    return next < n ? next * apart : (next - n) * apart + wide;
}

#define LANES_FILE "math/softmax_columns_lanes.h"
#define LANES_LOOPS struct columns_loops
#include "math/width_lanes.h"

/* Some columns, at most as many as a tile has. */
struct tile {
    const struct columns_loops *loops;
    struct dtn_storage how;       /* neighbours in memory                     */
    int is_f64;                   /* of `how.work`                            */
    int64_t wide;                 /* numbers of a row of the tile             */
    struct dtn_columns of;        /* the columns                              */
    bool logarithm;
    char *x;                      /* element by element                       */
    char *room;                   /* for exponentials that are not kept       */
    double *total;                /* sum of exponentials of each column       */
    _Alignas(64) char most[WIDE_BYTES]; /* of each column, of type `how.work` */
};

/* Tiles that are computed together. */
struct tiles {
    int count;                    /* of `tile`                                */
    int64_t columns;              /* of all of them                           */
    struct tile tile[TILES];
    double total[TILES * WIDE(float)];    /* tile by tile, without gaps       */
    _Alignas(64) char x[LONG * WIDE_BYTES]; /* the same                       */
    _Alignas(64) char room[DTN_BLOCK * WIDE_BYTES];       /* of one at a time */
};

bool dtn_softmax_columns_ok(enum dtensor_dtype dtype)
{
    return dtype == DTENSOR_F32 || dtype == DTENSOR_F64 ||
           dtype == DTENSOR_BF16 || dtype == DTENSOR_F16;
}

/* From element `first` of the columns on: `apart` as in struct dtn_columns. */
static int64_t bytes_to(const struct tile *t, int64_t first, int64_t apart)
{
    return first * apart * (int64_t)dtn_dtype_size(t->how.dtype);
}

static bool direct(const struct tile *t)
{
    return t->of.count == t->wide && t->how.dtype == t->how.work;
}

/* Row by row, since some columns of the tile are not used: they are 0. */
static void load_rows(struct tile *t, const char *at, int64_t n)
{
    const size_t size = (size_t)t->of.count * dtn_dtype_size(t->how.work);

    memset(t->x, 0, (size_t)n * WIDE_BYTES);
    for (int64_t i = 0; i < n; i++) {
        char *to = t->x + i * WIDE_BYTES;
        const void *row = dtn_block_load(&t->how,
                                         at + bytes_to(t, i, t->of.in_apart),
                                         t->of.count, to);

        if (row != to)
            memcpy(to, row, size);
    }
}

static void store_rows(const struct tile *t, char *at, int64_t n)
{
    const size_t size = (size_t)t->of.count * dtn_dtype_size(t->how.work);

    for (int64_t i = 0; i < n; i++) {
        char *to = at + bytes_to(t, i, t->of.out_apart);
        const char *row = t->x + i * WIDE_BYTES;

        if (t->how.dtype == t->how.work)
            memcpy(to, row, size);
        else
            dtn_block_store(&t->how, to, t->of.count, row);
    }
}

/* n elements of each column, from element `first` on, to the tile. */
static void tile_take(struct tile *t, int64_t first, int64_t n)
{
    const char *at = t->of.in + bytes_to(t, first, t->of.in_apart);

    if (direct(t)) {
        t->loops->take[t->is_f64](t->x, at, t->of.in_apart, n, t->most);
        return;
    }
    if (t->of.count == t->wide)
        dtn_widen_rows(t->how.dtype, t->x, at, t->of.in_apart, n);
    else
        load_rows(t, at, n);
    t->loops->take[t->is_f64](t->x, t->x, t->wide, n, t->most);
}

/* Their sums have the order, and so the bits, of those of rows. */
static void tile_exp(struct tile *t, int64_t n, double total[])
{
    for (int64_t i = 0; i < n; i += DTN_BLOCK) {
        const int64_t left = n - i < DTN_BLOCK ? n - i : DTN_BLOCK;
        char *x = t->x + i * WIDE_BYTES;
        char *made = t->logarithm ? t->room : x;

        t->loops->exp[t->is_f64](made, x, left, t->most);
        dtn_total_columns(DTN_TOTAL_SUM, t->how.work, made, t->wide, left,
                          t->wide, total);
    }
}

static void tile_finish(struct tile *t, int64_t first, int64_t n)
{
    char *at = t->of.out + bytes_to(t, first, t->of.out_apart);
    const bool there = direct(t);

    t->loops->finish[t->is_f64](t->logarithm, there ? at : t->x,
                                there ? t->of.out_apart : t->wide, t->x, n,
                                t->most, t->total);
    if (t->of.count < t->wide)
        store_rows(t, at, n);
    else if (!there)
        dtn_narrow_rows(t->how.dtype, at, t->of.out_apart, t->x, n);
}

/* How many elements of each column, from element `first` on, fit the tile. */
static int64_t some(const struct tile *t, int64_t first)
{
    return t->of.n - first < LONG ? t->of.n - first : LONG;
}

/* The largest elements, the sums, and what becomes of them; columns of several
 * tiles are read again.  False: a NaN made the sum of its column one.  Its sign
 * would not be that of a row, where sums have another order of operands.
 */
static bool tiles_totals(struct tiles *all)
{
    for (struct tile *t = all->tile; t < all->tile + all->count; t++)
        for (int64_t i = 0; i < t->of.n; i += LONG)
            tile_take(t, i, some(t, i));
    for (struct tile *t = all->tile; t < all->tile + all->count; t++)
        for (int64_t i = 0; i < t->of.n; i += LONG) {
            if (t->of.n > LONG)
                tile_take(t, i, some(t, i));
            tile_exp(t, some(t, i), t->total);
        }
    return all->tile->loops->ends(all->tile->logarithm, all->total,
                                  all->columns);
}

/* Of several tiles the exponentials are made again; their sums are known. */
static void tile_again(struct tile *t, int64_t first)
{
    double known[WIDE(float)] = { 0 };

    tile_take(t, first, some(t, first));
    if (!t->logarithm)
        tile_exp(t, some(t, first), known);
}

static void tile_results(struct tile *t)
{
    for (int64_t i = 0; i < t->of.n; i += LONG) {
        if (t->of.n > LONG)
            tile_again(t, i);
        tile_finish(t, i, some(t, i));
    }
}

static void tile_begin(struct tile *t)
{
    for (int k = 0; k < t->wide; k++)
        if (t->is_f64)
            ((double *)(void *)t->most)[k] = (double)-INFINITY;
        else
            ((float *)(void *)t->most)[k] = -INFINITY;
}

/* How many tiles go together. */
static int tiles_count(const struct dtn_columns *columns, int64_t wide)
{
    const int64_t fit = SHORT / columns->n;
    const int64_t whole = columns->count / wide;
    const int64_t count = fit < whole ? fit : whole;

    return count > TILES ? TILES : count > 1 ? (int)count : 1;
}

static void tiles_begin(struct tiles *all, bool logarithm,
                        const struct dtn_columns *columns)
{
    const enum dtensor_dtype work = dtn_block_type(columns->dtype);
    struct tile t = {
        .loops = widths[dtn_width()],
        .how = { columns->dtype, work, 1 }, .is_f64 = work == DTENSOR_F64,
        .wide = work == DTENSOR_F64 ? WIDE(double) : WIDE(float),
        .of = *columns, .logarithm = logarithm,
        .x = all->x, .room = all->room, .total = all->total };
    const int64_t size = (int64_t)dtn_dtype_size(columns->dtype);

    all->count = tiles_count(columns, t.wide);
    if (t.of.count > t.wide)
        t.of.count = t.wide;
    all->columns = all->count * t.of.count;
    tile_begin(&t);
    for (int i = 0; i < all->count; i++) {
        all->tile[i] = t;
        memset(t.total, 0, WIDE(float) * sizeof *t.total);
        t.of.in += t.wide * size;
        t.of.out += t.wide * size;
        t.x += t.of.n * WIDE_BYTES;
        t.total += t.wide;
    }
}

int64_t dtn_softmax_columns(bool logarithm, const struct dtn_columns *columns)
{
    struct tiles all;                     /* initialised as far as it is used */

    tiles_begin(&all, logarithm, columns);
    if (!tiles_totals(&all))
        return 0;
    for (int i = 0; i < all.count; i++)
        tile_results(&all.tile[i]);
    return all.columns;
}

int64_t dtn_logsumexp_columns(const struct dtn_columns *columns, double sum[])
{
    struct tiles all;                     /* initialised as far as it is used */

    tiles_begin(&all, true, columns);
    if (!tiles_totals(&all))
        return 0;
    for (int64_t k = 0; k < all.columns; k++) {
        const struct tile *t = &all.tile[k / all.tile->wide];
        const int64_t i = k % t->wide;

        sum[k] = all.total[k] +
                 (t->is_f64 ? ((const double *)(const void *)t->most)[i]
                            : (double)((const float *)(const void *)
                                       t->most)[i]);
    }
    return all.columns;
}
