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
        total_launch(rows, DTN_KERNEL_total_lanes, &args, blocks * rows->lanes);
        total_launch(rows, DTN_KERNEL_total_blocks, &args, blocks);
    }
    total_launch(rows, DTN_KERNEL_total_rows, &args, rows->count);
}

/* -------------------------------------------------------------- finish --- */

void dtn_rows_finish(struct dtn_totals *rows, const struct dtn_finish_args *how,
                     const struct dtn_array *out)
{
    struct dtn_finish_args *args;
    const uint64_t inside = rows->beside ? rows->count : rows->elements;

    if (rows->count * rows->elements == 0)
        return;
    args = &dtn_rows_launch(rows, DTN_KERNEL_finish,
                            rows->count * rows->elements)->args.finish;
    *args = *how;
    args->out = out->data;
    args->in = rows->in;
    args->outer = rows->outer;
    args->row = rows->row;
    args->inside = dtn_divide_by(inside);
    args->units = rows->count * rows->elements;
    args->dtype = out->dtype;
    args->rows_first = rows->beside;
}
