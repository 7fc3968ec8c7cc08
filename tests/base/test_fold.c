/* test_fold.c - partial results: sums kept in a wider type between steps
 *
 * dtn_fold() takes elements and partial results in any mixture.  It is compared
 * with its naive twin for every type, reduction, width and mixture, and with
 * sums and averages that are lost when each step is rounded.
 *
 * Without this test, a sum of bf16 could be rounded at each step, or an average
 * of integers could wrap.
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

enum { NSRC = 4, MOST = 2500, ARRAY = MOST * 16 };

static _Alignas(64) char sources[NSRC][ARRAY], dst[ARRAY + 64],
                         want[ARRAY + 64];
static uint64_t seed;
static long loops;                /* folds that dtn_fold_loop() does at once  */

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

/* Is the loop for two sources, if there is one, as good as the fold? */
static bool loop_is_right(const struct dtn_reduction *how, unsigned partial,
                          size_t bytes, size_t count)
{
    dtn_fold_f *loop = dtn_fold_loop(how, partial, count);

    if (!loop)
        return true;
    loops++;
    memset(dst, 0x5a, bytes + 64);
    loop(dst, sources[0], sources[1], count);
    return memcmp(dst, want, bytes + 64) == 0;
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
        elements_fill(&seed, partial & which ? how->partial : how->dtype,
                      sources[s], count);
        if (nsrc == 1)                /* one NaN alone is any of its kind     */
            quiet(partial & which ? how->partial : how->dtype, count);
    }
    memset(dst, 0x5a, bytes + 64);
    memset(want, 0x5a, bytes + 64);
    dtn_fold_width(width, how, partial, dst, src, nsrc, count);
    naive_fold(how, partial, want, src, nsrc, count);
    return memcmp(dst, want, bytes + 64) == 0
        && (nsrc != 2 || loop_is_right(how, partial, bytes, count));
}

static void test_partial(enum dtensor_dtype dtype)
{
    static const size_t counts[] = { 0, 1, 7, 63, 1023, 1025, 2500 };
    struct dtn_reduction how;
    int wrong = 0, tried = 0;

    for (int k = 0; k < DTN_NREDOPS; k++)
        for (int width = 0; dtn_reduce_width_name(width); width++)
            for (unsigned partial = 0; partial < 8; partial++)
                for (int nsrc = 1; nsrc <= NSRC; nsrc++)
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

int main(void)
{
    seed = rand_seed(20240607);
    note("TEST_SEED=%llu", (unsigned long long)seed);
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        test_partial((enum dtensor_dtype)t);
    ok(loops > 1000, "%ld of the folds of two sources are one loop", loops);
    test_once();
    test_integer_averages();
    return done();
}
