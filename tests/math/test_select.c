/* test_select.c - elements that are found by index, triangles, sums so far
 *
 * Each is compared with its definition, element by element, on arrays with gaps
 * and in any order; tables that are cut give zeros for what others have.
 *
 * Without this test, an embedding could read the row before, and a rank that
 * has part of a table read outside of it.
 */
#include "math/pointwise.h"
#include "math/room.h"
#include "math/select.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

enum { CALLS = 80 };

static uint64_t seed;

/* Indices from `least` to below `most`. */
static struct dtn_array index_new(int ndim, const int64_t shape[],
                                  int64_t least, int64_t most)
{
    struct dtn_array array = sample_new(
        &seed, rand_below(&seed, 2) ? DTENSOR_I64 : DTENSOR_I32, ndim, shape,
        rand_below(&seed, 2));
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };

    for (bool more = dtn_array_count(&array) > 0; more;
         more = sample_next(&array, index))
        dtn_store_int(array.dtype, sample_at(&array, index), 0,
                      least + rand_below(&seed, (int)(most - least)));
    return array;
}

static struct dtn_array filled(enum dtensor_dtype dtype, int ndim,
                               const int64_t shape[])
{
    struct dtn_array array = sample_new(&seed, dtype, ndim, shape,
                                        rand_below(&seed, 2));

    sample_fill(&seed, &array, false);
    return array;
}

/* Is `got` the element at `at`, or 0 if there is none? */
static bool same(const struct dtn_array *out, const int64_t index[],
                 const struct dtn_array *in, const int64_t at[], bool here)
{
    static const char zeros[16];

    return memcmp(sample_at(out, index), here ? sample_at(in, at) : zeros,
                  dtensor_dtype_size(out->dtype)) == 0;
}

static int embedding_wrong(enum dtensor_dtype dtype)
{
    const int ndim = rand_below(&seed, 4);
    const int64_t first = rand_below(&seed, 3), rows = 5;
    int64_t shape[DTENSOR_MAX_DIMS], index[DTENSOR_MAX_DIMS] = { 0 };
    int wrong = 0;

    sample_shape(&seed, ndim + 1, 5, shape);
    const int64_t table_shape[] = { rows, shape[ndim] };
    struct dtn_array table = filled(dtype, 2, table_shape);
    struct dtn_array where = index_new(ndim, shape, 0, rows + 4);
    struct dtn_array out = filled(dtype, ndim + 1, shape);

    dtn_embedding(&out, &table, &where, first);
    for (bool more = dtn_array_count(&out) > 0; more;
         more = sample_next(&out, index)) {
        const int64_t row = dtn_load_int(where.dtype, sample_at(&where, index),
                                         0) - first;
        const int64_t at[] = { row, index[ndim] };

        wrong += !same(&out, index, &table, at, row >= 0 && row < rows);
    }
    sample_free(&table);
    sample_free(&where);
    sample_free(&out);
    return wrong;
}

static int backward_wrong(void)
{
    const int64_t shape[] = { 3, 7, 4 }, table_shape[] = { 5, 4 };
    struct dtn_array table = sample_new(&seed, DTENSOR_F64, 2, table_shape,
                                        true);
    struct dtn_array want = sample_new(&seed, DTENSOR_F64, 2, table_shape,
                                       false);
    struct dtn_array where = index_new(2, shape, 0, 9);
    struct dtn_array grad = filled(DTENSOR_F64, 3, shape);
    int64_t index[3] = { 0 }, at[2] = { 0 };
    int wrong = 0;

    dtn_embedding_backward(&table, &grad, &where, 2);
    do {
        const int64_t row = dtn_load_int(where.dtype, sample_at(&where, index),
                                         0) - 2;
        const int64_t to[] = { row, index[2] };

        if (row >= 0 && row < 5)
            *(double *)sample_at(&want, to) +=
                *(double *)sample_at(&grad, index);
    } while (sample_next(&grad, index));
    do
        wrong += !same(&table, at, &want, at, true);
    while (sample_next(&want, at));
    sample_free(&table);
    sample_free(&want);
    sample_free(&where);
    sample_free(&grad);
    return wrong;
}

static void test_embedding(void)
{
    int wrong = 0, back = 0;

    for (int i = 0; i < CALLS; i++) {
        wrong += embedding_wrong((enum dtensor_dtype)(i % DTENSOR_NDTYPES));
        back += backward_wrong();
    }
    ok(wrong == 0, "rows of a table, also of a cut one: %d wrong (seed %llu)",
       wrong, (unsigned long long)rand_seed(6));
    ok(back == 0, "their gradients are added to the rows: %d wrong", back);
}

static int select_wrong(enum dtensor_dtype dtype)
{
    const int ndim = 1 + rand_below(&seed, 3), dim = rand_below(&seed, ndim);
    const int64_t first = rand_below(&seed, 2), count[] = { 6 };
    int64_t shape[DTENSOR_MAX_DIMS], index[DTENSOR_MAX_DIMS] = { 0 };
    int wrong = 0;

    sample_shape(&seed, ndim, 5, shape);
    struct dtn_array in = filled(dtype, ndim, shape);
    struct dtn_array where = index_new(1, count, 0, 7);
    const int64_t n = shape[dim];

    shape[dim] = 6;
    struct dtn_array out = filled(dtype, ndim, shape);

    dtn_index_select(&out, &in, dim, &where, first);
    for (bool more = dtn_array_count(&out) > 0; more;
         more = sample_next(&out, index)) {
        const int64_t i = dtn_load_int(where.dtype,
                                       sample_at(&where, index + dim), 0);
        int64_t at[DTENSOR_MAX_DIMS];

        memcpy(at, index, sizeof at);
        at[dim] = i - first;
        wrong += !same(&out, index, &in, at, i >= first && i - first < n);
    }
    sample_free(&in);
    sample_free(&where);
    sample_free(&out);
    return wrong;
}

static int gather_wrong(enum dtensor_dtype dtype)
{
    const int ndim = 1 + rand_below(&seed, 3), dim = rand_below(&seed, ndim);
    const int64_t first = rand_below(&seed, 2);
    int64_t shape[DTENSOR_MAX_DIMS], wider[DTENSOR_MAX_DIMS];
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    int wrong = 0;

    sample_shape(&seed, ndim, 5, shape);
    for (int d = 0; d < ndim; d++)
        wider[d] = shape[d] + rand_below(&seed, 2);
    struct dtn_array in = filled(dtype, ndim, wider);
    struct dtn_array where = index_new(ndim, shape, 0, 7);
    struct dtn_array out = filled(dtype, ndim, shape);

    dtn_array_gather(&out, &in, dim, &where, first);
    for (bool more = dtn_array_count(&out) > 0; more;
         more = sample_next(&out, index)) {
        const int64_t i = dtn_load_int(where.dtype, sample_at(&where, index),
                                       0) - first;
        int64_t at[DTENSOR_MAX_DIMS];

        memcpy(at, index, sizeof at);
        at[dim] = i;
        wrong += !same(&out, index, &in, at, i >= 0 && i < wider[dim]);
    }
    sample_free(&in);
    sample_free(&where);
    sample_free(&out);
    return wrong;
}

/* Rows without gaps of several blocks: in some all indices are those of this
 * rank, in some one is not.
 */
static int long_gather_wrong(enum dtensor_dtype dtype)
{
    const int64_t shape[] = { 3, 600 }, wide[] = { 3, 40 };
    struct dtn_array in = sample_new(&seed, dtype, 2, wide, false);
    struct dtn_array out = sample_new(&seed, dtype, 2, shape, false);
    struct dtn_array where = sample_new(&seed, DTENSOR_I64, 2, shape, false);
    int64_t index[DTENSOR_MAX_DIMS] = { 0 }, *row = where.data;
    int wrong = 0;

    sample_fill(&seed, &in, false);
    for (int i = 0; i < 1800; i++)
        row[i] = rand_below(&seed, 40);
    row[rand_below(&seed, 1800)] = rand_below(&seed, 42) - 1;
    dtn_array_gather(&out, &in, 1, &where, 0);
    do {
        const int64_t i = row[index[0] * 600 + index[1]];
        const int64_t at[] = { index[0], i };

        wrong += !same(&out, index, &in, at, i >= 0 && i < 40);
    } while (sample_next(&out, index));
    sample_free(&in);
    sample_free(&where);
    sample_free(&out);
    return wrong;
}

static int scatter_wrong(enum dtensor_dtype dtype, bool adds)
{
    const int64_t shape[] = { 4, 6 }, wide[] = { 5, 6 };
    struct dtn_array from = filled(dtype, 2, wide);
    struct dtn_array where = index_new(2, shape, 0, 5);
    struct dtn_array out = filled(dtype, 2, wide);
    struct dtn_array want = sample_new(&seed, dtype, 2, wide, false);
    int64_t index[2] = { 0 }, at[2] = { 0 };
    int wrong = 0;

    dtn_array_copy(&want, &out);
    dtn_array_scatter(&out, 0, &where, &from, adds);
    do {
        at[0] = dtn_load_int(where.dtype, sample_at(&where, index), 0);
        at[1] = index[1];
        void *to = sample_at(&want, at);
        const void *element = sample_at(&from, index);

        if (adds && dtn_dtype_is_float(dtype))
            dtn_store(dtype, to, 0, dtn_load(dtype, to, 0) +
                                    dtn_load(dtype, element, 0));
        else if (adds)
            dtn_store_int(dtype, to, 0, (int64_t)(
                (uint64_t)dtn_load_int(dtype, to, 0) +
                (uint64_t)dtn_load_int(dtype, element, 0)));
        else
            memcpy(to, element, dtensor_dtype_size(dtype));
    } while (sample_next(&where, index));
    memset(at, 0, sizeof at);
    do
        wrong += !same(&out, at, &want, at, true);
    while (sample_next(&want, at));
    sample_free(&from);
    sample_free(&where);
    sample_free(&out);
    sample_free(&want);
    return wrong;
}

static void test_index(void)
{
    int selected = 0, gathered = 0, scattered = 0;

    for (int i = 0; i < CALLS; i++) {
        const enum dtensor_dtype dtype = (enum dtensor_dtype)(i %
                                                              DTENSOR_NDTYPES);
        const bool adds = i & 1 && dtn_dtype_kind(dtype) != DTN_DTYPE_COMPLEX &&
                          dtype != DTENSOR_BOOL;

        selected += select_wrong(dtype);
        gathered += gather_wrong(dtype) + long_gather_wrong(dtype);
        scattered += scatter_wrong(dtype, adds);
    }
    ok(selected == 0, "slices by index: %d wrong", selected);
    ok(gathered == 0, "elements by index: %d wrong", gathered);
    ok(scattered == 0, "elements set and added by index: %d wrong", scattered);
}

static void test_wrong_index(void)
{
    const int32_t data[] = { 0, 4, 2, 5, -1, 3 };
    const int64_t shape[] = { 2, 3 };
    const struct dtn_array index = dtn_array_packed((void *)data, DTENSOR_I32,
                                                    2, shape);
    int64_t value = 0;

    ok(dtn_index_wrong(&index, 5, &value) == 3 && value == 5,
       "the first index that is too large is found");
    ok(dtn_index_wrong(&index, 6, &value) == 4 && value == -1,
       "and a negative one");
}

/* --------------------------------------------------- triangles, so far --- */

static int triangle_wrong(bool lower, int64_t diagonal)
{
    const int64_t shape[] = { 2, 4, 6 };
    struct dtn_array in = filled(DTENSOR_I16, 3, shape);
    struct dtn_array out = filled(DTENSOR_I16, 3, shape);
    int64_t index[3] = { 0 };
    int wrong = 0;

    dtn_triangle(lower, diagonal, &out, &in);
    do {
        const int64_t off = index[2] - index[1];

        wrong += !same(&out, index, &in, index,
                       lower ? off <= diagonal : off >= diagonal);
    } while (sample_next(&out, index));
    sample_free(&in);
    sample_free(&out);
    return wrong;
}

static void test_triangles(void)
{
    int wrong = 0;

    for (int diagonal = -7; diagonal <= 7; diagonal++)
        wrong += triangle_wrong(true, diagonal) +
                 triangle_wrong(false, diagonal);
    for (int lower = 0; lower < 2; lower++)
        wrong += triangle_wrong(lower, INT64_MAX) +
                 triangle_wrong(lower, INT64_MIN);
    ok(wrong == 0, "triangles of every diagonal: %d wrong", wrong);
}

static int cumulate_wrong(enum dtensor_dtype dtype, bool product)
{
    const int64_t shape[] = { 3, rand_below(&seed, 2) ? 5 : 700,
                              rand_below(&seed, 2) ? 2 : 7 };
    struct dtn_array in = filled(dtype, 3, shape);
    struct dtn_array out = filled(dtype, 3, shape);
    int64_t index[3] = { 0 };
    int wrong = 0;

    dtn_cumulate(product, &out, &in, 1, room);
    do {
        int64_t at[3] = { index[0], 0, index[2] };
        double real = product;
        uint64_t whole = product;

        for (; at[1] <= index[1]; at[1]++) {
            const double x = dtn_load(dtype, sample_at(&in, at), 0);
            const uint64_t w = dtn_dtype_is_float(dtype) ? 0
                : (uint64_t)dtn_load_int(dtype, sample_at(&in, at), 0);

            real = product ? real * x : real + x;
            whole = product ? whole * w : whole + w;
        }
        if (dtn_dtype_is_float(dtype)) {
            wrong += !sample_close(dtype, dtn_load(dtype, sample_at(
                                       &out, index), 0),
                                   dtype == DTENSOR_F64 ? real
                                                        : (double)(float)real,
                                   0, 0);
        } else {
            int64_t want;

            dtn_store_int(dtype, &want, 0, (int64_t)whole);
            wrong += dtn_load_int(dtype, sample_at(&out, index), 0) !=
                     dtn_load_int(dtype, &want, 0);
        }
    } while (sample_next(&out, index));
    sample_free(&in);
    sample_free(&out);
    return wrong;
}

static void test_cumulate(void)
{
    static const enum dtensor_dtype types[] = { DTENSOR_F32, DTENSOR_F64,
                                                DTENSOR_BF16, DTENSOR_I8,
                                                DTENSOR_U64 };
    int wrong = 0;

    for (int i = 0; i < 20; i++)
        wrong += cumulate_wrong(types[i % 5], i & 1);
    ok(wrong == 0, "sums and products so far: %d wrong", wrong);
}

int main(void)
{
    seed = rand_seed(6);
    test_embedding();
    test_index();
    test_wrong_index();
    test_triangles();
    test_cumulate();
    return done();
}
