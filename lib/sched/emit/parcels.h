/* parcels.h - private to the coll room: what of an exchange goes at a time */
#ifndef DTN_COLL_PARCELS_H
#define DTN_COLL_PARCELS_H

#include "sched/exchange.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some elements of a piece, which are a box again.  All parcels of one round
 * from one rank to another fit a window together.
 */
struct dtn_parcel {
    const struct dtn_piece *piece;
    bool lands;                   /* is put straight into OUT                  */
    bool packs;                   /* is packed before it is put                */
    int64_t from;                 /* the first, of the piece's row-major       */
    int64_t count;
    int round;
    size_t at;                    /* in the window, in elements                */
    int distance;                 /* of the peer; parcels of a round are by it */
    int index;                    /* of the parcel in its list                 */
};

struct dtn_parcels {              /* all 0: none yet                           */
    struct dtn_parcel *list;
    int n, capacity;
    int next;                     /* of those not yet carried out              */
    bool failed;                  /* out of memory                             */
};

/* What one rank has for another, filled piece by piece on both sides. */
struct dtn_parcel_stream {
    int round;                    /* that is being filled                      */
    size_t used;                  /* of its window, in elements                */
    int rounds;                   /* with anything in them                     */
};

/* Cut a parcel that is a whole piece and append it; `most` elements go in a
 * window.  stream NULL: all of it in the first round, and no window.
 */
void dtn_parcels_add(struct dtn_parcels *parcels, struct dtn_parcel parcel,
                     struct dtn_parcel_stream *stream, int64_t most);

/* By round, then by distance, then as they were appended. */
void dtn_parcels_sort(struct dtn_parcels *parcels);

/* The next parcel of a round, or NULL. */
const struct dtn_parcel *dtn_parcels_next(struct dtn_parcels *parcels,
                                          int round);

/* A parcel as a piece. */
struct dtn_piece dtn_parcel_piece(const struct dtn_parcel *parcel);

void dtn_parcels_fini(struct dtn_parcels *parcels);

#endif
