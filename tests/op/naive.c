/* naive.c - operators on whole arrays of numbers, in the plainest way */
#include "tests/op/naive.h"

#include <math.h>
#include <string.h>

int64_t whole_count(const struct whole *w)
{
    int64_t n = 1;

    for (int d = 0; d < w->ndim; d++)
        n *= w->shape[d];
    return n;
}

bool place_next(int ndim, const int64_t shape[], int64_t index[])
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++index[d] < shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

double whole_at_place(const struct whole *w, int ndim, const int64_t index[])
{
    int64_t at = 0;

    for (int d = 0; d < w->ndim; d++)
        at = at * w->shape[d] +
             (w->shape[d] == 1 ? 0 : index[d + ndim - w->ndim]);
    return w->at[at];
}

/* -------------------------------------------------- element by element --- */

static double relu(double x) { return x > 0 ? x : 0; }
static double sign(double x) { return (x > 0) - (x < 0); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double neg(double x) { return -x; }
static double square(double x) { return x * x; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double reciprocal(double x) { return 1 / x; }
static double gelu(double x) { return x * (1 + erf(x / sqrt(2))) / 2; }
static double silu(double x) { return x / (1 + exp(-x)); }
static double softplus(double x) { return log(1 + exp(x)); }
static double same(double x) { return x; }

static const struct {
    const char *op;
    double (*f)(double x);
} unaries[] = {
    { "relu", relu }, { "ceil", ceil }, { "floor", floor }, { "round", rint },
    { "trunc", trunc }, { "sign", sign }, { "exp", exp }, { "exp2", exp2 },
    { "expm1", expm1 }, { "sigmoid", sigmoid }, { "tanh", tanh },
    { "sinh", sinh }, { "asinh", asinh }, { "atan", atan }, { "erf", erf },
    { "neg", neg }, { "erfc", erfc }, { "abs", fabs }, { "square", square },
    { "log", log }, { "log2", log2 }, { "log10", log10 }, { "log1p", log1p },
    { "sqrt", sqrt }, { "rsqrt", rsqrt }, { "reciprocal", reciprocal },
    { "sin", sin }, { "cos", cos }, { "gelu", gelu }, { "silu", silu },
    { "softplus", softplus }, { "clone", same }, { "view", same },
    { "reshape", same }, { "squeeze", same }, { "unsqueeze", same },
    { "expand", same },
};

static double add(double x, double y) { return x + y; }
static double sub(double x, double y) { return x - y; }
static double mul(double x, double y) { return x * y; }
static double divide(double x, double y) { return x / y; }
static double lt(double x, double y) { return x < y; }
static double le(double x, double y) { return x <= y; }
static double gt(double x, double y) { return x > y; }
static double ge(double x, double y) { return x >= y; }
static double eq(double x, double y) { return x == y; }
static double ne(double x, double y) { return x != y; }
static double second(double x, double y) { return y; }

static const struct {
    const char *op;
    double (*f)(double x, double y);
} binaries[] = {
    { "add", add }, { "sub", sub }, { "mul", mul }, { "div", divide },
    { "add_", add }, { "sub_", sub }, { "mul_", mul }, { "maximum", fmax },
    { "minimum", fmin }, { "lt", lt }, { "le", le }, { "gt", gt },
    { "ge", ge }, { "eq", eq }, { "ne", ne }, { "copy_", second },
};

/* Operators that have numbers, or three operands. */
static bool pointwise_other(const struct dtensor_op_call *call,
                            const double x[], double *y)
{
    const struct dtensor_op_args *args = &call->args;
    const char *op = call->op;

    if (strcmp(op, "scale") == 0 || strcmp(op, "scale_") == 0)
        *y = args->value * x[0];
    else if (strcmp(op, "shift") == 0)
        *y = args->value + x[0];
    else if (strcmp(op, "pow") == 0)
        *y = pow(x[0], args->p);
    else if (strcmp(op, "clamp") == 0)
        *y = fmin(fmax(x[0], args->low), args->high);
    else if (strcmp(op, "cast") == 0)
        *y = args->dtype == DTENSOR_BOOL ? x[0] != 0 : x[0];
    else if (strcmp(op, "where") == 0)
        *y = x[0] != 0 ? x[1] : x[2];
    else if (strcmp(op, "addcmul") == 0)
        *y = x[0] + args->value * x[1] * x[2];
    else if (strcmp(op, "addcdiv") == 0)
        *y = x[0] + args->value * x[1] / x[2];
    else if (strcmp(op, "lerp") == 0)
        *y = x[0] + x[2] * (x[1] - x[0]);
    else if (strcmp(op, "fill_") == 0 || strcmp(op, "full_like") == 0 ||
             strcmp(op, "new_full") == 0)
        *y = args->value;
    else if (strcmp(op, "zero_") == 0 || strcmp(op, "zeros_like") == 0 ||
             strcmp(op, "new_zeros") == 0)
        *y = 0;
    else if (strcmp(op, "ones_like") == 0 || strcmp(op, "new_ones") == 0)
        *y = 1;
    else
        return false;
    return true;
}

static bool pointwise_one(const struct dtensor_op_call *call, const double x[],
                          double *y)
{
    for (size_t i = 0; i < sizeof unaries / sizeof unaries[0]; i++)
        if (strcmp(unaries[i].op, call->op) == 0) {
            *y = unaries[i].f(x[0]);
            return true;
        }
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        if (strcmp(binaries[i].op, call->op) == 0) {
            *y = binaries[i].f(x[0], x[1]);
            return true;
        }
    return pointwise_other(call, x, y);
}

bool naive_pointwise(const struct dtensor_op_call *call,
                     const struct whole in[], struct whole *out)
{
    const bool view = strcmp(call->op, "view") == 0 ||
                      strcmp(call->op, "reshape") == 0 ||
                      strcmp(call->op, "squeeze") == 0 ||
                      strcmp(call->op, "unsqueeze") == 0;
    const bool fresh = strncmp(call->op, "new_", 4) == 0;
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    int64_t at = 0;
    double x[3] = { 0 };

    if (!pointwise_one(call, x, &x[1]))
        return false;
    if (whole_count(out) == 0)
        return true;
    do {
        for (int i = 0; i < call->nin && i < 3 && !fresh; i++)
            x[i] = view ? in[i].at[at]
                        : whole_at_place(&in[i], out->ndim, index);
        pointwise_one(call, x, &out->at[at++]);
    } while (place_next(out->ndim, out->shape, index));
    return true;
}

bool naive_op(const struct dtensor_op_call *call, const struct whole in[],
              int nout, struct whole out[])
{
    return naive_pointwise(call, in, &out[0]) ||
           naive_reduce(call, &in[0], nout, out) ||
           naive_product(call, in, &out[0]) ||
           naive_attention(call, in, nout, out) ||
           naive_row(call, in, nout, out) ||
           naive_backward(call, in, nout, out) ||
           naive_parts(call, in, nout, out);
}
