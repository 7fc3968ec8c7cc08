/* softmax.c - softmax and log-softmax, whole and in passes
 *
 * Of 1, 2, 3 the largest is 3, and exp(x - 3) is 0.135, 0.368, 1: their sum is
 * 1.503.  The differences are computed in the type of computation, the sum in
 * f64.  No exp() overflows, because no difference is above 0.
 */
#include "math/softmax.h"
#include "math/backward.h"
#include "math/block.h"
#include "math/bundle.h"
#include "math/finish.h"
#include "math/pointwise.h"
#include "math/softmax_columns.h"
#include "math/strips.h"
#include "math/totals.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { OUT, IN, MOST, SUM };

/* The total of the row of array `i`. */
static double row_total(struct dtn_strips *rows, int i, enum dtn_total kind,
                        double total, double middle)
{
    _Alignas(64) char buffer[DTN_BLOCK_FLOATS];

    for (bool on = dtn_strips_block(rows); on; on = dtn_strips_next_block(rows))
        total = dtn_total(kind, rows->how[i].work,
                          dtn_strips_load(rows, i, buffer), rows->n, total,
                          middle);
    return total;
}

/* Of an infinite largest element, exp(x - most) of the others is 0. */
static double row_sum(struct dtn_strips *rows, int i, double most)
{
    return most == (double)-INFINITY
               ? 0 : row_total(rows, i, DTN_TOTAL_EXP, 0, most);
}

static void row_finish(struct dtn_strips *rows, bool logarithm, double most,
                       double sum)
{
    _Alignas(64) char from[DTN_BLOCK_FLOATS], made[DTN_BLOCK_FLOATS];
    const enum dtensor_dtype work = rows->how[IN].work;
    const double by[2] = { most, logarithm ? dtn_finish_log(work, sum)
                                           : 1 / sum };

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        void *to = dtn_strips_place(rows, OUT, made);
        const void *in = dtn_strips_load(rows, IN, from);

        dtn_finish_softmax(logarithm, work, to, in, rows->n, by);
        dtn_strips_store(rows, OUT, to, made);
    }
}

/* The exponentials are made once: they are kept where the result will be. */
static void row_direct(struct dtn_strips *rows)
{
    const enum dtensor_dtype work = rows->how[IN].work;
    const double most = row_total(rows, IN, DTN_TOTAL_MAX, (double)-INFINITY,
                                  0);
    double by[2] = { 0, 0 };

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        void *kept = dtn_strips_at(rows, OUT);
        const void *in = dtn_strips_load(rows, IN, kept);

        by[1] = dtn_total_exp(work, kept, in, rows->n, by[1], most);
    }
    by[1] = 1 / by[1];
    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        void *kept = dtn_strips_at(rows, OUT);
        const void *const from[] = { kept, NULL, NULL };

        dtn_finish_norm(work, kept, from, rows->n, by);
    }
}

/* A row that is not too long is widened and gathered once: it is kept beside
 * the result.
 */
static void row_kept(struct dtn_strips *rows, bool logarithm)
{
    _Alignas(64) float row[DTN_STRIPS_KEPT];
    const int64_t n = rows->row.run;
    double most, sum = 0;

    dtn_strips_keep(rows, IN, row);
    most = dtn_total_row(DTN_TOTAL_MAX, DTENSOR_F32, row, n,
                         (double)-INFINITY, 0);
    for (int64_t i = 0; i < n; i += DTN_BLOCK) {
        const int64_t left = n - i < DTN_BLOCK ? n - i : DTN_BLOCK;

        sum = logarithm
            ? dtn_total(DTN_TOTAL_EXP, DTENSOR_F32, row + i, left, sum, most)
            : dtn_total_exp(DTENSOR_F32, row + i, row + i, left, sum, most);
    }
    const double by[2] = {
        logarithm ? most : 0,
        logarithm ? dtn_finish_log(DTENSOR_F32, sum) : 1 / sum };

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        float *kept = row + rows->first;
        const void *const from[] = { kept, NULL, NULL };

        if (logarithm)
            dtn_finish_softmax(true, DTENSOR_F32, kept, kept, rows->n, by);
        else
            dtn_finish_norm(DTENSOR_F32, kept, from, rows->n, by);
        dtn_strips_store(rows, OUT, kept, kept);
    }
}

static void row_softmax(struct dtn_strips *rows, bool logarithm)
{
    const bool direct = dtn_strips_direct(rows, OUT);
    double most;

    if (direct && !logarithm) {
        row_direct(rows);
        return;
    }
    if (!direct && dtn_strips_short(rows, IN)) {
        row_kept(rows, logarithm);
        return;
    }
    most = row_total(rows, IN, DTN_TOTAL_MAX, (double)-INFINITY, 0);
    row_finish(rows, logarithm, most, row_sum(rows, IN, most));
}

/* Rows that lie apart, transposed to a buffer and back. */
static void bundle_softmax(const struct dtn_strips *rows, bool logarithm,
                           int64_t count, void *room)
{
    const struct dtn_array in = dtn_bundle_view(rows, IN, count);
    const struct dtn_array out = dtn_bundle_view(rows, OUT, count);
    const struct dtn_array copy = dtn_bundle_take(&in, room);

    dtn_softmax(logarithm, &copy, &copy, 1, NULL);
    dtn_array_copy(&out, &copy);
}

/* Columns beside each other, gone down at once; how many.  0: row by row. */
static int64_t columns_softmax(const struct dtn_strips *rows, bool logarithm,
                               void *room)
{
    enum { LEAST = 8 };
    const struct dtn_storage *in = &rows->how[IN], *out = &rows->how[OUT];
    const struct dtn_columns columns = {
        .dtype = in->dtype, .in = rows->row.at[IN], .out = rows->row.at[OUT],
        .in_apart = in->step, .out_apart = out->step, .n = rows->row.run,
        .count = dtn_strips_beside(rows) };

    return rows->row.ndim == 0 && !rows->row.empty && in->step != 1 &&
           in->dtype == out->dtype && dtn_softmax_columns_ok(in->dtype) &&
           rows->outer.step[IN] == 1 && rows->outer.step[OUT] == 1 &&
           columns.count >= LEAST
               ? dtn_softmax_columns(logarithm, &columns, room) : 0;
}

/* As many rows as are best done at once; how many. */
static int64_t some_softmax(struct dtn_strips *rows, bool logarithm, void *room)
{
    int64_t count = columns_softmax(rows, logarithm, room);

    if (count)
        return count;
    count = room ? dtn_bundle_strips(rows, IN) : 0;
    if (count) {
        bundle_softmax(rows, logarithm, count, room);
        return count;
    }
    row_softmax(rows, logarithm);
    return 1;
}

/* Of one element x its logarithm is x - x: 0, or NaN if x is not finite. */
static void one_softmax(bool logarithm, const struct dtn_array *out,
                        const struct dtn_array *in)
{
    const struct dtn_array *const twice[] = { in, in, NULL };
    const struct dtn_array *const made[] = { out, NULL, NULL };

    dtn_pointwise(DTN_SUB, out, twice, NULL);
    if (!logarithm)
        dtn_pointwise(DTN_SHIFT, out, made, (const double[]){ 1, 0 });
}

void dtn_softmax(bool logarithm, const struct dtn_array *out,
                 const struct dtn_array *in, int dim, void *room)
{
    const struct dtn_array arrays[] = { *out, *in };
    struct dtn_strips rows;

    if (out->shape[dim] == 1) {
        one_softmax(logarithm, out, in);
        return;
    }
    dtn_strips_begin(&rows, arrays, 2, 1u << dim);
    for (bool more = dtn_strips_first(&rows); more;)
        more = dtn_strips_skip(&rows, some_softmax(&rows, logarithm, room));
}

void dtn_softmax_sum(const struct dtn_array *sum, const struct dtn_array *in,
                     const struct dtn_array *most)
{
    const struct dtn_array arrays[] = { dtn_array_expanded(sum, in), *in,
                                        dtn_array_expanded(most, in) };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 3, dtn_strips_reduced(sum));
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        dtn_strips_set(&rows, OUT, row_sum(&rows, IN,
                                         dtn_strips_value(&rows, MOST)));
}

void dtn_softmax_finish(bool logarithm, const struct dtn_array *out,
                        const struct dtn_array *in,
                        const struct dtn_array *most,
                        const struct dtn_array *sum)
{
    const struct dtn_array arrays[] = { *out, *in, dtn_array_expanded(most, in),
                                        dtn_array_expanded(sum, in) };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 4, dtn_strips_reduced(sum));
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        row_finish(&rows, logarithm, dtn_strips_value(&rows, MOST),
                   dtn_strips_value(&rows, SUM));
}

/* Element `i` of the row of `in`. */
static double row_pick(const struct dtn_strips *rows,
                       const struct dtn_array *in, int dim, int64_t i)
{
    if (i < 0 || i >= in->shape[dim])
        return 0;
    return dtn_load(in->dtype, rows->row.at[IN] + i * in->stride[dim] *
                    (int64_t)dtn_dtype_size(in->dtype), 0);
}

/* `array`, or if it is NULL another one in its place. */
static struct dtn_array array_or(const struct dtn_array *array,
                                 const struct dtn_array *other,
                                 const struct dtn_array *like)
{
    return dtn_array_expanded(array ? array : other, like);
}

void dtn_cross_entropy(const struct dtn_row_loss *of)
{
    enum { LOSS, TARGET = 2, LARGEST, TOTAL };
    const struct dtn_array arrays[] = {
        dtn_array_expanded(of->loss, of->in), *of->in,
        dtn_array_expanded(of->target, of->in),
        array_or(of->most, of->loss, of->in),
        array_or(of->sum, of->loss, of->in) };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 5, 1u << of->dim);
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows)) {
        const double most = row_total(&rows, IN, DTN_TOTAL_MAX,
                                      (double)-INFINITY, 0);
        const double sum = row_sum(&rows, IN, most);
        const int64_t i = dtn_load_int(of->target->dtype, rows.row.at[TARGET],
                                       0);

        if (of->most)
            dtn_strips_set(&rows, LARGEST, most);
        if (of->sum)
            dtn_strips_set(&rows, TOTAL, sum);
        dtn_strips_set(&rows, LOSS,
                       most + dtn_finish_log(rows.how[IN].work, sum) -
                       row_pick(&rows, of->in, of->dim, i));
    }
}

/* ----------------------------------------------------------- gradients --- */

enum { IN_GRAD, GRAD, CAME_OUT };

#define BACKWARD(kind, T)                                                     \
    static void terms_##kind(bool logarithm, const void *grad,                \
                             const void *out, int64_t n, double term[])       \
    {                                                                         \
        const T *g = grad, *y = out;                                          \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            term[i] = logarithm ? (double)g[i] : (double)g[i] * (double)y[i]; \
    }                                                                         \
    static void back_##kind(bool logarithm, void *to, const void *grad,       \
                            const void *out, int64_t n, double sum)           \
    {                                                                         \
        T *dst = to;                                                          \
        const T *g = grad, *y = out;                                          \
        const T s = (T)sum;                                                   \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i] = logarithm ? dtn_log_softmax_back_##kind(g[i], y[i], s)   \
                               : dtn_softmax_back_##kind(g[i], y[i], s);      \
    }

BACKWARD(f32, float)
BACKWARD(f64, double)

static double row_dot(struct dtn_strips *rows, bool logarithm)
{
    _Alignas(64) char room[2][DTN_BLOCK_FLOATS];
    double term[DTN_BLOCK], sum = 0;

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        const void *grad = dtn_strips_load(rows, GRAD, room[0]);
        const void *out = dtn_strips_load(rows, CAME_OUT, room[1]);

        if (rows->how[GRAD].work == DTENSOR_F64)
            terms_f64(logarithm, grad, out, rows->n, term);
        else
            terms_f32(logarithm, grad, out, rows->n, term);
        sum = dtn_total(DTN_TOTAL_SUM, DTENSOR_F64, term, rows->n, sum, 0);
    }
    return sum;
}

/* What came out; of a logarithm its exponential, in `made`. */
static const void *out_load(const struct dtn_strips *rows, bool logarithm,
                            void *room, void *made)
{
    const void *out = dtn_strips_load(rows, CAME_OUT, room);

    if (!logarithm)
        return out;
    dtn_finish_softmax(false, rows->how[CAME_OUT].work, made, out, rows->n,
                       (const double[]){ 0, 1 });
    return made;
}

static void row_backward(struct dtn_strips *rows, bool logarithm, double sum)
{
    _Alignas(64) char room[3][DTN_BLOCK_FLOATS], made[DTN_BLOCK_FLOATS];

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        const void *grad = dtn_strips_load(rows, GRAD, room[0]);
        const void *out = out_load(rows, logarithm, room[1], room[2]);
        void *to = dtn_strips_place(rows, IN_GRAD, made);

        if (rows->how[GRAD].work == DTENSOR_F64)
            back_f64(logarithm, to, grad, out, rows->n, sum);
        else
            back_f32(logarithm, to, grad, out, rows->n, sum);
        dtn_strips_store(rows, IN_GRAD, to, made);
    }
}

void dtn_softmax_backward(bool logarithm, const struct dtn_array *in_grad,
                          const struct dtn_array *grad,
                          const struct dtn_array *out, int dim)
{
    const struct dtn_array arrays[] = { *in_grad, *grad, *out };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 3, 1u << dim);
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        row_backward(&rows, logarithm, row_dot(&rows, logarithm));
}

void dtn_softmax_backward_sum(bool logarithm, const struct dtn_array *sum,
                              const struct dtn_array *grad,
                              const struct dtn_array *out)
{
    const struct dtn_array arrays[] = { dtn_array_expanded(sum, grad), *grad,
                                        *out };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 3, dtn_strips_reduced(sum));
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        dtn_strips_set(&rows, IN_GRAD, row_dot(&rows, logarithm));
}

void dtn_softmax_backward_finish(bool logarithm,
                                 const struct dtn_array *in_grad,
                                 const struct dtn_array *grad,
                                 const struct dtn_array *out,
                                 const struct dtn_array *sum)
{
    const struct dtn_array arrays[] = { *in_grad, *grad, *out,
                                        dtn_array_expanded(sum, grad) };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 4, dtn_strips_reduced(sum));
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        row_backward(&rows, logarithm, dtn_strips_value(&rows, CAME_OUT + 1));
}
