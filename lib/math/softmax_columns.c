/* softmax_columns.c - softmax of neighbouring columns, going down them at once
 *
 * A tile is 64 columns of f32 or 32 of f64, up to 1024 elements of each: 256
 * KiB.  It is copied from where the columns lie.  Three passes over it find the
 * largest elements, make and add the exponentials, and write the results.
 * Longer columns are several tiles, which each pass copies again.  Short
 * columns are up to four tiles, of 64 elements together, which stay in the L1
 * cache: each pass waits for the last results of the one before.  A tile of
 * bf16 and f16, which are widened, is half as wide: a cache line of them.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/softmax_columns.h"
#include "math/block.h"
#include "math/functions.h"
#include "math/room.h"
#include "math/softmax_few.h"
#include "math/totals.h"
#include "math/widen.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WIDE_F32 = 64, WIDE_F64 = 32, WIDE_NARROW = DTN_WIDEN_ROW,
       WIDE_BYTES = 256, LONG = 1024, SHORT_BYTES = 16384 };

/* Which loops; the largest elements of tiles that go together are TOGETHER
 * bytes.
 */
enum columns_kind { OF_F32, OF_F64, OF_NARROW };
enum { TOGETHER = 1024, TILES = TOGETHER / (4 * WIDE_NARROW) };

/* The next loop is over a row of a tile.  If GCC unrolls it first, it makes no
 * vectors of what is left.
 */
#if defined(__GNUC__) && !defined(__clang__)
#define ACROSS _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define ACROSS
#endif

/* Of f32, of f64, of narrower floats that were widened to f32. */
struct columns_loops {
    /* n rows, `apart` from one to the next, to a tile; and the largest yet */
    void (*take[3])(void *tile, const void *from, int64_t apart, int64_t n,
                    void *most);
    /* the exponentials of n rows of a tile, which they may replace */
    void (*exp[3])(void *to, const void *tile, int64_t n, const void *most);
    void (*finish[3])(bool logarithm, void *to, int64_t apart, const void *tile,
                      int64_t n, const void *most, const double ends[]);
    /* what the end of each of n columns needs of its sum; false: one is NaN */
    bool (*ends[3])(bool logarithm, double total[], int64_t n);
};

/* A CPU does not foresee rows that are far apart.  When row i of n is read or
 * written this element is asked for: of row i + 16, or of the next columns.
 * Of what the L2 cache has that is slower: it is the row itself.
 */
static inline int64_t ahead(int64_t i, int64_t n, int64_t apart, int64_t wide,
                            int64_t size)
{
    const int64_t next = i + (n * apart * size > 1 << 20 ? 16 : 0);

    return next < n ? next * apart : (next - n) * apart + wide;
}

#define LANES_FILE "math/softmax_columns_lanes.h"
#define LANES_LOOPS struct columns_loops
#include "math/width_lanes.h"

/* Some columns, at most as many as a tile has. */
struct tile {
    const char *in;               /* element 0 of the first one               */
    char *out;
    char *x;                      /* element by element                       */
    double *total;                /* sum of exponentials of each column       */
    char *most;                   /* of each column, of type `how.work`       */
};

/* Tiles that are computed together. */
struct tiles {
    const struct columns_loops *loops;
    struct dtn_storage how;       /* neighbours in memory                     */
    enum columns_kind kind;       /* which loops                              */
    bool logarithm;
    struct dtn_columns of;        /* the columns: `count` of each tile        */
    int64_t wide, bytes;          /* a row of a tile: numbers, their size     */
    bool direct;                  /* rows in memory are like those of tiles   */
    int count;                    /* of `tile`                                */
    struct tile tile[TILES];
    double total[DTN_SOFTMAX_COLUMNS];    /* tile by tile, without gaps       */
    _Alignas(64) char most[TOGETHER];
    _Alignas(64) char x[LONG * WIDE_BYTES];
    _Alignas(64) char room[DTN_BLOCK * WIDE_BYTES];     /* for exponentials   */
                                                        /* that are not kept  */
};
_Static_assert(sizeof(struct tiles) <= DTN_ROOM_BYTES, "a room has place");

bool dtn_softmax_columns_ok(enum dtensor_dtype dtype)
{
    return dtype == DTENSOR_F32 || dtype == DTENSOR_F64 ||
           dtype == DTENSOR_BF16 || dtype == DTENSOR_F16;
}

/* From element `first` of the columns on: `apart` as in struct dtn_columns. */
static int64_t bytes_to(const struct tiles *all, int64_t first, int64_t apart)
{
    return first * apart * (int64_t)dtn_dtype_size(all->how.dtype);
}

/* Row by row, since some columns of the tile are not used: they are 0. */
static void load_rows(const struct tiles *all, const struct tile *t,
                      const char *at, int64_t n)
{
    const size_t size = (size_t)all->of.count * dtn_dtype_size(all->how.work);

    memset(t->x, 0, (size_t)(n * all->bytes));
    for (int64_t i = 0; i < n; i++) {
        char *to = t->x + i * all->bytes;
        const void *row = dtn_block_load(
            &all->how, at + bytes_to(all, i, all->of.in_apart), all->of.count,
            to);

        if (row != to)
            memcpy(to, row, size);
    }
}

static void store_rows(const struct tiles *all, const struct tile *t, char *at,
                       int64_t n)
{
    const size_t size = (size_t)all->of.count * dtn_dtype_size(all->how.work);

    for (int64_t i = 0; i < n; i++) {
        char *to = at + bytes_to(all, i, all->of.out_apart);
        const char *row = t->x + i * all->bytes;

        if (all->how.dtype == all->how.work)
            memcpy(to, row, size);
        else
            dtn_block_store(&all->how, to, all->of.count, row);
    }
}

/* n elements of each column, from element `first` on, to the tile. */
static void tile_take(const struct tiles *all, const struct tile *t,
                      int64_t first, int64_t n)
{
    const char *at = t->in + bytes_to(all, first, all->of.in_apart);

    if (all->direct) {
        all->loops->take[all->kind](t->x, at, all->of.in_apart, n, t->most);
        return;
    }
    if (all->of.count == all->wide)
        dtn_widen_rows(all->how.dtype, t->x, at, all->of.in_apart, n);
    else
        load_rows(all, t, at, n);
    all->loops->take[all->kind](t->x, t->x, all->wide, n, t->most);
}

/* Their sums have the order, and so the bits, of those of rows. */
static void tile_exp(struct tiles *all, const struct tile *t, int64_t n,
                     double total[])
{
    for (int64_t i = 0; i < n; i += DTN_BLOCK) {
        const int64_t left = n - i < DTN_BLOCK ? n - i : DTN_BLOCK;
        char *x = t->x + i * all->bytes;
        char *made = all->logarithm ? all->room : x;

        all->loops->exp[all->kind](made, x, left, t->most);
        dtn_total_columns(DTN_TOTAL_SUM, all->how.work, made, all->wide, left,
                          all->wide, total);
    }
}

static void tile_finish(const struct tiles *all, const struct tile *t,
                        int64_t first, int64_t n)
{
    char *at = t->out + bytes_to(all, first, all->of.out_apart);

    all->loops->finish[all->kind](
        all->logarithm, all->direct ? at : t->x,
        all->direct ? all->of.out_apart : all->wide, t->x, n, t->most,
        t->total);
    if (all->of.count < all->wide)
        store_rows(all, t, at, n);
    else if (!all->direct)
        dtn_narrow_rows(all->how.dtype, at, all->of.out_apart, t->x, n);
}

/* How many elements of each column, from element `first` on, fit the tile. */
static int64_t some(const struct tiles *all, int64_t first)
{
    return all->of.n - first < LONG ? all->of.n - first : LONG;
}

/* The largest elements, the sums, and what becomes of them; columns of several
 * tiles are read again.  False: a NaN made the sum of its column one.  Its sign
 * would not be that of a row, where sums have another order of operands.
 */
static bool tiles_totals(struct tiles *all)
{
    for (int k = 0; k < all->count; k++)
        for (int64_t i = 0; i < all->of.n; i += LONG)
            tile_take(all, &all->tile[k], i, some(all, i));
    for (int k = 0; k < all->count; k++)
        for (int64_t i = 0; i < all->of.n; i += LONG) {
            if (all->of.n > LONG)
                tile_take(all, &all->tile[k], i, some(all, i));
            tile_exp(all, &all->tile[k], some(all, i), all->tile[k].total);
        }
    return all->loops->ends[all->kind](all->logarithm, all->total,
                                         all->count * all->of.count);
}

/* Of several tiles the exponentials are made again; their sums are known. */
static void tile_again(struct tiles *all, const struct tile *t, int64_t first)
{
    double known[WIDE_F32] = { 0 };

    tile_take(all, t, first, some(all, first));
    if (!all->logarithm)
        tile_exp(all, t, some(all, first), known);
}

static void tile_results(struct tiles *all, const struct tile *t)
{
    for (int64_t i = 0; i < all->of.n; i += LONG) {
        if (all->of.n > LONG)
            tile_again(all, t, i);
        tile_finish(all, t, i, some(all, i));
    }
}

/* How many tiles go together. */
static int tiles_count(const struct tiles *all)
{
    const int64_t fit = SHORT_BYTES / (all->of.n * all->bytes);
    const int64_t whole = all->of.count / all->wide;
    const int64_t count = fit < whole ? fit : whole;
    const int64_t most = TOGETHER / all->bytes;

    return (int)(count > most ? most : count > 1 ? count : 1);
}

static void most_begin(const struct tiles *all)
{
    const int64_t n = all->count * all->wide;

    for (int64_t k = 0; k < n; k++)
        if (all->kind == OF_F64)
            ((double *)(void *)all->most)[k] = (double)-INFINITY;
        else
            ((float *)(void *)all->most)[k] = -INFINITY;
}

static void tiles_begin(struct tiles *all, bool logarithm,
                        const struct dtn_columns *columns)
{
    static const int64_t wide[] = { WIDE_F32, WIDE_F64, WIDE_NARROW };
    const enum dtensor_dtype work = dtn_block_type(columns->dtype);
    const int64_t size = (int64_t)dtn_dtype_size(columns->dtype);

    all->loops = widths[dtn_width()];
    all->how = (struct dtn_storage){ columns->dtype, work, 1 };
    all->kind = work == DTENSOR_F64 ? OF_F64
              : columns->dtype == work ? OF_F32 : OF_NARROW;
    all->logarithm = logarithm;
    all->of = *columns;
    all->wide = wide[all->kind];
    all->bytes = all->wide * (int64_t)dtn_dtype_size(work);
    all->count = tiles_count(all);
    if (all->of.count > all->wide)
        all->of.count = all->wide;
    all->direct = all->of.count == all->wide && columns->dtype == work;
    for (int k = 0; k < all->count; k++)
        all->tile[k] = (struct tile){
            .in = columns->in + k * all->wide * size,
            .out = columns->out + k * all->wide * size,
            .x = all->x + k * columns->n * all->bytes,
            .total = all->total + k * all->wide,
            .most = all->most + k * all->bytes };
    memset(all->total, 0, (size_t)(all->count * all->wide) * sizeof(double));
    most_begin(all);
}

int64_t dtn_softmax_columns(bool logarithm, const struct dtn_columns *columns,
                            void *room)
{
    struct tiles *all = room;             /* initialised as far as it is used */

    if (columns->n <= DTN_SOFTMAX_FEW && columns->in != columns->out)
        return dtn_softmax_few(logarithm, columns);
    if (!room)
        return 0;
    tiles_begin(all, logarithm, columns);
    if (!tiles_totals(all))
        return 0;
    for (int k = 0; k < all->count; k++)
        tile_results(all, &all->tile[k]);
    return all->count * all->of.count;
}

int64_t dtn_logsumexp_columns(const struct dtn_columns *columns, double sum[],
                              void *room)
{
    struct tiles *all = room;             /* initialised as far as it is used */
    int64_t count;

    if (!room)
        return 0;
    tiles_begin(all, true, columns);
    if (!tiles_totals(all))
        return 0;
    count = all->count * all->of.count;
    for (int64_t k = 0; k < count; k++)
        sum[k] = all->total[k] +
                 (all->kind == OF_F64
                      ? ((const double *)(const void *)all->most)[k]
                      : (double)((const float *)(const void *)all->most)[k]);
    return count;
}
