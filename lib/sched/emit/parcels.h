/* parcels.h - private to the emitter of exchanges: pieces cut to window size */
#ifndef DTN_EMIT_PARCELS_H
#define DTN_EMIT_PARCELS_H

#include "sched/exchange.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some elements of a piece; they are a box again.  All parcels of one round
 * from one rank to another fit into a window together.
 */
struct dtn_parcel {
    const struct dtn_piece *piece;  /* the piece it is cut from               */
    bool lands;                   /* it is put straight into OUT              */
    bool packs;                   /* it is packed before it is put            */
    int64_t from;                 /* its first element, in row-major order of */
                                  /* the piece                                */
    int64_t count;                /* its elements                             */
    int round;                    /* round in which it goes                   */
    size_t at;                    /* offset in the window, in elements        */
    int distance;                 /* distance of the peer; orders a round     */
    int index;                    /* index of the parcel in its list          */
};

struct dtn_parcels {              /* all 0: empty                             */
    struct dtn_parcel *list;      /* [n]                                      */
    int n, capacity;              /* used and allocated entries               */
    int next;                     /* index of the next parcel to emit         */
    bool failed;                  /* out of memory                            */
};

/* What one rank sends to another.  Both sides fill it piece by piece. */
struct dtn_parcel_stream {
    int round;                    /* round that is being filled               */
    size_t used;                  /* used part of its window, in elements     */
    int rounds;                   /* rounds with data                         */
};

/* Cut a parcel that is a whole piece, and append the parts; a window holds
 * `most` elements. stream NULL: all of it goes in the first round without a
 * window.
 */
void dtn_parcels_add(struct dtn_parcels *parcels, struct dtn_parcel parcel,
                     struct dtn_parcel_stream *stream, int64_t most);

/* Sort by round, then by distance, then in the order of the appends. */
void dtn_parcels_sort(struct dtn_parcels *parcels);

/* The next parcel of a round, or NULL. */
const struct dtn_parcel *dtn_parcels_next(struct dtn_parcels *parcels,
                                          int round);

/* A parcel as a piece. */
struct dtn_piece dtn_parcel_piece(const struct dtn_parcel *parcel);

void dtn_parcels_fini(struct dtn_parcels *parcels);

#endif
