/* order.c - elements of a row in order
 *
 * Each element becomes a number of 64 bits without sign that has the same
 * order: of an integer with sign the highest bit is turned, and of floats it is
 * that of order_key.h.  The place of an element comes second, so that equal
 * ones stay in order.
 */
#include "math/order.h"
#include "math/order_key.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t key;                 /* in the order of the elements             */
    int64_t at;                   /* place in the row                         */
};

static uint64_t key_of(enum dtensor_dtype dtype, const void *at)
{
    switch (dtn_dtype_kind(dtype)) {
    case DTN_DTYPE_FLOAT:
        return dtn_order_key(dtn_load(dtype, at, 0));
    case DTN_DTYPE_SIGNED:
        return (uint64_t)dtn_load_int(dtype, at, 0) ^ DTN_KEY_HIGHEST;
    default:
        return (uint64_t)dtn_load_int(dtype, at, 0);
    }
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

size_t dtn_order_workspace(const struct dtn_array *in, int dim)
{
    return (size_t)in->shape[dim] * sizeof(struct entry);
}

/* Element i along `dim` of the row that begins at `data`. */
static char *element(const struct dtn_array *array, char *data, int dim,
                     int64_t i)
{
    return data + i * array->stride[dim] *
                  (int64_t)dtn_dtype_size(array->dtype);
}

/* The last entry of the longest run of equal ones. */
static int64_t most_often(const struct entry *entry, int64_t n)
{
    int64_t best = 0, longest = 0, run = 0;

    for (int64_t i = 0; i < n; i++) {
        run = i > 0 && entry[i].key == entry[i - 1].key ? run + 1 : 1;
        if (run > longest) {
            longest = run;
            best = i;
        }
    }
    return best;
}

/* The place of the first entry that is taken. */
static int64_t first_of(const struct dtn_order *order, bool floats,
                        const struct entry *entry, int64_t n)
{
    if (order->often)
        return most_often(entry, n);
    return order->nan && floats && entry[n - 1].key == DTN_KEY_NAN
           ? n - 1 : order->first;
}

/* The row of `in` that begins at from[0] to those of the outputs. */
static void order_row(const struct dtn_order *order, const struct dtn_array *in,
                      char *const from[3], struct entry *entry)
{
    const struct dtn_array *made = order->values ? order->values
                                                 : order->index;
    const size_t size = dtn_dtype_size(in->dtype);
    const int64_t n = in->shape[order->dim];
    int64_t first;

    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = key_of(in->dtype, element(in, from[0], order->dim,
                                                       i));

        entry[i] = (struct entry){ order->down ? ~key : key, i };
    }
    qsort(entry, (size_t)n, sizeof *entry, entry_compare);
    first = first_of(order, dtn_dtype_kind(in->dtype) == DTN_DTYPE_FLOAT, entry,
                     n);
    for (int64_t i = 0; i < made->shape[order->dim]; i++) {
        const int64_t at = entry[first + i].at;

        if (order->values)
            memcpy(element(order->values, from[1], order->dim, i),
                   element(in, from[0], order->dim, at), size);
        if (order->index)
            memcpy(element(order->index, from[2], order->dim, i), &at,
                   sizeof at);
    }
}

/* Where the row at `place`, an index of the other dimensions, begins. */
static char *row_begin(const struct dtn_array *array, int dim,
                       const int64_t place[])
{
    int64_t at = 0;

    if (!array)
        return NULL;
    for (int d = 0; d < array->ndim; d++)
        at += d == dim ? 0 : place[d] * array->stride[d];
    return (char *)array->data + at * (int64_t)dtn_dtype_size(array->dtype);
}

/* The next place; false: all are done. */
static bool place_next(const struct dtn_array *in, int dim, int64_t place[])
{
    for (int d = in->ndim - 1; d >= 0; d--) {
        if (d != dim && ++place[d] < in->shape[d])
            return true;
        place[d] = 0;
    }
    return false;
}

void dtn_order(const struct dtn_order *order, const struct dtn_array *in,
               void *workspace)
{
    int64_t place[DTENSOR_MAX_DIMS] = { 0 };

    if (dtn_array_count(in) == 0)
        return;
    do {
        char *const from[] = { row_begin(in, order->dim, place),
                               row_begin(order->values, order->dim, place),
                               row_begin(order->index, order->dim, place) };

        order_row(order, in, from, workspace);
    } while (place_next(in, order->dim, place));
}
