/* test_sum_log.c - the logarithm of a sum of exponentials
 *
 * dtn_finish_log() is compared with libm's logl() for sums from 1, dense near 1
 * and 2, to the largest f64, at every vector width: within 7e-11 for f32, so
 * that the rounded f32 is within 0.502 units, within 2 units for f64.  Then the
 * ends: 1, 0, an infinity, a NaN, a negative number.
 *
 * Without this test, a wrong coefficient would cost log-softmax the digits of a
 * prediction that is nearly certain, log(1 + 1e-9), and nobody would see it.
 */
#include "math/finish.h"
#include "math/width.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { STEPS = 200000 };

/* Sum number i of so many, of each kind from the least to the largest. */
static double near_one(int i)
{
    return 1 + exp2(-52 + 52.0 * i / STEPS);
}

static double of_a_row(int i)
{
    return 1 + 0.37 * i;
}

static double around_two(int i)
{
    return 1.25 + 1.5 * i / STEPS;
}

static double any(int i)
{
    return ldexp(1 + fmod(i * 0.6180339887, 1), (int)((int64_t)i * 1023 /
                                                      STEPS));
}

/* The largest error of the results, relative to them; 9 if two vector widths
 * differ.
 */
static double relative_error(enum dtensor_dtype work, double (*sum)(int i))
{
    double worst = 0;

    for (int i = 0; i <= STEPS; i++) {
        const double x = sum(i);
        const long double exact = logl(x);
        double log[3] = { 0 };
        int widths = 0;

        for (; widths < 3 && dtn_width_force(widths); widths++)
            log[widths] = dtn_finish_log(work, x);
        for (int k = 1; k < widths; k++)
            if (memcmp(&log[k], &log[0], sizeof log[0]) != 0)
                return 9;
        if (x == 1 ? log[0] != 0 : x != x)
            return 9;
        if (x > 1)
            worst = fmax(worst, (double)fabsl((log[0] - exact) / exact));
    }
    return worst;
}

static void test_sums(enum dtensor_dtype work, double bound)
{
    static const struct {
        const char *name;
        double (*sum)(int i);
    } sums[] = {
        { "1 and a little", near_one }, { "rows", of_a_row },
        { "1.25 to 2.75", around_two }, { "any exponent", any },
    };

    for (size_t k = 0; k < sizeof sums / sizeof sums[0]; k++) {
        const double error = relative_error(work, sums[k].sum);

        ok(error <= bound, "log of sums of %s, %s: off by %.3g, at most %.3g",
           dtensor_dtype_name(work), sums[k].name, error, bound);
    }
}

/* The bits of the f32 that comes out are those of the exact one, but for a
 * few that lie between two.
 */
static void test_rounded(void)
{
    int differ = 0;
    double worst = 0;

    dtn_width_force(-1);
    for (int i = 1; i <= STEPS; i++) {
        const long double exact = logl(near_one(i));
        const float made = (float)dtn_finish_log(DTENSOR_F32, near_one(i));
        const double unit = ldexp(1, ilogb((double)exact) - 23);

        differ += made != (float)exact;
        worst = fmax(worst, (double)fabsl(made - exact) / unit);
    }
    ok(worst < 0.502 && differ < STEPS / 500,
       "rounded to f32: off by %.4f units, %d of %d differ", worst, differ,
       STEPS);
}

static void test_ends(enum dtensor_dtype work)
{
    bool right = true;

    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        right = right && dtn_finish_log(work, 1) == 0 &&
                dtn_finish_log(work, 0) == -(double)INFINITY &&
                dtn_finish_log(work, (double)INFINITY) == (double)INFINITY &&
                isnan(dtn_finish_log(work, (double)NAN)) &&
                isnan(dtn_finish_log(work, -1)) &&
                fabs(dtn_finish_log(work, DBL_MAX) / log(DBL_MAX) - 1) < 1e-10;
    dtn_width_force(-1);
    ok(right, "log of 1, 0, an infinity, a NaN, -1 and the largest %s",
       dtensor_dtype_name(work));
}

int main(void)
{
    test_sums(DTENSOR_F32, 7e-11);
    test_sums(DTENSOR_F64, 2 * DBL_EPSILON);
    test_rounded();
    test_ends(DTENSOR_F32);
    test_ends(DTENSOR_F64);
    return done();
}
