/* norm.c - layer norm and RMS norm, whole and in passes
 *
 * A row stays in the L1 or L2 cache between the three passes over it.  Sums are
 * f64, what is made of an element has the type of computation.
 */
#include "math/norm.h"
#include "math/finish.h"
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
    _Alignas(64) char buffer[DTN_BLOCK_BYTES];
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
    _Alignas(64) char room[3][DTN_BLOCK_BYTES], made[DTN_BLOCK_BYTES];
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

void dtn_norm(const struct dtn_norm *norm)
{
    struct dtn_strips rows;
    const double count = norm_begin(norm, &rows);

    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_next(&rows)) {
        const double mean = norm->centred
            ? row_total(&rows, DTN_TOTAL_SUM, 0) / count : 0;
        const double squares = row_total(&rows, DTN_TOTAL_SQUARES, mean);
        const double rstd = 1 / sqrt(squares / count + norm->epsilon);

        if (norm->mean)
            dtn_strips_set(&rows, MEAN, mean);
        if (norm->rstd)
            dtn_strips_set(&rows, RSTD, rstd);
        row_finish(&rows, norm, mean, rstd);
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
