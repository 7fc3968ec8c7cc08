/* test_reduce.c - reductions at every vector width
 *
 * dtn_fold() is compared with its naive twin for every type, reduction and
 * width, and the twin with known answers.
 *
 * Without this test, the AVX-512 code could give other bits than the scalar
 * code, and the result of a job would depend on its CPUs.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"
#include "tests/base/elements.h"
#include "tests/support/naive.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { NSRC = 5, MOST = 5000, EDGE = 4, ARRAY = (MOST + 2 * EDGE) * 16 };

static _Alignas(64) char sources[NSRC][ARRAY], arrays[NSRC][ARRAY];
static _Alignas(64) char dst[ARRAY], want[ARRAY];
static uint64_t seed;

/* One call: `alias` is the source that is also dst, or -1. */
static bool reduce_is_right(int width, enum dtensor_dtype dtype,
                            enum dtensor_redop op, int nsrc, size_t count,
                            size_t first, int alias)
{
    const size_t size = dtensor_dtype_size(dtype);
    const size_t start = first * size, length = count * size;
    const void *src[NSRC];
    const struct dtn_reduction how = dtn_reduction(dtype, op, 1);
    char *out = alias < 0 ? dst : arrays[alias];
    bool right;

    for (int s = 0; s < nsrc; s++) {
        memcpy(arrays[s], sources[s], start + length + EDGE * size);
        src[s] = arrays[s] + start;
    }
    if (alias < 0)
        memset(dst, 0x5a, start + length + EDGE * size);
    dtn_fold_width(width, &how, 0, out + start, src, nsrc, count);
    right = memcmp(out + start, want + start, length) == 0;
    for (int s = 0; s < nsrc; s++)
        right &= s == alias || memcmp(arrays[s], sources[s],
                                      start + length + EDGE * size) == 0;
    for (size_t i = 0; alias < 0 && i < EDGE * size; i++)
        right &= dst[start + length + i] == 0x5a &&
                 (i >= start || dst[i] == 0x5a);
    return right;
}

static int count_wrong(int width, enum dtensor_dtype dtype,
                       enum dtensor_redop op, int nsrc, size_t count)
{
    const size_t first = (count + (size_t)nsrc) % EDGE;
    const size_t start = first * dtensor_dtype_size(dtype);
    const void *src[NSRC];
    int wrong = 0;

    for (int s = 0; s < nsrc; s++)
        src[s] = sources[s] + start;
    naive_reduce(dtype, op, want + start, src, nsrc, count);
    for (int alias = -1; alias < nsrc; alias++)
        if (!reduce_is_right(width, dtype, op, nsrc, count, first, alias)) {
            note("%s %s %s: %zu elements from %zu, %d sources, dst = src %d",
                 dtn_reduce_width_name(width), dtensor_dtype_name(dtype),
                 dtensor_redop_name(op), count, first, nsrc, alias);
            wrong++;
        }
    return wrong;
}

static void test_width(int width, enum dtensor_dtype dtype,
                       enum dtensor_redop op)
{
    static const size_t larger[] = { 255, 511, 1023, 1025, 2047, 4097, MOST };
    int wrong = 0;

    for (int nsrc = 1; nsrc <= NSRC; nsrc++) {
        for (size_t count = 0; count < 68; count++)
            wrong += count_wrong(width, dtype, op, nsrc, count);
        for (size_t i = 0; i < DTN_COUNT(larger); i++)
            wrong += count_wrong(width, dtype, op, nsrc, larger[i]);
    }
    ok(wrong == 0, "%s %s, %s: 1 to %d sources give the naive twin's bits",
       dtensor_dtype_name(dtype), dtensor_redop_name(op),
       dtn_reduce_width_name(width), NSRC);
}

static void test_all_widths(void)
{
    int width;

    for (int t = 0; t < DTENSOR_NDTYPES; t++) {
        const enum dtensor_dtype dtype = (enum dtensor_dtype)t;

        for (int s = 0; s < NSRC; s++)
            elements_fill(&seed, dtype, sources[s], MOST + 2 * EDGE);
        for (int o = 0; o < DTENSOR_NREDOPS; o++)
            for (width = 0; dtn_reduce_width_name(width); width++)
                if (dtn_redop_ok((enum dtensor_redop)o, dtype))
                    test_width(width, dtype, (enum dtensor_redop)o);
    }
    ok(!dtn_reduce_width_name(-1) && dtn_reduce_width_name(0),
       "there is a narrowest width, and none before it");
}

/* ------------------------------------------------------ known answers --- */

static void reduce(enum dtensor_dtype dtype, enum dtensor_redop op, void *to,
                   const void *const src[], int nsrc, size_t count)
{
    const struct dtn_reduction how = dtn_reduction(dtype, op, 1);

    dtn_fold(&how, 0, to, src, nsrc, count);
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static const struct {
    enum dtensor_dtype dtype;
    enum dtensor_redop op;
    double a, b, c, want;
} known[] = {
    { DTENSOR_F32, DTENSOR_SUM, 0x1p24, 1, 1, 0x1p24 },
    { DTENSOR_F64, DTENSOR_SUM, 0x1p24, 1, 1, 0x1p24 + 2 },
    { DTENSOR_F64, DTENSOR_AVG, 1, 2, 3, 6 },
    { DTENSOR_F16, DTENSOR_SUM, 2048, 1, 1, 2050 },
    { DTENSOR_F16, DTENSOR_SUM, 65504, 65504, -65504, 65504 },
    { DTENSOR_F16, DTENSOR_PROD, 256, 256, 1, (double)INFINITY },
    { DTENSOR_BF16, DTENSOR_SUM, 256, 1, 1, 258 },
    { DTENSOR_F32, DTENSOR_MIN, 3, -2, 1, -2 },
    { DTENSOR_F32, DTENSOR_MAX, 3, -2, 1, 3 },
    { DTENSOR_F32, DTENSOR_MIN, 0.0, -0.0, 0.0, 0.0 },
    { DTENSOR_F32, DTENSOR_MAX, -0.0, 0.0, 0.0, -0.0 },
    { DTENSOR_F32, DTENSOR_MIN, 1, (double)NAN, 0, (double)NAN },
    { DTENSOR_F16, DTENSOR_MAX, (double)NAN, 1, 2, (double)NAN },
    { DTENSOR_BF16, DTENSOR_MIN, 1, 2, (double)NAN, (double)NAN },
    { DTENSOR_I8, DTENSOR_SUM, 100, 100, 0, -56 },
    { DTENSOR_I8, DTENSOR_PROD, 16, 16, 3, 0 },
    { DTENSOR_I8, DTENSOR_MIN, 1, -128, 127, -128 },
    { DTENSOR_U8, DTENSOR_SUM, 200, 100, 0, 44 },
    { DTENSOR_U8, DTENSOR_MAX, 1, 255, 127, 255 },
    { DTENSOR_U8, DTENSOR_BAND, 7, 14, 255, 6 },
    { DTENSOR_I8, DTENSOR_BOR, -128, 1, 2, -125 },
    { DTENSOR_I32, DTENSOR_SUM, 2147483647, 1, 0, -2147483648.0 },
    { DTENSOR_I32, DTENSOR_PROD, 65536, 65536, 5, 0 },
    { DTENSOR_I32, DTENSOR_MAX, -5, -7, -6, -5 },
    { DTENSOR_I32, DTENSOR_BXOR, 5, 3, 1, 7 },
    { DTENSOR_I64, DTENSOR_PROD, 0x1p32, 0x1p32, 1, 0 },
    { DTENSOR_I64, DTENSOR_MIN, -0x1p63, 1, 0, -0x1p63 },
    { DTENSOR_I64, DTENSOR_SUM, -0x1p63, -0x1p63, 5, 5 },
    { DTENSOR_I16, DTENSOR_SUM, 32767, 1, 0, -32768 },
    { DTENSOR_U16, DTENSOR_MAX, 1, 65535, 32767, 65535 },
    { DTENSOR_U32, DTENSOR_MIN, 4294967295.0, 7, 1 << 20, 7 },
    { DTENSOR_U64, DTENSOR_MAX, 1, 0x1p63, 2, 0x1p63 },
    { DTENSOR_BOOL, DTENSOR_SUM, 1, 1, 0, 1 },
    { DTENSOR_BOOL, DTENSOR_PROD, 1, 1, 0, 0 },
    { DTENSOR_BOOL, DTENSOR_BXOR, 1, 1, 1, 1 },
    { DTENSOR_F8E4M3, DTENSOR_SUM, 448, 448, -448, 448 },
    { DTENSOR_F8E4M3, DTENSOR_SUM, 448, 448, 0, (double)NAN },
    { DTENSOR_F8E4M3, DTENSOR_SUM, 16, 1, 1, 18 },
    { DTENSOR_F8E5M2, DTENSOR_PROD, 256, 256, 1, (double)INFINITY },
    { DTENSOR_C64, DTENSOR_SUM, 1, 2, 3, 6 },
    { DTENSOR_C128, DTENSOR_PROD, 2, 3, 4, 24 },
};

static void test_known(void)
{

    for (size_t i = 0; i < DTN_COUNT(known); i++) {
        const enum dtensor_dtype dtype = known[i].dtype;
        double a[2], b[2], c[2], fast[2], naive[2];      /* or anything */
        const void *src[] = { a, b, c };

        dtn_store(dtype, a, 0, known[i].a);
        dtn_store(dtype, b, 0, known[i].b);
        dtn_store(dtype, c, 0, known[i].c);
        reduce(dtype, known[i].op, fast, src, 3, 1);
        naive_reduce(dtype, known[i].op, naive, src, 3, 1);
        ok(same(dtn_load(dtype, fast, 0), known[i].want) &&
           same(dtn_load(dtype, naive, 0), known[i].want),
           "%s %s of %g, %g, %g is %g", dtensor_dtype_name(dtype),
           dtensor_redop_name(known[i].op), known[i].a, known[i].b,
           known[i].c, known[i].want);
    }
}

static void test_complex(void)
{
    static const float x[] = { 1, 2 }, y[] = { 3, -5 };
    const void *src[] = { x, y };
    float product[2], sum[2];

    reduce(DTENSOR_C64, DTENSOR_PROD, product, src, 2, 1);
    reduce(DTENSOR_C64, DTENSOR_SUM, sum, src, 2, 1);
    ok((double)product[0] == 13 && (double)product[1] == 1,
       "(1+2i)(3-5i) is 13+i");
    ok((double)sum[0] == 4 && (double)sum[1] == -3, "their sum is 4-3i");
    dtn_scale(DTENSOR_C64, sum, 1, 2);
    ok((double)sum[0] == 2 && (double)sum[1] == -1.5, "half of it is 2-1.5i");

    dtn_fill_neutral(DTENSOR_C64, DTENSOR_SUM, sum, 1);
    ok(same((double)sum[0], -0.0) && same((double)sum[1], -0.0),
       "a complex sum starts from -0-0i");
    dtn_fill_neutral(DTENSOR_C64, DTENSOR_PROD, product, 1);
    src[1] = product;
    reduce(DTENSOR_C64, DTENSOR_PROD, sum, src, 2, 1);
    ok(memcmp(sum, x, sizeof sum) == 0, "a complex product from 1");
}

static void test_one_nan(void)
{
    static const uint32_t cases[][2] = {
        { 0x7f800000, 0xff800000 },              /* inf - inf                */
        { 0xffc00001, 0x7fc00002 },              /* two quiet NaNs           */
        { 0x3f800000, 0x7f800001 },              /* a signalling one         */
    };
    bool right = true;

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const void *src[] = { &cases[i][0], &cases[i][1] };
        uint32_t sum;

        reduce(DTENSOR_F32, DTENSOR_SUM, &sum, src, 2, 1);
        right &= sum == 0x7fc00000;
    }
    ok(right, "every NaN that a sum makes is 0x7fc00000");
}

/* ------------------------------------------- scale, neutral elements --- */

static void test_scale(enum dtensor_dtype dtype)
{
    static const int divisors[] = { 1, 2, 3, 7, 128, 1000 };
    const size_t count = 200, size = dtensor_dtype_size(dtype);
    int wrong = 0;

    for (size_t k = 0; k < DTN_COUNT(divisors); k++) {
        const int n = divisors[k];

        elements_fill(&seed, dtype, sources[0], count);
        memcpy(dst, sources[0], sizeof dst);
        dtn_scale(dtype, dst, count, n);
        for (size_t i = 0; i < count; i++) {
            double quotient = dtn_load(dtype, sources[0], i) / n;

            if (dtype == DTENSOR_I64)
                quotient = (double)(((int64_t *)sources[0])[i] / n);
            if (dtype == DTENSOR_U64)
                quotient = (double)(((uint64_t *)sources[0])[i] / (unsigned)n);
            dtn_store(dtype, want, 0, quotient);
            wrong += !same(dtn_load(dtype, dst, i), dtn_load(dtype, want, 0));
        }
        wrong += memcmp(dst + count * size, sources[0] + count * size, 64) != 0;
    }
    ok(wrong == 0, "%s: scaling divides each element and no other",
       dtensor_dtype_name(dtype));
}

static void test_scale_sign(void)
{
    int32_t a[] = { 7, -7, 1, -1, INT32_MIN, INT32_MAX };
    static const int32_t half[] = { 3, -3, 0, 0, INT32_MIN / 2,
                                    INT32_MAX / 2 };

    dtn_scale(DTENSOR_I32, a, DTN_COUNT(a), 2);
    ok(memcmp(a, half, sizeof a) == 0, "integers round toward zero");
}

static void test_neutral(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    const size_t count = 300, size = dtensor_dtype_size(dtype);
    const void *left[] = { arrays[0], sources[0] };
    const void *right[] = { sources[0], arrays[0] };
    int wrong = 0;

    elements_fill(&seed, dtype, sources[0], count);
    dtn_fill_neutral(dtype, op, arrays[0], count);
    reduce(dtype, op, dst, left, 2, count);
    reduce(dtype, op, want, right, 2, count);
    for (size_t i = 0; i < count; i++) {
        const void *x = sources[0] + i * size;

        if (isnan(dtn_load(dtype, sources[0], i)))
            wrong += !isnan(dtn_load(dtype, dst, i)) ||
                     !isnan(dtn_load(dtype, want, i));
        else
            wrong += memcmp(dst + i * size, x, size) != 0 ||
                     memcmp(want + i * size, x, size) != 0;
    }
    ok(wrong == 0, "%s %s: the neutral element changes no bit on either side",
       dtensor_dtype_name(dtype), dtensor_redop_name(op));
}

int main(void)
{
    seed = rand_seed(20240607);
    note("TEST_SEED=%llu", (unsigned long long)seed);
    test_all_widths();
    test_known();
    test_complex();
    test_one_nan();
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        if (dtn_redop_ok(DTENSOR_AVG, (enum dtensor_dtype)t))
            test_scale((enum dtensor_dtype)t);
    test_scale_sign();
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int o = 0; o < DTENSOR_NREDOPS; o++)
            if (dtn_redop_ok((enum dtensor_redop)o, (enum dtensor_dtype)t) &&
                dtn_dtype_kind((enum dtensor_dtype)t) != DTN_DTYPE_COMPLEX)
                test_neutral((enum dtensor_dtype)t, (enum dtensor_redop)o);
    return done();
}
