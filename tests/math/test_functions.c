/* test_functions.c - how exact exp, log, tanh and their kin are
 *
 * Every 10,007th f32, of both signs, subnormal ones, infinities and NaN among
 * them, is compared with libm's double: within 2 units in the last place, those
 * that are made of several functions within 4.  All vector widths give the same
 * bits.
 *
 * Without this test, exp could be wrong for the few arguments whose results are
 * subnormal, and softmax give other bits on another CPU.
 */
#include "math/pointwise.h"
#include "math/width.h"
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

    dtn_pointwise(functions[f].op, &out, operands, NULL);
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
    }
    free(x);
    free(y);
    free(other);
    return done();
}
