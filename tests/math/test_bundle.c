/* test_bundle.c - rows that lie apart have the results of rows without gaps
 *
 * Columns of a matrix, gone down at once, transposed some at a time to a
 * buffer, or one by one without that, beside the same numbers as rows: softmax,
 * sums so far, reductions of a row at a time, and where extremes are; now and
 * then with a NaN or -inf.
 * Softmax of one to nine elements, at every vector width, also in place.  Then
 * transpositions of all types, element by element.
 *
 * Without this test, the last columns, which fill no bundle or no square of the
 * transposition, could be those of another row.
 */
#include "math/array.h"
#include "math/reduction.h"
#include "math/room.h"
#include "math/select.h"
#include "math/softmax.h"
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

enum { LONG = 1100, WIDE = 70, CASES = 7 };

static uint64_t seed;
static void *lent;                /* room, or NULL                            */

/* Case `which` of rows along dimension `dim`. */
static void compute(int which, const struct dtn_array *out,
                    const struct dtn_array *in, int dim)
{
    static const enum dtn_reduction_kind kinds[] = {
        DTN_REDUCE_VAR, DTN_REDUCE_LOGSUMEXP, DTN_REDUCE_ANY };
    const int64_t shape[] = { dim ? in->shape[0] : 1, dim ? 1 : in->shape[1] };
    struct dtn_array one = dtn_array_packed(out->data, in->dtype, 2, shape);

    if (which < 2) {
        dtn_softmax(which, out, in, dim, lent);
    } else if (which == 2) {
        dtn_cumulate(false, out, in, dim, lent);
    } else if (which == 3) {
        one.dtype = DTENSOR_I64;
        dtn_extreme(true, NULL, &one, in, dim, lent);
    } else {
        one.dtype = which == 6 ? DTENSOR_BOOL : in->dtype;
        dtn_reduce_dims(kinds[which - 4], &one, in, 1, lent);
    }
}

/* How many bytes of case `which` differ. */
static int case_differs(int which, const struct dtn_array *columns)
{
    static double made[LONG * WIDE], wanted[LONG * WIDE], turned[LONG * WIDE];
    static double x[LONG * WIDE];
    const int64_t shape[] = { columns->shape[1], columns->shape[0] };
    const struct dtn_array across = dtn_array_swapped(columns, 0, 1);
    const struct dtn_array rows = dtn_array_packed(x, columns->dtype, 2, shape);
    const struct dtn_array to = dtn_array_packed(made, columns->dtype, 2,
                                                 columns->shape);
    const struct dtn_array want = dtn_array_packed(wanted, columns->dtype, 2,
                                                   shape);
    const struct dtn_array back = dtn_array_packed(turned, columns->dtype, 2,
                                                   shape);
    const struct dtn_array view = dtn_array_swapped(&to, 0, 1);

    memset(made, 0, sizeof made);
    memset(wanted, 0, sizeof wanted);
    dtn_array_copy(&rows, &across);
    compute(which, &to, columns, 0);
    compute(which, &want, &rows, 1);
    if (which >= 3)
        return memcmp(made, wanted, (size_t)shape[0] * 8) != 0;
    dtn_array_copy(&back, &view);
    return memcmp(turned, wanted, (size_t)dtn_array_count(&want) *
                                  dtensor_dtype_size(want.dtype)) != 0;
}

static void test_rows(enum dtensor_dtype dtype)
{
    int differ = 0;

    for (int i = 0; i < 15; i++) {
        const bool many = i % 3 == 2;               /* short columns */
        const int64_t shape[] = {
            i == 0 ? LONG : 2 + rand_below(&seed, many ? 40 : LONG),
            i == 0 ? WIDE : 1 + rand_below(&seed, many ? 300 : WIDE) };
        struct dtn_array in = sample_new(&seed, dtype, 2, shape, false);

        sample_fill(&seed, &in, false);
        if (i % 4 == 1)
            dtn_store(dtype, in.data, rand_below(&seed, (int)shape[1]),
                      i == 1 ? (double)NAN : (double)-INFINITY);
        for (int k = 0; k < 2 * CASES; k++) {
            lent = k < CASES ? room : NULL;
            differ += case_differs(k % CASES, &in);
        }
        sample_free(&in);
    }
    ok(differ == 0, "columns of %s have the bits of rows: %d differ",
       dtensor_dtype_name(dtype), differ);
}

/* Softmax in place has the bits of softmax beside its input. */
static bool in_place_agrees(bool logarithm, const struct dtn_array *in)
{
    static double made[10 * 600], beside[10 * 600];
    const struct dtn_array to = dtn_array_packed(made, in->dtype, 2, in->shape);
    const struct dtn_array other = dtn_array_packed(beside, in->dtype, 2,
                                                    in->shape);

    dtn_array_copy(&to, in);
    dtn_softmax(logarithm, &to, &to, 0, room);
    dtn_softmax(logarithm, &other, in, 0, room);
    return memcmp(made, beside, (size_t)dtn_array_count(in) *
                                dtensor_dtype_size(in->dtype)) == 0;
}

/* Columns of n elements, as many as fill no block; an infinity or a NaN in one
 * of them, or none.
 */
static int few_differ(enum dtensor_dtype dtype, int64_t n, double end)
{
    const int64_t shape[] = { n, 1 + rand_below(&seed, 600) };
    struct dtn_array in = sample_new(&seed, dtype, 2, shape, false);
    int differ = 0;

    sample_fill(&seed, &in, false);
    if (end != 0)
        dtn_store(dtype, in.data, rand_below(&seed, (int)(n * shape[1])), end);
    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        for (int which = 0; which < 2; which++)
            differ += case_differs(which, &in) +
                      !in_place_agrees(which, &in);
    dtn_width_force(-1);
    sample_free(&in);
    return differ;
}

static void test_few(enum dtensor_dtype dtype)
{
    static const double ends[] = { 0, (double)NAN, (double)INFINITY,
                                   -(double)INFINITY };
    int differ = 0;

    for (int64_t n = 1; n <= 9; n++)
        for (int i = 0; i < 8; i++)
            differ += few_differ(dtype, n, ends[i % 4]);
    ok(differ == 0, "softmax of 1 to 9 elements of %s has the bits of rows: %d "
       "differ", dtensor_dtype_name(dtype), differ);
}

static int transposed_wrong(enum dtensor_dtype dtype)
{
    const int64_t shape[] = { 1 + rand_below(&seed, 70),
                              1 + rand_below(&seed, 70) };
    const int64_t other[] = { shape[1], shape[0] };
    struct dtn_array in = sample_new(&seed, dtype, 2, shape, false);
    struct dtn_array out = sample_new(&seed, dtype, 2, other, false);
    const struct dtn_array view = dtn_array_swapped(&in, 0, 1);
    int64_t index[2] = { 0 };
    int wrong = 0;

    sample_fill(&seed, &in, true);
    dtn_array_copy(&out, &view);
    do {
        const int64_t at[] = { index[1], index[0] };

        wrong += memcmp(sample_at(&out, index), sample_at(&in, at),
                        dtensor_dtype_size(dtype)) != 0;
    } while (sample_next(&out, index));
    sample_free(&in);
    sample_free(&out);
    return wrong;
}

int main(void)
{
    int wrong = 0;

    seed = rand_seed(11);
    test_rows(DTENSOR_F32);
    test_rows(DTENSOR_F64);
    test_rows(DTENSOR_BF16);
    test_rows(DTENSOR_F16);
    test_few(DTENSOR_F32);
    test_few(DTENSOR_F64);
    test_few(DTENSOR_BF16);
    test_few(DTENSOR_F16);
    for (int i = 0; i < 20 * DTENSOR_NDTYPES; i++)
        wrong += transposed_wrong((enum dtensor_dtype)(i % DTENSOR_NDTYPES));
    ok(wrong == 0, "transposed matrices of all types: %d elements wrong",
       wrong);
    return done();
}
