/* naive_reduce.c - reductions of whole arrays: gather a row, then fold it */
#include "tests/op/naive.h"

#include <math.h>
#include <string.h>

static bool is(const char *op, const char *name)
{
    return strcmp(op, name) == 0;
}

/* Which element has `rank` smaller ones, or equal ones before it. */
static int64_t ranked(const double row[], int64_t n, int64_t rank)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0;

        for (int64_t k = 0; k < n; k++)
            before += row[k] < row[i] || (row[k] == row[i] && k < i);
        if (before == rank)
            return i;
    }
    return 0;
}

/* The last element of the least value that is there most often. */
static int64_t often(const double row[], int64_t n)
{
    int64_t best = 0, most = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t count = 0;

        for (int64_t k = 0; k < n; k++)
            count += row[k] == row[i];
        if (count > most || (count == most && row[i] <= row[best])) {
            most = count;
            best = i;
        }
    }
    return best;
}

static double sum_of(const double row[], int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += row[i];
    return sum;
}

static double norm_of(const double row[], int64_t n, double p, bool root)
{
    double sum = 0;

    if (isinf(p) && n > 0)
        sum = fabs(row[0]);
    for (int64_t i = 0; i < n; i++) {
        const double x = fabs(row[i]);

        if (isinf(p))
            sum = p > 0 ? fmax(sum, x) : fmin(sum, x);
        else
            sum += p == 0 ? x != 0 : pow(x, p);
    }
    return root && !isinf(p) && p != 0 ? pow(sum, 1 / p) : sum;
}

static double variance_of(const double row[], int64_t n)
{
    const double mean = sum_of(row, n) / (double)n;
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (row[i] - mean) * (row[i] - mean);
    return sum / (double)(n - 1);
}

/* Where the largest (least) one is first. */
static int64_t place_of(const double row[], int64_t n, bool largest)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        if (largest ? row[i] > row[best] : row[i] < row[best])
            best = i;
    return best;
}

static bool fold(const struct dtensor_op_call *call, double row[], int64_t n,
                 double y[2])
{
    const char *op = call->op;
    double most = -INFINITY, least = INFINITY, product = 1, sum = 0;
    double any = 0, all = 1;

    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, row[i]);
        least = fmin(least, row[i]);
        product *= row[i];
        any = any || row[i] != 0;
        all = all && row[i] != 0;
    }
    for (int64_t i = 0; i < n; i++)
        sum += exp(row[i] - most);
    y[1] = 0;
    if (is(op, "sum"))
        y[0] = sum_of(row, n);
    else if (is(op, "mean"))
        y[0] = sum_of(row, n) / (double)n;
    else if (is(op, "prod"))
        y[0] = product;
    else if (is(op, "amax") || is(op, "amin"))
        y[0] = is(op, "amax") ? most : least;
    else if (is(op, "all") || is(op, "any"))
        y[0] = is(op, "all") ? all : any;
    else if (is(op, "norm") || is(op, "powsum"))
        y[0] = norm_of(row, n, call->args.p, is(op, "norm"));
    else if (is(op, "var") || is(op, "std"))
        y[0] = is(op, "var") ? variance_of(row, n) : sqrt(variance_of(row, n));
    else if (is(op, "logsumexp"))
        y[0] = most + log(sum);
    else if (is(op, "argmax") || is(op, "argmin"))
        y[0] = (double)place_of(row, n, is(op, "argmax"));
    else if (is(op, "max_dim") || is(op, "min_dim")) {
        y[1] = (double)place_of(row, n, is(op, "max_dim"));
        y[0] = row[(int64_t)y[1]];
    } else if (is(op, "mode")) {
        y[1] = (double)often(row, n);
        y[0] = row[(int64_t)y[1]];
    } else if (is(op, "median_dim") || is(op, "kthvalue")) {
        y[1] = (double)ranked(row, n, is(op, "kthvalue") ? call->args.count - 1
                                                         : (n - 1) / 2);
        y[0] = row[(int64_t)y[1]];
    } else {
        return false;
    }
    return true;
}

/* The elements of `in` that become the element of the output at `index`. */
static int64_t row_gather(const struct whole *in, const bool reduced[],
                          bool keep, const int64_t index[], double row[])
{
    int64_t at[DTENSOR_MAX_DIMS] = { 0 };
    int64_t n = 0;

    if (whole_count(in) == 0)
        return 0;
    do {
        bool here = true;

        for (int d = 0, o = 0; d < in->ndim; d++) {
            here = here && (reduced[d] || at[d] == index[o]);
            o += keep || !reduced[d];
        }
        if (here)
            row[n++] = whole_at_place(in, in->ndim, at);
    } while (place_next(in->ndim, in->shape, at));
    return n;
}

bool naive_reduce(const struct dtensor_op_call *call, const struct whole *in,
                  int nout, struct whole out[])
{
    bool reduced[DTENSOR_MAX_DIMS] = { false };
    int64_t index[DTENSOR_MAX_DIMS] = { 0 }, at = 0;
    double row[WHOLE_MAX] = { 0 }, y[2];

    for (int d = 0; d < in->ndim; d++)
        reduced[d] = call->args.ndims == 0;
    for (int i = 0; i < call->args.ndims; i++)
        reduced[(call->args.dim[i] + in->ndim) % in->ndim] = true;
    if (!fold(call, row, 1, y))
        return false;
    if (whole_count(out) == 0)
        return true;
    do {
        const int64_t n = row_gather(in, reduced, call->args.keep, index, row);

        fold(call, row, n, y);
        for (int i = 0; i < nout; i++)
            out[i].at[at] = y[i];
        at++;
    } while (place_next(out->ndim, out->shape, index));
    return true;
}
