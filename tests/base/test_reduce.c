/* test_reduce.c - reductions at every vector width
 *
 * dtn_reduce() is compared with its naive twin for every type, reduction and
 * width, and the twin with known answers.
 *
 * Without this test, the AVX-512 code could give other bits than the scalar
 * code, and the result of a job would depend on its CPUs.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { NSRC = 5, MOST = 5000, EDGE = 4, ARRAY = (MOST + 2 * EDGE) * 16 };

static _Alignas(64) char sources[NSRC][ARRAY], arrays[NSRC][ARRAY];
static _Alignas(64) char dst[ARRAY], want[ARRAY];
static uint64_t seed;

/* Random bits are mostly huge and tiny floats; so is every other element
 * small, and now and then a zero, an infinity or a NaN of either sign.
 */
static void fill(enum dtensor_dtype dtype, void *array, size_t count)
{
    static const double special[] = { 0.0, -0.0, 1, (double)INFINITY,
                                      (double)-INFINITY, (double)NAN };

    rand_bytes(&seed, array, count * dtn_dtype_size(dtype));
    for (size_t i = 0; dtype == DTENSOR_BOOL && i < count; i++)
        ((uint8_t *)array)[i] &= 1;
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX) {
        fill(dtype == DTENSOR_C64 ? DTENSOR_F32 : DTENSOR_F64, array,
             2 * count);
        return;
    }
    for (size_t i = 0; dtn_dtype_is_float(dtype) && i < count; i++) {
        if (i % 2)
            dtn_store(dtype, array, i, (rand_below(&seed, 4001) - 2000) / 64.0);
        if (rand_below(&seed, 8) == 0)
            dtn_store(dtype, array, i, special[rand_below(&seed, 6)]);
    }
}

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
    dtn_reduce_naive(dtype, op, want + start, src, nsrc, count);
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
            fill(dtype, sources[s], MOST + 2 * EDGE);
        for (int o = 0; o < DTENSOR_NREDOPS; o++)
            for (width = 0; dtn_reduce_width_name(width); width++)
                if (dtn_redop_ok((enum dtensor_redop)o, dtype))
                    test_width(width, dtype, (enum dtensor_redop)o);
    }
    ok(!dtn_reduce_width_name(-1) && dtn_reduce_width_name(0),
       "there is a narrowest width, and none before it");
}

/* ------------------------------------------------- partial results --- */

/* A function of the caller's, which could be a sum but for its NaNs. */
static void add_halves(void *to, const void *left, const void *right,
                       size_t count, enum dtensor_dtype dtype, void *arg)
{
    const double half = *(const double *)arg;

    for (size_t i = 0; i < count; i++)
        dtn_store(dtype, to, i, half * dtn_load(dtype, left, i)
                  + half * dtn_load(dtype, right, i));
}

/* Number `k` of the ways to reduce this type; false: there is none. */
static bool way_of(enum dtensor_dtype dtype, int k, struct dtn_reduction *how)
{
    static double half = 0.5;
    const enum dtensor_redop op = k < DTENSOR_NREDOPS ? (enum dtensor_redop)k
                                                      : DTENSOR_SUM;

    *how = dtn_reduction(dtype, op, 3);
    if (k == DTN_REDOP_PREMUL)
        how->factor = 1.0 / 3;
    if (k == DTN_REDOP_USER) {
        how->fn = add_halves;
        how->arg = &half;
    }
    return dtn_redop_ok(op, dtype)
        && (k != DTN_REDOP_PREMUL || dtn_dtype_is_float(dtype))
        && (k != DTN_REDOP_USER || dtn_dtype_is_narrow(dtype)
            || dtype == DTENSOR_F32 || dtype == DTENSOR_I32);
}

/* Make all NaNs of the first source the same. */
static void quiet(enum dtensor_dtype dtype, size_t count)
{
    if (dtn_dtype_kind(dtype) != DTN_DTYPE_FLOAT)
        return;
    for (size_t i = 0; i < count; i++)
        if (isnan(dtn_load(dtype, sources[0], i)))
            dtn_store(dtype, sources[0], i, (double)NAN);
}

/* Arrays of the right kinds, folded at one width and one by one. */
static bool fold_is_right(int width, const struct dtn_reduction *how,
                          unsigned partial, int nsrc, size_t count)
{
    const size_t bytes = count * dtn_dtype_size(partial & DTN_PARTIAL_DST
                                                ? how->partial : how->dtype);
    const void *src[NSRC];

    for (int s = 0; s < nsrc; s++) {
        const unsigned which = s == 0 ? DTN_PARTIAL_FIRST : DTN_PARTIAL_REST;

        src[s] = sources[s];
        fill(partial & which ? how->partial : how->dtype, sources[s], count);
        if (nsrc == 1)                /* one NaN alone is any of its kind     */
            quiet(partial & which ? how->partial : how->dtype, count);
    }
    memset(dst, 0x5a, bytes + 64);
    memset(want, 0x5a, bytes + 64);
    dtn_fold_width(width, how, partial, dst, src, nsrc, count);
    dtn_fold_naive(how, partial, want, src, nsrc, count);
    return memcmp(dst, want, bytes + 64) == 0;
}

static void test_partial(enum dtensor_dtype dtype)
{
    static const size_t counts[] = { 0, 1, 7, 63, 1023, 1025, 2500 };
    struct dtn_reduction how;
    int wrong = 0, tried = 0;

    for (int k = 0; k < DTN_NREDOPS; k++)
        for (int width = 0; dtn_reduce_width_name(width); width++)
            for (unsigned partial = 0; partial < 8; partial++)
                for (int nsrc = 1; nsrc <= 4; nsrc++)
                    for (size_t i = 0; i < DTN_COUNT(counts); i++) {
                        if (!way_of(dtype, k, &how))
                            continue;
                        tried++;
                        if (fold_is_right(width, &how, partial, nsrc,
                                          counts[i]))
                            continue;
                        if (wrong++ < 5)
                            note("%s, way %d, partial %u, %d sources, %zu",
                                 dtn_reduce_width_name(width), k, partial,
                                 nsrc, counts[i]);
                    }
    ok(wrong == 0 && tried > 0, "%s: elements and partial results of every "
       "kind in %d folds give the naive twin's bits",
       dtensor_dtype_name(dtype), tried);
}

/* What this is for: terms that are lost when each step is rounded. */
static void test_once(void)
{
    static const struct {
        enum dtensor_dtype dtype;
        double first, small, sum, average;
    } cases[] = {
        { DTENSOR_BF16, 256, 1, 258, 86 },
        { DTENSOR_F16, 2048, 1, 2050, 683.5 },
        { DTENSOR_F8E4M3, 16, 1, 18, 6 },
        { DTENSOR_F8E5M2, 8, 1, 10, 3.5 },
        { DTENSOR_F8E5M2, 57344, 57344, (double)INFINITY, 57344 },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const enum dtensor_dtype dtype = cases[i].dtype;
        struct dtn_reduction how = dtn_reduction(dtype, DTENSOR_SUM, 3);
        float sum, large;
        uint16_t x, y, out;
        const void *terms[] = { &x, &y }, *both[] = { &sum, &y };

        dtn_store(dtype, &x, 0, cases[i].first);
        dtn_store(dtype, &y, 0, cases[i].small);
        dtn_fold(&how, DTN_PARTIAL_DST, &sum, terms, 2, 1);
        dtn_fold(&how, DTN_PARTIAL_FIRST, &out, both, 2, 1);
        large = (float)dtn_load(dtype, &out, 0);
        ok((double)large == cases[i].sum, "%s: %g + %g + %g in two steps is %g",
           dtensor_dtype_name(dtype), cases[i].first, cases[i].small,
           cases[i].small, cases[i].sum);
        how = dtn_reduction(dtype, DTENSOR_AVG, 3);
        dtn_fold(&how, DTN_PARTIAL_FIRST, &out, both, 2, 1);
        ok(dtn_load(dtype, &out, 0) == cases[i].average,
           "%s: and their average %g", dtensor_dtype_name(dtype),
           cases[i].average);
    }
}

/* The average of x, y and z in two steps, as of three ranks. */
static int64_t average_of(enum dtensor_dtype dtype, int64_t x, int64_t y,
                          int64_t z)
{
    const struct dtn_reduction how = dtn_reduction(dtype, DTENSOR_AVG, 3);
    _Alignas(16) char sum[16];
    int64_t a, b, c, out;
    const void *terms[] = { &a, &b }, *both[] = { sum, &c };

    dtn_store_int(dtype, &a, 0, x);
    dtn_store_int(dtype, &b, 0, y);
    dtn_store_int(dtype, &c, 0, z);
    dtn_fold(&how, DTN_PARTIAL_DST, sum, terms, 2, 1);
    dtn_fold(&how, DTN_PARTIAL_FIRST, &out, both, 2, 1);
    return dtn_load_int(dtype, &out, 0);
}

/* Averages of integers: no sum wraps, and the quotient is toward zero. */
static void test_integer_averages(void)
{
    static const struct {
        enum dtensor_dtype dtype;
        int64_t x, y, z, average;
    } cases[] = {
        { DTENSOR_I8, 100, 100, 100, 100 }, { DTENSOR_I8, -128, -128, -1, -85 },
        { DTENSOR_U8, 255, 255, 254, 254 },
        { DTENSOR_I16, 32767, 32767, 32767, 32767 },
        { DTENSOR_U16, 65535, 65535, 65533, 65534 },
        { DTENSOR_I32, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN },
        { DTENSOR_U32, UINT32_MAX, UINT32_MAX, 0, 2863311530 },
        { DTENSOR_I64, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX },
        { DTENSOR_I64, INT64_MIN, INT64_MIN, INT64_MIN + 1, INT64_MIN + 1 },
        { DTENSOR_I64, INT64_MIN, INT64_MAX, -1, 0 },
        { DTENSOR_U64, -1, -1, -1, -1 },
        { DTENSOR_U64, -1, -1, 0, (int64_t)(UINT64_MAX / 3 * 2) },
    };
    int wrong = 0;

    for (size_t i = 0; i < DTN_COUNT(cases); i++)
        ok(average_of(cases[i].dtype, cases[i].x, cases[i].y, cases[i].z) ==
           cases[i].average, "%s: the average of %lld, %lld and %lld is %lld",
           dtensor_dtype_name(cases[i].dtype), (long long)cases[i].x,
           (long long)cases[i].y, (long long)cases[i].z,
           (long long)cases[i].average);
    for (int x = -128; x < 128; x++)
        for (int y = -128; y < 128; y++)
            for (int z = -128; z < 128; z += 17) {
                wrong += average_of(DTENSOR_I8, x, y, z) != (x + y + z) / 3;
                wrong += average_of(DTENSOR_U8, x + 128, y + 128, z + 128) !=
                         (x + y + z + 384) / 3;
            }
    ok(wrong == 0, "and of any two bytes with every 17th");
}

/* ------------------------------------------------------ known answers --- */

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
        dtn_reduce(dtype, known[i].op, fast, src, 3, 1);
        dtn_reduce_naive(dtype, known[i].op, naive, src, 3, 1);
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

    dtn_reduce(DTENSOR_C64, DTENSOR_PROD, product, src, 2, 1);
    dtn_reduce(DTENSOR_C64, DTENSOR_SUM, sum, src, 2, 1);
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
    dtn_reduce(DTENSOR_C64, DTENSOR_PROD, sum, src, 2, 1);
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

        dtn_reduce(DTENSOR_F32, DTENSOR_SUM, &sum, src, 2, 1);
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

        fill(dtype, sources[0], count);
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

    fill(dtype, sources[0], count);
    dtn_fill_neutral(dtype, op, arrays[0], count);
    dtn_reduce(dtype, op, dst, left, 2, count);
    dtn_reduce(dtype, op, want, right, 2, count);
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
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        test_partial((enum dtensor_dtype)t);
    test_once();
    test_integer_averages();
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
