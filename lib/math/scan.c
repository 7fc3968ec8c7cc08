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

#define CUMULATE(kind, T, field)                                              \
    static void cumulate_##kind(bool product, void *to, const void *from,     \
                                int64_t n, union total *total)                \
    {                                                                         \
        T *out = to;                                                          \
        const T *in = from;                                                   \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            total->field = product ? total->field * in[i]                     \
                                   : total->field + in[i];                    \
            out[i] = (T)total->field;                                         \
        }                                                                     \
    }

CUMULATE(f32, float, real)
CUMULATE(f64, double, real)
CUMULATE(whole, uint64_t, whole)
CUMULATE(c128, double complex, number)

static void cumulate(enum dtensor_dtype work, bool product, void *to,
                     const void *from, int64_t n, union total *total)
{
    switch (work) {
    case DTENSOR_F32:
        cumulate_f32(product, to, from, n, total);
        break;
    case DTENSOR_F64:
        cumulate_f64(product, to, from, n, total);
        break;
    case DTENSOR_C128:
        cumulate_c128(product, to, from, n, total);
        break;
    default:
        cumulate_whole(product, to, from, n, total);
        break;
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

static void row_cumulate(struct dtn_strips *rows, bool product)
{
    _Alignas(64) char made[DTN_BLOCK_BYTES], room[DTN_BLOCK_BYTES];
    const enum dtensor_dtype work = rows->how[1].work;
    union total total = total_first(work, product);

    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        void *to = dtn_strips_place(rows, 0, made);

        cumulate(work, product, to, dtn_strips_load(rows, 1, room), rows->n,
                 &total);
        dtn_strips_store(rows, 0, to, made);
    }
}

/* Rows that lie apart, transposed to a buffer and back. */
static void bundle_cumulate(const struct dtn_strips *rows, bool product,
                            int64_t count)
{
    _Alignas(64) char buffer[DTN_BUNDLE_BYTES];
    const struct dtn_array in = dtn_bundle_view(rows, 1, count);
    const struct dtn_array out = dtn_bundle_view(rows, 0, count);
    const struct dtn_array copy = dtn_bundle_take(&in, buffer);

    dtn_cumulate(product, &copy, &copy, 1);
    dtn_array_copy(&out, &copy);
}

void dtn_cumulate(bool product, const struct dtn_array *out,
                  const struct dtn_array *in, int dim)
{
    const struct dtn_array arrays[] = { *out, *in };
    struct dtn_strips rows;
    int64_t count;

    dtn_strips_begin(&rows, arrays, 2, 1u << dim);
    for (bool more = dtn_strips_first(&rows); more;
         more = dtn_strips_skip(&rows, count ? count : 1)) {
        count = out->dtype == in->dtype ? dtn_bundle_strips(&rows, 1) : 0;
        if (count)
            bundle_cumulate(&rows, product, count);
        else
            row_cumulate(&rows, product);
    }
}

/* ----------------------------------------------------------- triangles --- */

static int64_t within(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x < most ? x : most;
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

    for (int64_t row = 0; row < rows; row++) {
        const int64_t edge = within(row + diagonal + lower, columns);

        triangle_row(out, in, row, lower ? 0 : edge, lower ? edge : columns);
    }
}
