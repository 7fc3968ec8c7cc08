/* collective.c - rows of which each rank has a part
 *
 * Each pass over the parts gives a number for each row; an allreduce makes that
 * of the whole row of it, and the next pass uses it.  A softmax of 1, 2 on one
 * rank and 3 on another has the maxima 2 and 3, then 3; the sums 0.503 and 1,
 * then 1.503; and exp(x - 3) / 1.503 is the rest.  Numbers of rows are f64.
 */
#include "op/local/collective.h"
#include "base/dtype.h"
#include "layout/layout.h"
#include "math/pointwise.h"
#include "math/select.h"
#include "math/softmax.h"
#include "dtensor.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { NUMBERS = 4 };             /* of each row, at most                     */

/* A number for each row of the first input, the i-th one in work. */
static struct dtn_array numbers(const struct dtn_parts *parts, unsigned row,
                                int i)
{
    const struct dtn_array *in = parts->in;
    int64_t shape[DTENSOR_MAX_DIMS] = { 0 };
    struct dtn_array made;

    for (int d = 0; d < in->ndim; d++)
        shape[d] = row >> d & 1 ? 1 : in->shape[d];
    made = dtn_array_packed(NULL, DTENSOR_F64, in->ndim, shape);
    if (parts->work)
        made.data = (double *)parts->work + i * dtn_array_count(&made);
    return made;
}

size_t dtn_work_sharded(const struct dtn_parts *parts, unsigned row)
{
    struct dtn_array one;

    if (!parts->among)
        return 0;
    one = numbers(parts, row, 0);
    return NUMBERS * (size_t)dtn_array_count(&one) * sizeof(double);
}

/* Reduce `n` neighbours in work, of which `first` is the first. */
static int reduce(const struct dtn_parts *parts, const struct dtn_array *first,
                  int n, enum dtensor_redop op, struct dtensor_error *err)
{
    const size_t count = (size_t)dtn_array_count(first) * (size_t)n;

    return count == 0 ? 0 : dtensor_allreduce(parts->among, first->data,
                                              first->data, count, first->dtype,
                                              op, err);
}

/* The largest elements of the rows, and their sums of exp(x - largest). */
static int exp_sums(const struct dtn_parts *parts, const struct dtn_array *most,
                    const struct dtn_array *sum, struct dtensor_error *err)
{
    int rc;

    dtn_reduce_dims(DTN_REDUCE_MAX, most, parts->in, 0, parts->room);
    rc = reduce(parts, most, 1, DTENSOR_MAX, err);
    if (rc == 0)
        dtn_softmax_sum(sum, parts->in, most);
    return rc;
}

int dtn_softmax_sharded(bool logarithm, const struct dtn_parts *parts,
                        unsigned row, struct dtensor_error *err)
{
    const struct dtn_array most = numbers(parts, row, 0);
    const struct dtn_array sum = numbers(parts, row, 1);
    int rc = exp_sums(parts, &most, &sum, err);

    if (rc == 0)
        rc = reduce(parts, &sum, 1, DTENSOR_SUM, err);
    if (rc == 0)
        dtn_softmax_finish(logarithm, &parts->out[0], parts->in, &most, &sum);
    return rc;
}

int dtn_softmax_backward_sharded(bool logarithm, const struct dtn_parts *parts,
                                 unsigned row, struct dtensor_error *err)
{
    const struct dtn_array sum = numbers(parts, row, 0);
    int rc;

    dtn_softmax_backward_sum(logarithm, &sum, &parts->in[0], &parts->in[1]);
    rc = reduce(parts, &sum, 1, DTENSOR_SUM, err);
    if (rc == 0)
        dtn_softmax_backward_finish(logarithm, &parts->out[0], &parts->in[0],
                                    &parts->in[1], &sum);
    return rc;
}

/* Elements of a whole row. */
static double row_count(const struct dtn_parts *parts, unsigned row)
{
    double count = 1;

    for (int d = 0; d < parts->want[0].ndim; d++)
        if (row >> d & 1)
            count *= (double)parts->want[0].shape[d];
    return count;
}

/* mean = the mean of each row, if `centred`; squares = the sum of
 * (x - mean)^2, or of x^2.
 */
static int squares(const struct dtn_parts *parts, bool centred,
                   const struct dtn_array *mean,
                   const struct dtn_array *squares, unsigned row,
                   struct dtensor_error *err)
{
    const double share[2] = { 1 / row_count(parts, row), 0 };
    int rc = 0;

    if (centred) {
        dtn_reduce_dims(DTN_REDUCE_SUM, mean, parts->in, 0, parts->room);
        rc = reduce(parts, mean, 1, DTENSOR_SUM, err);
        dtn_pointwise(DTN_SCALE, mean, (const struct dtn_array *const[]){
                      mean }, share);
    }
    if (rc != 0)
        return rc;
    dtn_norm_squares(squares, parts->in, centred ? mean : NULL);
    return reduce(parts, squares, 1, DTENSOR_SUM, err);
}

/* ----------------------------------------------------------- reductions --- */

static double root(double powers, double p)
{
    return p == 0 || p == 1 ? powers : p == 2 ? sqrt(powers)
                                              : pow(powers, 1 / p);
}

/* What a row comes to, of its numbers a and b. */
static double reduced(enum dtn_reduction_kind kind, double a, double b,
                      double count, double p)
{
    switch (kind) {
    case DTN_REDUCE_LOGSUMEXP:
        return isinf(a) || isnan(a) ? a : a + log(b);
    case DTN_REDUCE_VAR:
        return b / (count > p ? count - p : 0.0);
    case DTN_REDUCE_STD:
        return sqrt(b / (count > p ? count - p : 0.0));
    default:
        return root(b, p);
    }
}

/* The numbers of all rows. */
static int reduce_passes(enum dtn_reduction_kind kind,
                         const struct dtn_parts *parts, unsigned row, double p,
                         struct dtensor_error *err)
{
    const struct dtn_array a = numbers(parts, row, 0);
    const struct dtn_array b = numbers(parts, row, 1);
    int rc = 0;

    if (kind == DTN_REDUCE_VAR || kind == DTN_REDUCE_STD)
        return squares(parts, true, &a, &b, row, err);
    if (kind == DTN_REDUCE_LOGSUMEXP)
        rc = exp_sums(parts, &a, &b, err);
    else
        dtn_reduce_dims(DTN_REDUCE_POWSUM, &b, parts->in, p, parts->room);
    return rc == 0 ? reduce(parts, &b, 1, DTENSOR_SUM, err) : rc;
}

int dtn_reduce_sharded(enum dtn_reduction_kind kind,
                       const struct dtn_parts *parts, unsigned row, double p,
                       struct dtensor_error *err)
{
    const struct dtn_array a = numbers(parts, row, 0);
    const struct dtn_array b = numbers(parts, row, 1);
    const double count = row_count(parts, row);
    struct dtn_array out = b;
    double *x = a.data, *y = b.data;
    int rc = reduce_passes(kind, parts, row, p, err);

    if (rc != 0)
        return rc;
    for (int64_t i = 0; i < dtn_array_count(&b); i++)
        y[i] = reduced(kind, x[i], y[i], count, p);
    out.data = parts->out[0].data;
    out.dtype = parts->out[0].dtype;
    dtn_cast(&out, &b);
    return 0;
}

/* ------------------------------------------------------------- extremes --- */

static bool element_same(enum dtensor_dtype dtype, const void *a, const void *b,
                         size_t i)
{
    const double x = dtn_load(dtype, a, i), y = dtn_load(dtype, b, i);

    if (!dtn_dtype_is_float(dtype))
        return dtn_load_int(dtype, a, i) == dtn_load_int(dtype, b, i);
    return x == y || (isnan(x) && isnan(y));
}

/* The extremes of this rank's parts, and where they are in them. */
static void extremes_own(bool largest, const struct dtn_parts *parts, int dim,
                         const struct dtn_array *value,
                         const struct dtn_array *place)
{
    int64_t *at = place->data;

    if (parts->in->shape[dim] > 0) {
        dtn_extreme(largest, value, place, parts->in, dim, parts->room);
        return;
    }
    dtn_reduce_dims(largest ? DTN_REDUCE_MAX : DTN_REDUCE_MIN, value, parts->in,
                    0, parts->room);
    for (int64_t i = 0; i < dtn_array_count(place); i++)
        at[i] = INT64_MAX;
}

/* An allreduce of the extremes; then one of the least place of those that have
 * it, of ties the first as in a whole row.
 */
int dtn_extreme_sharded(bool largest, const struct dtn_parts *parts, int dim,
                        int64_t first, const struct dtn_array *value,
                        const struct dtn_array *index,
                        struct dtensor_error *err)
{
    struct dtn_array own = numbers(parts, 1u << dim, 0);
    struct dtn_array best = numbers(parts, 1u << dim, 1);
    struct dtn_array place = numbers(parts, 1u << dim, 2);
    const size_t count = (size_t)dtn_array_count(&place);
    int64_t *at = place.data;
    int rc;

    own.dtype = best.dtype = parts->in->dtype;
    place.dtype = DTENSOR_I64;
    extremes_own(largest, parts, dim, &own, &place);
    dtn_array_copy(&best, &own);
    rc = reduce(parts, &best, 1, largest ? DTENSOR_MAX : DTENSOR_MIN, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        at[i] = at[i] < INT64_MAX &&
                element_same(own.dtype, own.data, best.data, i) ? at[i] + first
                                                                : INT64_MAX;
    if (rc == 0 && index)
        rc = reduce(parts, &place, 1, DTENSOR_MIN, err);
    if (rc == 0 && index)
        dtn_array_copy(index, &place);
    if (rc == 0 && value)
        dtn_array_copy(value, &best);
    return rc;
}

/* ---------------------------------------------------------------- norms --- */

int dtn_norm_sharded(const struct dtn_norm *norm, const struct dtn_parts *parts,
                     struct dtensor_error *err)
{
    struct dtn_norm last = *norm;
    unsigned row = 0;
    struct dtn_array mean, rstd;
    double *at, count;
    int rc;

    for (int d = norm->in->ndim - norm->dims; d < norm->in->ndim; d++)
        row |= 1u << d;
    mean = numbers(parts, row, 0);
    rstd = numbers(parts, row, 1);
    count = row_count(parts, row);
    rc = squares(parts, norm->centred, &mean, &rstd, row, err);
    if (rc != 0)
        return rc;
    at = rstd.data;
    for (int64_t i = 0; i < dtn_array_count(&rstd); i++)
        at[i] = 1 / sqrt(at[i] / count + norm->epsilon);
    last.mean = norm->centred ? &mean : NULL;
    last.rstd = &rstd;
    dtn_norm_finish(&last);
    if (norm->mean)
        dtn_cast(norm->mean, &mean);
    if (norm->rstd)
        dtn_cast(norm->rstd, &rstd);
    return 0;
}

/* --------------------------------------------------------------- losses --- */

/* x[target] of each row, or 0 where another rank has it. */
static void pick(const struct dtn_parts *parts, const struct dtn_array *target,
                 int64_t first, const struct dtn_array *to, void *room)
{
    struct dtn_array found = *to;

    found.data = room;
    found.dtype = parts->in->dtype;
    dtn_array_gather(&found, parts->in, parts->in->ndim - 1, target, first);
    dtn_cast(to, &found);
}

/* Numbers of rows as output i, if it is wanted. */
static void give(const struct dtn_parts *parts, int i,
                 const struct dtn_array *numbers)
{
    struct dtn_array out = *numbers;

    if (parts->nout <= i)
        return;
    out.data = parts->out[i].data;
    out.dtype = parts->out[i].dtype;
    dtn_cast(&out, numbers);
}

int dtn_cross_entropy_sharded(const struct dtn_array *losses,
                              const struct dtn_array *target, int64_t first,
                              const struct dtn_parts *parts,
                              struct dtensor_error *err)
{
    const unsigned row = 1u << (parts->in->ndim - 1);
    const struct dtn_array most = numbers(parts, row, 0);
    const struct dtn_array sum = numbers(parts, row, 1);
    const struct dtn_array picked = numbers(parts, row, 2);
    double *m = most.data;
    int rc = exp_sums(parts, &most, &sum, err);

    if (rc != 0)
        return rc;
    pick(parts, target, first, &picked, numbers(parts, row, 3).data);
    rc = reduce(parts, &sum, 2, DTENSOR_SUM, err);
    if (rc != 0)
        return rc;
    give(parts, 1, &most);
    give(parts, 2, &sum);
    for (int64_t i = 0; i < dtn_array_count(&most); i++)
        m[i] += log(((double *)sum.data)[i]) - ((double *)picked.data)[i];
    dtn_cast(losses, &most);
    return 0;
}

int dtn_nll_loss_sharded(const struct dtn_array *losses,
                         const struct dtn_array *target, int64_t first,
                         const struct dtn_parts *parts,
                         struct dtensor_error *err)
{
    const struct dtn_array picked = numbers(
        parts, 1u << (parts->in->ndim - 1), 0);
    int rc;

    dtn_array_gather(losses, parts->in, parts->in->ndim - 1, target, first);
    dtn_cast(&picked, losses);
    rc = reduce(parts, &picked, 1, DTENSOR_SUM, err);
    if (rc != 0)
        return rc;
    dtn_pointwise(DTN_NEG, &picked, (const struct dtn_array *const[]){
                  &picked }, NULL);
    dtn_cast(losses, &picked);
    return 0;
}

int dtn_nll_mean_sharded(const struct dtn_array *mean,
                         const struct dtn_array *losses,
                         const struct dtn_array *target, int64_t first,
                         const struct dtn_parts *parts,
                         struct dtensor_error *err)
{
    const unsigned all = (1u << parts->in->ndim) - 1;
    const struct dtensor_spec *rows = &parts->want[1];
    const struct dtn_array sum = numbers(parts, all, 0);
    const double share[2] = { -1 / (double)dtn_numel(rows->ndim, rows->shape),
                              0 };
    struct dtn_array out = sum;
    int rc;

    dtn_array_gather(losses, parts->in, parts->in->ndim - 1, target, first);
    dtn_reduce_dims(DTN_REDUCE_SUM, &sum, losses, 0, parts->room);
    rc = reduce(parts, &sum, 1, DTENSOR_SUM, err);
    if (rc != 0)
        return rc;
    dtn_pointwise(DTN_SCALE, &sum, (const struct dtn_array *const[]){ &sum },
                  share);
    out.data = mean->data;
    out.dtype = mean->dtype;
    dtn_cast(&out, &sum);
    return 0;
}

int64_t dtn_shard_first(const struct dtn_parts *parts, int i)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtn_layout(&parts->want[i], parts->me, shape, offset);
    return offset[parts->want[i].ndim - 1];
}

/* ------------------------------------------------------------ backwards --- */

struct dtn_parts dtn_parts_after(const struct dtn_parts *parts)
{
    struct dtn_parts after = *parts;

    after.in++;
    after.want++;
    after.nin--;
    return after;
}

/* The mean and rstd of each row: those that are known, or again. */
static int norm_numbers(const struct dtn_norm_backward *norm,
                        const struct dtn_parts *of, unsigned row,
                        const struct dtn_array *mean,
                        const struct dtn_array *rstd, struct dtensor_error *err)
{
    const double count = row_count(of, row);
    double *at = rstd->data;
    int rc;

    if (norm->rstd) {
        dtn_cast(mean, norm->mean);
        dtn_cast(rstd, norm->rstd);
        return 0;
    }
    memset(mean->data, 0, (size_t)dtn_array_count(mean) * sizeof(double));
    rc = squares(of, norm->centred, mean, rstd, row, err);
    for (int64_t i = 0; i < dtn_array_count(rstd) && rc == 0; i++)
        at[i] = 1 / sqrt(at[i] / count + norm->epsilon);
    return rc;
}

int dtn_norm_backward_sharded(const struct dtn_norm_backward *norm,
                              const struct dtn_parts *parts,
                              struct dtensor_error *err)
{
    const struct dtn_parts of = dtn_parts_after(parts);
    struct dtn_norm_backward last = *norm;
    struct dtn_array mean, rstd, sums;
    unsigned row = 0;
    int rc;

    for (int d = norm->in->ndim - norm->dims; d < norm->in->ndim; d++)
        row |= 1u << d;
    mean = numbers(&of, row, 0);
    rstd = numbers(&of, row, 1);
    sums = numbers(&of, row, norm->centred ? 2 : 3);
    last.sums = (double *)parts->work + NUMBERS * dtn_array_count(&mean);
    rc = norm_numbers(norm, &of, row, &mean, &rstd, err);
    if (rc != 0)
        return rc;
    dtn_norm_backward_sums(&last, &mean);
    rc = reduce(&of, &sums, norm->centred ? 2 : 1, DTENSOR_SUM, err);
    if (rc == 0)
        dtn_norm_backward_finish(&last, &mean, row_count(&of, row));
    return rc;
}

void dtn_take_one_sharded(const struct dtn_array *target, int64_t first,
                          const struct dtn_parts *parts)
{
    const struct dtn_parts of = dtn_parts_after(parts);
    const int dim = of.in->ndim - 1;
    struct dtn_array table = of.out[0];
    struct dtn_array place = numbers(&of, 1u << dim, 2), ones = place;
    double minus;                 /* room for one of any type                 */

    dtn_store(table.dtype, &minus, 0, -1);
    place.dtype = DTENSOR_I64;
    memset(place.data, 0, (size_t)dtn_array_count(&place) * sizeof(int64_t));
    dtn_places_add(place.data, target, first, table.shape[dim],
                   table.stride[dim]);
    table.shape[dim] = 1;
    table.stride[dim] = 0;
    ones.data = &minus;
    ones.dtype = table.dtype;
    memset(ones.stride, 0, sizeof ones.stride);
    dtn_array_put(&table, &place, &ones, true);
}
