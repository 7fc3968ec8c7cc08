/* scan.c - sums so far, and the triangles of matrices */
#include "math/select.h"
#include "math/bundle.h"
#include "math/pointwise.h"
#include "math/strips.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* What has been added so far, in the type of the elements. */
union total {
    double real;
    uint64_t whole;
    double complex number;
};

/* A row waits 3 cycles for each addition.  So ABREAST neighbouring rows go on
 * at the same time, or one row alone.
 */
enum { ABREAST = 4 };

struct scan_row {
    void *to;                     /* n results                                */
    const void *from;             /* n elements; may be `to`                  */
    union total total;
};

#define CUMULATE(name, T, W, field, op)                                       \
    static void name(struct scan_row row[], bool alone, int64_t n)            \
    {                                                                         \
        const T *in[] = { row[0].from, row[1].from, row[2].from,              \
                          row[3].from };                                      \
        T *out[] = { row[0].to, row[1].to, row[2].to, row[3].to };            \
        W a = row[0].total.field, b = row[1].total.field;                     \
        W c = row[2].total.field, d = row[3].total.field;                     \
                                                                              \
        for (int64_t i = 0; i < n && alone; i++)                              \
            out[0][i] = (T)(a = a op in[0][i]);                               \
        for (int64_t i = 0; i < n && !alone; i++) {                           \
            out[0][i] = (T)(a = a op in[0][i]);                               \
            out[1][i] = (T)(b = b op in[1][i]);                               \
            out[2][i] = (T)(c = c op in[2][i]);                               \
            out[3][i] = (T)(d = d op in[3][i]);                               \
        }                                                                     \
        row[0].total.field = a;                                               \
        row[1].total.field = b;                                               \
        row[2].total.field = c;                                               \
        row[3].total.field = d;                                               \
    }

CUMULATE(sums_f32, float, double, real, +)
CUMULATE(sums_f64, double, double, real, +)
CUMULATE(sums_whole, uint64_t, uint64_t, whole, +)
CUMULATE(sums_c128, double complex, double complex, number, +)
CUMULATE(products_f32, float, double, real, *)
CUMULATE(products_f64, double, double, real, *)
CUMULATE(products_whole, uint64_t, uint64_t, whole, *)
CUMULATE(products_c128, double complex, double complex, number, *)

typedef void cumulate_f(struct scan_row row[], bool alone, int64_t n);

static cumulate_f *cumulate_of(enum dtensor_dtype work, bool product)
{
    switch (work) {
    case DTENSOR_F32: return product ? products_f32 : sums_f32;
    case DTENSOR_F64: return product ? products_f64 : sums_f64;
    case DTENSOR_C128: return product ? products_c128 : sums_c128;
    default: return product ? products_whole : sums_whole;
    }
}

static union total total_first(enum dtensor_dtype work, bool product)
{
    if (work == DTENSOR_F32 || work == DTENSOR_F64)
        return (union total){ .real = product };
    if (work == DTENSOR_C128)
        return (union total){ .number = product };
    return (union total){ .whole = product };
}

/* The block at hand of the row that is `k` rows further. */
static char *block_at(const struct dtn_strips *rows, int array, int k)
{
    return dtn_strips_at(rows, array) + k * rows->outer.step[array] *
                                        (int64_t)rows->outer.size[array];
}

static void rows_cumulate(struct dtn_strips *rows, bool product, int count)
{
    _Alignas(64) char room[ABREAST][DTN_BLOCK_BYTES];
    const struct dtn_storage *to = &rows->how[0], *from = &rows->how[1];
    cumulate_f *cumulate = cumulate_of(from->work, product);
    struct scan_row row[ABREAST] = { { 0 } };

    for (int k = 0; k < count; k++)
        row[k].total = total_first(from->work, product);
    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        for (int k = 0; k < count; k++) {
            row[k].from = dtn_block_load(from, block_at(rows, 1, k), rows->n,
                                         room[k]);
            row[k].to = dtn_block_place(to, block_at(rows, 0, k), room[k]);
        }
        cumulate(row, count < ABREAST, rows->n);
        for (int k = 0; k < count; k++)
            if (row[k].to == room[k])
                dtn_block_store(to, block_at(rows, 0, k), rows->n, room[k]);
    }
}

/* Rows that lie apart, transposed to a buffer and back. */
static void bundle_cumulate(const struct dtn_strips *rows, bool product,
                            int64_t count, void *room)
{
    const struct dtn_array in = dtn_bundle_view(rows, 1, count);
    const struct dtn_array out = dtn_bundle_view(rows, 0, count);
    const struct dtn_array copy = dtn_bundle_take(&in, room);

    dtn_cumulate(product, &copy, &copy, 1, NULL);
    dtn_array_copy(&out, &copy);
}

void dtn_cumulate(bool product, const struct dtn_array *out,
                  const struct dtn_array *in, int dim, void *room)
{
    const struct dtn_array arrays[] = { *out, *in };
    struct dtn_strips rows;
    int64_t count;

    dtn_strips_begin(&rows, arrays, 2, 1u << dim);
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_skip(&rows, count)) {
        count = room && out->dtype == in->dtype ? dtn_bundle_strips(&rows, 1)
                                                : 0;
        if (count) {
            bundle_cumulate(&rows, product, count, room);
            continue;
        }
        count = dtn_strips_beside(&rows) < ABREAST ? 1 : ABREAST;
        rows_cumulate(&rows, product, (int)count);
    }
}

/* ----------------------------------------------------------- triangles --- */

static int64_t within(int64_t least, int64_t x, int64_t most)
{
    return x < least ? least : x < most ? x : most;
}

/* Row `row` of all matrices: columns from..to of `in`, else 0. */
static void triangle_row(const struct dtn_array *out,
                         const struct dtn_array *in, int64_t row, int64_t from,
                         int64_t to)
{
    const int last = out->ndim - 2;
    const struct dtn_array o = dtn_array_selected(out, last, row);
    const struct dtn_array i = dtn_array_selected(in, last, row);
    const struct dtn_array before = dtn_array_sliced(&o, last, 0, from, 1);
    const struct dtn_array kept = dtn_array_sliced(&o, last, from, to - from,
                                                   1);
    const struct dtn_array source = dtn_array_sliced(&i, last, from, to - from,
                                                     1);
    const struct dtn_array after = dtn_array_sliced(&o, last, to,
                                                    o.shape[last] - to, 1);

    dtn_array_fill(&before, 0);
    dtn_array_copy(&kept, &source);
    dtn_array_fill(&after, 0);
}

void dtn_triangle(bool lower, int64_t diagonal, const struct dtn_array *out,
                  const struct dtn_array *in)
{
    const int64_t rows = out->shape[out->ndim - 2];
    const int64_t columns = out->shape[out->ndim - 1];
    const int64_t start = within(-rows, diagonal, columns) + lower;

    for (int64_t row = 0; row < rows; row++) {
        const int64_t edge = within(0, row + start, columns);

        triangle_row(out, in, row, lower ? 0 : edge, lower ? edge : columns);
    }
}
