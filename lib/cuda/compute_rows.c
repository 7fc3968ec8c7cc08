/* compute_rows.c - from a function on rows of lib/math to kernels
 *
 * A total is three launches (rows.h), and what becomes of the elements then is
 * a fourth.  Rows, their runs and blocks are those of dtn_strips_begin() on the
 * CPU, so that the sums have the same order.
 */
#include "cuda/compute_rows.h"
#include "cuda/grids.h"
#include "cuda/launch.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "math/strips.h"
#include "math/totals.h"
#include "dtensor.h"

#include <math.h>
#include <string.h>

enum { LANES = 32 };

/* The rows of some arrays, of which the first is the result and the second is
 * what is reduced.
 */
struct rows {
    struct dtn_kernel_grid outer, row;     /* where they begin, and elements  */
    uint64_t count;                        /* rows                            */
    uint64_t blocks;                       /* of a row                        */
    uint64_t per_run;                      /* blocks of a run                 */
    uint64_t lanes;                        /* of a block                      */
    uint64_t elements;                     /* of a row                        */
    bool beside;                           /* rows lie beside each other      */
    enum dtensor_dtype from;               /* of what is reduced              */
    const void *in;                        /* the same                        */
    char *memory;                          /* on the device                   */
    double *scratch, *totals;              /* of lanes, of blocks: in it      */
    struct dtn_launches *to;               /* where launches go               */
};

static uint64_t over(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

/* `n` numbers of f64 on the device. */
static double *rows_take(struct rows *rows, uint64_t n)
{
    const size_t at = rows->to->bytes;

    rows->to->bytes += (n * sizeof(double) + 63) / 64 * 64;
    return rows->memory ? (double *)(void *)(rows->memory + at) : NULL;
}

static struct rows rows_of(const struct dtn_array arrays[], int n,
                           unsigned dims, void *memory,
                           struct dtn_launches *to)
{
    struct dtn_strips strips;
    struct rows rows = { .from = arrays[1].dtype, .in = arrays[1].data,
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
    rows.scratch = rows_take(&rows, rows.count * rows.blocks * rows.lanes);
    rows.totals = rows_take(&rows, rows.count * rows.blocks);
    return rows;
}

/* --------------------------------------------------------------- totals --- */

/* One total of each row. */
struct row_total {
    enum dtn_total kind;
    enum dtn_total_end end;
    const double *middle;         /* of each row; NULL: 0                     */
    double *result;               /* of each row; NULL: not wanted            */
    const struct dtn_array *out;  /* the same as elements; NULL               */
    double p, epsilon;            /* see struct dtn_total_args                */
    bool is_truth;                /* what differs from 0 is counted           */
};

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

static struct dtn_total_args total_args(const struct rows *rows,
                                        const struct row_total *total)
{
    const double n = (double)rows->elements;
    struct dtn_total_args args = {
        .scratch = rows->scratch, .totals = rows->totals,
        .result = total->result, .out = total->out ? total->out->data : NULL,
        .in = rows->in, .middle = total->middle, .outer = rows->outer,
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
        .is_truth = total->is_truth, .rows_first = rows->beside
    };

    if (!total->is_truth && !args.is_float)
        args.whole_start = whole_start(rows->from, total->kind);
    return args;
}

static void total_launch(struct rows *rows, enum dtn_kernel kernel,
                         const struct dtn_total_args *args, uint64_t units)
{
    struct dtn_launch *launch = &rows->to->launch[rows->to->n++];

    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    launch->threads = units;
    launch->args.total = *args;
    launch->args.total.units = units;
}

static void rows_total(struct rows *rows, const struct row_total *total)
{
    const uint64_t blocks = rows->count * rows->blocks;
    struct dtn_total_args args;

    if (rows->count == 0)
        return;
    args = total_args(rows, total);
    if (blocks > 0) {
        total_launch(rows, DTN_KERNEL_total_lanes, &args, blocks * rows->lanes);
        total_launch(rows, DTN_KERNEL_total_blocks, &args, blocks);
    }
    total_launch(rows, DTN_KERNEL_total_rows, &args, rows->count);
}

/* ---------------------------------------------------------- reductions --- */

/* The total of a reduction that is one; false: it has two, or no kernel. */
static bool total_of(enum dtn_reduction_kind kind, double p,
                     struct row_total *total)
{
    const bool root = kind == DTN_REDUCE_NORM;

    switch (kind) {
    case DTN_REDUCE_SUM: total->kind = DTN_TOTAL_SUM; return true;
    case DTN_REDUCE_MEAN:
        total->kind = DTN_TOTAL_SUM;
        total->end = DTN_END_MEAN;
        return true;
    case DTN_REDUCE_PROD: total->kind = DTN_TOTAL_PROD; return true;
    case DTN_REDUCE_MAX: total->kind = DTN_TOTAL_MAX; return true;
    case DTN_REDUCE_MIN: total->kind = DTN_TOTAL_MIN; return true;
    case DTN_REDUCE_ANY: case DTN_REDUCE_ALL:
        total->is_truth = true;
        total->end = kind == DTN_REDUCE_ALL ? DTN_END_ALL : DTN_END_ANY;
        return true;
    case DTN_REDUCE_POWSUM: case DTN_REDUCE_NORM:
        total->kind = p == 0 ? DTN_TOTAL_COUNT : p == 1 ? DTN_TOTAL_ABS
                    : p == 2 ? DTN_TOTAL_SQUARES
                    : p > 0 ? DTN_TOTAL_MOST : DTN_TOTAL_LEAST;
        total->end = root && p == 2 ? DTN_END_ROOT : DTN_END_AS_IT_IS;
        return p == 0 || p == 1 || p == 2 || (root && isinf(p));
    default:
        return false;
    }
}

/* The mean, or the largest element, and then the total around it. */
static void reduce_twice(struct rows *rows, enum dtn_reduction_kind kind,
                         const struct dtn_array *out, double p)
{
    double *middle = rows_take(rows, rows->count);
    const bool logs = kind == DTN_REDUCE_LOGSUMEXP;

    rows_total(rows, &(struct row_total){
        .kind = logs ? DTN_TOTAL_MAX : DTN_TOTAL_SUM,
        .end = logs ? DTN_END_AS_IT_IS : DTN_END_MEAN, .result = middle });
    rows_total(rows, &(struct row_total){
        .kind = logs ? DTN_TOTAL_EXP : DTN_TOTAL_SQUARES,
        .end = logs ? DTN_END_LOGSUMEXP
             : kind == DTN_REDUCE_STD ? DTN_END_STD : DTN_END_VARIANCE,
        .middle = middle, .out = out, .p = p });
}

bool dtn_launch_reduce(enum dtn_reduction_kind kind,
                       const struct dtn_array *out, const struct dtn_array *in,
                       double p, void *memory, struct dtn_launches *launches)
{
    const bool twice = kind >= DTN_REDUCE_LOGSUMEXP;
    const struct dtn_array arrays[] = { dtn_array_expanded(out, in), *in };
    struct row_total total = { .out = out };
    struct rows rows;

    if (dtn_dtype_kind(in->dtype) == DTN_DTYPE_COMPLEX ||
        (!twice && !total_of(kind, p, &total)))
        return false;
    rows = rows_of(arrays, 2, dtn_strips_reduced(out), memory, launches);
    if (twice)
        reduce_twice(&rows, kind, out, p);
    else
        rows_total(&rows, &total);
    return true;
}

/* -------------------------------------------------------------- finish --- */

static void rows_finish(struct rows *rows, const struct dtn_finish_args *how,
                        const struct dtn_array *out)
{
    struct dtn_launch *launch;
    struct dtn_finish_args *args;
    const uint64_t inside = rows->beside ? rows->count : rows->elements;

    if (rows->count * rows->elements == 0)
        return;
    launch = &rows->to->launch[rows->to->n++];
    args = &launch->args.finish;
    memset(launch, 0, sizeof *launch);
    *args = *how;
    args->out = out->data;
    args->in = rows->in;
    args->outer = rows->outer;
    args->row = rows->row;
    args->inside = dtn_divide_by(inside);
    args->units = rows->count * rows->elements;
    args->dtype = out->dtype;
    args->rows_first = rows->beside;
    launch->kernel = DTN_KERNEL_finish;
    launch->threads = args->units;
}

void dtn_launch_softmax(bool logarithm, const struct dtn_array *out,
                        const struct dtn_array *in, int dim, void *memory,
                        struct dtn_launches *launches)
{
    const struct dtn_array arrays[] = { *out, *in };
    struct rows rows = rows_of(arrays, 2, 1u << dim, memory, launches);
    double *most = rows_take(&rows, rows.count);
    double *sum = rows_take(&rows, rows.count);

    rows_total(&rows, &(struct row_total){ .kind = DTN_TOTAL_MAX,
                                       .result = most });
    rows_total(&rows, &(struct row_total){
        .kind = DTN_TOTAL_EXP, .middle = most, .result = sum,
        .end = logarithm ? DTN_END_LOG : DTN_END_INVERSE });
    rows_finish(&rows, &(struct dtn_finish_args){
        .by = { most, sum },
        .how = logarithm ? DTN_FINISH_LOG : DTN_FINISH_EXP }, out);
}

/* `array` as it lies along the rows, without their elements. */
static const struct dtn_array *one_each(const struct dtn_array *array,
                                        const struct dtn_norm *norm,
                                        struct dtn_array *view)
{
    if (!array)
        return NULL;
    *view = *array;
    for (int d = norm->in->ndim - norm->dims; d < norm->in->ndim; d++)
        view->shape[d] = 1;
    return view;
}

/* Where an element of each row goes, beside the rows themselves. */
static void rows_put(struct rows *rows, const struct dtn_norm *norm,
                     const struct dtn_array *array, struct row_total *total)
{
    struct dtn_kernel_grid outer = rows->outer;
    struct dtn_array view, like[2];
    struct dtn_loop loop;

    total->out = one_each(array, norm, &view);
    if (total->out) {
        like[0] = view;
        like[1] = *norm->in;
        memcpy(like[1].shape, view.shape, sizeof like[1].shape);
        dtn_loop_begin(&loop, like, 2);
        rows->outer = dtn_grid_of(&loop);
    }
    rows_total(rows, total);
    rows->outer = outer;
}

static struct dtn_array or_in(const struct dtn_array *array,
                              const struct dtn_array *in)
{
    return array ? dtn_array_expanded(array, in) : *in;
}

void dtn_launch_norm(const struct dtn_norm *norm, void *memory,
                     struct dtn_launches *launches)
{
    const struct dtn_array *in = norm->in;
    const struct dtn_array arrays[] = {
        *norm->out, *in, or_in(norm->weight, in), or_in(norm->bias, in),
        or_in(norm->mean, in), or_in(norm->rstd, in) };
    const unsigned dims = ((1u << norm->dims) - 1) << (in->ndim - norm->dims);
    struct rows rows = rows_of(arrays, 6, dims, memory, launches);
    double *mean = norm->centred ? rows_take(&rows, rows.count) : NULL;
    double *rstd = rows_take(&rows, rows.count);

    if (norm->centred)
        rows_put(&rows, norm, norm->mean, &(struct row_total){
            .kind = DTN_TOTAL_SUM, .end = DTN_END_MEAN, .result = mean });
    rows_put(&rows, norm, norm->rstd, &(struct row_total){
        .kind = DTN_TOTAL_SQUARES, .end = DTN_END_RSTD, .middle = mean,
        .result = rstd, .epsilon = norm->epsilon });
    rows_finish(&rows, &(struct dtn_finish_args){
        .weight = norm->weight ? norm->weight->data : NULL,
        .bias = norm->bias ? norm->bias->data : NULL,
        .by = { mean, rstd }, .how = DTN_FINISH_NORM }, norm->out);
}
