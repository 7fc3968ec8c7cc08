/* parcels.c - pieces cut to window size
 *
 * Data that must be packed or unpacked needs memory, and the caller limits it.
 * So the data from one rank to another goes in rounds, each of which fits into
 * a window: a piece of 512 x 512 f32 with a window of 256 KiB is cut into four
 * parcels of 128 rows, in four rounds.  With a window of 1 KiB each row of 2
 * KiB would be cut in two.
 *
 * Both sides cut in the same way, because they look only at the pieces between
 * them.
 */
#include "sched/emit/parcels.h"
#include "base/array.h"
#include "base/box.h"
#include "sched/exchange.h"

#include <limits.h>
#include <stdlib.h>

static void parcels_push(struct dtn_parcels *parcels,
                         const struct dtn_parcel *parcel)
{
    if (parcels->failed || parcels->n == INT_MAX ||
        !dtn_array_reserve(&parcels->list, &parcels->capacity, parcels->n + 1,
                           sizeof *parcel)) {
        parcels->failed = true;
        return;
    }
    parcels->list[parcels->n] = *parcel;
    parcels->list[parcels->n].index = parcels->n;
    parcels->n++;
}

/* The largest number of elements, up to `most`, that form a box at every
 * multiple of that number, and the number after which this repeats.
 */
static int64_t parcel_block(const struct dtn_box *box, int64_t most,
                            int64_t *spanp)
{
    int64_t inner = 1;
    int d = box->ndim - 1;

    while (d >= 0 && inner * box->size[d] <= most)
        inner *= box->size[d--];
    *spanp = d < 0 ? inner : inner * box->size[d];
    return d < 0 ? inner : most / inner * inner;
}

/* Place a parcel in the stream; if it does not fit, in a new round. */
static void stream_take(struct dtn_parcel_stream *stream, int64_t most,
                        struct dtn_parcel *parcel)
{
    if (stream->used > 0 &&
        stream->used + (size_t)parcel->count > (size_t)most) {
        stream->round++;
        stream->used = 0;
    }
    parcel->round = stream->round;
    parcel->at = stream->used;
    stream->used += (size_t)parcel->count;
    stream->rounds = stream->round + 1;
}

void dtn_parcels_add(struct dtn_parcels *parcels, struct dtn_parcel parcel,
                     struct dtn_parcel_stream *stream, int64_t most)
{
    const int64_t all = dtn_box_count(&parcel.piece->box);
    int64_t span, block, left;

    parcel.count = all;
    if (!stream) {
        parcels_push(parcels, &parcel);
        return;
    }
    block = parcel_block(&parcel.piece->box, most, &span);
    for (; parcel.from < all; parcel.from += parcel.count) {
        left = span - parcel.from % span;
        parcel.count = block < left ? block : left;
        stream_take(stream, most, &parcel);
        parcels_push(parcels, &parcel);
    }
}

static int parcel_compare(const void *a, const void *b)
{
    const struct dtn_parcel *x = a, *y = b;

    return x->round != y->round ? (x->round < y->round ? -1 : 1)
         : x->distance != y->distance ? x->distance - y->distance
         : x->index - y->index;
}

void dtn_parcels_sort(struct dtn_parcels *parcels)
{
    if (parcels->n > 1)
        qsort(parcels->list, (size_t)parcels->n, sizeof parcels->list[0],
              parcel_compare);
}

const struct dtn_parcel *dtn_parcels_next(struct dtn_parcels *parcels,
                                          int round)
{
    if (parcels->next == parcels->n ||
        parcels->list[parcels->next].round != round)
        return NULL;
    return &parcels->list[parcels->next++];
}

/* The elements fill the inner dimensions of the box and a part of the next one.
 */
struct dtn_piece dtn_parcel_piece(const struct dtn_parcel *parcel)
{
    struct dtn_piece piece = *parcel->piece;
    struct dtn_box *box = &piece.box;
    int64_t from = parcel->from, count = parcel->count;

    for (int d = box->ndim - 1; d >= 0; d--) {
        const int64_t size = box->size[d], at = from % size;

        box->size[d] = count < size ? count : size;
        count = count < size ? 1 : count / size;
        from /= size;
        piece.src_offset += (size_t)(at * box->src_stride[d]);
        piece.dst_offset += (size_t)(at * box->dst_stride[d]);
    }
    return piece;
}

void dtn_parcels_fini(struct dtn_parcels *parcels)
{
    free(parcels->list);
    *parcels = (struct dtn_parcels){ 0 };
}
