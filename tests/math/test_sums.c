/* test_sums.c - a sum has the same bits at every vector width
 *
 * Sums of blocks of all lengths, of f64, of f16 and bf16 and of the same
 * numbers as f32; and of columns of these, some of which have an infinity or a
 * NaN.  Norms, products and extremes of columns have the bits of those of rows,
 * and of f32.
 *
 * Without this test, the loop that is written for one width could add in
 * another order than the others, or lose numbers behind the last whole vector.
 */
#include "math/array.h"
#include "math/block.h"
#include "math/reduction.h"
#include "math/room.h"
#include "math/totals.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

static uint64_t seed;

/* What n numbers come to, as f64, f16, these as f32, bf16, and these as f32. */
enum { SUMS = 5 };

static void sums_at(int width, const double x[], int n, double found[SUMS])
{
    static const enum dtensor_dtype type[SUMS] = {
        DTENSOR_F64, DTENSOR_F16, DTENSOR_F32, DTENSOR_BF16, DTENSOR_F32
    };
    double of[SUMS][DTN_BLOCK];

    dtn_width_force(width);
    for (int t = 0; t < SUMS; t++) {
        for (size_t i = 0; i < (size_t)n; i++)
            dtn_store(type[t], of[t], i, type[t] != DTENSOR_F32
                      ? x[i] : dtn_load(type[t - 1], of[t - 1], i));
        found[t] = dtn_total(DTN_TOTAL_SUM, type[t], of[t], n, 0.3, 0);
    }
}

/* Numbers of all sizes, so that another order of the lanes shows; or of nearly
 * one size, so that eight narrow ones are added as f32.
 */
static void test_sum_widths(void)
{
    double x[DTN_BLOCK], want[SUMS], found[SUMS];
    int differ = 0;

    for (int n = 1; n <= DTN_BLOCK; n += n < 70 ? 1 : 63) {
        for (int i = 0; i < n; i++)
            x[i] = ldexp(rand_below(&seed, 1 << 30),
                         -16 - rand_below(&seed, n % 2 ? 30 : 4));
        sums_at(0, x, n, want);
        for (int width = 0; width < 3 && dtn_width_force(width); width++) {
            sums_at(width, x, n, found);
            differ += memcmp(want, found, sizeof want) != 0 ||
                      memcmp(&found[1], &found[2], sizeof found[1]) != 0 ||
                      memcmp(&found[3], &found[4], sizeof found[3]) != 0;
        }
    }
    dtn_width_force(-1);
    ok(differ == 0, "sums have the same bits at every width, and those of f16 "
       "and bf16 the bits of f32: %d differ", differ);
}

/* ------------------------------------------------------------- columns --- */

enum { COLUMNS = 100, APART = COLUMNS + 3, ROWS = 97 };

/* A number of f16 of any size, or of nearly one size; now and then, if they are
 * of any, one that is none.
 */
static double draw_f16(bool any)
{
    static const double odd[] = { (double)INFINITY, (double)-INFINITY,
                                  (double)NAN, -0.0, 65504 };
    const double sign = rand_below(&seed, 2) ? 1 : -1;

    return any && rand_below(&seed, 200) == 0 ? odd[rand_below(&seed, 5)]
         : sign * ldexp(rand_below(&seed, 2048),
                        rand_below(&seed, any ? 29 : 4) - 24);
}

/* Do `width` columns of bf16 or f16 have the sums that they have as f32?  Of
 * two NaN the compiler chooses which is added to which.  The rows after `any`
 * are of one size, so that eight are added as f32.  Number `width` is no total.
 */
static bool columns_agree(enum dtensor_dtype dtype, int width, int rows,
                          int any)
{
    uint16_t narrow[ROWS * APART];
    float wide[ROWS * APART];
    double sum[COLUMNS + 1], want[COLUMNS + 1];

    for (size_t i = 0; i < (size_t)rows * APART; i++) {
        dtn_store(dtype, narrow, i, draw_f16((int)i < any * APART));
        wide[i] = (float)dtn_load(dtype, narrow, i);
    }
    for (int k = 0; k <= width; k++)
        sum[k] = want[k] = 0.3;
    dtn_total_columns(DTN_TOTAL_SUM, dtype, narrow, APART, rows, width, sum);
    for (int k = 0; k < width; k += DTN_TOTAL_COLUMNS)
        dtn_total_columns(DTN_TOTAL_SUM, DTENSOR_F32, wide + k, APART, rows,
                          width - k < DTN_TOTAL_COLUMNS ? width - k
                                                        : DTN_TOTAL_COLUMNS,
                          want + k);
    for (int k = 0; k <= width; k++)
        if (memcmp(&sum[k], &want[k], sizeof sum[k]) != 0 &&
            !(isnan(sum[k]) && isnan(want[k])))
            return false;
    return true;
}

static void test_columns(enum dtensor_dtype dtype)
{
    int differ = 0;

    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        for (int n = 1; n <= COLUMNS; n++)
            differ += !columns_agree(dtype, n, 1 + rand_below(&seed, ROWS),
                                     rand_below(&seed, ROWS) - ROWS / 2);
    dtn_width_force(-1);
    ok(differ == 0, "sums of columns of %s have the bits of f32 at every "
       "width: %d differ", dtensor_dtype_name(dtype), differ);
}

/* Sums, products, norms and extremes of columns, of which several are computed
 * at once, have the bits that they have as rows: a rank with fewer columns
 * computes them one by one.  Those of bf16 and f16 are those of the same
 * numbers as f32.
 */
enum { LONG = 1100, WIDE = 70, TOTALS = 13 };

static void reduce_some(int which, const struct dtn_array *out,
                        const struct dtn_array *in)
{
    static const double powers[TOTALS] = { 0, 1, 2, (double)INFINITY,
                                           -(double)INFINITY, 0, 1, 2 };

    dtn_reduce_dims(which < 5 ? DTN_REDUCE_NORM : which < 8 ? DTN_REDUCE_POWSUM
                    : which == 8 ? DTN_REDUCE_MAX : which == 9 ? DTN_REDUCE_MIN
                    : which == 10 ? DTN_REDUCE_PROD : which == 11
                    ? DTN_REDUCE_SUM : DTN_REDUCE_LOGSUMEXP, out, in,
                    powers[which], room);
}

static int norms_differ(const struct dtn_array *columns,
                        const struct dtn_array *rows,
                        const struct dtn_array *wide)
{
    const int64_t beside[] = { 1, WIDE }, below[] = { WIDE, 1 };
    double norms[WIDE], wanted[WIDE];
    const struct dtn_array out = dtn_array_packed(norms, DTENSOR_F64, 2,
                                                  beside);
    const struct dtn_array to = dtn_array_packed(wanted, DTENSOR_F64, 2, below);
    int differ = 0;

    for (int which = 0; which < TOTALS; which++) {
        reduce_some(which, &to, wide);
        reduce_some(which, &out, columns);
        differ += memcmp(norms, wanted, sizeof norms) != 0;
        memcpy(norms, wanted, sizeof norms);
        reduce_some(which, &to, rows);
        differ += memcmp(norms, wanted, sizeof norms) != 0;
    }
    return differ;
}

/* A number; in the first columns now and then 0 and -0, or all of them. */
static double draw_number(size_t column)
{
    if (column < 2 && (column == 0 || rand_below(&seed, 3) == 0))
        return rand_below(&seed, 2) ? 0.0 : -0.0;
    return ldexp(rand_below(&seed, 2001) - 1000, rand_below(&seed, 46) - 31);
}

/* The same numbers in columns, in rows, and in rows of another type. */
static void fill(const struct dtn_array *in, const struct dtn_array *rows,
                 const struct dtn_array *wide, size_t length)
{
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < WIDE; k++) {
            dtn_store(in->dtype, in->data, i * WIDE + k, draw_number(k));
            dtn_store(rows->dtype, rows->data, k * length + i,
                      dtn_load(in->dtype, in->data, i * WIDE + k));
            dtn_store(wide->dtype, wide->data, k * length + i,
                      dtn_load(in->dtype, in->data, i * WIDE + k));
        }
}

static void test_norms(enum dtensor_dtype dtype, size_t length)
{
    static double x[LONG * WIDE], turned[LONG * WIDE], as_f32[LONG * WIDE];
    const bool narrow = dtn_dtype_is_narrow(dtype);
    const int64_t shape[] = { (int64_t)length, WIDE };
    const int64_t other[] = { WIDE, (int64_t)length };
    const struct dtn_array in = dtn_array_packed(x, dtype, 2, shape);
    const struct dtn_array rows = dtn_array_packed(turned, dtype, 2, other);
    const struct dtn_array wide = dtn_array_packed(
        as_f32, narrow ? DTENSOR_F32 : dtype, 2, other);
    int differ = 0;

    for (size_t done = 0; done < LONG; done += length) {
        fill(&in, &rows, &wide, length);
        for (int width = 0; width < 3 && dtn_width_force(width); width++)
            differ += norms_differ(&in, &rows, &wide);
    }
    dtn_width_force(-1);
    ok(differ == 0, "sums, products, norms, extremes, logsumexp of columns of %zu "
       "%s have the bits of rows of %s: %d differ", length,
       dtensor_dtype_name(dtype), dtensor_dtype_name(wide.dtype), differ);
}

int main(void)
{
    seed = rand_seed(9);
    test_sum_widths();
    test_columns(DTENSOR_BF16);
    test_columns(DTENSOR_F16);
    for (int i = 0; i < 4; i++) {
        static const size_t lengths[] = { LONG, 90, 8, 5 };

        test_norms(DTENSOR_F32, lengths[i]);
        test_norms(DTENSOR_F64, lengths[i]);
        test_norms(DTENSOR_BF16, lengths[i]);
        test_norms(DTENSOR_F16, lengths[i]);
    }
    return done();
}
