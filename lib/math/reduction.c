/* reduction.c - one element of the result from many
 *
 * For out[i] = the sum of in[i][...], a loop over i goes around a loop over the
 * rest, which hands blocks of elements to a *scan*.  A scan adds n elements to
 * a total.  Variance and logsumexp scan twice: the mean or the largest element
 * of the first scan is the `middle` of the second.
 */
#include "math/reduction.h"
#include "math/block.h"
#include "math/loop.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* What has been scanned, in the type that the elements are computed with. */
struct total {
    double real;                  /* of floats                                */
    int64_t whole;                /* of integers; u64 by its bits             */
    double complex number;        /* of complex numbers                       */
};

typedef void scan_f(struct total *total, const void *elements, int64_t n,
                    double middle);

#define SCAN(name, kind, T, field, expression)                                \
    static void name##_##kind(struct total *total, const void *elements,      \
                              int64_t n, double middle)                       \
    {                                                                         \
        const T *array = elements;                                            \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x = array[i];                                             \
                                                                              \
            total->field = expression;                                        \
        }                                                                     \
    }

#define SCANS_FLOAT(kind, T)                                                  \
    SCAN(sum, kind, T, real, total->real + (double)x)                         \
    SCAN(prod, kind, T, real, total->real * (double)x)                        \
    SCAN(max, kind, T, real,                                                  \
         (double)x > total->real || x != x ? (double)x : total->real)         \
    SCAN(min, kind, T, real,                                                  \
         (double)x < total->real || x != x ? (double)x : total->real)         \
    SCAN(any, kind, T, whole, total->whole | (x != 0))                        \
    SCAN(all, kind, T, whole, total->whole & (x != 0))                        \
    SCAN(count, kind, T, real, total->real + (x != 0))                        \
    SCAN(abs, kind, T, real, total->real + fabs((double)x))                   \
    SCAN(square, kind, T, real,                                               \
         total->real + ((double)x - middle) * ((double)x - middle))           \
    SCAN(power, kind, T, real, total->real + pow(fabs((double)x), middle))    \
    SCAN(most, kind, T, real,                                                 \
         fabs((double)x) > total->real || x != x ? fabs((double)x)            \
                                                 : total->real)               \
    SCAN(least, kind, T, real,                                                \
         fabs((double)x) < total->real || x != x ? fabs((double)x)            \
                                                 : total->real)               \
    SCAN(exp, kind, T, real, total->real + exp((double)x - middle))

/* Sums and products wrap, so they are those of the unsigned type. */
#define SCANS_INTEGER(kind, T)                                                \
    SCAN(max, kind, T, whole, (int64_t)(x > (T)total->whole ? x               \
                                        : (T)total->whole))                   \
    SCAN(min, kind, T, whole, (int64_t)(x < (T)total->whole ? x               \
                                        : (T)total->whole))

SCANS_FLOAT(f32, float)
SCANS_FLOAT(f64, double)
SCANS_INTEGER(i64, int64_t)
SCANS_INTEGER(u64, uint64_t)
SCAN(sum, int, uint64_t, whole, (int64_t)((uint64_t)total->whole + x))
SCAN(prod, int, uint64_t, whole, (int64_t)((uint64_t)total->whole * x))
SCAN(any, int, uint64_t, whole, total->whole | (x != 0))
SCAN(all, int, uint64_t, whole, total->whole & (x != 0))
SCAN(sum, c128, double complex, number, total->number + x)
SCAN(prod, c128, double complex, number, total->number * x)
SCAN(any, c128, double complex, whole, total->whole | (x != 0))
SCAN(all, c128, double complex, whole, total->whole & (x != 0))

static scan_f *const plain_scans[DTENSOR_NDTYPES][DTN_REDUCTIONS] = {
    [DTENSOR_F32] = { sum_f32, sum_f32, prod_f32, max_f32, min_f32, any_f32,
                      all_f32, power_f32, power_f32, exp_f32, square_f32,
                      square_f32 },
    [DTENSOR_F64] = { sum_f64, sum_f64, prod_f64, max_f64, min_f64, any_f64,
                      all_f64, power_f64, power_f64, exp_f64, square_f64,
                      square_f64 },
    [DTENSOR_I64] = { sum_int, NULL, prod_int, max_i64, min_i64, any_int,
                      all_int },
    [DTENSOR_U64] = { sum_int, NULL, prod_int, max_u64, min_u64, any_int,
                      all_int },
    [DTENSOR_C128] = { sum_c128, sum_c128, prod_c128, NULL, NULL, any_c128,
                       all_c128 },
};

bool dtn_reduction_ok(enum dtn_reduction_kind kind, enum dtensor_dtype dtype)
{
    if (dtype == DTENSOR_BOOL && kind <= DTN_REDUCE_PROD)
        return false;
    return plain_scans[dtn_block_type(dtype)][kind] != NULL;
}

/* ------------------------------------------------------------- one row --- */

/* A reduction of rows: all elements that become one. */
struct row {
    enum dtn_reduction_kind kind;
    enum dtensor_dtype dtype;     /* of the elements                          */
    enum dtensor_dtype work;      /* that they are computed with              */
    double p;
    int64_t count;                /* elements of a row                        */
    struct dtn_array shape;       /* of a row                                 */
};

/* The powers that have their own loops. */
static scan_f *row_power(const struct row *row)
{
    const bool norm = row->kind == DTN_REDUCE_NORM;
    const bool narrow = row->work == DTENSOR_F32;

    if (row->p == 0)
        return narrow ? count_f32 : count_f64;
    if (row->p == 1)
        return narrow ? abs_f32 : abs_f64;
    if (row->p == 2)
        return narrow ? square_f32 : square_f64;
    if (norm && row->p == (double)INFINITY)
        return narrow ? most_f32 : most_f64;
    if (norm && row->p == (double)-INFINITY)
        return narrow ? least_f32 : least_f64;
    return narrow ? power_f32 : power_f64;
}

static void row_scan(const struct row *row, scan_f *scan, char *at,
                     struct total *total, double middle)
{
    _Alignas(64) char buffer[DTN_BLOCK_BYTES];
    struct dtn_array array = row->shape;
    struct dtn_loop loop;

    array.data = at;
    dtn_loop_begin(&loop, &array, 1);
    const struct dtn_storage how = { row->dtype, row->work, loop.step[0] };

    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i += DTN_BLOCK) {
            const int64_t n = loop.run - i < DTN_BLOCK ? loop.run - i
                                                       : DTN_BLOCK;
            const char *from = loop.at[0] +
                               i * how.step * (int64_t)loop.size[0];

            scan(total, dtn_block_load(&how, from, n, buffer), n, middle);
        }
}

static double row_total(const struct row *row, scan_f *scan, char *at,
                        double first, double middle)
{
    struct total total = { .real = first };

    row_scan(row, scan, at, &total, middle);
    return total.real;
}

/* log of the sum of exp(x), of which the largest is taken out. */
static double row_logsumexp(const struct row *row, char *at)
{
    const bool narrow = row->work == DTENSOR_F32;
    const double most = row_total(row, narrow ? max_f32 : max_f64, at,
                                  (double)-INFINITY, 0);

    if (isinf(most) || isnan(most))
        return most;
    return most + log(row_total(row, narrow ? exp_f32 : exp_f64, at, 0, most));
}

static double row_variance(const struct row *row, char *at)
{
    const bool narrow = row->work == DTENSOR_F32;
    const double n = (double)row->count;
    const double mean = row_total(row, narrow ? sum_f32 : sum_f64, at, 0, 0) /
                        n;
    const double squares = row_total(row, narrow ? square_f32 : square_f64, at,
                                     0, mean);

    return n - row->p > 0 ? squares / (n - row->p)
         : squares / 0.0;
}

static double row_norm(const struct row *row, char *at)
{
    const bool least = row->p == (double)-INFINITY;
    const double total = row_total(row, row_power(row), at,
                                   least ? (double)INFINITY : 0,
                                   row->p == 2 ? 0 : row->p);

    if (row->kind == DTN_REDUCE_POWSUM || isinf(row->p) || row->p == 0 ||
        row->p == 1)
        return total;
    return row->p == 2 ? sqrt(total) : pow(total, 1 / row->p);
}

static double row_real(const struct row *row, char *at)
{
    static const double first[] = { [DTN_REDUCE_PROD] = 1,
                                    [DTN_REDUCE_MAX] = (double)-INFINITY,
                                    [DTN_REDUCE_MIN] = (double)INFINITY };

    switch (row->kind) {
    case DTN_REDUCE_POWSUM: case DTN_REDUCE_NORM:
        return row_norm(row, at);
    case DTN_REDUCE_LOGSUMEXP:
        return row_logsumexp(row, at);
    case DTN_REDUCE_VAR:
        return row_variance(row, at);
    case DTN_REDUCE_STD:
        return sqrt(row_variance(row, at));
    default:
        return row_total(row, plain_scans[row->work][row->kind], at,
                         first[row->kind], 0) /
               (row->kind == DTN_REDUCE_MEAN ? (double)row->count : 1);
    }
}

static void row_complex(const struct row *row, char *at, double complex *out)
{
    struct total total = { .number = row->kind == DTN_REDUCE_PROD };

    row_scan(row, plain_scans[row->work][row->kind], at, &total, 0);
    *out = total.number;
    if (row->kind == DTN_REDUCE_MEAN)
        *out /= (double)row->count;
}

/* ANY and ALL of all types, and what is reduced of integers. */
static int64_t row_whole(const struct row *row, char *at)
{
    const bool order = row->kind == DTN_REDUCE_MAX ||
                       row->kind == DTN_REDUCE_MIN;
    struct total total = { .whole = row->kind == DTN_REDUCE_PROD ||
                                    row->kind == DTN_REDUCE_ALL };

    if (order)
        dtn_fill_neutral(row->work, row->kind == DTN_REDUCE_MAX ? DTENSOR_MAX
                                                                : DTENSOR_MIN,
                         &total.whole, 1);
    if (order && row->count == 0)
        dtn_fill_neutral(row->dtype, row->kind == DTN_REDUCE_MAX
                                         ? DTENSOR_MAX : DTENSOR_MIN,
                         &total.whole, 1);
    row_scan(row, plain_scans[row->work][row->kind], at, &total, 0);
    return total.whole;
}

static void row_reduce(const struct row *row, enum dtensor_dtype dtype,
                       void *out, char *at)
{
    double complex number;

    if (dtype == DTENSOR_BOOL || !dtn_dtype_is_float(dtype)) {
        dtn_store_int(dtype, out, 0, row_whole(row, at));
    } else if (row->work != DTENSOR_C128) {
        dtn_store(dtype, out, 0, row_real(row, at));
    } else {
        row_complex(row, at, &number);
        if (dtype == DTENSOR_C128)
            *(double complex *)out = number;
        else
            *(float complex *)out = (float complex)number;
    }
}

/* ------------------------------------------------------------ all rows --- */

/* `in` with size 1 along the dimensions that are reduced, or along the others.
 */
static struct dtn_array one_along(const struct dtn_array *in,
                                  const struct dtn_array *out, bool reduced)
{
    struct dtn_array view = *in;

    for (int d = 0; d < in->ndim; d++)
        if ((out->shape[d] == 1) == reduced)
            view.shape[d] = 1;
    return view;
}

void dtn_reduce_dims(enum dtn_reduction_kind kind, const struct dtn_array *out,
                     const struct dtn_array *in, double p)
{
    const struct dtn_array arrays[2] = { *out, one_along(in, out, true) };
    struct row row = { .kind = kind, .dtype = in->dtype, .p = p,
                       .work = dtn_block_type(in->dtype),
                       .shape = one_along(in, out, false) };
    struct dtn_loop loop;

    row.count = dtn_array_count(&row.shape);
    dtn_loop_begin(&loop, arrays, 2);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++)
            row_reduce(&row, out->dtype,
                       loop.at[0] + i * loop.step[0] * (int64_t)loop.size[0],
                       loop.at[1] + i * loop.step[1] * (int64_t)loop.size[1]);
}
