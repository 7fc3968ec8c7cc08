/* row_totals.c - launches that make totals of rows, and then of each element
 * something else
 *
 * A total is three launches (rows.h), and what becomes of the elements then is
 * a fourth.  Rows, their runs and blocks are those of dtn_strips_begin() on the
 * CPU, so that the sums have the same order.
 */
#include "cuda/row_totals.h"
#include "cuda/grids.h"
#include "cuda/launch.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "math/block.h"
#include "math/strips.h"
#include "dtensor.h"

#include <math.h>
#include <string.h>

enum { LANES = 32 };

static uint64_t over(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

double *dtn_rows_take(struct dtn_totals *rows, uint64_t n)
{
    const size_t at = rows->to->bytes;

    rows->to->bytes += (n * sizeof(double) + 63) / 64 * 64;
    return rows->memory ? (double *)(void *)(rows->memory + at) : NULL;
}

struct dtn_totals dtn_rows_of(const struct dtn_array arrays[], int n,
                              unsigned dims, void *memory,
                              struct dtn_launches *to)
{
    struct dtn_strips strips;
    struct dtn_totals rows = { .from = arrays[1].dtype, .in = arrays[1].data,
                               .memory = memory, .to = to };
    uint64_t run;

    dtn_strips_begin(&strips, arrays, n, dims);
    rows.outer = dtn_grid_of(&strips.outer);
    rows.row = dtn_grid_of(&strips.row);
    rows.count = rows.outer.count;
    rows.elements = rows.row.count;
    run = rows.row.run.by;
    rows.per_run = over(run, DTN_BLOCK);
    rows.blocks = rows.elements / run * rows.per_run;
    rows.lanes = run < LANES ? run : LANES;
    rows.beside = rows.row.step[1] != (int64_t)dtn_dtype_size(rows.from) &&
                  rows.outer.step[1] == (int64_t)dtn_dtype_size(rows.from);
    to->n = 0;
    to->bytes = 0;
    rows.scratch = dtn_rows_take(&rows, rows.count * rows.blocks * rows.lanes);
    rows.totals = dtn_rows_take(&rows, rows.count * rows.blocks);
    return rows;
}

/* --------------------------------------------------------------- totals --- */

/* What a total begins with. */
static double start_of(enum dtn_total kind)
{
    switch (kind) {
    case DTN_TOTAL_PROD: return 1;
    case DTN_TOTAL_MAX: return (double)-INFINITY;
    case DTN_TOTAL_MIN: case DTN_TOTAL_LEAST: return (double)INFINITY;
    default: return 0;
    }
}

/* The same of integers: the least of the type for the largest. */
static int64_t whole_start(enum dtensor_dtype dtype, enum dtn_total kind)
{
    char element[16];

    if (kind != DTN_TOTAL_MAX && kind != DTN_TOTAL_MIN)
        return kind == DTN_TOTAL_PROD;
    dtn_fill_neutral(dtype, kind == DTN_TOTAL_MAX ? DTENSOR_MAX : DTENSOR_MIN,
                     element, 1);
    return dtn_load_int(dtype, element, 0);
}

static struct dtn_total_args total_args(const struct dtn_totals *rows,
                                        const struct dtn_row_total *total)
{
    const double n = (double)rows->elements;
    struct dtn_total_args args = {
        .scratch = rows->scratch, .totals = rows->totals,
        .result = total->result, .out = total->out ? total->out->data : NULL,
        .in = rows->in, .with = total->with, .weight = total->weight,
        .middle = total->middle, .scale = total->scale, .outer = rows->outer,
        .row = rows->row, .nblocks = rows->blocks,
        .rows = dtn_divide_by(rows->count), .one = dtn_divide_by(1),
        .blocks = dtn_divide_by(rows->blocks > 0 ? rows->blocks : 1),
        .lanes = dtn_divide_by(rows->lanes),
        .per_run = dtn_divide_by(rows->per_run),
        .start = start_of(total->kind), .count = n,
        .divisor = n > total->p ? n - total->p : 0.0,
        .epsilon = total->epsilon, .kind = total->kind, .end = total->end,
        .from = rows->from, .to = total->out ? total->out->dtype : 0,
        .is_float = dtn_dtype_is_float(rows->from),
        .is_truth = total->is_truth, .rows_first = rows->beside,
        .term = total->term, .index_bytes = (uint32_t)total->index_bytes
    };

    args.is_whole = !args.is_float || args.is_truth
                 || total->term == DTN_TERM_PLACE;
    if (total->term == DTN_TERM_PLACE)
        args.whole_start = INT64_MAX;
    else if (!total->is_truth && !args.is_float)
        args.whole_start = whole_start(rows->from, total->kind);
    return args;
}

struct dtn_launch *dtn_rows_launch(struct dtn_totals *rows,
                                   enum dtn_kernel kernel, uint64_t units)
{
    struct dtn_launch *launch = &rows->to->launch[rows->to->n++];

    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    launch->threads = units;
    return launch;
}

/* Are the elements of each row of an array neighbours, from a multiple of four
 * of them on?  `array` is its number.
 */
static bool by_fours(const struct dtn_totals *rows, int array, const void *data,
                     enum dtensor_dtype dtype)
{
    const int64_t size = (int64_t)dtn_dtype_size(dtype);

    if (rows->row.ndim != 0 || rows->row.step[array] != size ||
        (uintptr_t)data % (uintptr_t)(4 * size) != 0 ||
        rows->outer.step[array] % (4 * size) != 0)
        return false;
    for (int64_t d = 0; d < rows->outer.ndim; d++)
        if (rows->outer.dim[d].stride[array] % (4 * size) != 0)
            return false;
    return true;
}

/* Floats that are computed with as f32, in rows of fours. */
static bool rows_of_fours(const struct dtn_totals *rows)
{
    return dtn_block_type(rows->from) == DTENSOR_F32 && !rows->beside &&
           rows->elements > 0 && rows->elements % 4 == 0 &&
           by_fours(rows, 1, rows->in, rows->from);
}

static void total_launch(struct dtn_totals *rows, enum dtn_kernel kernel,
                         const struct dtn_total_args *args, uint64_t units)
{
    struct dtn_launch *launch = dtn_rows_launch(rows, kernel, units);

    launch->args.total = *args;
    launch->args.total.units = units;
}

void dtn_rows_total(struct dtn_totals *rows, const struct dtn_row_total *total)
{
    const uint64_t blocks = rows->count * rows->blocks;
    struct dtn_total_args args;

    if (rows->count == 0)
        return;
    args = total_args(rows, total);
    if (blocks > 0 && !total->same) {
        if (rows_of_fours(rows) && rows->lanes == LANES && !args.is_whole
            && total->term == DTN_TERM_ITSELF)
            args.fours = 8 * blocks;
        total_launch(rows, DTN_KERNEL_total_lanes, &args, args.fours > 0
                     ? args.fours : blocks * rows->lanes);
        total_launch(rows, DTN_KERNEL_total_blocks, &args, blocks);
    }
    total_launch(rows, DTN_KERNEL_total_rows, &args, rows->count);
}

/* -------------------------------------------------------------- finish --- */

/* How many fours, if all arrays have them. */
static uint64_t finish_fours(const struct dtn_totals *rows,
                             const struct dtn_finish_args *how,
                             const struct dtn_array *out)
{
    return rows_of_fours(rows) && out->dtype == rows->from &&
           by_fours(rows, 0, out->data, out->dtype) &&
           (!how->weight || by_fours(rows, 2, how->weight, out->dtype)) &&
           (!how->bias || by_fours(rows, 3, how->bias, out->dtype))
           ? rows->count * (rows->elements / 4) : 0;
}

void dtn_rows_finish(struct dtn_totals *rows, const struct dtn_finish_args *how,
                     const struct dtn_array *out)
{
    struct dtn_finish_args *args;
    const uint64_t inside = rows->beside ? rows->count : rows->elements;
    const uint64_t fours = finish_fours(rows, how, out);

    if (rows->count * rows->elements == 0)
        return;
    args = &dtn_rows_launch(rows, DTN_KERNEL_finish, fours > 0 ? fours
                            : rows->count * rows->elements)->args.finish;
    *args = *how;
    args->fours = fours;
    args->row_fours = dtn_divide_by(fours > 0 ? rows->elements / 4 : 1);
    args->out = out->data;
    args->in = rows->in;
    args->outer = rows->outer;
    args->row = rows->row;
    args->inside = dtn_divide_by(inside);
    args->units = rows->count * rows->elements;
    args->dtype = out->dtype;
    args->rows_first = rows->beside;
}
