/* exchange_cut.c - the partners of an exchange and the number of rounds
 *
 * Everything here depends only on the pieces between two ranks, so both ranks
 * get the same result.  Example: f64[1024,1024] on 4 ranks goes from S(0) to
 * S(1).  Each pair has a piece of 256 x 256 with runs of 2 KiB, which are put
 * straight into place; the same holds from S(1) to S(0).  From C(1,8) the runs
 * have 64 bytes: they are packed, in two rounds with a window of 256 KiB.
 */
#include "base/box.h"
#include "base/error.h"
#include "sched/emit/exchange.h"
#include "sched/emit/parcels.h"
#include "sched/exchange.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

/* ------------------------------------------------------------------- boxes */

void dtn_box_flatten(const struct dtn_box *box, int64_t stride[])
{
    int64_t flat = 1;

    for (int d = box->ndim - 1; d >= 0; d--) {
        stride[d] = flat;
        flat *= box->size[d];
    }
}

/* Is the box one run, or are its runs long enough to be put one by one? */
static bool box_runs(const struct dtn_exchanger *ex, struct dtn_box box)
{
    size_t run;

    dtn_box_coalesce(&box);
    run = dtn_box_take_run(&box);
    return box.ndim == 0 || run * ex->elem_bytes >= ex->row_bytes;
}

/* ----------------------------------------------------------------- pieces */

/* A parcel that is a whole piece, and how it is sent.  Both sides must agree,
 * so this depends on the piece only.
 */
static struct dtn_parcel piece_whole(const struct dtn_exchanger *ex,
                                     const struct dtn_piece *piece)
{
    struct dtn_parcel whole = { .piece = piece };
    struct dtn_box box = piece->box, there = piece->box;

    dtn_box_flatten(&box, box.src_stride);
    whole.lands = !piece->accumulate && box_runs(ex, box);
    if (!whole.lands)
        dtn_box_flatten(&there, there.dst_stride);
    whole.packs = !box_runs(ex, there);
    return whole;
}

static bool piece_empty(const struct dtn_piece *piece)
{
    return dtn_box_count(&piece->box) == 0;
}

/* ---------------------------------------------------------------- partners */

static int partner_distance(const struct dtn_exchanger *ex, int rank)
{
    return (rank - ex->x->me + ex->x->n) % ex->x->n;
}

static int partner_compare(const void *a, const void *b)
{
    return ((const struct dtn_partner *)a)->distance -
           ((const struct dtn_partner *)b)->distance;
}

struct dtn_partner *dtn_exchange_partner(const struct dtn_exchanger *ex,
                                         int rank)
{
    const struct dtn_partner key = { .distance = partner_distance(ex, rank) };

    if (rank == ex->x->me)
        return NULL;
    return bsearch(&key, ex->partners, (size_t)ex->npartners, sizeof key,
                   partner_compare);
}

static void partners_list(struct dtn_exchanger *ex, int rank)
{
    const int last = ex->npartners - 1;

    if (rank != ex->x->me && (last < 0 || ex->partners[last].rank != rank))
        ex->partners[ex->npartners++] = (struct dtn_partner){
            .distance = partner_distance(ex, rank), .rank = rank,
            .maps = ex->x->maps(ex->x->whose, rank), .came = -1, .packed = -1
        };
}

/* List the ranks of all pieces, each once. */
static int partners_init(struct dtn_exchanger *ex, struct dtensor_error *err)
{
    const size_t most = (size_t)ex->x->nreceived + (size_t)ex->x->nsent;
    const size_t bytes = most * sizeof ex->partners[0];
    int n = 0;

    if (most == 0)
        return 0;
    ex->partners = malloc(bytes);
    if (!ex->partners)
        return dtn_fail_nomem(err, ex->x->name, bytes);
    for (int i = 0; i < ex->x->nreceived; i++)
        partners_list(ex, ex->x->received[i].source);
    for (int i = 0; i < ex->x->nsent; i++)
        partners_list(ex, ex->x->sent[i].receiver);
    qsort(ex->partners, (size_t)ex->npartners, sizeof ex->partners[0],
          partner_compare);
    for (int i = 0; i < ex->npartners; i++)
        if (i == 0 || ex->partners[i].distance != ex->partners[n - 1].distance)
            ex->partners[n++] = ex->partners[i];
    ex->npartners = n;
    return 0;
}

/* ----------------------------------------------------------------- parcels */

/* Does it go through a window?  If terms are folded all pieces do, so that all
 * terms of an element go in the same round.
 */
static bool parcel_streams(const struct dtn_exchanger *ex,
                           const struct dtn_parcel *whole)
{
    return ex->x->folds || !whole->lands || whole->packs;
}

static void exchange_cut_received(struct dtn_exchanger *ex)
{
    for (int i = 0; i < ex->x->nreceived; i++) {
        const struct dtn_piece *piece = &ex->x->received[i];
        struct dtn_partner *p = dtn_exchange_partner(ex, piece->source);
        const struct dtn_parcel whole = piece_whole(ex, piece);
        const bool streams = p && !p->maps ? parcel_streams(ex, &whole)
                                           : ex->cuts;
        struct dtn_parcel_stream *stream = p ? &p->in : &ex->own;

        if (piece_empty(piece))
            continue;
        stream->rounds += stream->rounds == 0;
        dtn_parcels_add(&ex->received, whole, streams ? stream : NULL,
                        ex->most);
    }
    dtn_parcels_sort(&ex->received);
}

static void exchange_cut_sent(struct dtn_exchanger *ex)
{
    for (int i = 0; i < ex->x->nsent; i++) {
        const struct dtn_piece *piece = &ex->x->sent[i];
        struct dtn_partner *p = dtn_exchange_partner(ex, piece->receiver);
        struct dtn_parcel whole = piece_whole(ex, piece);

        if (!p || p->maps || piece_empty(piece))
            continue;
        p->out.rounds += p->out.rounds == 0;
        whole.distance = p->distance;
        dtn_parcels_add(&ex->sent, whole,
                        parcel_streams(ex, &whole) ? &p->out : NULL, ex->most);
    }
    dtn_parcels_sort(&ex->sent);
}

static size_t parcel_end(const struct dtn_exchanger *ex,
                         const struct dtn_parcel *parcel)
{
    return (parcel->at + (size_t)parcel->count) * ex->elem_bytes;
}

/* The sizes of the windows, and which peers this rank waits for. */
static void exchange_measure(struct dtn_exchanger *ex)
{
    for (int i = 0; i < ex->received.n; i++) {
        const struct dtn_parcel *parcel = &ex->received.list[i];
        struct dtn_partner *p = dtn_exchange_partner(ex, parcel->piece->source);

        if (!p)
            continue;
        p->left++;
        if (!p->maps && !parcel->lands &&
            parcel_end(ex, parcel) > p->window_bytes)
            p->window_bytes = parcel_end(ex, parcel);
    }
    for (int i = 0; i < ex->sent.n; i++) {
        const struct dtn_parcel *parcel = &ex->sent.list[i];
        struct dtn_partner *p =
            dtn_exchange_partner(ex, parcel->piece->receiver);

        if (parcel->packs && parcel_end(ex, parcel) > p->pack_bytes)
            p->pack_bytes = parcel_end(ex, parcel);
    }
}

/* Find which peers send and receive, and whether all pieces go in rounds. */
static void exchange_look(struct dtn_exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;
    struct dtn_partner *p;

    for (int i = 0; i < x->nreceived; i++) {
        p = dtn_exchange_partner(ex, x->received[i].source);
        if (p && !piece_empty(&x->received[i]))
            ex->cuts = ex->cuts || (x->folds && !p->maps);
    }
    for (int i = 0; i < x->nsent; i++) {
        p = dtn_exchange_partner(ex, x->sent[i].receiver);
        if (p && !piece_empty(&x->sent[i]))
            p->gets = true;
    }
}

/* The largest number of rounds of any partner. */
static int exchange_rounds(const struct dtn_exchanger *ex)
{
    int rounds = ex->own.rounds > 1 ? ex->own.rounds : 1;

    for (int i = 0; i < ex->npartners; i++) {
        const struct dtn_partner *p = &ex->partners[i];

        rounds = p->in.rounds > rounds ? p->in.rounds : rounds;
        rounds = p->out.rounds > rounds ? p->out.rounds : rounds;
    }
    return rounds;
}

int dtn_exchange_cut(struct dtn_exchanger *ex, struct dtensor_error *err)
{
    int rc = partners_init(ex, err);

    if (rc != 0)
        return rc;
    exchange_look(ex);
    exchange_cut_received(ex);
    exchange_cut_sent(ex);
    if (ex->received.failed || ex->sent.failed)
        return dtn_fail_nomem(err, ex->x->name,
                              (size_t)(ex->received.n + ex->sent.n) *
                              sizeof(struct dtn_parcel));
    exchange_measure(ex);
    ex->rounds = exchange_rounds(ex);
    return 0;
}

void dtn_exchange_fini(struct dtn_exchanger *ex)
{
    dtn_parcels_fini(&ex->received);
    dtn_parcels_fini(&ex->sent);
    free(ex->partners);
}

