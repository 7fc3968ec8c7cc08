/* test_extremes.c - the largest and the least elements, and where they are
 *
 * The first of equal elements is found, and a NaN before all others, of every
 * type.  A block has the same extreme at every vector width, also the sign of a
 * zero, and columns have those of rows.
 *
 * Without this test, the loop that compares vectors could lose a NaN, or take
 * -0 for 0.
 */
#include "math/reduction.h"
#include "math/block.h"
#include "math/room.h"
#include "math/totals.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

static uint64_t seed;

static int64_t twin_extreme(bool largest, const struct dtn_array *in, int dim,
                            const int64_t index[])
{
    int64_t at[DTENSOR_MAX_DIMS], best = 0;
    double most = 0;

    memcpy(at, index, sizeof at);
    for (at[dim] = 0; at[dim] < in->shape[dim]; at[dim]++) {
        const double x = dtn_load(in->dtype, sample_at(in, at), 0);

        if (at[dim] == 0 || (most == most &&
                             (x != x || (largest ? x > most : x < most)))) {
            most = x;
            best = at[dim];
        }
    }
    return best;
}

static int extreme_wrong(enum dtensor_dtype dtype, bool largest)
{
    const int ndim = 1 + rand_below(&seed, 3), dim = rand_below(&seed, ndim);
    int64_t shape[DTENSOR_MAX_DIMS], index[DTENSOR_MAX_DIMS] = { 0 };
    struct dtn_array in, at, value;
    int wrong = 0;

    sample_shape(&seed, ndim, 5, shape);
    shape[dim] = 1 + rand_below(&seed, rand_below(&seed, 2) ? 9 : 1100);
    in = sample_new(&seed, dtype, ndim, shape, rand_below(&seed, 2));
    sample_fill(&seed, &in, rand_below(&seed, 2));
    shape[dim] = 1;
    at = sample_new(&seed, DTENSOR_I64, ndim, shape, rand_below(&seed, 2));
    value = sample_new(&seed, dtype, ndim, shape, rand_below(&seed, 2));
    dtn_extreme(largest, &value, &at, &in, dim, room);
    for (bool more = dtn_array_count(&at) > 0; more;
         more = sample_next(&at, index)) {
        int64_t found[DTENSOR_MAX_DIMS];

        memcpy(found, index, sizeof found);
        found[dim] = twin_extreme(largest, &in, dim, index);
        wrong += *(int64_t *)sample_at(&at, index) != found[dim] ||
                 memcmp(sample_at(&value, index), sample_at(&in, found),
                        dtensor_dtype_size(dtype)) != 0;
    }
    sample_free(&in);
    sample_free(&at);
    sample_free(&value);
    return wrong;
}

static void test_extremes(void)
{
    const int calls = 20;
    int wrong = 0;

    for (int dtype = 0; dtype < DTENSOR_NDTYPES; dtype++)
        for (int i = 0; i < calls; i++)
            if (dtype != DTENSOR_C64 && dtype != DTENSOR_C128 &&
                dtype != DTENSOR_I64 && dtype != DTENSOR_U64)
                wrong += extreme_wrong((enum dtensor_dtype)dtype, i & 1);
    ok(wrong == 0, "the first of the largest and of the least elements is "
       "found, a NaN before all: %d wrong (seed %llu)", wrong,
       (unsigned long long)rand_seed(5));
}

/* Element i of a block: any, zeros, few zeros, NaNs, infinite ones. */
static double extreme_element(int what, int i)
{
    const double sign = i % 3 ? 1 : -1;

    switch (what) {
    case 0: return sign * (1 + (i * 37) % 101) / 7;
    case 1: return sign * 0.0;
    case 2: return i % 5 ? -1 - i : sign * 0.0;
    case 3: return i % 97 == 60 ? (double)NAN : sign * i;
    default: return i % 7 ? sign * i : sign * (double)INFINITY;
    }
}

/* Extremes of n elements at one width, 8 bytes each. */
static void extremes_at(int width, int what, int n, double found[8])
{
    static const enum dtn_total kinds[4] = { DTN_TOTAL_MAX, DTN_TOTAL_MIN,
                                             DTN_TOTAL_MOST, DTN_TOTAL_LEAST };
    const double first[4] = { (double)-INFINITY, (double)INFINITY, 0,
                              (double)INFINITY };
    float narrow[DTN_BLOCK];
    double wide[DTN_BLOCK];

    dtn_width_force(width);
    for (int i = 0; i < n; i++)
        narrow[i] = (float)(wide[i] = extreme_element(what, i));
    for (int k = 0; k < 4; k++) {
        found[k] = dtn_total(kinds[k], DTENSOR_F32, narrow, n, first[k], 0);
        found[4 + k] = dtn_total(kinds[k], DTENSOR_F64, wide, n, first[k], 0);
    }
}

/* Of every width the same bits, also the sign of a zero. */
static void test_extreme_widths(void)
{
    static const int lengths[] = { 1, 2, 63, 64, 65, 200, DTN_BLOCK };
    int differ = 0;

    for (int width = 1; width < 3 && dtn_width_force(width); width++)
        for (int what = 0; what < 5; what++)
            for (int l = 0; l < 7; l++) {
                double want[8], found[8];

                extremes_at(0, what, lengths[l], want);
                extremes_at(width, what, lengths[l], found);
                differ += memcmp(want, found, sizeof want) != 0;
            }
    dtn_width_force(-1);
    ok(differ == 0, "extremes have the same bits at every width: %d differ",
       differ);
}

enum { BESIDE = 70, BELOW = 40 };

/* Column k has the elements from k on. */
static void extreme_columns(enum dtn_total kind, enum dtensor_dtype dtype,
                            int what, int n, double found[BESIDE])
{
    double x[BELOW * BESIDE];

    for (int i = 0; i < n; i++)
        for (int k = 0; k < BESIDE; k++)
            dtn_store(dtype, x, (size_t)(i * BESIDE + k),
                      extreme_element(what, i + k));
    dtn_total_begin(kind, BESIDE, found);
    dtn_total_columns(kind, dtype, x, BESIDE, n, DTN_TOTAL_COLUMNS, found);
    dtn_total_columns(kind, dtype, (char *)x + DTN_TOTAL_COLUMNS *
                      dtn_dtype_size(dtype), BESIDE, n,
                      BESIDE - DTN_TOTAL_COLUMNS, found + DTN_TOTAL_COLUMNS);
}

static int extreme_columns_differ(enum dtn_total kind, enum dtensor_dtype dtype,
                                  int what, int n)
{
    double column[BELOW], found[BESIDE], want;
    int differ = 0;

    extreme_columns(kind, dtype, what, n, found);
    for (int k = 0; k < BESIDE; k++) {
        for (int i = 0; i < n; i++)
            dtn_store(dtype, column, (size_t)i, extreme_element(what, i + k));
        dtn_total_begin(kind, 1, &want);
        want = dtn_total(kind, dtype, column, n, want, 0);
        differ += isnan(want) ? !isnan(found[k])
                              : memcmp(&want, &found[k], sizeof want) != 0;
    }
    return differ;
}

static void test_extreme_columns(enum dtensor_dtype dtype)
{
    static const enum dtn_total kinds[4] = { DTN_TOTAL_MAX, DTN_TOTAL_MIN,
                                             DTN_TOTAL_MOST, DTN_TOTAL_LEAST };
    static const int lengths[4] = { 1, 2, 8, BELOW };
    int differ = 0;

    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        for (int what = 0; what < 5; what++)
            for (int i = 0; i < 16; i++)
                differ += extreme_columns_differ(kinds[i % 4], dtype, what,
                                                 lengths[i / 4]);
    dtn_width_force(-1);
    ok(differ == 0, "extremes of columns of %s are those of rows, zeros with "
       "their signs and NaNs as well: %d differ", dtensor_dtype_name(dtype),
       differ);
}

int main(void)
{
    seed = rand_seed(5);
    test_extremes();
    test_extreme_widths();
    test_extreme_columns(DTENSOR_F32);
    test_extreme_columns(DTENSOR_F64);
    return done();
}
