/* test_softmax.c - softmax, its loss and its gradient, norms; whole, in passes
 *
 * All are compared with their formulas in f64, on arrays with gaps, in any
 * order, of every float type.  Rows in two parts, each reduced alone, give what
 * the whole row gives.
 *
 * Without this test, a softmax over a dimension that is not the last one could
 * be wrong, or a large element overflow.
 */
#include "math/norm.h"
#include "math/pointwise.h"
#include "math/reduction.h"
#include "math/room.h"
#include "math/softmax.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

enum { CALLS = 60 };

static uint64_t seed;
static const enum dtensor_dtype floats[] = { DTENSOR_F32, DTENSOR_F64,
                                             DTENSOR_F16, DTENSOR_BF16 };

static double load(const struct dtn_array *array, const int64_t index[],
                   int dim, int64_t i)
{
    int64_t at[DTENSOR_MAX_DIMS];

    memcpy(at, index, sizeof at);
    at[dim] = i;
    return dtn_load(array->dtype, sample_at(array, at), 0);
}

/* The largest element and the log of the sum of exp(x - it). */
static double twin_most(const struct dtn_array *in, const int64_t index[],
                        int dim, double *logp)
{
    double most = (double)-INFINITY, sum = 0;

    for (int64_t i = 0; i < in->shape[dim]; i++)
        most = fmax(most, load(in, index, dim, i));
    for (int64_t i = 0; i < in->shape[dim]; i++)
        sum += exp(load(in, index, dim, i) - most);
    *logp = log(sum);
    return most;
}

static double twin_softmax(bool logarithm, const struct dtn_array *in,
                           const int64_t index[], int dim)
{
    double logsum;
    const double most = twin_most(in, index, dim, &logsum);
    const double x = load(in, index, dim, index[dim]) - most - logsum;

    return logarithm ? x : exp(x);
}

static bool close_to(const struct dtn_array *out, const int64_t index[],
                     double want)
{
    return sample_close(out->dtype, dtn_load(out->dtype, sample_at(out, index),
                                             0), want,
                        dtn_dtype_is_narrow(out->dtype) ? 2 : 40,
                        out->dtype == DTENSOR_F64 ? 1e-14 : 1e-6);
}

/* An input, and an array for the result. */
struct call {
    struct dtn_array in, out;
    int dim;
};

static struct call call_new(int i)
{
    const int ndim = 1 + rand_below(&seed, 4);
    struct call call = { .dim = rand_below(&seed, ndim) };
    int64_t shape[DTENSOR_MAX_DIMS];

    sample_shape(&seed, ndim, 5, shape);
    if (rand_below(&seed, 4) == 0) {               /* more than a block       */
        for (int d = 0; d < ndim; d++)
            shape[d] = 1;
        shape[call.dim] = (rand_below(&seed, 8) ? 500 : 4080) +
                          rand_below(&seed, 40);
    }
    call.in = sample_new(&seed, floats[i % 4], ndim, shape, i & 4);
    call.out = sample_new(&seed, floats[i % 4], ndim, shape, i & 8);
    sample_fill(&seed, &call.in, false);
    return call;
}

static void call_free(struct call *call)
{
    sample_free(&call->in);
    sample_free(&call->out);
}

static int softmax_wrong(const struct call *call, bool logarithm)
{
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    int wrong = 0;

    for (bool more = dtn_array_count(&call->out) > 0; more;
         more = sample_next(&call->out, index))
        wrong += !close_to(&call->out, index,
                           twin_softmax(logarithm, &call->in, index,
                                        call->dim));
    return wrong;
}

static void test_softmax(void)
{
    int wrong = 0;

    for (int i = 0; i < CALLS; i++) {
        struct call call = call_new(i);

        dtn_softmax(i & 1, &call.out, &call.in, call.dim, room);
        wrong += softmax_wrong(&call, i & 1);
        call_free(&call);
    }
    ok(wrong == 0, "softmax and its logarithm in %d calls: %d elements wrong "
       "(seed %llu)", CALLS, wrong, (unsigned long long)rand_seed(5));
}

/* `most` and `sum` of the halves of a row, put together. */
static void totals_of_halves(const struct call *call, struct dtn_array *most,
                             struct dtn_array *sum)
{
    const int64_t n = call->in.shape[call->dim], half = n / 2;
    const struct dtn_array first = dtn_array_sliced(&call->in, call->dim, 0,
                                                    half, 1);
    const struct dtn_array second = dtn_array_sliced(&call->in, call->dim,
                                                     half, n - half, 1);
    struct dtn_array other = sample_new(&seed, most->dtype, most->ndim,
                                        most->shape, false);
    const struct dtn_array *const two[] = { most, &other };
    const struct dtn_array *const sums[] = { sum, &other };

    dtn_reduce_dims(DTN_REDUCE_MAX, most, &first, 0, room);
    dtn_reduce_dims(DTN_REDUCE_MAX, &other, &second, 0, room);
    dtn_pointwise(DTN_MAXIMUM, most, two, NULL);
    dtn_softmax_sum(sum, &first, most);
    dtn_softmax_sum(&other, &second, most);
    dtn_pointwise(DTN_ADD, sum, sums, NULL);
    sample_free(&other);
}

static void test_passes(void)
{
    int wrong = 0;

    for (int i = 0; i < CALLS; i++) {
        struct call call = call_new(i);
        const enum dtensor_dtype wide = dtn_dtype_wide(call.in.dtype);
        int64_t shape[DTENSOR_MAX_DIMS];

        memcpy(shape, call.in.shape, sizeof shape);
        shape[call.dim] = 1;
        struct dtn_array most = sample_new(&seed, wide, call.in.ndim, shape,
                                           false);
        struct dtn_array sum = sample_new(&seed, wide, call.in.ndim, shape,
                                          i & 8);

        totals_of_halves(&call, &most, &sum);
        dtn_softmax_finish(i & 1, &call.out, &call.in, &most, &sum);
        wrong += softmax_wrong(&call, i & 1);
        sample_free(&most);
        sample_free(&sum);
        call_free(&call);
    }
    ok(wrong == 0, "in passes over halves of the rows, one of them empty now "
       "and then: %d elements wrong", wrong);
}

static void test_large(void)
{
    float in[] = { 1e30F, 1e30F, -1e30F, (float)-INFINITY }, out[4];
    float nothing[] = { (float)-INFINITY, (float)-INFINITY };
    const int64_t shape[] = { 4 }, two[] = { 2 }, one[] = { 1 };
    double sum = 9;
    float most = (float)-INFINITY;
    const struct dtn_array from = dtn_array_packed(in, DTENSOR_F32, 1, shape);
    const struct dtn_array to = dtn_array_packed(out, DTENSOR_F32, 1, shape);
    const struct dtn_array none = dtn_array_packed(nothing, DTENSOR_F32, 1,
                                                   two);
    const struct dtn_array m = dtn_array_packed(&most, DTENSOR_F32, 1, one);
    const struct dtn_array s = dtn_array_packed(&sum, DTENSOR_F64, 1, one);

    dtn_softmax(false, &to, &from, 0, room);
    ok(out[0] == 0.5F && out[1] == 0.5F && out[2] == 0 && out[3] == 0,
       "elements of 1e30 do not overflow");
    dtn_softmax_sum(&s, &none, &m);
    ok(sum == 0, "a part that is all -inf has the sum 0");
}

/* Along one element: 1, or 0; NaN where the difference to itself is. */
static void test_one(void)
{
    float in[] = { 3, -0.0F, (float)INFINITY, -(float)INFINITY, NAN }, out[5];
    const int64_t shape[] = { 5, 1 };
    const struct dtn_array from = dtn_array_packed(in, DTENSOR_F32, 2, shape);
    const struct dtn_array to = dtn_array_packed(out, DTENSOR_F32, 2, shape);

    for (int logarithm = 0; logarithm < 2; logarithm++) {
        dtn_softmax(logarithm, &to, &from, 1, room);
        ok(out[0] == !logarithm && out[1] == !logarithm && !signbit(out[1]) &&
           isnan(out[2]) && isnan(out[3]) && isnan(out[4]),
           "%s along one element: %g %g %g %g %g", logarithm ? "its logarithm"
           : "softmax", (double)out[0], (double)out[1], (double)out[2],
           (double)out[3], (double)out[4]);
    }
}

/* ------------------------------------------------------ loss, gradient --- */

static void test_loss(void)
{
    int wrong = 0;

    for (int i = 0; i < CALLS; i++) {
        struct call call = call_new(i);
        const int64_t n = call.in.shape[call.dim];
        int64_t shape[DTENSOR_MAX_DIMS], index[DTENSOR_MAX_DIMS] = { 0 };

        memcpy(shape, call.in.shape, sizeof shape);
        shape[call.dim] = 1;
        struct dtn_array loss = sample_new(&seed, call.in.dtype, call.in.ndim,
                                           shape, i & 1);
        struct dtn_array largest = sample_new(&seed, call.in.dtype,
                                              call.in.ndim, shape, i & 4);
        struct dtn_array sum = sample_new(&seed, call.in.dtype == DTENSOR_F64
                                          ? DTENSOR_F64 : DTENSOR_F32,
                                          call.in.ndim, shape, i & 8);
        struct dtn_array target = sample_new(&seed, i & 2 ? DTENSOR_I64
                                                          : DTENSOR_I32,
                                             call.in.ndim, shape, false);
        const bool any = dtn_array_count(&loss) > 0 && n > 0;

        for (bool more = any; more; more = sample_next(&loss, index))
            dtn_store_int(target.dtype, sample_at(&target, index), 0,
                          rand_below(&seed, (int)n));
        dtn_cross_entropy(&(struct dtn_row_loss){ .loss = &loss,
            .most = &largest, .sum = &sum, .in = &call.in, .target = &target,
            .dim = call.dim });
        for (bool more = any; more; more = sample_next(&loss, index)) {
            double logsum;
            const double most = twin_most(&call.in, index, call.dim, &logsum);
            const int64_t t = dtn_load_int(target.dtype,
                                           sample_at(&target, index), 0);

            wrong += !close_to(&loss, index, most + logsum -
                               load(&call.in, index, call.dim, t));
            wrong += !close_to(&largest, index, most);
            wrong += !close_to(&sum, index, exp(logsum));
        }
        sample_free(&loss);
        sample_free(&largest);
        sample_free(&sum);
        sample_free(&target);
        call_free(&call);
    }
    ok(wrong == 0, "cross entropy in %d calls: %d wrong", CALLS, wrong);
}

static double twin_backward(bool logarithm, const struct dtn_array *grad,
                            const struct dtn_array *out,
                            const int64_t index[], int dim)
{
    const double g = load(grad, index, dim, index[dim]);
    const double y = load(out, index, dim, index[dim]);
    double sum = 0;

    for (int64_t i = 0; i < grad->shape[dim]; i++)
        sum += load(grad, index, dim, i) *
               (logarithm ? 1 : load(out, index, dim, i));
    return logarithm ? g - exp(y) * sum : y * (g - sum);
}

static void test_gradient(void)
{
    int wrong = 0;

    for (int i = 0; i < CALLS; i++) {
        struct call call = call_new(i & ~3);
        struct dtn_array y = sample_new(&seed, call.in.dtype, call.in.ndim,
                                        call.in.shape, i & 1);
        int64_t index[DTENSOR_MAX_DIMS] = { 0 };

        sample_fill(&seed, &y, false);
        dtn_softmax(i & 1, &y, &y, call.dim, room);
        dtn_softmax_backward(i & 1, &call.out, &call.in, &y, call.dim);
        for (bool more = dtn_array_count(&y) > 0; more;
             more = sample_next(&y, index))
            wrong += !sample_close(DTENSOR_F32, dtn_load(
                         y.dtype, sample_at(&call.out, index), 0),
                         twin_backward(i & 1, &call.in, &y, index, call.dim),
                         40, 1e-4);
        sample_free(&y);
        call_free(&call);
    }
    ok(wrong == 0, "gradients in %d calls: %d elements wrong", CALLS, wrong);
}

/* --------------------------------------------------------------- norms --- */

struct norms {
    struct call call;
    struct dtn_array weight, bias, mean, rstd;
    struct dtn_norm norm;
};

static void norms_new(struct norms *n, int i)
{
    n->call = call_new(i);
    const struct dtn_array *in = &n->call.in;
    const int dims = 1 + rand_below(&seed, in->ndim);
    const enum dtensor_dtype wide = dtn_dtype_wide(in->dtype);
    int64_t less[DTENSOR_MAX_DIMS];

    for (int d = 0; d < in->ndim; d++)
        less[d] = d < in->ndim - dims ? in->shape[d] : 1;
    n->weight = sample_new(&seed, in->dtype, dims, in->shape + in->ndim - dims,
                           i & 1);
    n->bias = sample_new(&seed, in->dtype, dims, in->shape + in->ndim - dims,
                         i & 2);
    n->mean = sample_new(&seed, wide, in->ndim, less, false);
    n->rstd = sample_new(&seed, wide, in->ndim, less, i & 1);
    sample_fill(&seed, &n->weight, false);
    sample_fill(&seed, &n->bias, false);
    n->norm = (struct dtn_norm){
        .room = room,
        .out = &n->call.out, .in = &n->call.in, .dims = dims,
        .weight = rand_below(&seed, 3) ? &n->weight : NULL,
        .bias = rand_below(&seed, 3) ? &n->bias : NULL,
        .mean = &n->mean, .rstd = &n->rstd,
        .centred = rand_below(&seed, 2), .epsilon = 1e-3 };
    if (!n->norm.centred)
        n->norm.mean = NULL;
}

static void norms_free(struct norms *n)
{
    call_free(&n->call);
    sample_free(&n->weight);
    sample_free(&n->bias);
    sample_free(&n->mean);
    sample_free(&n->rstd);
}

static double twin_norm(const struct dtn_norm *norm, const int64_t index[])
{
    const int outer = norm->in->ndim - norm->dims;
    struct dtn_array row = *norm->in;
    int64_t at[DTENSOR_MAX_DIMS] = { 0 };
    double sum = 0, squares = 0;
    const double n = (double)dtn_array_count(&row);
    double count = 1;

    for (int d = 0; d < row.ndim; d++) {
        if (d < outer) {
            row.data = (char *)row.data + index[d] * row.stride[d] *
                       (int64_t)dtensor_dtype_size(row.dtype);
            row.shape[d] = 1;
        }
        count *= (double)row.shape[d];
    }
    for (bool more = n > 0; more; more = sample_next(&row, at))
        sum += dtn_load(row.dtype, sample_at(&row, at), 0);
    const double mean = norm->centred ? sum / count : 0;

    for (bool more = n > 0; more; more = sample_next(&row, at))
        squares += pow(dtn_load(row.dtype, sample_at(&row, at), 0) - mean, 2);
    const double x = dtn_load(row.dtype, sample_at(norm->in, index), 0);
    const double w = !norm->weight ? 1
                   : dtn_load(row.dtype, sample_at(norm->weight,
                                                   index + outer), 0);
    const double b = !norm->bias ? 0
                   : dtn_load(row.dtype, sample_at(norm->bias, index + outer),
                              0);

    return (x - mean) / sqrt(squares / count + norm->epsilon) * w + b;
}

static int norms_wrong(const struct norms *n)
{
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    int wrong = 0;

    for (bool more = dtn_array_count(&n->call.in) > 0; more;
         more = sample_next(&n->call.in, index))
        wrong += !close_to(&n->call.out, index, twin_norm(&n->norm, index));
    return wrong;
}

static void test_norms(void)
{
    int wrong = 0, passes = 0;

    for (int i = 0; i < CALLS; i++) {
        struct norms n;

        norms_new(&n, i);
        dtn_norm(&n.norm);
        wrong += norms_wrong(&n);
        dtn_norm_finish(&n.norm);
        passes += norms_wrong(&n);
        norms_free(&n);
    }
    ok(wrong == 0, "layer norm and RMS norm in %d calls: %d elements wrong",
       CALLS, wrong);
    ok(passes == 0, "and from the mean and rstd that they give: %d wrong",
       passes);
}

static void test_squares(void)
{
    const float in[] = { 1, 2, 3, 4, 5, 6 };
    const int64_t shape[] = { 2, 3 }, rows[] = { 2, 1 };
    float mean[] = { 2, 4 };
    double squares[2], plain[2];
    const struct dtn_array from = dtn_array_packed((void *)in, DTENSOR_F32, 2,
                                                   shape);
    const struct dtn_array m = dtn_array_packed(mean, DTENSOR_F32, 2, rows);
    struct dtn_array to = dtn_array_packed(squares, DTENSOR_F64, 2, rows);

    dtn_norm_squares(&to, &from, &m);
    to.data = plain;
    dtn_norm_squares(&to, &from, NULL);
    ok(squares[0] == 2 && squares[1] == 5 && plain[0] == 14 && plain[1] == 77,
       "sums of squares, with a mean and without");
}

int main(void)
{
    seed = rand_seed(5);
    test_softmax();
    test_passes();
    test_large();
    test_one();
    test_loss();
    test_gradient();
    test_norms();
    test_squares();
    return done();
}
