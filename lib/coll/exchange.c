/* exchange.c - boxes from anyone to anyone: what redistribution is made of
 *
 * Each rank has the list of pieces it receives, in the order to apply them,
 * and of those it sends.  Turning a 4 x 4 matrix over 2 ranks from rows to
 * columns, rank 0 (rows 0, 1; then columns 0, 1) receives from itself a 2 x 2
 * box (strides 2 <- 4), from rank 1 another one at row 2, and sends rank 1 its
 * columns 2, 3.  Three ways, by who the source is:
 *
 *   itself     the box is copied, IN to OUT
 *   it maps    READY from the source, the box is loaded straight from its IN
 *              into place, DONE to the source
 *   it does    READY to the source, which puts the box run by run straight
 *   not        into place and says DATA
 *
 * A put has a cost of its own, so runs shorter than row_bytes, such as these of
 * 2 elements, are packed in the source's TMP; and where the receiver's own runs
 * are short, or it has to add what comes, the box goes flat to its TMP and is
 * applied from there.  Of f32[4096,4096] over 8 ranks, runs are 2 KiB: nobody
 * copies anything but the part that stays.
 *
 * Ranks with nothing for each other exchange nothing, not even a signal.
 */
#include "coll/emit.h"

#include <stdlib.h>

/* A rank that gives or gets anything. */
struct partner {
    int distance;                 /* in positions, upwards from this rank      */
    int rank;
    size_t to;                    /* bytes                                     */
    size_t from;
    int sent;                     /* first of the pieces sent to it, or -1     */
    int nreceived;                /* pieces with any elements, still to come   */
    bool begun;                   /* one has come                              */
};

struct exchanger {
    struct dtn_sched *sched;
    const struct dtn_exchange *x;
    const bool *mapped;
    size_t elem_bytes;
    size_t row_bytes;
    size_t pack_bytes;            /* of TMP in use: first to unpack, then pack */
    int npartners;                /* nearest first: everyone begins elsewhere  */
    struct partner *partners;
    int *next;                    /* [nsent] the next piece sent to the same   */
};

/* ------------------------------------------------------------------- boxes */

/* Do these strides lay the box out row-major, without gaps? */
static bool box_is_flat(const struct dtn_box *box, const int64_t stride[])
{
    int64_t flat = 1;

    for (int d = box->ndim - 1; d >= 0; d--) {
        if (box->size[d] != 1 && stride[d] != flat)
            return false;
        flat *= box->size[d];
    }
    return true;
}

static void box_flatten(const struct dtn_box *box, int64_t stride[])
{
    int64_t flat = 1;

    for (int d = box->ndim - 1; d >= 0; d--) {
        stride[d] = flat;
        flat *= box->size[d];
    }
}

/* Is it one run, or are its runs long enough to be put one by one? */
static bool box_runs(const struct exchanger *ex, struct dtn_box box)
{
    size_t run;

    dtn_box_coalesce(&box);
    run = dtn_box_take_run(&box);
    return box.ndim == 0 || run * ex->elem_bytes >= ex->row_bytes;
}

/* dst = src, or dst op= src, over a box; a flat one needs no box. */
static void exchange_apply(struct exchanger *ex, struct dtn_span dst,
                           struct dtn_span src, struct dtn_box box,
                           bool accumulate)
{
    size_t bytes = (size_t)dtn_box_count(&box) * ex->elem_bytes;
    bool flat = box_is_flat(&box, box.dst_stride)
             && box_is_flat(&box, box.src_stride);

    if (flat && accumulate) {
        dtn_sched_reduce(ex->sched, dst, src, bytes);
    } else if (flat) {
        dtn_sched_copy(ex->sched, dst, src, bytes);
    } else {
        dtn_box_coalesce(&box);
        if (accumulate)
            dtn_sched_reduce_box(ex->sched, dst, src, &box);
        else
            dtn_sched_copy_box(ex->sched, dst, src, &box);
    }
}

/* ----------------------------------------------------------- who with whom */

static size_t piece_bytes(const struct exchanger *ex,
                          const struct dtn_piece *piece)
{
    return (size_t)dtn_box_count(&piece->box) * ex->elem_bytes;
}

/* Is it put straight into OUT?  Both sides must agree: asks the piece only. */
static bool piece_lands(const struct exchanger *ex,
                        const struct dtn_piece *piece)
{
    struct dtn_box box = piece->box;

    box_flatten(&box, box.src_stride);
    return !piece->accumulate && box_runs(ex, box);
}

static int partner_compare(const void *a, const void *b)
{
    return ((const struct partner *)a)->distance -
           ((const struct partner *)b)->distance;
}

static struct partner *exchange_partner(const struct exchanger *ex, int rank)
{
    const struct partner key = {
        .distance = (rank - ex->x->me + ex->x->n) % ex->x->n
    };

    return bsearch(&key, ex->partners, (size_t)ex->npartners, sizeof key,
                   partner_compare);
}

static void partners_list(struct exchanger *ex, int rank)
{
    const int last = ex->npartners - 1;

    if (last < 0 || ex->partners[last].rank != rank)
        ex->partners[ex->npartners++] = (struct partner){
            .distance = (rank - ex->x->me + ex->x->n) % ex->x->n,
            .rank = rank, .sent = -1
        };
}

/* Everyone in the lists of pieces, once. */
static void partners_find(struct exchanger *ex)
{
    int n = 0;

    for (int i = 0; i < ex->x->nreceived; i++)
        if (ex->x->received[i].source != ex->x->me)
            partners_list(ex, ex->x->received[i].source);
    for (int i = 0; i < ex->x->nsent; i++)
        if (ex->x->sent[i].receiver != ex->x->me)
            partners_list(ex, ex->x->sent[i].receiver);
    qsort(ex->partners, (size_t)ex->npartners, sizeof ex->partners[0],
          partner_compare);
    for (int i = 0; i < ex->npartners; i++)
        if (i == 0 || ex->partners[i].distance != ex->partners[n - 1].distance)
            ex->partners[n++] = ex->partners[i];
    ex->npartners = n;
}

static void partners_count(struct exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;
    struct partner *p;

    for (int i = 0; i < x->nreceived; i++) {
        const size_t bytes = piece_bytes(ex, &x->received[i]);

        if (x->received[i].source == x->me)
            continue;
        p = exchange_partner(ex, x->received[i].source);
        p->from += bytes;
        p->nreceived += bytes > 0;
    }
    for (int i = x->nsent - 1; i >= 0; i--) {
        if (x->sent[i].receiver == x->me)
            continue;
        p = exchange_partner(ex, x->sent[i].receiver);
        p->to += piece_bytes(ex, &x->sent[i]);
        ex->next[i] = p->sent;
        p->sent = i;
    }
}

static int partners_init(struct exchanger *ex, struct dtensor_error *err)
{
    const size_t most = (size_t)ex->x->nreceived + (size_t)ex->x->nsent;
    const size_t bytes = most * sizeof ex->partners[0];

    if (most == 0)
        return 0;
    ex->partners = malloc(bytes + (size_t)ex->x->nsent * sizeof ex->next[0]);
    if (!ex->partners)
        return dtn_fail_nomem(err, ex->x->name, bytes);
    ex->next = (int *)(void *)(ex->partners + most);
    partners_find(ex);
    partners_count(ex);
    return 0;
}

/* ------------------------------------------------------------------ phases */

/* What peers reach, and the part of TMP that is theirs to put into. */
static void exchange_spaces(struct exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;
    struct dtn_sched *sched = ex->sched;

    sched->bytes[DTN_IN] = x->in_count * ex->elem_bytes;
    sched->bytes[DTN_OUT] = x->out_count * ex->elem_bytes;
    for (int i = 0; i < x->nsent; i++)
        if (x->sent[i].receiver != x->me && ex->mapped[x->sent[i].receiver])
            sched->exposed[DTN_IN] = true;
    for (int i = 0; i < x->nreceived; i++) {
        const struct dtn_piece *piece = &x->received[i];
        size_t end = piece->slot * ex->elem_bytes + piece_bytes(ex, piece);

        if (piece->source == x->me || ex->mapped[piece->source])
            continue;
        sched->exposed[piece_lands(ex, piece) ? DTN_OUT : DTN_TMP] = true;
        if (!piece_lands(ex, piece) && end > ex->pack_bytes)
            ex->pack_bytes = end;
    }
}

/* READY: to load from my IN, or to put into my TMP and OUT. */
static void exchange_invite(struct exchanger *ex)
{
    for (int i = 0; i < ex->npartners; i++) {
        const struct partner *p = &ex->partners[i];

        if (ex->mapped[p->rank] ? p->to > 0 : p->from > 0)
            dtn_sched_signal(ex->sched, p->rank, DTN_TAG_READY);
    }
}

/* A piece to put, as it is to lie at the receiver's: its source, in IN or
 * packed in TMP, and how it lies there.
 */
static struct dtn_span piece_pack(struct exchanger *ex,
                                  const struct dtn_piece *piece,
                                  struct dtn_box *box)
{
    int me = ex->x->me;
    struct dtn_span in = dtn_at(me, DTN_IN, piece->src_offset
                                            * ex->elem_bytes);
    struct dtn_span packed = dtn_at(me, DTN_TMP, ex->pack_bytes);
    struct dtn_box flat = piece->box;

    *box = piece->box;
    if (!piece_lands(ex, piece))
        box_flatten(box, box->dst_stride);
    if (box_runs(ex, *box))
        return in;
    box_flatten(&flat, flat.dst_stride);
    exchange_apply(ex, packed, in, flat, false);
    ex->pack_bytes += piece_bytes(ex, piece);
    box_flatten(box, box->src_stride);
    return packed;
}

/* Put one piece; `ready` once the receiver has said so. */
static void piece_push(struct exchanger *ex, const struct dtn_piece *piece,
                       bool ready)
{
    const int peer = piece->receiver;
    const bool lands = piece_lands(ex, piece);
    const size_t offset = lands ? piece->dst_offset : piece->slot;
    struct dtn_span dst = dtn_at(peer, lands ? DTN_OUT : DTN_TMP,
                                 offset * ex->elem_bytes), src;
    struct dtn_box box;

    src = piece_pack(ex, piece, &box);
    if (!ready)
        dtn_sched_wait(ex->sched, peer, DTN_TAG_READY);
    dtn_box_coalesce(&box);
    if (box_is_flat(&box, box.dst_stride) && box_is_flat(&box, box.src_stride))
        dtn_sched_put(ex->sched, peer, dst, src, piece_bytes(ex, piece));
    else
        dtn_sched_put_box(ex->sched, peer, dst, src, &box);
}

/* Put all pieces for a peer that does not map. */
static void exchange_push(struct exchanger *ex, const struct partner *p)
{
    for (int i = p->sent; i >= 0; i = ex->next[i])
        piece_push(ex, &ex->x->sent[i], i != p->sent);
    dtn_sched_signal(ex->sched, p->rank, DTN_TAG_DATA);
}

/* Bring a received piece to its place. */
static void piece_apply(struct exchanger *ex, const struct dtn_piece *piece)
{
    int me = ex->x->me, source = piece->source;
    struct dtn_span out = dtn_at(me, DTN_OUT, piece->dst_offset
                                              * ex->elem_bytes);
    struct dtn_span in = dtn_at(source, DTN_IN, piece->src_offset
                                                * ex->elem_bytes);
    struct dtn_box box = piece->box;

    if (source != me && !ex->mapped[source]) {
        if (piece_lands(ex, piece))
            return;
        in = dtn_at(me, DTN_TMP, piece->slot * ex->elem_bytes);
        box_flatten(&box, box.src_stride);
    }
    exchange_apply(ex, out, in, box, piece->accumulate);
}

/* All received pieces, in order; those put wait for their DATA here. */
static void exchange_receive(struct exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;

    for (int i = 0; i < x->nreceived; i++) {
        const struct dtn_piece *piece = &x->received[i];
        struct partner *p = NULL;

        if (piece_bytes(ex, piece) == 0)
            continue;
        if (piece->source != x->me)
            p = exchange_partner(ex, piece->source);
        if (p && !ex->mapped[p->rank] && !p->begun)
            dtn_sched_wait(ex->sched, p->rank, DTN_TAG_DATA);
        piece_apply(ex, piece);
        if (!p)
            continue;
        p->begun = true;
        if (--p->nreceived == 0 && ex->mapped[p->rank])
            dtn_sched_signal(ex->sched, p->rank, DTN_TAG_DONE);
    }
}

/* What was loaded from here has been, what was put from here has left. */
static void exchange_end(struct exchanger *ex)
{
    for (int i = 0; i < ex->npartners; i++) {
        const struct partner *p = &ex->partners[i];

        if (p->to == 0)
            continue;
        if (ex->mapped[p->rank])
            dtn_sched_wait(ex->sched, p->rank, DTN_TAG_DONE);
        else
            dtn_sched_flush(ex->sched, p->rank);
    }
}

static void exchange_emit(struct exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;
    struct dtn_sched *sched = ex->sched;
    struct dtn_span out = dtn_at(x->me, DTN_OUT, 0);

    exchange_spaces(ex);
    if (x->neutral)
        dtn_sched_neutral(sched, out, sched->bytes[DTN_OUT]);
    exchange_invite(ex);
    for (int i = 0; i < ex->npartners; i++)
        if (!ex->mapped[ex->partners[i].rank] && ex->partners[i].to > 0)
            exchange_push(ex, &ex->partners[i]);
    for (int i = 0; i < ex->npartners; i++)
        if (ex->mapped[ex->partners[i].rank] && ex->partners[i].from > 0)
            dtn_sched_wait(sched, ex->partners[i].rank, DTN_TAG_READY);
    exchange_receive(ex);
    if (x->scale > 1) {
        sched->divisor = x->scale;
        dtn_sched_scale(sched, out, sched->bytes[DTN_OUT]);
    }
    exchange_end(ex);
    sched->bytes[DTN_TMP] = ex->pack_bytes;
}

int dtn_emit_exchange(const struct dtn_exchange *x, const bool mapped[],
                      struct dtn_sched *sched, struct dtensor_error *err)
{
    struct exchanger ex = { .sched = sched, .x = x, .mapped = mapped,
                            .elem_bytes = dtensor_dtype_size(x->dtype),
                            .row_bytes = x->row_bytes ? x->row_bytes
                                                      : DTN_ROW_BYTES };
    int rc = partners_init(&ex, err);

    if (rc != 0)
        return rc;
    dtn_sched_init(sched, x->name, x->n, x->me, x->dtype, x->redop);
    exchange_emit(&ex);
    free(ex.partners);
    return dtn_emit_end(sched, err);
}
