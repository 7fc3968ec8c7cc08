/* extreme.c - where the largest or the least element is */
#include "math/reduction.h"
#include "math/block.h"
#include "math/bundle.h"
#include "math/loop.h"
#include "math/totals.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { VALUE, INDEX, ELEMENT };

/* The first element that is larger (or less) than all before it, or a NaN. */
#define FIND(kind, T)                                                         \
    static int64_t find_##kind(const void *elements, int64_t n, bool largest, \
                               void *best, int64_t found, int64_t first)      \
    {                                                                         \
        const T *array = elements;                                            \
        T most;                                                               \
                                                                              \
        memcpy(&most, found < 0 ? array : best, sizeof most);                 \
        found = found < 0 ? first : found;                                    \
        for (int64_t i = 0; i < n && most == most; i++) {                     \
            const T x = array[i];                                             \
                                                                              \
            if ((largest ? x > most : x < most) || x != x) {                  \
                most = x;                                                     \
                found = first + i;                                            \
            }                                                                 \
        }                                                                     \
        memcpy(best, &most, sizeof most);                                     \
        return found;                                                         \
    }

FIND(i64, int64_t)
FIND(u64, uint64_t)

/* Of floats first the extreme of the block, in vectors; only if it is better
 * than what was found, its place.
 */
static int64_t find_float(enum dtensor_dtype work, const void *elements,
                          int64_t n, bool largest, void *best, int64_t found,
                          int64_t first)
{
    const double worst = largest ? (double)-INFINITY : (double)INFINITY;
    const double extreme = dtn_total(largest ? DTN_TOTAL_MAX : DTN_TOTAL_MIN,
                                     work, elements, n, worst, 0);
    double most = 0;

    if (found >= 0)
        memcpy(&most, best, sizeof most);
    if (found >= 0 && !(largest ? extreme > most : extreme < most) &&
        (most != most || extreme == extreme))
        return found;
    memcpy(best, &extreme, sizeof extreme);
    return first + dtn_total_place(work, elements, n, extreme);
}

static int64_t find(enum dtensor_dtype work, const void *elements, int64_t n,
                    bool largest, void *best, int64_t found, int64_t first)
{
    switch (work) {
    case DTENSOR_F32:
    case DTENSOR_F64:
        return find_float(work, elements, n, largest, best, found, first);
    case DTENSOR_U64:
        return find_u64(elements, n, largest, best, found, first);
    default:
        return find_i64(elements, n, largest, best, found, first);
    }
}

/* The place of the extreme of `count` elements from `at` on. */
static int64_t extreme_row(const struct dtn_storage *how, bool largest,
                           char *at, int64_t count)
{
    const int64_t size = (int64_t)dtn_dtype_size(how->dtype);
    _Alignas(64) char buffer[DTN_BLOCK_BYTES], best[16];
    int64_t found = -1;

    for (int64_t i = 0; i < count; i += DTN_BLOCK) {
        const int64_t n = count - i < DTN_BLOCK ? count - i : DTN_BLOCK;

        found = find(how->work, dtn_block_load(how, at + i * how->step * size,
                                               n, buffer),
                     n, largest, best, found, i);
    }
    return found;
}

/* Element i of the run of an array. */
static char *run_at(const struct dtn_loop *loop, int array, int64_t i)
{
    return loop->at[array] + i * loop->step[array] *
                             (int64_t)loop->size[array];
}

/* `count` elements of the run of an array from i on, as rows of n. */
static struct dtn_array run_view(const struct dtn_loop *loop, int array,
                                 enum dtensor_dtype dtype, int64_t i,
                                 int64_t count, int64_t n, int64_t step)
{
    return (struct dtn_array){ .data = run_at(loop, array, i), .dtype = dtype,
                               .ndim = 2, .shape = { count, n },
                               .stride = { loop->step[array], step } };
}

/* What is looked for, and where. */
struct extreme {
    bool largest;                 /* or the least                             */
    bool values;                  /* are wanted, too                          */
    struct dtn_storage how;       /* rows of n elements                       */
    int64_t n;
    void *room;                   /* see room.h                               */
};

/* Rows that lie apart, transposed to a buffer. */
static void extreme_bundle(const struct dtn_loop *loop,
                           const struct extreme *e, int64_t i, int64_t count)
{
    const struct dtn_array in = run_view(loop, ELEMENT, e->how.dtype, i, count,
                                         e->n, e->how.step);
    const struct dtn_array index = run_view(loop, INDEX, DTENSOR_I64, i, count,
                                            1, 0);
    const struct dtn_array value = run_view(loop, VALUE, e->how.dtype, i, count,
                                            1, 0);
    const struct dtn_array copy = dtn_bundle_take(&in, e->room);

    dtn_extreme(e->largest, e->values ? &value : NULL, &index, &copy, 1, NULL);
}

static void extreme_one(const struct dtn_loop *loop, const struct extreme *e,
                        int64_t i)
{
    const size_t size = loop->size[ELEMENT];
    char *at = run_at(loop, ELEMENT, i);
    const int64_t found = extreme_row(&e->how, e->largest, at, e->n);

    *(int64_t *)run_at(loop, INDEX, i) = found;
    if (e->values)
        memcpy(run_at(loop, VALUE, i), at + found * e->how.step * (int64_t)size,
               size);
}

static void extreme_run(const struct dtn_loop *loop, const struct extreme *e)
{
    int64_t count;

    for (int64_t i = 0; i < loop->run; i += count ? count : 1) {
        count = e->room ? dtn_bundle_rows(loop->run - i, loop->step[ELEMENT],
                                          e->n, e->how.step,
                                          loop->size[ELEMENT]) : 0;
        if (count)
            extreme_bundle(loop, e, i, count);
        else
            extreme_one(loop, e, i);
    }
}

void dtn_extreme(bool largest, const struct dtn_array *value,
                 const struct dtn_array *index, const struct dtn_array *in,
                 int dim, void *room)
{
    struct dtn_array arrays[3] = { [INDEX] = *index, [ELEMENT] = *in };
    const struct extreme e = {
        .largest = largest, .values = value != NULL,
        .how = { in->dtype, dtn_block_type(in->dtype), in->stride[dim] },
        .n = in->shape[dim], .room = room };
    struct dtn_loop loop;

    arrays[ELEMENT].shape[dim] = 1;
    arrays[VALUE] = value ? *value : arrays[ELEMENT];
    dtn_loop_begin(&loop, arrays, 3);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        extreme_run(&loop, &e);
}
