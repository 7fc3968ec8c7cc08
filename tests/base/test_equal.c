/* test_equal.c - arrays are compared as numbers
 *
 * Every pair of 8-bit floats is compared, every 16-bit float with those that
 * look like it, and the special values of the other types, with what C says of
 * them.
 *
 * Without this test, dtensor_equal() could take NaN for a number, or 0 and -0
 * for different ones.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/equal.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Two patterns of bits of a float type, as numbers. */
static bool same_number(enum dtensor_dtype dtype, const void *a, const void *b)
{
    return dtn_load(dtype, a, 0) == dtn_load(dtype, b, 0);
}

static int wrong_pair(enum dtensor_dtype dtype, const void *a, const void *b)
{
    return dtn_equal(dtype, a, b, 1) != same_number(dtype, a, b);
}

static void test_bytes(enum dtensor_dtype dtype)
{
    int wrong = 0;

    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            wrong += wrong_pair(dtype, &(uint8_t){ (uint8_t)a },
                                &(uint8_t){ (uint8_t)b });
    ok(wrong == 0, "%s: every pair", dtensor_dtype_name(dtype));
}

static void test_halves(enum dtensor_dtype dtype)
{
    int wrong = 0;

    for (int a = 0; a < 65536; a++)
        for (int bit = 0; bit <= 16; bit++) {
            uint16_t x = (uint16_t)a, y = (uint16_t)(a ^ (1 << bit));

            wrong += wrong_pair(dtype, &x, &y);
        }
    ok(wrong == 0, "%s: every number, with itself and each bit turned",
       dtensor_dtype_name(dtype));
}

static void test_wide(void)
{
    static const double odd[] = { 0.0, -0.0, 1.0, -1.0, 1e-310, -1e-310, 1e-40,
        1e300, INFINITY, -INFINITY, NAN, -NAN, 1.0000001 };
    const size_t n = DTN_COUNT(odd);
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            float a = (float)odd[i], b = (float)odd[k];
            double x[2] = { 1, odd[i] }, y[2] = { 1, odd[k] };
            float p[2] = { a, 1 }, q[2] = { b, 1 };

            wrong += dtn_equal(DTENSOR_F64, &odd[i], &odd[k], 1) !=
                     (odd[i] == odd[k]);
            wrong += dtn_equal(DTENSOR_F32, &a, &b, 1) != (a == b);
            wrong += dtn_equal(DTENSOR_C128, x, y, 1) != (odd[i] == odd[k]);
            wrong += dtn_equal(DTENSOR_C64, p, q, 1) != (a == b);
        }
    ok(wrong == 0, "f32, f64, c64, c128: zeros, infinities, NaNs, subnormals");
}

/* One element of many, wherever it is, and bits that are only bits. */
static void test_long(void)
{
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_F64,
        DTENSOR_F16, DTENSOR_I32, DTENSOR_U8, DTENSOR_C128, DTENSOR_BOOL };
    static const size_t places[] = { 0, 1, 4095, 4096, 9999 };
    static double a[20000], b[20000];
    int wrong = 0;

    for (size_t t = 0; t < DTN_COUNT(dtypes); t++)
        for (size_t k = 0; k < DTN_COUNT(places); k++) {
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
            dtn_store(dtypes[t], b, places[k], 1);
            wrong += dtn_equal(dtypes[t], a, b, 10000);
            wrong += !dtn_equal(dtypes[t], a, b, places[k]);
            wrong += !dtn_equal(dtypes[t], b, b, 10000);
        }
    ok(wrong == 0, "one element of 10,000 differs, at both ends of a block");
    ok(!dtn_equal(DTENSOR_I32, &(int32_t){ INT32_MIN }, &(int32_t){ 0 }, 1) &&
       dtn_equal(DTENSOR_I64, &(int64_t){ -1 }, &(int64_t){ -1 }, 1) &&
       dtn_equal(DTENSOR_F32, NULL, NULL, 0),
       "integers have no second zero, and nothing equals nothing");
}

int main(void)
{
    test_bytes(DTENSOR_F8E4M3);
    test_bytes(DTENSOR_F8E5M2);
    test_halves(DTENSOR_F16);
    test_halves(DTENSOR_BF16);
    test_wide();
    test_long();
    return done();
}
