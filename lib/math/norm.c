/* norm.c - layer norm and RMS norm, whole and in passes
 *
 * A row stays in the L1 or L2 cache between the three passes over it; of a
 * narrow one these are over a copy as f32.  Sums are f64, what is made of an
 * element has the type of computation.
 */
#include "math/norm.h"
#include "math/finish.h"
#include "math/room.h"
#include "math/strips.h"
#include "math/totals.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { OUT, IN, WEIGHT, BIAS, MEAN, RSTD };

static double row_total(struct dtn_strips *rows, enum dtn_total kind,
                        double middle)
{
    _Alignas(64) char buffer[DTN_BLOCK_FLOATS];
    double total = 0;

    for (bool on = dtn_strips_block(rows); on; on = dtn_strips_next_block(rows))
        total = dtn_total(kind, rows->how[IN].work,
                          dtn_strips_load(rows, IN, buffer), rows->n, total,
                          middle);
    return total;
}

static void row_finish(struct dtn_strips *rows, const struct dtn_norm *norm,
                       double mean, double rstd)
{
    _Alignas(64) char room[3][DTN_BLOCK_FLOATS], made[DTN_BLOCK_FLOATS];
    const double by[2] = { mean, rstd };

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        void *to = dtn_strips_place(rows, OUT, made);
        const void *const from[] = {
            dtn_strips_load(rows, IN, room[0]),
            norm->weight ? dtn_strips_load(rows, WEIGHT, room[1]) : NULL,
            norm->bias ? dtn_strips_load(rows, BIAS, room[2]) : NULL,
        };

        dtn_finish_norm(rows->how[IN].work, to, from, rows->n, by);
        dtn_strips_store(rows, OUT, to, made);
    }
}

/* Rows that are not too long are widened and gathered once each, weight and
 * bias once for all rows.
 */
struct kept_rows {
    _Alignas(64) float row[DTN_STRIPS_KEPT], weight[DTN_STRIPS_KEPT],
                       bias[DTN_STRIPS_KEPT], made[DTN_BLOCK];
};
_Static_assert(sizeof(struct kept_rows) <= DTN_ROOM_BYTES, "a room has place");

static void kept_finish(struct dtn_strips *rows, const struct dtn_norm *norm,
                        struct kept_rows *kept, const double by[2])
{
    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        void *to = dtn_strips_place(rows, OUT, kept->made);
        const void *const from[] = {
            kept->row + rows->first,
            norm->weight ? kept->weight + rows->first : NULL,
            norm->bias ? kept->bias + rows->first : NULL,
        };

        dtn_finish_norm(DTENSOR_F32, to, from, rows->n, by);
        dtn_strips_store(rows, OUT, to, kept->made);
    }
}

/* What is missing is `in`, which is then not looked at. */
static struct dtn_array or_in(const struct dtn_array *array,
                              const struct dtn_array *in)
{
    return array ? dtn_array_expanded(array, in) : *in;
}

/* The number of elements of a row. */
static double norm_begin(const struct dtn_norm *norm, struct dtn_strips *rows)
{
    const struct dtn_array *in = norm->in;
    const struct dtn_array arrays[] = {
        *norm->out, *in, or_in(norm->weight, in), or_in(norm->bias, in),
        or_in(norm->mean, in), or_in(norm->rstd, in) };
    unsigned dims = 0;
    double count = 1;

    for (int d = in->ndim - norm->dims; d < in->ndim; d++) {
        dims |= 1u << d;
        count *= (double)in->shape[d];
    }
    dtn_strips_begin(rows, arrays, 6, dims);
    return count;
}

/* Mean and rstd of a row, which is in `kept` if that is not NULL. */
static void row_statistics(const struct dtn_norm *norm, double count,
                           struct dtn_strips *rows, const float *kept,
                           double by[2])
{
    double squares;

    by[0] = !norm->centred ? 0
          : (kept ? dtn_total_row(DTN_TOTAL_SUM, DTENSOR_F32, kept,
                                  rows->row.run, 0, 0)
                  : row_total(rows, DTN_TOTAL_SUM, 0)) / count;
    squares = kept ? dtn_total_row(DTN_TOTAL_SQUARES, DTENSOR_F32, kept,
                                   rows->row.run, 0, by[0])
                   : row_total(rows, DTN_TOTAL_SQUARES, by[0]);
    by[1] = 1 / sqrt(squares / count + norm->epsilon);
    if (norm->mean)
        dtn_strips_set(rows, MEAN, by[0]);
    if (norm->rstd)
        dtn_strips_set(rows, RSTD, by[1]);
}

static void norm_kept(const struct dtn_norm *norm, double count,
                      struct dtn_strips *rows)
{
    struct kept_rows *kept = norm->room;
    bool more = dtn_strips_first(rows);
    double by[2];

    if (more && norm->weight)
        dtn_strips_keep(rows, WEIGHT, kept->weight);
    if (more && norm->bias)
        dtn_strips_keep(rows, BIAS, kept->bias);
    for (; more; more = dtn_strips_next(rows)) {
        dtn_strips_keep(rows, IN, kept->row);
        row_statistics(norm, count, rows, kept->row, by);
        kept_finish(rows, norm, kept, by);
    }
}

void dtn_norm(const struct dtn_norm *norm)
{
    struct dtn_strips rows;
    const double count = norm_begin(norm, &rows);
    double by[2];

    if (norm->room && dtn_strips_short(&rows, IN) &&
        !dtn_strips_direct(&rows, IN)) {
        norm_kept(norm, count, &rows);
        return;
    }
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows)) {
        row_statistics(norm, count, &rows, NULL, by);
        row_finish(&rows, norm, by[0], by[1]);
    }
}

void dtn_norm_squares(const struct dtn_array *squares,
                      const struct dtn_array *in,
                      const struct dtn_array *mean)
{
    const struct dtn_array arrays[] = { dtn_array_expanded(squares, in), *in,
                                        or_in(mean, in) };
    struct dtn_strips rows;

    dtn_strips_begin(&rows, arrays, 3, dtn_strips_reduced(squares));
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        dtn_strips_set(&rows, OUT, row_total(&rows, DTN_TOTAL_SQUARES,
                                           mean ? dtn_strips_value(&rows, 2)
                                                : 0));
}

void dtn_norm_finish(const struct dtn_norm *norm)
{
    struct dtn_strips rows;

    norm_begin(norm, &rows);
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows))
        row_finish(&rows, norm,
                   norm->centred ? dtn_strips_value(&rows, MEAN) : 0,
                   dtn_strips_value(&rows, RSTD));
}
