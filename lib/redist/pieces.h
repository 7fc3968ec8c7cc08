/* pieces.h - which boxes go from which rank to which */
#ifndef DTN_REDIST_PIECES_H
#define DTN_REDIST_PIECES_H

#include "dtensor.h"

struct dtn_piece;

struct dtn_pieces {               /* zeroed: none yet                         */
    struct dtn_piece *list;       /* [n], owned                               */
    int n;                        /* pieces                                   */
    int capacity;                 /* room in `list`                           */
};

void dtn_pieces_fini(struct dtn_pieces *pieces);

/* Append the pieces that go from position `source` of src's mesh to position
 * `receiver` of dst's.  Along each mesh dimension a receiver takes from
 *
 *   src is R              the own coordinate only (it is there already)
 *   dst is P              the own coordinate only, unless a shard becomes an
 *                         average (dtn_placement_is_local())
 *   src is cut            all whose part meets the receiver's
 *   src is P, dst not     all, reduced in coordinate order
 *
 * The meshes may differ: then P of dst counts as R, and of replicas a receiver
 * takes from itself or from one of them.
 *
 * A piece accumulates unless it is of the first term.  Applied with ascending
 * source, terms are reduced in coordinate order; without terms any order will
 * do.   Errors: ENOMEM
 */
int dtn_pieces_between(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int source,
                       int receiver, struct dtn_pieces *pieces,
                       struct dtensor_error *err);

/* The same from all sources to one receiver, with ascending sources; and from
 * one source to all receivers, with ascending receivers.  Only ranks whose
 * parts can overlap are looked at.
 */
int dtn_pieces_received(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, int receiver,
                        struct dtn_pieces *pieces, struct dtensor_error *err);
int dtn_pieces_sent(const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, int source,
                    struct dtn_pieces *pieces, struct dtensor_error *err);

#endif
