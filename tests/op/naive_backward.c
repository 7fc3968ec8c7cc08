/* naive_backward.c - gradients of whole arrays: each by its formula
 *
 * test_differences compares the same ones with slopes.
 */
#include "tests/op/naive.h"

#include <math.h>
#include <string.h>

static bool is(const char *op, const char *name)
{
    return strcmp(op, name) == 0;
}

/* w[k][n] = the sum over all rows of a[row][k] b[row][n]. */
static void weight(const struct whole *a, const struct whole *b,
                   struct whole *out)
{
    const int64_t rows = out->shape[0], columns = out->shape[1];
    const int64_t n = whole_count(a) / (rows ? rows : 1);

    for (int64_t i = 0; i < whole_count(out); i++) {
        out->at[i] = 0;
        for (int64_t r = 0; r < n; r++)
            out->at[i] += a->at[r * rows + i / columns] *
                          b->at[r * columns + i % columns];
    }
}

static double at(const struct whole *w, int ndim, const int64_t index[],
                 int64_t i, int64_t k)
{
    int64_t place[DTENSOR_MAX_DIMS];

    memcpy(place, index, sizeof place);
    place[ndim - 2] = i;
    place[ndim - 1] = k;
    return whole_at_place(w, ndim, place);
}

/* a b', or a' b, of the last two dimensions. */
static void turned(const struct whole *a, const struct whole *b, bool first,
                   struct whole *out)
{
    const int64_t terms = a->shape[a->ndim - (first ? 2 : 1)];
    int64_t index[DTENSOR_MAX_DIMS] = { 0 }, n = 0;

    if (whole_count(out) == 0)
        return;
    do {
        const int64_t i = index[out->ndim - 2], j = index[out->ndim - 1];
        double sum = 0;

        for (int64_t k = 0; k < terms; k++)
            sum += first ? at(a, out->ndim, index, k, i) *
                           at(b, out->ndim, index, k, j)
                         : at(a, out->ndim, index, i, k) *
                           at(b, out->ndim, index, j, k);
        out->at[n++] = sum;
    } while (place_next(out->ndim, out->shape, index));
}

/* One row of n elements: the gradient of each, by the mean of all.  sum: [2 n]
 * what the row adds to the gradients of weight and bias.
 */
static void norm_row(const double *g, const double *x, const double *w,
                     int64_t n, const double how[2], double *grad, double *sum)
{
    const double mean = how[0], rstd = how[1];
    const bool centred = !isnan(mean);
    double d = 0, dx = 0;

    for (int64_t i = 0; i < n; i++) {
        const double unit = (x[i] - (centred ? mean : 0)) * rstd;

        d += g[i] * (w ? w[i] : 1);
        dx += g[i] * (w ? w[i] : 1) * unit;
        sum[i] += g[i] * unit;
        sum[n + i] += g[i];
    }
    for (int64_t i = 0; i < n; i++)
        grad[i] = rstd * (g[i] * (w ? w[i] : 1) -
                          (centred ? d / (double)n : 0) -
                          (x[i] - (centred ? mean : 0)) * rstd * dx /
                          (double)n);
}

static void norm(const struct dtensor_op_call *call, const struct whole in[],
                 int nout, struct whole out[])
{
    static double sum[2 * WHOLE_MAX];
    const bool layer = is(call->op, "layer_norm_backward"), all = call->nin > 3;
    const double eps = call->args.eps > 0 ? call->args.eps : 1e-5;
    const double *w = all ? in[4].at : call->nin > 2 ? in[2].at : NULL;
    int64_t n = 1;

    for (int k = 0; k < (call->args.count > 0 ? call->args.count : 1); k++)
        n *= in->shape[in->ndim - 1 - k];
    memset(sum, 0, sizeof sum);
    for (int64_t r = 0; r < whole_count(in) / n; r++) {
        const double *x = &in[1].at[r * n];
        double mean = 0, squares = 0, how[2];

        for (int64_t i = 0; i < n && layer; i++)
            mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        how[0] = all ? in[2].at[r] : layer ? mean : NAN;
        how[1] = all ? in[3].at[r] : 1 / sqrt(squares / (double)n + eps);
        norm_row(&in->at[r * n], x, w, n, how, &out->at[r * n], sum);
    }
    for (int k = 1; k < nout; k++)
        memcpy(out[k].at, &sum[(k - 1) * n], (size_t)n * sizeof sum[0]);
}

/* The gradient of the loss of each row, over the rows for their mean. */
static void loss(const struct dtensor_op_call *call, const struct whole in[],
                 struct whole *out)
{
    const enum dtensor_op_reduction how = call->args.reduction;
    const int64_t n = in[1].shape[in[1].ndim - 1], rows = whole_count(&in[2]);

    for (int64_t i = 0; i < rows * n; i++) {
        const int64_t r = i / n;
        const double g = in->at[how == DTENSOR_OP_NONE ? r : 0];
        double sum = 0, share = 0;

        for (int64_t k = 0; k < n; k++)
            sum += exp(in[1].at[r * n + k]);
        if (is(call->op, "cross_entropy_backward"))
            share = call->nin > 3 ? exp(in[1].at[i] - in[3].at[r])
                                    / in[4].at[r]
                                  : exp(in[1].at[i]) / sum;
        if (i % n == (int64_t)in[2].at[r])
            share -= 1;
        out->at[i] = share * g / (how == DTENSOR_OP_MEAN ? (double)rows : 1);
    }
}

bool naive_backward(const struct dtensor_op_call *call,
                    const struct whole in[], int nout, struct whole out[])
{
    const char *op = call->op;

    if (is(op, "linear_weight"))
        weight(&in[0], &in[1], out);
    else if (is(op, "matmul_nt") || is(op, "matmul_tn"))
        turned(&in[0], &in[1], is(op, "matmul_tn"), out);
    else if (is(op, "layer_norm_backward") || is(op, "rms_norm_backward"))
        norm(call, in, nout, out);
    else if (is(op, "cross_entropy_backward") || is(op, "nll_loss_backward"))
        loss(call, in, out);
    else
        return false;
    return true;
}
