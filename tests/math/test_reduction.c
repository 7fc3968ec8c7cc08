/* test_reduction.c - reductions along any dimensions
 *
 * Each reduction of every type, of arrays with gaps and in any order, along
 * every choice of dimensions, is compared with one that adds element by
 * element.  Known answers for what is empty and for NaN.
 *
 * Without this test, a reduction along the first dimension could be that along
 * the last, or an empty part give something else than the neutral element.
 */
#include "math/reduction.h"
#include "math/block.h"
#include "math/room.h"
#include "math/totals.h"
#include "math/width.h"
#include "base/dtype.h"
#include "base/narrow.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

static uint64_t seed;

/* What a row of elements comes to, of floats and of integers. */
struct twin {
    double x[3000];
    int64_t whole[3000];
    int n;
};

static double twin_power(const struct twin *t, double p, bool root)
{
    double sum = p < 0 && isinf(p) ? (double)INFINITY : 0;

    for (int i = 0; i < t->n; i++) {
        const double x = fabs(t->x[i]);

        if (root && isinf(p))
            sum = x != x || sum != sum ? (double)NAN
                : p > 0 ? fmax(sum, x) : fmin(sum, x);
        else
            sum += p == 0 ? x != 0 : pow(x, p);
    }
    return root && !isinf(p) && p != 0 ? pow(sum, 1 / p) : sum;
}

static double twin_float(enum dtn_reduction_kind kind, const struct twin *t,
                         double p)
{
    double sum = 0, product = 1, most = (double)-INFINITY, squares = 0;
    double least = (double)INFINITY, exps = 0;
    bool any = false, all = true;

    for (int i = 0; i < t->n; i++) {
        const double x = t->x[i];

        sum += x;
        product *= x;
        most = x != x || most != most ? (double)NAN : fmax(most, x);
        least = x != x || least != least ? (double)NAN : fmin(least, x);
        any |= x != 0;
        all &= x != 0;
    }
    for (int i = 0; i < t->n; i++) {
        squares += (t->x[i] - sum / t->n) * (t->x[i] - sum / t->n);
        exps += exp(t->x[i] - most);
    }
    switch (kind) {
    case DTN_REDUCE_SUM: return sum;
    case DTN_REDUCE_MEAN: return sum / t->n;
    case DTN_REDUCE_PROD: return product;
    case DTN_REDUCE_MAX: return most;
    case DTN_REDUCE_MIN: return least;
    case DTN_REDUCE_ANY: return any;
    case DTN_REDUCE_ALL: return all;
    case DTN_REDUCE_POWSUM: return twin_power(t, p, false);
    case DTN_REDUCE_NORM: return twin_power(t, p, true);
    case DTN_REDUCE_LOGSUMEXP: return isinf(most) ? most : most + log(exps);
    case DTN_REDUCE_VAR: return squares / fmax(0, t->n - p);
    default: return sqrt(squares / fmax(0, t->n - p));
    }
}

static int64_t twin_integer(enum dtn_reduction_kind kind, bool is_u64,
                            const struct twin *t)
{
    uint64_t sum = 0, product = 1;
    int64_t most = t->n ? t->whole[0] : 0, least = most;
    bool any = false, all = true;

    for (int i = 0; i < t->n; i++) {
        const int64_t x = t->whole[i];

        sum += (uint64_t)x;
        product *= (uint64_t)x;
        if (is_u64 ? (uint64_t)x > (uint64_t)most : x > most)
            most = x;
        if (is_u64 ? (uint64_t)x < (uint64_t)least : x < least)
            least = x;
        any |= x != 0;
        all &= x != 0;
    }
    switch (kind) {
    case DTN_REDUCE_SUM: return (int64_t)sum;
    case DTN_REDUCE_PROD: return (int64_t)product;
    case DTN_REDUCE_MAX: return most;
    case DTN_REDUCE_MIN: return least;
    case DTN_REDUCE_ANY: return any;
    default: return all;
    }
}

/* The elements that become the one at `index` of the result. */
static void twin_gather(struct twin *t, const struct dtn_array *out,
                        const struct dtn_array *in, const int64_t index[])
{
    struct dtn_array row = *in;
    int64_t at[DTENSOR_MAX_DIMS] = { 0 }, from[DTENSOR_MAX_DIMS];

    t->n = 0;
    for (int d = 0; d < in->ndim; d++)
        if (out->shape[d] != 1)
            row.shape[d] = 1;
    for (bool more = dtn_array_count(&row) > 0; more;
         more = sample_next(&row, at)) {
        for (int d = 0; d < in->ndim; d++)
            from[d] = out->shape[d] == 1 ? at[d] : index[d];
        t->x[t->n] = dtn_load(in->dtype, sample_at(in, from), 0);
        if (!dtn_dtype_is_float(in->dtype))
            t->whole[t->n] = dtn_load_int(in->dtype, sample_at(in, from), 0);
        t->n++;
    }
}

static bool result_is_right(enum dtn_reduction_kind kind, double p,
                            const struct dtn_array *out,
                            const struct dtn_array *in, const int64_t index[])
{
    static struct twin t;
    const void *got = sample_at(out, index);
    int64_t want;

    twin_gather(&t, out, in, index);
    if (!dtn_dtype_is_float(in->dtype)) {
        if (t.n == 0 && (kind == DTN_REDUCE_MAX || kind == DTN_REDUCE_MIN))
            return true;                       /* test_empty() has these      */
        dtn_store_int(out->dtype, &want, 0,
                      twin_integer(kind, in->dtype == DTENSOR_U64, &t));
        return dtn_load_int(out->dtype, got, 0) ==
               dtn_load_int(out->dtype, &want, 0);
    }
    if (kind == DTN_REDUCE_PROD && t.n > 100)
        return true;                           /* may overflow on the way     */
    if (out->dtype == DTENSOR_BOOL)
        return *(const uint8_t *)got == twin_float(kind, &t, p);
    return sample_close(out->dtype, dtn_load(out->dtype, got, 0),
                        twin_float(kind, &t, p),
                        out->dtype == DTENSOR_F64 ? 4096 : 1,
                        out->dtype == DTENSOR_F64 ? 1e-12 : 0);
}

static int call_wrong(enum dtn_reduction_kind kind, enum dtensor_dtype dtype,
                      bool special)
{
    static const double powers[] = { 0, 1, 2, 3, (double)INFINITY,
                                     (double)-INFINITY };
    const bool truth = kind == DTN_REDUCE_ANY || kind == DTN_REDUCE_ALL;
    const bool power = kind == DTN_REDUCE_POWSUM || kind == DTN_REDUCE_NORM;
    const double p = power ? powers[rand_below(&seed, kind == DTN_REDUCE_NORM
                                                          ? 6 : 4)]
                           : rand_below(&seed, 2);
    const int ndim = rand_below(&seed, 4);
    int64_t shape[DTENSOR_MAX_DIMS], less[DTENSOR_MAX_DIMS];
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    struct dtn_array in, out;
    int wrong = 0;

    sample_shape(&seed, ndim, 7, shape);
    if (ndim > 0 && rand_below(&seed, 6) == 0)
        shape[rand_below(&seed, ndim)] = 40;
    if (ndim == 1 && rand_below(&seed, 2))
        shape[0] = 700;
    for (int d = 0; d < ndim; d++)
        less[d] = rand_below(&seed, 2) ? 1 : shape[d];
    in = sample_new(&seed, dtype, ndim, shape, rand_below(&seed, 2));
    out = sample_new(&seed, truth ? DTENSOR_BOOL : dtype, ndim, less,
                     rand_below(&seed, 2));
    sample_fill(&seed, &in, special);
    dtn_reduce_dims(kind, &out, &in, p, room);
    for (bool more = dtn_array_count(&out) > 0; more;
         more = sample_next(&out, index))
        wrong += !result_is_right(kind, p, &out, &in, index);
    sample_free(&in);
    sample_free(&out);
    if (wrong)
        note("reduction %d of %s, p = %g: %d wrong", (int)kind,
             dtensor_dtype_name(dtype), p, wrong);
    return wrong;
}

static void test_reductions(int width)
{
    const int calls = 30;
    int wrong = 0, tried = 0;

    for (int kind = 0; kind < DTN_REDUCTIONS; kind++)
        for (int dtype = 0; dtype < DTENSOR_NDTYPES; dtype++) {
            if (!dtn_reduction_ok((enum dtn_reduction_kind)kind,
                                  (enum dtensor_dtype)dtype) ||
                dtype == DTENSOR_C64 || dtype == DTENSOR_C128)
                continue;
            tried++;
            for (int i = 0; i < calls; i++)
                wrong += call_wrong((enum dtn_reduction_kind)kind,
                                    (enum dtensor_dtype)dtype, i & 1);
        }
    ok(wrong == 0, "width %d: %d pairs of a reduction and a type, %d calls "
       "each: %d results wrong (seed %llu)", width, tried, calls, wrong,
       (unsigned long long)rand_seed(4));
}

static void test_complex(void)
{
    const double in[] = { 1, 2, 3, -1 };           /* 1 + 2i and 3 - i        */
    const int64_t two[] = { 2 }, one[] = { 1 };
    double sum[2], mean[2], product[2];
    const struct dtn_array from = dtn_array_packed((void *)in, DTENSOR_C128, 1,
                                                   two);
    struct dtn_array to = dtn_array_packed(sum, DTENSOR_C128, 1, one);

    dtn_reduce_dims(DTN_REDUCE_SUM, &to, &from, 0, room);
    to.data = mean;
    dtn_reduce_dims(DTN_REDUCE_MEAN, &to, &from, 0, room);
    to.data = product;
    dtn_reduce_dims(DTN_REDUCE_PROD, &to, &from, 0, room);
    ok(sum[0] == 4 && sum[1] == 1 && mean[0] == 2 && mean[1] == 0.5 &&
       product[0] == 5 && product[1] == 5,
       "1 + 2i and 3 - i have the sum 4 + i and the product 5 + 5i");
}

/* -------------------------------------------------------- sums of bf16 --- */

enum { ROWS = 512, COLUMNS = DTN_TOTAL_COLUMNS };

/* Numbers whose exponents differ by `range` at most, a few of them 0, or with
 * `end` an infinity, a NaN or a subnormal number.
 */
static void draw_bf16(uint16_t x[], int n, int range, bool end)
{
    static const uint16_t ends[] = { 0x7f80, 0xff80, 0x7fc0, 1, 0x8001,
                                     0x7f7f };
    const int base = 1 + rand_below(&seed, 250 - range);
    const bool hard = rand_below(&seed, 3) == 0;   /* large sums, far ends   */

    for (int i = 0; i < n; i++) {
        const int exponent = base + (hard ? range * (rand_below(&seed, 8) > 0)
                                          : rand_below(&seed, range + 1));

        x[i] = (uint16_t)(exponent << 7 | rand_below(&seed, 128) |
                          (hard ? 0 : rand_below(&seed, 2) << 15));
        if (rand_below(&seed, 50) == 0)
            x[i] = (uint16_t)(rand_below(&seed, 2) << 15);
    }
    if (end)
        x[rand_below(&seed, n)] = ends[rand_below(&seed, 6)];
}

/* Are sums of bf16 those of the same numbers as f32? */
static int bf16_wrong(bool columns)
{
    static uint16_t x[ROWS * COLUMNS];
    static float wide[ROWS * COLUMNS];
    const int n = 1 + rand_below(&seed, ROWS);
    const int width = columns ? 1 + rand_below(&seed, COLUMNS) : 1;
    double sum[COLUMNS], wanted[COLUMNS];
    int wrong = 0;

    draw_bf16(x, n * width, rand_below(&seed, 18), rand_below(&seed, 8) == 0);
    for (int i = 0; i < n * width; i++)
        wide[i] = dtn_bf16_widen(x[i]);
    for (int k = 0; k < width; k++)
        sum[k] = wanted[k] = rand_below(&seed, 2) ? 0.1 : 0;
    if (columns) {
        dtn_total_columns(DTN_TOTAL_SUM, DTENSOR_BF16, x, width, n, width, sum);
        dtn_total_columns(DTN_TOTAL_SUM, DTENSOR_F32, wide, width, n, width,
                          wanted);
    } else {
        sum[0] = dtn_total(DTN_TOTAL_SUM, DTENSOR_BF16, x, n, sum[0], 0);
        wanted[0] = dtn_total(DTN_TOTAL_SUM, DTENSOR_F32, wide, n, wanted[0],
                              0);
    }
    for (int k = 0; k < width; k++)
        wrong += memcmp(&sum[k], &wanted[k], sizeof sum[k]) != 0 &&
                 (sum[k] == sum[k] || wanted[k] == wanted[k]);
    return wrong;
}

static void test_bf16(int width)
{
    const int calls = 3000;
    int wrong = 0;

    for (int i = 0; i < calls; i++)
        wrong += bf16_wrong(i % 8 == 0);
    ok(wrong == 0, "width %d: %d sums of bf16 have the bits of those of f32",
       width, calls);
}

static double empty_of(enum dtn_reduction_kind kind, enum dtensor_dtype dtype)
{
    const int64_t none[] = { 0 }, one[] = { 1 };
    int64_t result = 99;
    const struct dtn_array in = dtn_array_packed(NULL, dtype, 1, none);
    const struct dtn_array out = dtn_array_packed(&result, dtype, 1, one);

    dtn_reduce_dims(kind, &out, &in, 2, room);
    return dtn_load(dtype, &result, 0);
}

static void test_empty(void)
{
    ok(empty_of(DTN_REDUCE_SUM, DTENSOR_F32) == 0 &&
       empty_of(DTN_REDUCE_PROD, DTENSOR_BF16) == 1 &&
       empty_of(DTN_REDUCE_MAX, DTENSOR_F32) == (double)-INFINITY &&
       empty_of(DTN_REDUCE_MIN, DTENSOR_F64) == (double)INFINITY &&
       empty_of(DTN_REDUCE_NORM, DTENSOR_F32) == 0 &&
       empty_of(DTN_REDUCE_LOGSUMEXP, DTENSOR_F32) == (double)-INFINITY,
       "of no floats: 0, 1, -inf, inf, 0 and -inf");
    ok(empty_of(DTN_REDUCE_MAX, DTENSOR_I8) == -128 &&
       empty_of(DTN_REDUCE_MIN, DTENSOR_I8) == 127 &&
       empty_of(DTN_REDUCE_MAX, DTENSOR_U16) == 0 &&
       empty_of(DTN_REDUCE_PROD, DTENSOR_I32) == 1,
       "of no integers: the least and the largest of the type, 0 and 1");
    ok(isnan(empty_of(DTN_REDUCE_MEAN, DTENSOR_F32)), "of nothing, no mean");
}

/* The least and the largest size of rows of -0, of a few elements or many. */
static void test_size_of_zero(int width)
{
    const double powers[] = { (double)INFINITY, (double)-INFINITY };
    static double zeros[100];
    bool right = true;

    for (int i = 0; i < 100; i++)
        zeros[i] = -0.0;
    for (int n = 1; n <= 100; n += 33)
        for (int p = 0; p < 2; p++) {
            const int64_t shape[] = { n }, one[] = { 1 };
            double result = -1;
            const struct dtn_array in = dtn_array_packed(zeros, DTENSOR_F64, 1,
                                                         shape);
            const struct dtn_array out = dtn_array_packed(&result, DTENSOR_F64,
                                                          1, one);

            dtn_reduce_dims(DTN_REDUCE_NORM, &out, &in, powers[p], room);
            right = right && result == 0 && !signbit(result);
        }
    ok(right, "width %d: the size of -0 is 0", width);
}

int main(void)
{
    seed = rand_seed(4);
    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        test_reductions(width);
    dtn_width_force(-1);
    test_complex();
    test_empty();
    for (int width = 0; width < 3 && dtn_width_force(width); width++) {
        test_bf16(width);
        test_size_of_zero(width);
    }
    return done();
}
