/* test_pointwise.c - operations element by element
 *
 * Every operation on every type, operands of random shapes, broadcast, with
 * gaps and in any order, is compared with a naive twin: one element at a time,
 * in f64 or as integers.  With every vector width.
 *
 * Without this test, an operation could give other bits on a CPU with wider
 * vectors, or wrong ones for operands with gaps.
 */
#include "math/pointwise.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static uint64_t seed;

static double twin_unary(enum dtn_pointwise op, double x, double p, double q)
{
    switch (op) {
    case DTN_RELU: return x > 0 || x != x ? x : 0;
    case DTN_CEIL: return ceil(x);
    case DTN_FLOOR: return floor(x);
    case DTN_ROUND: return rint(x);
    case DTN_TRUNC: return trunc(x);
    case DTN_SIGN: return x != x ? x : (x > 0) - (x < 0);
    case DTN_EXP: return exp(x);
    case DTN_EXP2: return exp2(x);
    case DTN_EXPM1: return expm1(x);
    case DTN_SIGMOID: return 1 / (1 + exp(-x));
    case DTN_TANH: return tanh(x);
    case DTN_SINH: return sinh(x);
    case DTN_ASINH: return asinh(x);
    case DTN_ATAN: return atan(x);
    case DTN_ERF: return erf(x);
    case DTN_ERFC: return erfc(x);
    case DTN_NEG: return -x;
    case DTN_ABS: return fabs(x);
    case DTN_SQUARE: return x * x;
    case DTN_LOG: return log(x);
    case DTN_LOG2: return log2(x);
    case DTN_LOG10: return log10(x);
    case DTN_LOG1P: return log1p(x);
    case DTN_SQRT: return sqrt(x);
    case DTN_RSQRT: return 1 / sqrt(x);
    case DTN_RECIPROCAL: return 1 / x;
    case DTN_SIN: return sin(x);
    case DTN_COS: return cos(x);
    case DTN_GELU: return x * 0.5 * erfc(-x * 0.70710678118654752440);
    case DTN_SILU: return x / (1 + exp(-x));
    case DTN_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case DTN_CLAMP: return x != x ? x : fmin(fmax(x, p), q);
    case DTN_SHIFT: return x + p;
    case DTN_SCALE: return p * x;
    default: return pow(x, p);
    }
}

static double twin_float(enum dtn_pointwise op, const double x[],
                         const double args[])
{
    switch (op) {
    case DTN_ADD: return x[0] + x[1];
    case DTN_SUB: return x[0] - x[1];
    case DTN_MUL: return x[0] * x[1];
    case DTN_DIV: return x[0] / x[1];
    case DTN_MAXIMUM: return x[0] != x[0] || x[1] != x[1] ? (double)NAN
                             : x[0] > x[1] ? x[0] : x[1];
    case DTN_MINIMUM: return x[0] != x[0] || x[1] != x[1] ? (double)NAN
                             : x[0] < x[1] ? x[0] : x[1];
    case DTN_AXPY: return x[0] + args[0] * x[1];
    case DTN_LT: return x[0] < x[1];
    case DTN_LE: return x[0] <= x[1];
    case DTN_GT: return x[0] > x[1];
    case DTN_GE: return x[0] >= x[1];
    case DTN_EQ: return x[0] == x[1];
    case DTN_NE: return x[0] != x[1];
    case DTN_ADDCMUL: return x[0] + args[0] * x[1] * x[2];
    case DTN_ADDCDIV: return x[0] + args[0] * x[1] / x[2];
    case DTN_LERP: return x[0] + x[2] * (x[1] - x[0]);
    default: return twin_unary(op, x[0], args[0], args[1]);
    }
}

static int64_t over(bool is_u64, int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    if (is_u64)
        return (int64_t)((uint64_t)x / (uint64_t)y);
    return y == -1 ? (int64_t)-(uint64_t)x : x / y;
}

static bool less(bool is_u64, int64_t x, int64_t y)
{
    return is_u64 ? (uint64_t)x < (uint64_t)y : x < y;
}

static int64_t larger(bool is_u64, int64_t x, int64_t y)
{
    return less(is_u64, x, y) ? y : x;
}

static int64_t smaller(bool is_u64, int64_t x, int64_t y)
{
    return less(is_u64, y, x) ? y : x;
}

static int64_t twin_integer(enum dtn_pointwise op, bool is_u64,
                            const int64_t x[], const double args[])
{
    const uint64_t a = (uint64_t)x[0], b = (uint64_t)x[1], c = (uint64_t)x[2];
    int64_t arg[2];

    for (int i = 0; i < 2; i++)
        dtn_store(is_u64 ? DTENSOR_U64 : DTENSOR_I64, arg, (size_t)i, args[i]);
    const uint64_t p = (uint64_t)arg[0];

    switch (op) {
    case DTN_RELU: return less(is_u64, 0, x[0]) ? x[0] : 0;
    case DTN_SIGN: return less(is_u64, 0, x[0]) - less(is_u64, x[0], 0);
    case DTN_NEG: return (int64_t)-a;
    case DTN_ABS: return less(is_u64, x[0], 0) ? (int64_t)-a : x[0];
    case DTN_SQUARE: return (int64_t)(a * a);
    case DTN_CLAMP: return smaller(is_u64, larger(is_u64, x[0], arg[0]),
                                   arg[1]);
    case DTN_SHIFT: return (int64_t)(a + p);
    case DTN_SCALE: return (int64_t)(a * p);
    case DTN_ADD: return (int64_t)(a + b);
    case DTN_SUB: return (int64_t)(a - b);
    case DTN_MUL: return (int64_t)(a * b);
    case DTN_DIV: return over(is_u64, x[0], x[1]);
    case DTN_MAXIMUM: return larger(is_u64, x[0], x[1]);
    case DTN_MINIMUM: return smaller(is_u64, x[0], x[1]);
    case DTN_AXPY: return (int64_t)(a + p * b);
    case DTN_LT: return less(is_u64, x[0], x[1]);
    case DTN_LE: return !less(is_u64, x[1], x[0]);
    case DTN_GT: return less(is_u64, x[1], x[0]);
    case DTN_GE: return !less(is_u64, x[0], x[1]);
    case DTN_EQ: return a == b;
    case DTN_NE: return a != b;
    case DTN_ADDCMUL: return (int64_t)(a + p * b * c);
    case DTN_ADDCDIV: return (int64_t)(a + (uint64_t)over(
                                 is_u64, (int64_t)(p * b), x[2]));
    case DTN_LERP: return (int64_t)(a + c * (b - a));
    default: return x[0];
    }
}

/* How many units in the last place an operation may be off: those of basic
 * arithmetic none, but where f32 rounds after each of several steps.
 */
static double ulps_of(enum dtn_pointwise op, enum dtensor_dtype dtype)
{
    if (dtn_dtype_is_narrow(dtype))
        return 1;
    switch (op) {
    case DTN_EXP: case DTN_EXP2: case DTN_EXPM1: case DTN_TANH: case DTN_SINH:
    case DTN_ASINH: case DTN_ATAN: case DTN_ERF: case DTN_ERFC: case DTN_LOG:
    case DTN_LOG2: case DTN_LOG10: case DTN_LOG1P: case DTN_SIN: case DTN_COS:
    case DTN_SIGMOID: case DTN_SILU: case DTN_SOFTPLUS: case DTN_RSQRT:
    case DTN_POW:
        return 4;
    case DTN_GELU: case DTN_AXPY: case DTN_ADDCMUL: case DTN_ADDCDIV:
    case DTN_LERP:
        return 64;
    default:
        return 0;
    }
}

/* --------------------------------------------------------------- calls --- */

struct call {
    enum dtn_pointwise op;
    int nin;
    struct dtn_array out, in[3];
    double args[2];
};

static struct call call_new(enum dtn_pointwise op, enum dtensor_dtype dtype)
{
    const bool compares = op >= DTN_LT && op <= DTN_NE;
    const int ndim = rand_below(&seed, 4);
    int64_t shape[DTENSOR_MAX_DIMS];
    struct call call = { .op = op, .nin = dtn_pointwise_operands(op),
                         .args = { 2, 5 } };

    if (op == DTN_CLAMP && rand_below(&seed, 2)) {     /* all are the second */
        call.args[0] = 5;
        call.args[1] = 2;
    }
    sample_shape(&seed, ndim, 9, shape);
    if (ndim > 0 && rand_below(&seed, 8) == 0)
        shape[ndim - 1] = 1000 + rand_below(&seed, 200);
    call.out = sample_new(&seed, compares ? DTENSOR_BOOL : dtype, ndim, shape,
                          rand_below(&seed, 2));
    for (int i = 0; i < call.nin; i++) {
        const int skip = ndim > 0 ? rand_below(&seed, ndim) : 0;
        int64_t own[DTENSOR_MAX_DIMS];

        for (int d = skip; d < ndim; d++)
            own[d - skip] = rand_below(&seed, 4) == 0 ? 1 : shape[d];
        call.in[i] = sample_new(&seed, dtype, ndim - skip, own,
                                rand_below(&seed, 2));
        sample_fill(&seed, &call.in[i], rand_below(&seed, 2));
    }
    return call;
}

static void call_free(struct call *call)
{
    sample_free(&call->out);
    for (int i = 0; i < call->nin; i++)
        sample_free(&call->in[i]);
}

static bool real_is_right(const struct call *call, const int64_t index[])
{
    const enum dtensor_dtype dtype = call->in[0].dtype;
    const void *got = sample_at(&call->out, index);
    double x[3] = { 0 };
    int64_t whole[3] = { 0 }, at[DTENSOR_MAX_DIMS];

    for (int i = 0; i < call->nin; i++) {
        sample_broadcast(&call->in[i], call->out.ndim, index, at);
        x[i] = dtn_load(dtype, sample_at(&call->in[i], at), 0);
        if (!dtn_dtype_is_float(dtype))
            whole[i] = dtn_load_int(dtype, sample_at(&call->in[i], at), 0);
    }
    if (!dtn_dtype_is_float(dtype)) {
        int64_t want;

        dtn_store_int(call->out.dtype, &want, 0,
                      twin_integer(call->op, dtype == DTENSOR_U64, whole,
                                   call->args));
        return dtn_load_int(call->out.dtype, got, 0) ==
               dtn_load_int(call->out.dtype, &want, 0);
    }
    const double want = twin_float(call->op, x, call->args);

    if (call->out.dtype == DTENSOR_BOOL)
        return *(const uint8_t *)got == want;
    return sample_close(dtype, dtn_load(dtype, got, 0),
                        dtype == DTENSOR_F64 ? want : (double)(float)want,
                        ulps_of(call->op, dtype),
                        dtype == DTENSOR_F64 ? 1e-14 : 1e-6);
}

static double complex number_at(const struct dtn_array *array,
                                const int64_t index[])
{
    const void *at = sample_at(array, index);

    return array->dtype == DTENSOR_C64 ? *(const float complex *)at
                                       : *(const double complex *)at;
}

static double complex twin_complex(enum dtn_pointwise op,
                                   const double complex x[], double p)
{
    switch (op) {
    case DTN_ADD: return x[0] + x[1];
    case DTN_SUB: return x[0] - x[1];
    case DTN_MUL: return x[0] * x[1];
    case DTN_NEG: return -x[0];
    case DTN_ABS: return cabs(x[0]);
    case DTN_SCALE: return p * x[0];
    case DTN_EQ: return x[0] == x[1];
    case DTN_NE: return x[0] != x[1];
    case DTN_EXP: return cexp(x[0]);
    default: return (double)NAN;
    }
}

/* Of the operations on complex numbers some, as an example for all. */
static bool complex_is_right(const struct call *call, const int64_t index[])
{
    const double unit = call->in[0].dtype == DTENSOR_C64 ? 1e-6 : 1e-14;
    double complex x[3], got, want;
    int64_t at[DTENSOR_MAX_DIMS];

    for (int i = 0; i < call->nin; i++) {
        sample_broadcast(&call->in[i], call->out.ndim, index, at);
        x[i] = number_at(&call->in[i], at);
    }
    want = twin_complex(call->op, x, call->args[0]);
    if (call->out.dtype == DTENSOR_BOOL)
        return *(const uint8_t *)sample_at(&call->out, index) == creal(want);
    got = number_at(&call->out, index);
    return creal(want) != creal(want) || cabs(got - want) <= unit * cabs(want);
}

static bool call_is_right(const struct call *call)
{
    const bool complex_in = dtn_dtype_kind(call->in[0].dtype) ==
                            DTN_DTYPE_COMPLEX;
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    bool right = true;

    if (dtn_array_count(&call->out) == 0)
        return true;
    do
        right &= complex_in ? complex_is_right(call, index)
                            : real_is_right(call, index);
    while (sample_next(&call->out, index));
    return right;
}

static int count_wrong(enum dtn_pointwise op, enum dtensor_dtype dtype,
                       int calls)
{
    int wrong = 0;

    for (int i = 0; i < calls; i++) {
        struct call call = call_new(op, dtype);
        const struct dtn_array *const in[3] = { &call.in[0], &call.in[1],
                                                &call.in[2] };

        dtn_pointwise(op, &call.out, in, call.args);
        if (!call_is_right(&call)) {
            wrong++;
            note("operation %d on %s is wrong", (int)op,
                 dtensor_dtype_name(dtype));
        }
        call_free(&call);
    }
    return wrong;
}

static void test_operations(int width)
{
    const int calls = 8;
    int wrong = 0, tried = 0;

    for (int op = 0; op < DTN_POINTWISES; op++)
        for (int dtype = 0; dtype < DTENSOR_NDTYPES; dtype++)
            if (dtn_pointwise_ok((enum dtn_pointwise)op,
                                 (enum dtensor_dtype)dtype)) {
                tried++;
                wrong += count_wrong((enum dtn_pointwise)op,
                                     (enum dtensor_dtype)dtype, calls);
            }
    ok(wrong == 0, "width %d: %d pairs of an operation and a type, %d calls "
       "each, are the naive twin's: %d wrong (seed %llu)", width, tried, calls,
       wrong, (unsigned long long)rand_seed(2));
}

static void test_in_place(void)
{
    const int64_t shape[] = { 1300 };
    struct dtn_array a = sample_new(&seed, DTENSOR_BF16, 1, shape, false);
    struct dtn_array b = sample_new(&seed, DTENSOR_BF16, 1, shape, false);
    const struct dtn_array *const in[] = { &a, &a };

    sample_fill(&seed, &a, false);
    dtn_pointwise(DTN_MUL, &b, in, NULL);
    dtn_pointwise(DTN_MUL, &a, in, NULL);
    ok(memcmp(a.data, b.data, 2600) == 0,
       "the result may be the operand, both of them too");
    sample_free(&a);
    sample_free(&b);
}

/* An output above what a cache holds is made in pieces: the same bits as row by
 * row, for rows that no piece divides.
 */
static void test_large(void)
{
    enum { ROWS = 301, COLUMNS = 1009 };
    static float x[ROWS][COLUMNS], y[COLUMNS], out[ROWS][COLUMNS];
    const int64_t shape[] = { ROWS, COLUMNS };
    const struct dtn_array whole = dtn_array_packed(x, DTENSOR_F32, 2, shape);
    const struct dtn_array row = dtn_array_packed(y, DTENSOR_F32, 1, shape + 1);
    const struct dtn_array to = dtn_array_packed(out, DTENSOR_F32, 2, shape);
    int wrong = 0;

    for (int k = 0; k < COLUMNS; k++)
        y[k] = (float)rand_below(&seed, 1000) / 7.0F;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            x[i][k] = (float)rand_below(&seed, 1000) / 3.0F;
    dtn_pointwise(DTN_ADD, &to, (const struct dtn_array *[]){ &whole, &whole },
                  NULL);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            wrong += out[i][k] != x[i][k] + x[i][k];
    dtn_pointwise(DTN_ADD, &to, (const struct dtn_array *[]){ &whole, &row },
                  NULL);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            wrong += out[i][k] != x[i][k] + y[k];
    ok(wrong == 0, "of %d x %d sums %d are wrong", ROWS, COLUMNS, wrong);
}

int main(void)
{
    seed = rand_seed(2);
    for (int width = 0; dtn_width_force(width) && width < 3; width++)
        test_operations(width);
    dtn_width_force(-1);
    test_in_place();
    test_large();
    return done();
}
