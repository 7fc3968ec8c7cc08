/* reduction.c - one element of the result from many
 *
 * All elements that become one are a row.  Its blocks are added to a total: of
 * floats by totals.c, of others here.  Variance and logsumexp go over the row
 * twice: the mean or the largest element of the first time is the `middle` of
 * the second.
 */
#include "math/reduction.h"
#include "math/block.h"
#include "math/bundle.h"
#include "math/finish.h"
#include "math/pointwise.h"
#include "math/softmax_columns.h"
#include "math/strips.h"
#include "math/totals.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { OUT, IN };

struct reduction {
    enum dtn_reduction_kind kind;
    double p;
    double count;                 /* elements of a row                        */
    void *room;                   /* see room.h                               */
    struct dtn_strips rows;
};

bool dtn_reduction_ok(enum dtn_reduction_kind kind, enum dtensor_dtype dtype)
{
    const bool order = kind == DTN_REDUCE_MAX || kind == DTN_REDUCE_MIN;

    switch (dtn_dtype_kind(dtype)) {
    case DTN_DTYPE_FLOAT:
        return true;
    case DTN_DTYPE_COMPLEX:
        return kind <= DTN_REDUCE_ALL && !order;
    case DTN_DTYPE_BOOL:
        return kind >= DTN_REDUCE_MAX && kind <= DTN_REDUCE_ALL;
    default:
        return kind <= DTN_REDUCE_ALL && kind != DTN_REDUCE_MEAN;
    }
}

/* ----------------------------------------------------------- of floats --- */

static double row_total(struct reduction *r, enum dtn_total kind, double total,
                        double middle)
{
    _Alignas(64) char buffer[DTN_BLOCK_BYTES];
    struct dtn_strips *rows = &r->rows;
    const struct dtn_storage *how = &rows->how[IN];

    if (how->step == 1 && how->dtype == how->work && !rows->row.empty) {
        do
            total = dtn_total_row(kind, how->work, rows->row.at[IN],
                                  rows->row.run, total, middle);
        while (dtn_loop_next(&rows->row));
        return total;
    }
    for (bool on = dtn_strips_block(rows); on; on = dtn_strips_next_block(rows))
        total = dtn_total(kind, rows->how[IN].work,
                          dtn_strips_load(rows, IN, buffer), rows->n, total,
                          middle);
    return total;
}

/* The total of |x|^p; DTN_TOTALS: none that needs no other argument. */
static enum dtn_total total_of_power(double p)
{
    return p == 0 ? DTN_TOTAL_COUNT : p == 1 ? DTN_TOTAL_ABS
         : p == 2 ? DTN_TOTAL_SQUARES : DTN_TOTALS;
}

/* Which total it is, of a float, with the middle 0; DTN_TOTALS: none, or more
 * than one.
 */
static enum dtn_total total_of(const struct reduction *r)
{
    switch (r->kind) {
    case DTN_REDUCE_SUM: case DTN_REDUCE_MEAN: return DTN_TOTAL_SUM;
    case DTN_REDUCE_PROD: return DTN_TOTAL_PROD;
    case DTN_REDUCE_MAX: return DTN_TOTAL_MAX;
    case DTN_REDUCE_MIN: return DTN_TOTAL_MIN;
    case DTN_REDUCE_POWSUM: return total_of_power(r->p);
    case DTN_REDUCE_NORM:
        return !isinf(r->p) ? total_of_power(r->p)
             : r->p > 0 ? DTN_TOTAL_MOST : DTN_TOTAL_LEAST;
    default: return DTN_TOTALS;
    }
}

static double row_variance(struct reduction *r)
{
    const double mean = row_total(r, DTN_TOTAL_SUM, 0, 0) / r->count;
    const double squares = row_total(r, DTN_TOTAL_SQUARES, 0, mean);

    return squares / (r->count > r->p ? r->count - r->p : 0.0);
}

static double row_powers(struct reduction *r)
{
    const enum dtn_total kind = total_of_power(r->p);

    return kind == DTN_TOTALS ? row_total(r, DTN_TOTAL_POWERS, 0, r->p)
                              : row_total(r, kind, 0, 0);
}

static double row_norm(struct reduction *r)
{
    if (isinf(r->p))
        return r->p > 0 ? row_total(r, DTN_TOTAL_MOST, 0, 0)
             : row_total(r, DTN_TOTAL_LEAST, (double)INFINITY, 0);

    const double sum = row_powers(r);

    return r->p == 0 || r->p == 1 ? sum
         : r->p == 2 ? sqrt(sum) : pow(sum, 1 / r->p);
}

static double row_logsumexp(struct reduction *r)
{
    const double most = row_total(r, DTN_TOTAL_MAX, (double)-INFINITY, 0);

    if (isinf(most) || isnan(most))
        return most;
    return most + dtn_finish_log(r->rows.how[IN].work,
                                 row_total(r, DTN_TOTAL_EXP, 0, most));
}

static double row_real(struct reduction *r)
{
    switch (r->kind) {
    case DTN_REDUCE_SUM:
        return row_total(r, DTN_TOTAL_SUM, 0, 0);
    case DTN_REDUCE_MEAN:
        return row_total(r, DTN_TOTAL_SUM, 0, 0) / r->count;
    case DTN_REDUCE_PROD:
        return row_total(r, DTN_TOTAL_PROD, 1, 0);
    case DTN_REDUCE_MAX:
        return row_total(r, DTN_TOTAL_MAX, (double)-INFINITY, 0);
    case DTN_REDUCE_MIN:
        return row_total(r, DTN_TOTAL_MIN, (double)INFINITY, 0);
    case DTN_REDUCE_POWSUM:
        return row_powers(r);
    case DTN_REDUCE_NORM:
        return row_norm(r);
    case DTN_REDUCE_LOGSUMEXP:
        return row_logsumexp(r);
    case DTN_REDUCE_STD:
        return sqrt(row_variance(r));
    default:
        return row_variance(r);
    }
}

/* --------------------------------------------------- of other elements --- */

/* Sums and products of integers wrap: they are those of the unsigned type. */
#define TOTAL(name, T, expression)                                            \
    static int64_t name(const void *elements, int64_t n, int64_t total)       \
    {                                                                         \
        const T *array = elements;                                            \
        T t = (T)total;                                                       \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x = array[i];                                             \
                                                                              \
            t = expression;                                                   \
        }                                                                     \
        return (int64_t)t;                                                    \
    }

TOTAL(total_sum, uint64_t, t + x)
TOTAL(total_prod, uint64_t, t * x)
TOTAL(total_max_i64, int64_t, x > t ? x : t)
TOTAL(total_min_i64, int64_t, x < t ? x : t)
TOTAL(total_max_u64, uint64_t, x > t ? x : t)
TOTAL(total_min_u64, uint64_t, x < t ? x : t)

typedef int64_t whole_f(const void *elements, int64_t n, int64_t total);

/* The least element of the type for MAX, the largest for MIN. */
static int64_t neutral(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    char element[16];

    dtn_fill_neutral(dtype, op, element, 1);
    return dtn_load_int(dtype, element, 0);
}

static int64_t row_whole(struct reduction *r)
{
    _Alignas(64) char buffer[DTN_BLOCK_BYTES];
    struct dtn_strips *rows = &r->rows;
    const enum dtensor_dtype dtype = rows->how[IN].dtype;
    const bool is_u64 = dtype == DTENSOR_U64;
    whole_f *const of[] = {
        [DTN_REDUCE_SUM] = total_sum,
        [DTN_REDUCE_PROD] = total_prod,
        [DTN_REDUCE_MAX] = is_u64 ? total_max_u64 : total_max_i64,
        [DTN_REDUCE_MIN] = is_u64 ? total_min_u64 : total_min_i64,
    };
    int64_t total = r->kind == DTN_REDUCE_MAX ? neutral(dtype, DTENSOR_MAX)
                  : r->kind == DTN_REDUCE_MIN ? neutral(dtype, DTENSOR_MIN)
                  : r->kind == DTN_REDUCE_PROD;

    for (bool on = dtn_strips_block(rows); on; on = dtn_strips_next_block(rows))
        total = of[r->kind](dtn_strips_load(rows, IN, buffer), rows->n, total);
    return total;
}

/* How many of n elements differ from 0. */
static int64_t count_true(enum dtensor_dtype work, const void *elements,
                          int64_t n)
{
    int64_t count = 0;

    if (work == DTENSOR_F32 || work == DTENSOR_F64)
        return (int64_t)dtn_total(DTN_TOTAL_COUNT, work, elements, n, 0, 0);
    for (int64_t i = 0; i < n; i++)
        count += work == DTENSOR_C128
                     ? ((const double complex *)elements)[i] != 0
                     : ((const int64_t *)elements)[i] != 0;
    return count;
}

static bool row_truth(struct reduction *r)
{
    _Alignas(64) char buffer[DTN_BLOCK_BYTES];
    struct dtn_strips *rows = &r->rows;
    const bool all = r->kind == DTN_REDUCE_ALL;

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        const int64_t found = count_true(rows->how[IN].work,
                                         dtn_strips_load(rows, IN, buffer),
                                         rows->n);

        if (all ? found < rows->n : found > 0)
            return !all;
    }
    return all;
}

static double complex row_complex(struct reduction *r)
{
    _Alignas(64) char buffer[DTN_BLOCK_BYTES];
    struct dtn_strips *rows = &r->rows;
    double complex total = r->kind == DTN_REDUCE_PROD;

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        const double complex *x = dtn_strips_load(rows, IN, buffer);

        for (int64_t i = 0; i < rows->n; i++)
            total = r->kind == DTN_REDUCE_PROD ? total * x[i] : total + x[i];
    }
    return r->kind == DTN_REDUCE_MEAN ? total / r->count : total;
}

/* ------------------------------------------------------ several at once --- */

/* Rows of runs without gaps are reduced several at a time, run after run.  So
 * are columns: of a matrix that is reduced along its first dimension each row
 * of `rows` is one, and its elements are far apart.  They go from one row of
 * the matrix to the next.
 */
enum several { ONE, ROWS, COLUMNS };

static enum several several_of(const struct reduction *r)
{
    const struct dtn_strips *rows = &r->rows;
    const struct dtn_storage *how = &rows->how[IN];

    if (!dtn_dtype_is_float(how->dtype) || total_of(r) == DTN_TOTALS ||
        dtn_dtype_kind(how->dtype) != DTN_DTYPE_FLOAT || rows->outer.empty ||
        rows->row.empty)
        return ONE;
    if (how->step == 1)
        return how->dtype == how->work ? ROWS : ONE;
    return rows->outer.step[IN] == 1 && rows->outer.run >= 8 ? COLUMNS : ONE;
}

/* A block of the columns; of narrow floats some rows at a time are widened. */
static void columns_block(struct reduction *r, int64_t width, double total[])
{
    enum { SOME = 64 };
    _Alignas(64) float room[SOME * DTN_TOTAL_COLUMNS];
    const struct dtn_strips *rows = &r->rows;
    const struct dtn_storage along = { rows->how[IN].dtype, rows->how[IN].work,
                                       1 };
    const int64_t apart = rows->how[IN].step;
    const int64_t size = (int64_t)dtn_dtype_size(along.dtype);
    const char *at = dtn_strips_at(rows, IN);

    if (along.dtype == along.work) {
        dtn_total_columns(total_of(r), along.work, at, apart, rows->n, width,
                          total);
        return;
    }
    for (int64_t first = 0; first < rows->n; first += SOME) {
        const int64_t n = rows->n - first < SOME ? rows->n - first : SOME;

        for (int64_t i = 0; i < n; i++)
            dtn_block_load(&along, at + (first + i) * apart * size, width,
                           room + i * width);
        dtn_total_columns(total_of(r), along.work, room, width, n, width,
                          total);
    }
}

static int64_t several_width(const struct reduction *r)
{
    const int64_t beside = dtn_strips_beside(&r->rows);
    const struct dtn_storage *in = &r->rows.how[IN];
    const int64_t most = in->dtype == in->work ? DTN_TOTAL_WIDE
                                               : DTN_TOTAL_COLUMNS;

    return beside < most ? beside : most;
}

static void several_end(const struct reduction *r, int64_t width,
                        double total[])
{
    for (int64_t k = 0; k < width && r->kind == DTN_REDUCE_MEAN; k++)
        total[k] /= r->count;
    for (int64_t k = 0; k < width && r->kind == DTN_REDUCE_NORM && r->p == 2;
         k++)
        total[k] = sqrt(total[k]);
}

static void several_cast(const struct reduction *r, int64_t width,
                         double total[])
{
    const struct dtn_array from = dtn_array_packed(total, DTENSOR_F64, 1,
                                                   &width);
    const struct dtn_array to = {
        .data = r->rows.row.at[OUT], .dtype = r->rows.how[OUT].dtype,
        .ndim = 1, .shape = { width }, .stride = { r->rows.outer.step[OUT] },
    };

    dtn_cast(&to, &from);
}

/* Often they are few, and lie beside each other. */
static void several_store(const struct reduction *r, int64_t width,
                          double total[])
{
    const bool near = r->rows.outer.step[OUT] == 1;
    void *out = r->rows.row.at[OUT];

    if (near && r->rows.how[OUT].dtype == DTENSOR_F32)
        dtn_finish_f32(out, total, width);
    else if (near && r->rows.how[OUT].dtype == DTENSOR_F64)
        memcpy(out, total, (size_t)width * sizeof *total);
    else
        several_cast(r, width, total);
}

static void several_reduce(struct reduction *r, enum several several)
{
    const int64_t width = several_width(r);
    struct dtn_strips *rows = &r->rows;
    double total[DTN_TOTAL_WIDE];

    dtn_total_begin(total_of(r), width, total);
    for (bool on = several == ROWS; on; on = dtn_loop_next(&rows->row))
        dtn_total_rows(total_of(r), rows->how[IN].work, rows->row.at[IN],
                       rows->outer.step[IN], width, rows->row.run, total);
    for (bool on = several == COLUMNS && dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows))
        columns_block(r, width, total);
    several_end(r, width, total);
    several_store(r, width, total);
}

/* Columns beside each other, whose exponentials are added at once; how many.
 * 0: row by row.
 */
static int64_t columns_logsumexp(const struct reduction *r)
{
    enum { LEAST = 8 };
    const struct dtn_strips *rows = &r->rows;
    const struct dtn_storage *in = &rows->how[IN];
    const struct dtn_columns columns = {
        .dtype = in->dtype, .in = rows->row.at[IN], .in_apart = in->step,
        .n = rows->row.run, .count = dtn_strips_beside(rows) };
    double sum[DTN_SOFTMAX_COLUMNS];
    int64_t count;

    if (r->kind != DTN_REDUCE_LOGSUMEXP || rows->row.ndim > 0 ||
        rows->row.empty || in->step == 1 || rows->outer.step[IN] != 1 ||
        columns.count < LEAST || !dtn_softmax_columns_ok(in->dtype))
        return 0;
    count = dtn_logsumexp_columns(&columns, sum, r->room);
    if (count)
        several_store(r, count, sum);
    return count;
}

/* ------------------------------------------------------------ all rows --- */

static void row_reduce(struct reduction *r)
{
    const struct dtn_storage *in = &r->rows.how[IN];
    void *out = r->rows.row.at[OUT];

    if (r->kind == DTN_REDUCE_ANY || r->kind == DTN_REDUCE_ALL)
        *(uint8_t *)out = row_truth(r);
    else if (!dtn_dtype_is_float(in->dtype))
        dtn_store_int(r->rows.how[OUT].dtype, out, 0, row_whole(r));
    else if (in->work != DTENSOR_C128)
        dtn_strips_set(&r->rows, OUT, row_real(r));
    else if (in->dtype == DTENSOR_C128)
        *(double complex *)out = row_complex(r);
    else
        *(float complex *)out = (float complex)row_complex(r);
}

/* Rows that lie apart, transposed to a buffer. */
static void bundle_reduce(const struct reduction *r, int64_t count)
{
    const struct dtn_array in = dtn_bundle_view(&r->rows, IN, count);
    const struct dtn_array out = dtn_bundle_view(&r->rows, OUT, count);
    const struct dtn_array copy = dtn_bundle_take(&in, r->room);

    dtn_reduce_dims(r->kind, &out, &copy, r->p, NULL);
}

static void rows_reduce(struct reduction *r)
{
    const enum several several = several_of(r);
    int64_t count;

    for (bool more = dtn_strips_first(&r->rows); more;
         more = dtn_strips_skip(&r->rows, count ? count : 1)) {
        count = columns_logsumexp(r);
        if (count)
            continue;
        count = several ? several_width(r)
              : r->room ? dtn_bundle_strips(&r->rows, IN) : 0;
        if (several)
            several_reduce(r, several);
        else if (count)
            bundle_reduce(r, count);
        else
            row_reduce(r);
    }
}

void dtn_reduce_dims(enum dtn_reduction_kind kind, const struct dtn_array *out,
                     const struct dtn_array *in, double p, void *room)
{
    const struct dtn_array arrays[] = { dtn_array_expanded(out, in), *in };
    const unsigned dims = dtn_strips_reduced(out);
    struct reduction r = { .kind = kind, .p = p, .count = 1, .room = room };

    for (int d = 0; d < in->ndim; d++)
        r.count *= dims >> d & 1 ? (double)in->shape[d] : 1;
    dtn_strips_begin(&r.rows, arrays, 2, dims);
    if ((in->dtype == DTENSOR_BF16 || in->dtype == DTENSOR_F16) &&
        total_of(&r) != DTN_TOTALS && dtn_total_narrow(total_of(&r)))
        r.rows.how[IN].work = in->dtype;         /* widened by the loop       */

    rows_reduce(&r);
}
