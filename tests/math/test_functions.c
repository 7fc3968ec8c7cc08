/* test_functions.c - how exact exp, log, tanh and their kin are
 *
 * Every 10,007th f32, of both signs, subnormal ones, infinities and NaN among
 * them, is compared with libm's double: within 2 units in the last place, those
 * that are made of several functions within 5.  f64 is compared with libm's
 * long double, for numbers of 0.001 to 700 and of any exponent, and both signs;
 * every bf16 with double, within 0.57 units, of which 0.5 are the rounding.
 * All vector widths give the same bits.
 *
 * Without this test, exp could be wrong for the few arguments whose results are
 * subnormal, and softmax give other bits on another CPU.
 */
#include "math/pointwise.h"
#include "math/width.h"
#include "base/narrow.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 10007, MOST = (int)(UINT32_MAX / STEP) + 8 };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static double power(double x)
{
    return pow(x, 2.5);
}

static const struct {
    const char *name;
    enum dtn_pointwise op;
    double (*exact)(double x);
    double ulps, least;
} functions[] = {
    { "exp", DTN_EXP, exp, 2, 0 },
    { "log", DTN_LOG, log, 2, 0 },
    { "tanh", DTN_TANH, tanh, 2, 0 },
    { "sigmoid", DTN_SIGMOID, sigmoid, 4, 1e-36 },
    { "silu", DTN_SILU, silu, 4, 1e-36 },
    { "softplus", DTN_SOFTPLUS, softplus, 4, 0 },
    { "exp2", DTN_EXP2, exp2, 2, 0 },
    { "expm1", DTN_EXPM1, expm1, 2, 0 },
    { "sinh", DTN_SINH, sinh, 4, 0 },
    { "log2", DTN_LOG2, log2, 2, 0 },
    { "log10", DTN_LOG10, log10, 2, 0 },
    { "log1p", DTN_LOG1P, log1p, 2, 0 },
    { "erf", DTN_ERF, erf, 4, 0 },
    { "erfc", DTN_ERFC, erfc, 5, 1e-44 },
    { "gelu", DTN_GELU, gelu, 5, 0x1p-126 },
    { "sin", DTN_SIN, sin, 2, 0 },
    { "cos", DTN_COS, cos, 2, 0 },
    { "pow 2.5", DTN_POW, power, 2, 0 },
};

static int64_t fill(float x[])
{
    const float ends[] = { INFINITY, -INFINITY, NAN, 0.0F, -0.0F, 88.72F,
                           -103.9F };
    int64_t n = 0;

    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STEP) {
        const uint32_t word = (uint32_t)bits;

        memcpy(&x[n++], &word, sizeof word);
    }
    memcpy(x + n, ends, sizeof ends);
    return n + 7;
}

static int count_wrong(int f, const float x[], const float y[], int64_t n)
{
    int wrong = 0;

    for (int64_t i = 0; i < n; i++)
        if (!sample_close(DTENSOR_F32, (double)y[i],
                          functions[f].exact((double)x[i]), functions[f].ulps,
                          functions[f].least) && wrong++ < 3)
            note("%s(%a) is %a, not %a", functions[f].name, (double)x[i],
                 (double)y[i], functions[f].exact((double)x[i]));
    return wrong;
}

/* The same bits; any NaN is one. */
static int count_different(const float x[], const float y[], int64_t n)
{
    int different = 0;

    for (int64_t i = 0; i < n; i++)
        different += memcmp(&x[i], &y[i], sizeof *x) != 0 &&
                     (x[i] == x[i] || y[i] == y[i]);
    return different;
}

static void run(int f, float x[], float y[], int64_t n)
{
    const struct dtn_array in = dtn_array_packed(x, DTENSOR_F32, 1, &n);
    const struct dtn_array out = dtn_array_packed(y, DTENSOR_F32, 1, &n);
    const struct dtn_array *const operands[] = { &in };

    dtn_pointwise(functions[f].op, &out, operands, (double[]){ 2.5, 0 });
}

/* ------------------------------------------------------------------ f64 --- */

static long double gelu_long(long double x)
{
    return 0.5L * x * erfcl(-x * 0.707106781186547524400844362104849039L);
}

static long double power_long(long double x)
{
    return powl(x, 2.5L);
}

static long double softplus_long(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double sigmoid_long(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double silu_long(long double x)
{
    return x / (1 + expl(-x));
}

static const struct {
    const char *name;
    enum dtn_pointwise op;
    long double (*exact)(long double x);
    double ulps;
} wide[] = {
    { "exp", DTN_EXP, expl, 4 },
    { "log", DTN_LOG, logl, 2 },
    { "tanh", DTN_TANH, tanhl, 4 },
    { "log1p", DTN_LOG1P, log1pl, 4 },
    { "expm1", DTN_EXPM1, expm1l, 4 },
    { "sinh", DTN_SINH, sinhl, 4 },
    { "sigmoid", DTN_SIGMOID, sigmoid_long, 4 },
    { "silu", DTN_SILU, silu_long, 4 },
    { "softplus", DTN_SOFTPLUS, softplus_long, 4 },
    { "erf", DTN_ERF, erfl, 4 },
    { "erfc", DTN_ERFC, erfcl, 5 },
    { "gelu", DTN_GELU, gelu_long, 5 },
    { "exp2", DTN_EXP2, exp2l, 2 },
    { "log2", DTN_LOG2, log2l, 2 },
    { "log10", DTN_LOG10, log10l, 2 },
    { "sin", DTN_SIN, sinl, 2 },
    { "cos", DTN_COS, cosl, 2 },
    { "pow 2.5", DTN_POW, power_long, 2 },
};

enum { WIDE = 20000 };

static void run_wide(int f, double x[], double y[])
{
    const int64_t n = WIDE;
    const struct dtn_array in = dtn_array_packed(x, DTENSOR_F64, 1, &n);
    const struct dtn_array out = dtn_array_packed(y, DTENSOR_F64, 1, &n);
    const struct dtn_array *const operands[] = { &in };

    dtn_pointwise(wide[f].op, &out, operands, (double[]){ 2.5, 0 });
}

/* Beyond 1e-300 a result may be subnormal on its way. */
static void check_wide(int f, double x[], double y[], double other[])
{
    int wrong = 0, different = 0;

    dtn_width_force(0);
    run_wide(f, x, y);
    for (int i = 0; i < WIDE; i++) {
        const long double want = wide[f].exact((long double)x[i]);
        const long double off = fabsl((long double)y[i] - want);

        if (!(off <= (long double)wide[f].ulps * 0x1p-52L * fabsl(want) +
                     1e-300L) &&
            !(isnan(y[i]) && isnan(want)) && y[i] != (double)want &&
            wrong++ < 3)
            note("%s(%a) is %a, not %La", wide[f].name, x[i], y[i], want);
    }
    ok(wrong == 0, "f64: %s of %d numbers: %d are more than %g units off",
       wide[f].name, WIDE, wrong, wide[f].ulps);
    for (int width = 1; width < 3 && dtn_width_force(width); width++) {
        run_wide(f, x, other);
        for (int i = 0; i < WIDE; i++)
            different += memcmp(&y[i], &other[i], sizeof y[i]) != 0 &&
                         !isnan(y[i]);
    }
    ok(different == 0, "f64: %s: every vector width gives the same bits",
       wide[f].name);
}

static void check_f64(void)
{
    static double x[WIDE], y[WIDE], other[WIDE];

    for (int i = 0; i < WIDE / 2; i++) {
        const double some = 0.001 * exp((double)(i / 2) * 2.69e-3);
        const double any = ldexp(1 + fmod(i * 0.6180339887, 1),
                                 i % 2084 - 1060);

        x[i] = i % 2 ? -some : some;
        x[WIDE / 2 + i] = i % 3 ? -any : any;
    }
    for (int f = 0; f < (int)(sizeof wide / sizeof *wide); f++)
        check_wide(f, x, y, other);
}

/* ----------------------------------------------------------------- bf16 --- */

/* Of a bf16 near x, in units of its last place. */
static double bf16_off(double x, double exact)
{
    const int e = exact == 0 ? -126 : ilogb(exact);

    return fabs(x - exact) / ldexp(1, (e < -126 ? -126 : e) - 7);
}

/* Every bf16 there is: half a unit is the rounding to bf16 itself. */
static void check_bf16(int f)
{
    enum { ALL = 65536 };
    static uint16_t x[ALL], y[ALL];
    const int64_t n = ALL;
    const struct dtn_array in = dtn_array_packed(x, DTENSOR_BF16, 1, &n);
    const struct dtn_array out = dtn_array_packed(y, DTENSOR_BF16, 1, &n);
    const struct dtn_array *const operands[] = { &in };
    const double least = fmax(functions[f].least, 0x1p-125);
    double worst = 0;
    int wrong = 0;

    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    dtn_pointwise(functions[f].op, &out, operands, (double[]){ 2.5, 0 });
    for (int i = 0; i < ALL; i++) {
        const double want = functions[f].exact((double)dtn_bf16_widen(x[i]));
        const double got = (double)dtn_bf16_widen(y[i]);
        const bool large = fabs(want) >= 0x1.ffp127;

        if (isnan(want) || large || fabs(want) < least) {
            wrong += isnan(want) ? !isnan(got) : large ? fabs(got) < 0x1p127
                   : fabs(got - want) > least;
            continue;
        }
        worst = fmax(worst, bf16_off(got, want));
    }
    ok(wrong == 0 && worst < 0.57, "bf16: %s of all numbers: %.3f units off, "
       "%d wrong at the ends", functions[f].name, worst, wrong);
}

int main(void)
{
    float *x = malloc(MOST * sizeof *x), *y = malloc(MOST * sizeof *y);
    float *other = malloc(MOST * sizeof *other);
    const int64_t n = fill(x);

    for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++) {
        int different = 0;

        dtn_width_force(0);
        run(f, x, y, n);
        const int wrong = count_wrong(f, x, y, n);

        ok(wrong == 0, "%s of %d numbers: %d are more than %g units off",
           functions[f].name, (int)n, wrong, functions[f].ulps);
        for (int width = 1; width < 3 && dtn_width_force(width); width++) {
            run(f, x, other, n);
            different += count_different(y, other, n);
        }
        ok(different == 0, "%s: every vector width gives the same bits",
           functions[f].name);
        dtn_width_force(-1);
        check_bf16(f);
    }
    free(x);
    free(y);
    free(other);
    check_f64();
    return done();
}
