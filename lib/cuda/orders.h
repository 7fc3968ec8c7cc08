/* orders.h - the kernels that bring the elements of rows in order
 *
 * Runs of 1, 2, 4, ... entries are merged.  A thread has one entry and finds by
 * bisection how many of the other run come before it, which says where it goes;
 * so no thread waits for another.  A row of 5:
 *
 *     e d c b a    d e | b c | a    b c d e | a    a b c d e
 *
 * As in math/order.c an entry is a key and the place in the row.
 */
#ifndef DTN_CUDA_ORDERS_H
#define DTN_CUDA_ORDERS_H

#include "cuda/numbers.h"
#include "cuda/pointwise.h"
#include "cuda/spots.h"
#include "math/order_key.h"

#include <stdbool.h>
#include <stdint.h>

DTN_INLINE uint64_t element_key(const struct dtn_order_args *args,
                                const void *at)
{
    if (args->is_float)
        return dtn_order_key(get_float(args->dtype, at));
    return (uint64_t)get_i64(args->dtype, at)
         ^ (args->is_signed ? DTN_KEY_HIGHEST : 0);
}

DTN_KERNEL(order_keys, order_args)
{
    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const uint64_t row = divided(u, &args->n);
        const int64_t i = (int64_t)(u - row * args->n.by);
        const struct dtn_spots spot = spot_of(&args->outer, args->row + row);
        const uint64_t key = element_key(args, (const char *)args->in
                                               + spot.at[2]
                                               + i * args->step[2]);
        const struct dtn_kernel_entry entry = { args->down ? ~key : key, i };

        args->to[u] = entry;
    }
}

/* How many of `count` entries in order have a smaller key, or one that is not
 * larger.
 */
DTN_INLINE int64_t entries_before(const struct dtn_kernel_entry *entry,
                                  int64_t count, uint64_t key, bool equal_too)
{
    int64_t low = 0, high = count;

    while (low < high) {
        const int64_t middle = (low + high) / 2;

        if (entry[middle].key < key || (equal_too && entry[middle].key == key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of equal entries those of the first run, which were before, stay so. */
DTN_KERNEL(order_merge, order_args)
{
    const int64_t n = (int64_t)args->n.by, width = args->width;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const uint64_t row = divided(u, &args->n);
        const int64_t i = (int64_t)(u - row * args->n.by);
        const int64_t first = i & ~(2 * width - 1);
        const int64_t second = n - first < width ? n : first + width;
        const int64_t end = n - first < 2 * width ? n : first + 2 * width;
        const struct dtn_kernel_entry *from = args->from + row * args->n.by;
        const struct dtn_kernel_entry mine = from[i];
        const int64_t to = i < second
            ? i + entries_before(from + second, end - second, mine.key, false)
            : i - width + entries_before(from + first, width, mine.key, true);

        args->to[row * args->n.by + (uint64_t)to] = mine;
    }
}

/* The last of the longest run of equal ones: a thread for each row. */
DTN_KERNEL(order_often, order_args)
{
    const int64_t n = (int64_t)args->n.by;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_kernel_entry *from = args->from + u * args->n.by;
        int64_t best = 0, longest = 0, run = 0;

        for (int64_t i = 0; i < n; i++) {
            run = i > 0 && from[i].key == from[i - 1].key ? run + 1 : 1;
            if (run > longest) {
                longest = run;
                best = i;
            }
        }
        args->first[u] = best;
    }
}

DTN_KERNEL(order_take, order_args)
{
    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const uint64_t row = divided(u, &args->taken);
        const int64_t i = (int64_t)(u - row * args->taken.by);
        const struct dtn_spots spot = spot_of(&args->outer, args->row + row);
        const struct dtn_kernel_entry *from = args->from + row * args->n.by;
        const bool nan = args->nan && from[args->n.by - 1].key == DTN_KEY_NAN;
        const int64_t first = args->first ? args->first[row]
                            : nan ? (int64_t)args->n.by - 1 : args->skip;
        const int64_t place = from[first + i].at;

        if (args->values)
            element_copy(args->bytes, (char *)args->values + spot.at[0]
                                      + i * args->step[0],
                         (const char *)args->in + spot.at[2]
                         + place * args->step[2]);
        if (args->index)
            *(int64_t *)((char *)args->index + spot.at[1] + i * args->step[1]) =
                place;
    }
}

#endif
