/* norm_backward.c - the gradients of layer norm and RMS norm
 *
 * A row is read at most four times: for its mean, for its squares, for two
 * sums, and for the gradients.  Meanwhile it stays in the cache.
 */
#include "math/norm_backward.h"
#include "math/backward.h"
#include "math/pointwise.h"
#include "math/strips.h"
#include "math/totals.h"
#include "dtensor.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { OUT, GRAD, IN, WEIGHT, MEAN, RSTD };

/* A block of a row, in the type of computation. */
struct norm_block {
    const void *g, *x, *w;        /* w NULL: 1                                */
    int64_t n;                    /* elements of each                         */
};

/* What holds for a row. */
struct row {
    double mean, rstd;
    double d, dx;                 /* the sums of d and of d x'                */
    double *weight_sum, *bias_sum; /* of its first element; or NULL           */
};

#define NORM_BACKWARD(kind, T)                                                \
    static void terms_##kind(const struct norm_block *b,                      \
                             const struct row *row, double d[], double dx[])  \
    {                                                                         \
        const T *g = b->g, *x = b->x, *w = b->w;                              \
                                                                              \
        for (int64_t i = 0; i < b->n; i++) {                                  \
            d[i] = (double)g[i] * (w ? (double)w[i] : 1);                     \
            dx[i] = d[i] * dtn_norm_unit((double)x[i], row->mean, row->rstd); \
        }                                                                     \
    }                                                                         \
    static void made_##kind(const struct norm_block *b, const struct row *row, \
                            const double part[2], int64_t at, void *made)     \
    {                                                                         \
        const T *g = b->g, *x = b->x, *w = b->w;                              \
        T *out = made;                                                        \
                                                                              \
        for (int64_t i = 0; i < b->n; i++) {                                  \
            const double gi = (double)g[i];                                   \
            const double unit = dtn_norm_unit((double)x[i], row->mean,        \
                                              row->rstd);                     \
            const double d = gi * (w ? (double)w[i] : 1);                     \
                                                                              \
            if (row->weight_sum)                                              \
                row->weight_sum[at + i] += gi * unit;                         \
            if (row->bias_sum)                                                \
                row->bias_sum[at + i] += gi;                                  \
            out[i] = (T)dtn_norm_back(d, unit, row->rstd, part[0], part[1]);  \
        }                                                                     \
    }

NORM_BACKWARD(f32, float)
NORM_BACKWARD(f64, double)

static struct norm_block block_of(const struct dtn_strips *rows, bool weighs,
                             char room[3][DTN_BLOCK_FLOATS])
{
    return (struct norm_block){
        dtn_strips_load(rows, GRAD, room[0]),
        dtn_strips_load(rows, IN, room[1]),
        weighs ? dtn_strips_load(rows, WEIGHT, room[2]) : NULL, rows->n };
}

static double total(struct dtn_strips *rows, enum dtn_total kind,
                    double middle)
{
    _Alignas(64) char room[DTN_BLOCK_FLOATS];
    double sum = 0;

    for (bool on = dtn_strips_block(rows); on; on = dtn_strips_next_block(rows))
        sum = dtn_total(kind, rows->how[IN].work,
                        dtn_strips_load(rows, IN, room), rows->n, sum, middle);
    return sum;
}

/* Mean and rstd: those that are known, or again. */
static void row_begin(struct dtn_strips *rows,
                      const struct dtn_norm_backward *norm, double count,
                      struct row *row)
{
    row->mean = !norm->centred ? 0
              : norm->mean ? dtn_strips_value(rows, MEAN)
              : total(rows, DTN_TOTAL_SUM, 0) / count;
    row->rstd = norm->rstd ? dtn_strips_value(rows, RSTD)
              : 1 / sqrt(total(rows, DTN_TOTAL_SQUARES, row->mean) / count +
                         norm->epsilon);
    row->d = row->dx = 0;
}

/* Add up d and d x'. */
static void row_total(struct dtn_strips *rows,
                      const struct dtn_norm_backward *norm, struct row *row)
{
    _Alignas(64) char room[3][DTN_BLOCK_FLOATS];
    const bool wide = rows->how[IN].work == DTENSOR_F64;
    double d[DTN_BLOCK], dx[DTN_BLOCK];

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        const struct norm_block b = block_of(rows, norm->weight, room);

        (wide ? terms_f64 : terms_f32)(&b, row, d, dx);
        row->d = dtn_total(DTN_TOTAL_SUM, DTENSOR_F64, d, b.n, row->d, 0);
        row->dx = dtn_total(DTN_TOTAL_SUM, DTENSOR_F64, dx, b.n, row->dx, 0);
    }
}

/* The gradients, from the totals of a whole row of `count` elements. */
static void row_made(struct dtn_strips *rows,
                     const struct dtn_norm_backward *norm, double count,
                     const struct row *row)
{
    _Alignas(64) char room[3][DTN_BLOCK_FLOATS], buffer[DTN_BLOCK_FLOATS];
    const bool wide = rows->how[IN].work == DTENSOR_F64;
    double part[2];
    int64_t at = 0;

    part[0] = norm->centred ? row->d / count : 0;
    part[1] = row->dx / count;
    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        const struct norm_block b = block_of(rows, norm->weight, room);
        void *made = dtn_strips_place(rows, OUT, buffer);

        (wide ? made_f64 : made_f32)(&b, row, part, at, made);
        dtn_strips_store(rows, OUT, made, buffer);
        at += b.n;
    }
}

static struct dtn_array or_in(const struct dtn_array *array,
                              const struct dtn_array *in)
{
    return array ? dtn_array_expanded(array, in) : *in;
}

/* Add the sum of the last rows to the sum of those before. */
static void sums_add(double *sums, int64_t count)
{
    for (int64_t i = 0; i < 2 * count; i++) {
        sums[i] += sums[2 * count + i];
        sums[2 * count + i] = 0;
    }
}

static void sums_end(const struct dtn_array *grad, double *sums)
{
    struct dtn_array from;

    if (!grad)
        return;
    from = dtn_array_packed(sums, DTENSOR_F64, grad->ndim, grad->shape);
    dtn_cast(grad, &from);
}

/* The dimensions of a row; *countp: its elements here. */
static unsigned row_dims(const struct dtn_norm_backward *norm, int64_t *countp)
{
    const struct dtn_array *in = norm->in;
    unsigned dims = 0;

    *countp = 1;
    for (int d = in->ndim - norm->dims; d < in->ndim; d++) {
        dims |= 1u << d;
        *countp *= in->shape[d];
    }
    return dims;
}

/* What is known of this row: its four numbers, `n` apart. */
static void row_known(const struct dtn_strips *rows, int64_t n, struct row *row)
{
    const double *number = (const double *)rows->row.at[MEAN];

    row->mean = number[0];
    row->rstd = number[n];
    row->d = number[2 * n];
    row->dx = number[3 * n];
}

/* All rows.  `numbers` NULL: the rows are whole, and their totals are not
 * known.
 */
static void rows_run(const struct dtn_norm_backward *norm,
                     const struct dtn_array *numbers, double whole)
{
    const struct dtn_array *in = norm->in;
    const struct dtn_array arrays[] = {
        *norm->in_grad, *norm->grad, *in, or_in(norm->weight, in),
        or_in(numbers ? numbers : norm->mean, in), or_in(norm->rstd, in) };
    struct dtn_strips rows;
    struct row row = { 0 };
    int64_t count, done = 0;
    const unsigned dims = row_dims(norm, &count);

    if (count > 0)
        memset(norm->sums, 0, 4 * (size_t)count * sizeof norm->sums[0]);
    row.weight_sum = norm->weight_grad ? norm->sums + 2 * count : NULL;
    row.bias_sum = norm->bias_grad ? norm->sums + 3 * count : NULL;
    dtn_strips_begin(&rows, arrays, 6, dims);
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows)) {
        if (numbers) {
            row_known(&rows, dtn_array_count(numbers), &row);
        } else {
            row_begin(&rows, norm, (double)count, &row);
            row_total(&rows, norm, &row);
        }
        row_made(&rows, norm, numbers ? whole : (double)count, &row);
        if (++done % DTN_NORM_ROWS == 0)
            sums_add(norm->sums, count);
    }
    sums_add(norm->sums, count);
    sums_end(norm->weight_grad, norm->sums);
    sums_end(norm->bias_grad, norm->sums + count);
}

void dtn_norm_backward(const struct dtn_norm_backward *norm)
{
    rows_run(norm, NULL, 0);
}

void dtn_norm_backward_finish(const struct dtn_norm_backward *norm,
                              const struct dtn_array *numbers, double count)
{
    rows_run(norm, numbers, count);
}

void dtn_norm_backward_sums(const struct dtn_norm_backward *norm,
                            const struct dtn_array *numbers)
{
    const struct dtn_array *in = norm->in;
    const struct dtn_array arrays[] = {
        *in, *norm->grad, *in, or_in(norm->weight, in),
        dtn_array_expanded(numbers, in) };
    const int64_t n = dtn_array_count(numbers);
    struct dtn_strips rows;
    struct row row = { 0 };
    int64_t count;

    if (n > 0)                    /* no row is walked that is empty here      */
        memset((double *)numbers->data + 2 * n, 0,
               2 * (size_t)n * sizeof(double));
    dtn_strips_begin(&rows, arrays, 5, row_dims(norm, &count));
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows)) {
        double *number = (double *)rows.row.at[MEAN];

        row_known(&rows, n, &row);
        row_total(&rows, norm, &row);
        number[2 * n] = row.d;
        number[3 * n] = row.dx;
    }
}
