/* test_math_array.c - views of arrays, and walking over several at once
 *
 * Each view is compared with where its elements are by definition; a walk over
 * arrays of any strides with an odometer.
 *
 * Without this test, a transposed or sliced operand could give the elements of
 * its neighbour, and every operator on it a wrong result.
 */
#include "math/array.h"
#include "math/loop.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

static uint64_t seed;

static void test_views(void)
{
    float data[24];
    const int64_t shape[] = { 4, 6 };
    const int order[] = { 1, 0 };
    const struct dtn_array a = dtn_array_packed(data, DTENSOR_F32, 2, shape);
    const struct dtn_array columns = dtn_array_sliced(&a, 1, 1, 3, 2);
    const struct dtn_array back = dtn_array_sliced(&a, 0, 3, 4, -1);
    const struct dtn_array none = dtn_array_sliced(&a, 0, 4, 0, 1);
    const struct dtn_array row = dtn_array_selected(&a, 0, 2);
    const struct dtn_array t = dtn_array_swapped(&a, 0, 1);
    const struct dtn_array p = dtn_array_permuted(&a, order);
    const struct dtn_array wide = dtn_array_expanded(&row, &a);

    ok(dtn_array_count(&a) == 24 && a.stride[0] == 6 && a.stride[1] == 1,
       "a packed array of 4 x 6 has 24 elements and strides 6 and 1");
    ok(columns.data == data + 1 && columns.shape[1] == 3 &&
       columns.stride[1] == 2 && columns.shape[0] == 4,
       "columns 1, 3, 5 begin one further and have stride 2");
    ok(back.data == data + 18 && back.stride[0] == -6,
       "rows in reverse begin at the last and have stride -6");
    ok(none.data == data && dtn_array_count(&none) == 0,
       "a slice of nothing keeps the address");
    ok(row.ndim == 1 && row.data == data + 12 && row.shape[0] == 6,
       "row 2 is an array of one dimension");
    ok(t.shape[0] == 6 && t.stride[0] == 1 && t.stride[1] == 6 &&
       memcmp(&t, &p, sizeof t) == 0,
       "a transposed array has the strides exchanged");
    ok(wide.ndim == 2 && wide.shape[0] == 4 && wide.stride[0] == 0 &&
       wide.stride[1] == 1, "a row is broadcast with stride 0");
}

/* Are the runs, one after the other, the elements in row-major order? */
static bool walk_is_right(const struct dtn_array arrays[], int n)
{
    int64_t index[DTENSOR_MAX_DIMS] = { 0 }, count = 0;
    struct dtn_loop loop;
    bool right = true;

    dtn_loop_begin(&loop, arrays, n);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++, count++) {
            for (int a = 0; a < n; a++)
                right &= loop.at[a] + i * loop.step[a] * (int64_t)loop.size[a]
                         == (char *)sample_at(&arrays[a], index);
            sample_next(&arrays[0], index);
        }
    return right && count == dtn_array_count(&arrays[0]) &&
           loop.at[0] == (char *)arrays[0].data;
}

static void test_walks(void)
{
    enum { WALKS = 2000 };
    int wrong = 0;

    for (int i = 0; i < WALKS; i++) {
        const int ndim = rand_below(&seed, 5), n = 1 + rand_below(&seed, 4);
        struct dtn_array arrays[4];
        int64_t shape[DTENSOR_MAX_DIMS];

        sample_shape(&seed, ndim, 4, shape);
        for (int a = 0; a < n; a++) {
            arrays[a] = sample_new(&seed, (enum dtensor_dtype)rand_below(
                                              &seed, DTENSOR_NDTYPES),
                                   ndim, shape, rand_below(&seed, 2));
            if (a > 0 && ndim > 0 && rand_below(&seed, 2))
                arrays[a].stride[rand_below(&seed, ndim)] = 0;
        }
        wrong += !walk_is_right(arrays, n);
        for (int a = 0; a < n; a++)
            sample_free(&arrays[a]);
    }
    ok(wrong == 0, "%d walks over 1 to 4 arrays meet every element in order: "
       "%d wrong (seed %llu)", WALKS, wrong,
       (unsigned long long)rand_seed(1));
}

static void test_longest_run(void)
{
    const int64_t shape[] = { 2, 3, 4 };
    struct dtn_array a[2] = { dtn_array_packed(NULL, DTENSOR_F32, 3, shape),
                              dtn_array_packed(NULL, DTENSOR_I8, 3, shape) };
    struct dtn_loop loop;

    dtn_loop_begin(&loop, a, 2);
    ok(loop.run == 24 && loop.ndim == 0, "arrays without gaps are one run");
    a[1].stride[0] = 0;
    dtn_loop_begin(&loop, a, 2);
    ok(loop.run == 12 && loop.ndim == 1,
       "an array broadcast along its first dimension makes two");
}

int main(void)
{
    seed = rand_seed(1);
    test_views();
    test_walks();
    test_longest_run();
    return done();
}
