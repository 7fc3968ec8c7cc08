/* batch_pieces.c - the pieces of an exchange of several tensors
 *
 * First the pieces of each tensor are found; then they are moved to the place
 * of the tensor among the others, on both sides.  For this the size of all
 * earlier tensors on each rank is needed.  It is summed up tensor by tensor,
 * and only for ranks that a piece names.
 */
#include "base/error.h"
#include "coll/pack.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "redist/batch.h"
#include "sched/exchange.h"

#include <stdbool.h>
#include <stdlib.h>

struct batch_pieces {
    struct dtn_pieces received, sent;
    int nranks;
    int *rank;                    /* [nranks] positions that are named        */
    struct batch_base {           /* [n] of each position                     */
        bool named;
        size_t in, out;           /* elements of the tensors so far           */
    } *base;
};

static int pieces_init(struct batch_pieces *pieces, int n,
                       struct dtensor_error *err)
{
    const size_t ranks = (size_t)n;

    *pieces = (struct batch_pieces){
        .rank = calloc(ranks, sizeof *pieces->rank),
        .base = calloc(ranks, sizeof *pieces->base)
    };
    return pieces->rank && pieces->base ? 0
         : dtn_fail_nomem(err, "batch", ranks * sizeof *pieces->base);
}

static void pieces_fini(struct batch_pieces *pieces)
{
    free(pieces->rank);
    free(pieces->base);
}

static void pieces_name(struct batch_pieces *pieces, int position)
{
    if (!pieces->base[position].named)
        pieces->rank[pieces->nranks++] = position;
    pieces->base[position].named = true;
}

/* From index `begin` on, drop pieces that are empty, and of sent pieces those
 * for this rank.  Mark the ranks that the others name.
 */
static void pieces_keep(struct batch_pieces *pieces, struct dtn_pieces *list,
                        int begin, const struct dtn_phase *phase)
{
    const bool sent = list == &pieces->sent;
    int n = begin;

    for (int i = begin; i < list->n; i++) {
        const struct dtn_piece piece = list->list[i];

        if (dtn_phase_idle(phase, piece.receiver) ||
            (sent && piece.receiver == piece.source))
            continue;
        pieces_name(pieces, piece.source);
        pieces_name(pieces, piece.receiver);
        list->list[n++] = piece;
    }
    list->n = n;
}

static int pieces_find(struct batch_pieces *pieces,
                       const struct dtn_phase *phase,
                       struct dtensor_error *err)
{
    const int me = phase->dst.mesh->group.me;
    const int had = pieces->received.n, gave = pieces->sent.n;
    int rc = dtn_pieces_received(&phase->src, &phase->dst, me,
                                 &pieces->received, err);

    if (rc == 0)
        rc = dtn_pieces_sent(&phase->src, &phase->dst, me, &pieces->sent, err);
    pieces_keep(pieces, &pieces->received, had, phase);
    pieces_keep(pieces, &pieces->sent, gave, phase);
    return rc;
}

static void pieces_shift(const struct batch_pieces *pieces,
                         const struct dtn_pieces *list, int begin, int end)
{
    for (int i = begin; i < end; i++) {
        struct dtn_piece *piece = &list->list[i];

        piece->src_offset += pieces->base[piece->source].in;
        piece->dst_offset += pieces->base[piece->receiver].out;
    }
}

/* Compute the place of each tensor after the others, on every rank. */
static void pieces_place(const struct dtn_batch_share *share,
                         struct batch_pieces *pieces)
{
    int received = 0, sent = 0;

    for (struct dtn_pack_part *p = share->pack.first; p; p = p->next) {
        const struct dtn_batch_item *item = dtn_batch_item_of(p);
        const struct dtn_phase *phase = &item->phase;

        pieces_shift(pieces, &pieces->received, received, item->received);
        pieces_shift(pieces, &pieces->sent, sent, item->sent);
        received = item->received;
        sent = item->sent;
        for (int r = 0; r < pieces->nranks; r++) {
            struct batch_base *base = &pieces->base[pieces->rank[r]];

            base->in += (size_t)dtn_local_numel(&phase->src, pieces->rank[r]);
            base->out += (size_t)dtn_local_numel(&phase->dst, pieces->rank[r]);
        }
    }
}

int dtn_batch_pieces(const struct dtn_batch_share *share,
                     struct dtn_pieces *received, struct dtn_pieces *sent,
                     struct dtensor_error *err)
{
    struct batch_pieces pieces;
    int rc = pieces_init(&pieces, share->phase.dst.mesh->group.n, err);

    for (struct dtn_pack_part *p = share->pack.first; rc == 0 && p;
         p = p->next) {
        struct dtn_batch_item *item = dtn_batch_item_of(p);

        rc = pieces_find(&pieces, &item->phase, err);
        item->received = pieces.received.n;
        item->sent = pieces.sent.n;
    }
    if (rc == 0)
        pieces_place(share, &pieces);
    *received = pieces.received;
    *sent = pieces.sent;
    pieces_fini(&pieces);
    return rc;
}
