/* extreme.c - where the largest or the least element is */
#include "math/reduction.h"
#include "math/block.h"
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

static void extreme_run(const struct dtn_loop *loop, bool largest, bool values,
                        const struct dtn_storage *how, int64_t count)
{
    const int64_t size = (int64_t)loop->size[ELEMENT];

    for (int64_t i = 0; i < loop->run; i++) {
        char *at = loop->at[ELEMENT] + i * loop->step[ELEMENT] * size;
        const int64_t found = extreme_row(how, largest, at, count);

        ((int64_t *)loop->at[INDEX])[i * loop->step[INDEX]] = found;
        if (values)
            memcpy(loop->at[VALUE] + i * loop->step[VALUE] * size,
                   at + found * how->step * size, (size_t)size);
    }
}

void dtn_extreme(bool largest, const struct dtn_array *value,
                 const struct dtn_array *index, const struct dtn_array *in,
                 int dim)
{
    struct dtn_array arrays[3] = { [INDEX] = *index, [ELEMENT] = *in };
    const struct dtn_storage how = { in->dtype, dtn_block_type(in->dtype),
                                   in->stride[dim] };
    struct dtn_loop loop;

    arrays[ELEMENT].shape[dim] = 1;
    arrays[VALUE] = value ? *value : arrays[ELEMENT];
    dtn_loop_begin(&loop, arrays, 3);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        extreme_run(&loop, largest, value != NULL, &how, in->shape[dim]);
}
