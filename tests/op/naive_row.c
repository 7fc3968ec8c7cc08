/* naive_row.c - operators on rows of whole arrays, each row on its own */
#include "tests/op/naive.h"

#include <math.h>
#include <string.h>

static bool is(const char *op, const char *name)
{
    return strcmp(op, name) == 0;
}

/* A row: n elements, one every `step`. */
struct row {
    int64_t n, step;
};

static double total(const double *x, struct row r)
{
    double sum = 0;

    for (int64_t i = 0; i < r.n; i++)
        sum += x[i * r.step];
    return sum;
}

static void softmax(const double *x, struct row r, bool logs, double *y)
{
    double most = -INFINITY, sum = 0;

    for (int64_t i = 0; i < r.n; i++)
        most = fmax(most, x[i * r.step]);
    for (int64_t i = 0; i < r.n; i++)
        sum += exp(x[i * r.step] - most);
    for (int64_t i = 0; i < r.n; i++)
        y[i * r.step] = logs ? x[i * r.step] - most - log(sum)
                             : exp(x[i * r.step] - most) / sum;
}

/* The gradient of the input, of that of the output g and the output y. */
static void softmax_backward(const double *g, const double *y, struct row r,
                             bool logs, double *x)
{
    double sum = 0;

    for (int64_t i = 0; i < r.n; i++)
        sum += logs ? g[i * r.step] : g[i * r.step] * y[i * r.step];
    for (int64_t i = 0; i < r.n; i++) {
        const double gi = g[i * r.step], yi = y[i * r.step];

        x[i * r.step] = logs ? gi - exp(yi) * sum : yi * (gi - sum);
    }
}

static void running(const double *x, struct row r, bool product, double *y)
{
    double now = product;

    for (int64_t i = 0; i < r.n; i++) {
        now = product ? now * x[i * r.step] : now + x[i * r.step];
        y[i * r.step] = now;
    }
}

/* Each element and its place: sort up, topk down, the first of equal ones
 * first.
 */
static void ranked(const double *x, struct row r, bool down, int64_t count,
                   double *y, double *place)
{
    for (int64_t i = 0; i < r.n; i++) {
        int64_t before = 0;

        for (int64_t k = 0; k < r.n; k++) {
            const double a = x[k * r.step], b = x[i * r.step];

            before += down ? a > b : a < b;
            before += a == b && k < i;
        }
        if (before < count) {
            y[before * r.step] = x[i * r.step];
            place[before * r.step] = (double)i;
        }
    }
}

/* One row from `x`; false: there is no such operator. */
static bool row_one(const struct dtensor_op_call *call, const double *x,
                    const double *more, struct row r, double *y, double *place)
{
    const char *op = call->op;

    if (is(op, "softmax") || is(op, "log_softmax"))
        softmax(x, r, is(op, "log_softmax"), y);
    else if (is(op, "softmax_backward") || is(op, "log_softmax_backward"))
        softmax_backward(x, more, r, is(op, "log_softmax_backward"), y);
    else if (is(op, "cumsum") || is(op, "cumprod"))
        running(x, r, is(op, "cumprod"), y);
    else if (is(op, "sort") || is(op, "topk"))
        ranked(x, r, is(op, "topk"), is(op, "topk") ? call->args.count : r.n, y,
               place);
    else
        return false;
    return true;
}

static void norm(const struct dtensor_op_call *call, const struct whole in[],
                 int64_t n, int nout, struct whole out[])
{
    const bool layer = is(call->op, "layer_norm");
    const double eps = call->args.eps > 0 ? call->args.eps : 1e-5;

    for (int64_t k = 0; k < whole_count(in) / n; k++) {
        const double *x = &in->at[k * n];
        const double mean = layer ? total(x, (struct row){ n, 1 }) / (double)n
                                  : 0;
        double square = 0, root;

        for (int64_t i = 0; i < n; i++)
            square += (x[i] - mean) * (x[i] - mean);
        root = 1 / sqrt(square / (double)n + eps);
        for (int64_t i = 0; i < n; i++)
            out->at[k * n + i] = (x[i] - mean) * root *
                                 (call->nin > 1 ? in[1].at[i] : 1) +
                                 (call->nin > 2 ? in[2].at[i] : 0);
        if (nout > 1)
            out[1].at[k] = layer ? mean : root;
        if (nout > 2)
            out[2].at[k] = root;
    }
}

/* Outputs 1 and 2 of a loss of scores: the largest one, and the sum of the
 * exponentials of what is between it and each.
 */
static void row_numbers(const double *x, int64_t n, int64_t row, int nout,
                        struct whole out[])
{
    double most = -INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    if (nout > 1)
        out[1].at[row] = most;
    if (nout > 2)
        out[2].at[row] = sum;
}

/* Minus the logarithm of the share of the class that is right. */
static void loss(const struct dtensor_op_call *call, const struct whole in[],
                 int nout, struct whole out[])
{
    static double shares[WHOLE_MAX];
    const enum dtensor_op_reduction how = call->args.reduction;
    const int64_t n = in->shape[in->ndim - 1], rows = whole_count(&in[1]);
    double sum = 0;

    memcpy(shares, in->at, sizeof shares);
    for (int64_t b = 0; b < rows && is(call->op, "cross_entropy"); b++)
        softmax(&in->at[b * n], (struct row){ n, 1 }, true, &shares[b * n]);
    for (int64_t b = 0; b < rows; b++) {
        const double one = -shares[b * n + (int64_t)in[1].at[b]];

        sum += one;
        if (how == DTENSOR_OP_NONE)
            out->at[b] = one;
    }
    if (how != DTENSOR_OP_NONE)
        out->at[0] = how == DTENSOR_OP_SUM ? sum : sum / (double)rows;
    if (nout > 1 && !is(call->op, "cross_entropy"))
        out[1].at[0] = how == DTENSOR_OP_NONE ? 0 : (double)rows;
    for (int64_t b = 0; b < rows && is(call->op, "cross_entropy"); b++)
        row_numbers(&in->at[b * n], n, b, nout, out);
}

bool naive_row(const struct dtensor_op_call *call, const struct whole in[],
               int nout, struct whole out[])
{
    static double none[WHOLE_MAX], more[WHOLE_MAX];
    const int d = call->args.ndims > 0
                ? (call->args.dim[0] + in->ndim) % in->ndim : 0;
    struct row r = { in->shape[d], 1 };
    int64_t n = 1;

    for (int k = 0; k < (call->args.count > 0 ? call->args.count : 1); k++)
        n *= in->ndim > k ? in->shape[in->ndim - 1 - k] : 1;
    if (is(call->op, "layer_norm") || is(call->op, "rms_norm")) {
        norm(call, in, n, nout, out);
        return true;
    }
    if (is(call->op, "nll_loss") || is(call->op, "cross_entropy")) {
        loss(call, in, nout, out);
        return true;
    }
    for (int k = d + 1; k < in->ndim; k++)
        r.step *= in->shape[k];
    if (!row_one(call, none, none, (struct row){ 0, 1 }, more, more))
        return false;
    for (int64_t i = 0; i < whole_count(in); i++)
        if (i / r.step % r.n == 0) {
            /* Results have other rows than the input, of topk. */
            const int64_t row = i / (r.step * r.n), at = i % r.step +
                row * r.step * out->shape[d];

            row_one(call, &in->at[i], call->nin > 1 ? &in[1].at[i] : none, r,
                    &out->at[at], nout > 1 ? &out[1].at[at] : none);
        }
    return true;
}
