/* select.c - elements that are found by index
 *
 * A gather walks over the result, the index, and the operand with stride 0
 * along the dimension: the index then says how many strides to go.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "math/select.h"
#include "math/loop.h"
#include "math/pointwise.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static int64_t index_at(const struct dtn_loop *loop, int array, int64_t i)
{
    const char *at = loop->at[array] + i * loop->step[array] *
                                       (int64_t)loop->size[array];

    return loop->size[array] == 8 ? *(const int64_t *)at
                                  : *(const int32_t *)at;
}

/* Are all n numbers of the run from 0 to size - 1?  Of i32, of i64. */
struct select_loops {
    bool (*within[2])(const void *run, int64_t n, int64_t size);
};

#define LANES_FILE "math/select_lanes.h"
#define LANES_LOOPS struct select_loops
#include "math/width_lanes.h"

static bool run_within(const struct dtn_loop *loop, int64_t size)
{
    const bool wide = loop->size[0] == 8;

    return loop->step[0] == 1 && size >= 1 && (wide || size <= INT32_MAX) &&
           widths[dtn_width()]->within[wide](loop->at[0], loop->run, size);
}

int64_t dtn_index_wrong(const struct dtn_array *index, int64_t size,
                        int64_t *value)
{
    struct dtn_loop loop;
    int64_t place = 0;

    dtn_loop_begin(&loop, index, 1);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop)) {
        const bool within = run_within(&loop, size);

        for (int64_t i = 0; i < loop.run && !within; i++) {
            const int64_t found = index_at(&loop, 0, i);

            if (found < 0 || found >= size) {
                *value = found;
                return place + i;
            }
        }
        place += loop.run;
    }
    return -1;
}

/* ----------------------------------------------------------- embedding --- */

enum { ROWS, INDEX };

/* A walk over rows, which have the last dimension, and their indices. */
static void rows_begin(struct dtn_loop *loop, const struct dtn_array *rows,
                       const struct dtn_array *index)
{
    struct dtn_array arrays[2] = { *rows, *index };

    arrays[ROWS].ndim = index->ndim;
    dtn_loop_begin(loop, arrays, 2);
}

static struct dtn_array row_at(const struct dtn_array *rows, char *at)
{
    const int last = rows->ndim - 1;

    return (struct dtn_array){ .data = at, .dtype = rows->dtype, .ndim = 1,
                               .shape = { rows->shape[last] },
                               .stride = { rows->stride[last] } };
}

static bool row_find(const struct dtn_array *table, int64_t i,
                     struct dtn_array *row)
{
    if (i < 0 || i >= table->shape[0])
        return false;
    *row = row_at(table, (char *)table->data + i * table->stride[0] *
                         (int64_t)dtn_dtype_size(table->dtype));
    return true;
}

static void row_copy(const struct dtn_array *to, const struct dtn_array *from)
{
    if (to->shape[0] == 0)        /* there may be no address                  */
        return;
    if (to->stride[0] == 1 && from->stride[0] == 1)
        memcpy(to->data, from->data,
               (size_t)to->shape[0] * dtn_dtype_size(to->dtype));
    else
        dtn_array_copy(to, from);
}

void dtn_embedding(const struct dtn_array *out, const struct dtn_array *table,
                   const struct dtn_array *index, int64_t first)
{
    struct dtn_array row;
    struct dtn_loop loop;

    rows_begin(&loop, out, index);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++) {
            const struct dtn_array to =
                row_at(out, loop.at[ROWS] + i * loop.step[ROWS] *
                            (int64_t)loop.size[ROWS]);

            if (row_find(table, index_at(&loop, INDEX, i) - first, &row))
                row_copy(&to, &row);
            else
                dtn_array_fill(&to, 0);
        }
}

void dtn_embedding_backward(const struct dtn_array *table,
                            const struct dtn_array *grad,
                            const struct dtn_array *index, int64_t first)
{
    struct dtn_array row;
    struct dtn_loop loop;

    rows_begin(&loop, grad, index);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++) {
            const struct dtn_array from =
                row_at(grad, loop.at[ROWS] + i * loop.step[ROWS] *
                             (int64_t)loop.size[ROWS]);
            const struct dtn_array *const in[] = { &row, &from };

            if (row_find(table, index_at(&loop, INDEX, i) - first, &row))
                dtn_pointwise(DTN_ADD, &row, in, NULL);
        }
}

/* ----------------------------------------------------- gather, scatter --- */

enum { ELEMENT, WHERE, TABLE };

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLLED _Pragma("GCC unroll 8")
#else
#define UNROLLED
#endif

/* A walk over elements and their indices; TABLE stays where the dimension
 * begins.
 */
static void table_begin(struct dtn_loop *loop, const struct dtn_array *elements,
                        const struct dtn_array *index,
                        const struct dtn_array *table, int dim)
{
    struct dtn_array arrays[3] = { *index, *index, *table };

    arrays[ELEMENT].data = elements->data;
    arrays[ELEMENT].dtype = elements->dtype;
    for (int d = 0; d < index->ndim; d++) {
        arrays[ELEMENT].stride[d] = elements->stride[d];
        arrays[TABLE].shape[d] = index->shape[d];
    }
    arrays[TABLE].stride[dim] = 0;
    dtn_loop_begin(loop, arrays, 3);
}

static char *loop_at(const struct dtn_loop *loop, int array, int64_t i)
{
    return loop->at[array] + i * loop->step[array] *
                             (int64_t)loop->size[array];
}

/* Of one row of the table, indices of i64 that are side by side? */
static bool run_simple(const struct dtn_loop *loop, int64_t stride)
{
    return loop->step[ELEMENT] == 1 && loop->step[TABLE] == 0 && stride == 1 &&
           loop->step[WHERE] == 1 && loop->size[WHERE] == 8;
}

/* The element of the run of the table that is `found` strides on; 0: it is of
 * another rank.  SOME elements of a simple run of which none is have a loop
 * without that question.
 */
enum { SOME = 256 };
#define GATHER(bytes, T)                                                      \
    static void gather_simple_##bytes(T *out, const int64_t *index,           \
                                      const T *table, int64_t run)            \
    {                                                                         \
        UNROLLED                                                              \
        for (int64_t i = 0; i < run; i++)                                     \
            out[i] = table[index[i]];                                         \
    }                                                                         \
    static void gather_run_##bytes(                                           \
        T *out, int64_t to, const void *index, int64_t index_step, bool wide, \
        const T *table, int64_t step, int64_t stride, int64_t run, int64_t n, \
        int64_t first)                                                        \
    {                                                                         \
        static const T none;                                                  \
                                                                              \
        for (int64_t i = 0; i < run; i++) {                                   \
            const int64_t found =                                             \
                (wide ? ((const int64_t *)index)[i * index_step]              \
                      : ((const int32_t *)index)[i * index_step]) - first;    \
                                                                              \
            out[i * to] = (uint64_t)found < (uint64_t)n                       \
                ? table[i * step + found * stride] : none;                    \
        }                                                                     \
    }                                                                         \
    static void gather_##bytes(const struct dtn_loop *loop, int64_t stride,   \
                               int64_t n, int64_t first)                      \
    {                                                                         \
        const bool simple = first == 0 && n > 0 && run_simple(loop, stride);  \
        const int64_t most = simple ? SOME : loop->run;                       \
        const int64_t to = loop->step[ELEMENT], step = loop->step[TABLE];     \
        const bool wide = loop->size[WHERE] == 8;                             \
        const T *table = (const void *)loop->at[TABLE];                       \
        T *out = (void *)loop->at[ELEMENT];                                   \
                                                                              \
        for (int64_t i = 0; i < loop->run; i += most) {                       \
            const int64_t left = loop->run - i;                               \
            const int64_t count = left < most ? left : most;                  \
            const void *index = loop_at(loop, WHERE, i);                      \
                                                                              \
            if (simple && widths[dtn_width()]->within[1](index, count, n))    \
                gather_simple_##bytes(out + i, index, table, count);          \
            else                                                              \
                gather_run_##bytes(out + i * to, to, index,                   \
                                   loop->step[WHERE], wide, table + i * step, \
                                   step, stride, count, n, first);            \
        }                                                                     \
    }

struct gather_pair { uint64_t part[2]; };
GATHER(1, uint8_t)
GATHER(2, uint16_t)
GATHER(4, uint32_t)
GATHER(8, uint64_t)
GATHER(16, struct gather_pair)

void dtn_array_gather(const struct dtn_array *out, const struct dtn_array *in,
                      int dim, const struct dtn_array *index, int64_t first)
{
    typedef void gather_f(const struct dtn_loop *loop, int64_t stride,
                          int64_t n, int64_t first);
    static gather_f *const of[] = { [1] = gather_1, [2] = gather_2,
                                    [4] = gather_4, [8] = gather_8,
                                    [16] = gather_16 };
    struct dtn_loop loop;

    table_begin(&loop, out, index, in, dim);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        of[loop.size[TABLE]](&loop, in->stride[dim], in->shape[dim], first);
}

/* The index, which has one dimension, as it is for each element of `out`. */
static struct dtn_array index_spread(const struct dtn_array *out, int dim,
                                     const struct dtn_array *index)
{
    struct dtn_array all = *out;

    all.data = index->data;
    all.dtype = index->dtype;
    for (int d = 0; d < all.ndim; d++)
        all.stride[d] = d == dim ? index->stride[0] : 0;
    return all;
}

void dtn_index_select(const struct dtn_array *out, const struct dtn_array *in,
                      int dim, const struct dtn_array *index, int64_t first)
{
    const int64_t n = in->shape[dim];
    struct dtn_loop loop;
    int64_t place = 0;

    if (in->stride[dim] == 1 && index->ndim == 1) {     /* each on its own    */
        const struct dtn_array all = index_spread(out, dim, index);

        dtn_array_gather(out, in, dim, &all, first);
        return;
    }
    dtn_loop_begin(&loop, index, 1);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++, place++) {
            const int64_t found = index_at(&loop, 0, i) - first;
            const bool here = found >= 0 && found < n;
            const struct dtn_array to = dtn_array_selected(out, dim, place);

            if (here) {
                const struct dtn_array from = dtn_array_selected(in, dim,
                                                                 found);

                dtn_array_copy(&to, &from);
            } else {
                dtn_array_fill(&to, 0);
            }
        }
}

/* One element, in f64 or as an integer: rounded once, either way.  Of bool it
 * is "or".
 */
static void element_add(enum dtensor_dtype dtype, void *to, const void *from)
{
    const bool is_complex = dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX;
    const enum dtensor_dtype part = dtype == DTENSOR_C64 ? DTENSOR_F32
                                  : is_complex ? DTENSOR_F64 : dtype;

    for (size_t i = 0; i < (is_complex ? 2 : 1); i++)
        if (dtn_dtype_is_float(part))
            dtn_store(part, to, i, dtn_load(part, to, i) +
                                   dtn_load(part, from, i));
        else if (part == DTENSOR_BOOL)
            dtn_store_int(part, to, i, dtn_load_int(part, to, i) ||
                                       dtn_load_int(part, from, i));
        else
            dtn_store_int(part, to, i,
                          (int64_t)((uint64_t)dtn_load_int(part, to, i) +
                                    (uint64_t)dtn_load_int(part, from, i)));
}

void dtn_array_scatter(const struct dtn_array *out, int dim,
                       const struct dtn_array *index,
                       const struct dtn_array *from, bool adds)
{
    const int64_t n = out->shape[dim], stride = out->stride[dim];
    struct dtn_loop loop;

    table_begin(&loop, from, index, out, dim);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++) {
            const int64_t found = index_at(&loop, WHERE, i);
            char *to = loop_at(&loop, TABLE, i) +
                       found * stride * (int64_t)loop.size[TABLE];

            if (found < 0 || found >= n)
                continue;
            if (adds)
                element_add(out->dtype, to, loop_at(&loop, ELEMENT, i));
            else
                memcpy(to, loop_at(&loop, ELEMENT, i), loop.size[TABLE]);
        }
}

/* -------------------------------------------------------------- places --- */

void dtn_places_add(int64_t place[], const struct dtn_array *index,
                    int64_t first, int64_t size, int64_t stride)
{
    const int64_t n = dtn_array_count(index);
    const bool wide = index->dtype == DTENSOR_I64;

    for (int64_t i = 0; i < n; i++) {
        const int64_t found = (wide ? ((const int64_t *)index->data)[i]
                                    : ((const int32_t *)index->data)[i]) -
                              first;

        if (found < 0 || found >= size)
            place[i] = -1;
        else if (place[i] >= 0)
            place[i] += found * stride;
    }
}

/* Element i of the run of the table; NULL: there is no such place. */
static char *place_at(const struct dtn_loop *loop, int64_t i)
{
    const int64_t place = *(const int64_t *)loop_at(loop, WHERE, i);

    return place < 0 ? NULL : loop_at(loop, TABLE, i) +
                              place * (int64_t)loop->size[TABLE];
}

/* Do all elements of the run lie side by side? */
static bool run_packed(const struct dtn_loop *loop)
{
    return loop->step[ELEMENT] == 1 && loop->step[WHERE] == 0 &&
           loop->step[TABLE] == 1;
}

void dtn_array_pick(const struct dtn_array *out, const struct dtn_array *table,
                    const struct dtn_array *place)
{
    const struct dtn_array arrays[] = { *out, *place, *table };
    struct dtn_loop loop;

    dtn_loop_begin(&loop, arrays, 3);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop)) {
        const int64_t step = run_packed(&loop) ? loop.run : 1;
        const size_t size = (size_t)step * loop.size[TABLE];

        for (int64_t i = 0; i < loop.run; i += step) {
            const char *from = place_at(&loop, i);

            if (from)
                memcpy(loop_at(&loop, ELEMENT, i), from, size);
            else
                memset(loop_at(&loop, ELEMENT, i), 0, size);
        }
    }
}

void dtn_array_put(const struct dtn_array *table, const struct dtn_array *place,
                   const struct dtn_array *from, bool adds)
{
    const struct dtn_array arrays[] = { *from, *place, *table };
    struct dtn_loop loop;

    dtn_loop_begin(&loop, arrays, 3);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop)) {
        const int64_t step = run_packed(&loop) && !adds ? loop.run : 1;
        const size_t size = (size_t)step * loop.size[TABLE];

        for (int64_t i = 0; i < loop.run; i += step) {
            char *to = place_at(&loop, i);

            if (to && adds)
                element_add(table->dtype, to, loop_at(&loop, ELEMENT, i));
            else if (to)
                memcpy(to, loop_at(&loop, ELEMENT, i), size);
        }
    }
}
