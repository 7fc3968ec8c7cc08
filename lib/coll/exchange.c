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
 *   it does    READY to the source; the source packs the box in its own TMP
 *   not        (unless it lies flat in IN), puts it into the receiver's TMP,
 *              and says DATA; the box is unpacked from there.  A box that lies
 *              flat in OUT too and does not accumulate is put there at once.
 *
 * Ranks with nothing for each other exchange nothing, not even a signal.
 */
#include "coll/emit.h"

struct exchanger {
    struct dtn_sched *sched;
    const struct dtn_exchange *x;
    const bool *mapped;
    size_t elem_bytes;
    size_t pack_bytes;            /* of TMP in use: first to unpack, then pack */
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
static bool piece_lands(const struct dtn_piece *piece)
{
    return !piece->accumulate
        && box_is_flat(&piece->box, piece->box.dst_stride);
}

/* Bytes this rank receives from, or sends to, a position. */
static size_t exchange_from(const struct exchanger *ex, int source)
{
    size_t bytes = 0;

    for (int i = 0; i < ex->x->nreceived; i++)
        if (ex->x->received[i].source == source)
            bytes += piece_bytes(ex, &ex->x->received[i]);
    return bytes;
}

static size_t exchange_to(const struct exchanger *ex, int receiver)
{
    size_t bytes = 0;

    for (int i = 0; i < ex->x->nsent; i++)
        if (ex->x->sent[i].receiver == receiver)
            bytes += piece_bytes(ex, &ex->x->sent[i]);
    return bytes;
}

/* Position i steps away: everyone begins with another peer. */
static int exchange_peer(const struct exchanger *ex, int i)
{
    return (ex->x->me + i) % ex->x->n;
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
        sched->exposed[piece_lands(piece) ? DTN_OUT : DTN_TMP] = true;
        if (!piece_lands(piece) && end > ex->pack_bytes)
            ex->pack_bytes = end;
    }
}

/* READY: to load from my IN, or to put into my TMP and OUT. */
static void exchange_invite(struct exchanger *ex)
{
    for (int i = 1; i < ex->x->n; i++) {
        int peer = exchange_peer(ex, i);

        if (ex->mapped[peer] ? exchange_to(ex, peer) > 0
                             : exchange_from(ex, peer) > 0)
            dtn_sched_signal(ex->sched, peer, DTN_TAG_READY);
    }
}

/* A piece to put: where it lies flat, in IN or packed in TMP. */
static struct dtn_span piece_pack(struct exchanger *ex,
                                  const struct dtn_piece *piece)
{
    int me = ex->x->me;
    struct dtn_span in = dtn_at(me, DTN_IN, piece->src_offset
                                            * ex->elem_bytes);
    struct dtn_span packed = dtn_at(me, DTN_TMP, ex->pack_bytes);
    struct dtn_box box = piece->box;

    if (box_is_flat(&box, box.src_stride))
        return in;
    box_flatten(&box, box.dst_stride);
    exchange_apply(ex, packed, in, box, false);
    ex->pack_bytes += piece_bytes(ex, piece);
    return packed;
}

/* Put all pieces for a peer that does not map. */
static void exchange_push(struct exchanger *ex, int peer)
{
    const struct dtn_exchange *x = ex->x;
    bool ready = false;

    for (int i = 0; i < x->nsent; i++) {
        const struct dtn_piece *piece = &x->sent[i];
        bool lands = piece_lands(piece);
        size_t offset = lands ? piece->dst_offset : piece->slot;
        struct dtn_span src;

        if (piece->receiver != peer)
            continue;
        src = piece_pack(ex, piece);
        if (!ready)
            dtn_sched_wait(ex->sched, peer, DTN_TAG_READY);
        ready = true;
        dtn_sched_put(ex->sched, peer,
                      dtn_at(peer, lands ? DTN_OUT : DTN_TMP,
                             offset * ex->elem_bytes),
                      src, piece_bytes(ex, piece));
    }
    dtn_sched_signal(ex->sched, peer, DTN_TAG_DATA);
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
        if (piece_lands(piece))
            return;
        in = dtn_at(me, DTN_TMP, piece->slot * ex->elem_bytes);
        box_flatten(&box, box.src_stride);
    }
    exchange_apply(ex, out, in, box, piece->accumulate);
}

/* Is this the first (or last) of the received pieces from its source that
 * has any elements?
 */
static bool piece_is_end(const struct exchanger *ex, int at, bool last)
{
    const struct dtn_piece *list = ex->x->received;
    int step = last ? 1 : -1;

    for (int i = at + step; i >= 0 && i < ex->x->nreceived; i += step)
        if (list[i].source == list[at].source
            && piece_bytes(ex, &list[i]) > 0)
            return false;
    return true;
}

/* All received pieces, in order; those put wait for their DATA here. */
static void exchange_receive(struct exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;

    for (int i = 0; i < x->nreceived; i++) {
        const struct dtn_piece *piece = &x->received[i];
        int source = piece->source;
        bool mapped = ex->mapped[source];

        if (piece_bytes(ex, piece) == 0)
            continue;
        if (source != x->me && !mapped && piece_is_end(ex, i, false))
            dtn_sched_wait(ex->sched, source, DTN_TAG_DATA);
        piece_apply(ex, piece);
        if (source != x->me && mapped && piece_is_end(ex, i, true))
            dtn_sched_signal(ex->sched, source, DTN_TAG_DONE);
    }
}

int dtn_emit_exchange(const struct dtn_exchange *x, const bool mapped[],
                      struct dtn_sched *sched, struct dtensor_error *err)
{
    struct exchanger ex = { .sched = sched, .x = x, .mapped = mapped,
                            .elem_bytes = dtensor_dtype_size(x->dtype) };
    struct dtn_span out = dtn_at(x->me, DTN_OUT, 0);

    dtn_sched_init(sched, x->name, x->n, x->me, x->dtype, x->redop);
    exchange_spaces(&ex);
    if (x->neutral)
        dtn_sched_neutral(sched, out, sched->bytes[DTN_OUT]);
    exchange_invite(&ex);
    for (int i = 1; i < x->n; i++)
        if (!mapped[exchange_peer(&ex, i)]
            && exchange_to(&ex, exchange_peer(&ex, i)) > 0)
            exchange_push(&ex, exchange_peer(&ex, i));
    for (int i = 1; i < x->n; i++)
        if (mapped[exchange_peer(&ex, i)]
            && exchange_from(&ex, exchange_peer(&ex, i)) > 0)
            dtn_sched_wait(sched, exchange_peer(&ex, i), DTN_TAG_READY);
    exchange_receive(&ex);
    if (x->scale > 1) {
        sched->divisor = x->scale;
        dtn_sched_scale(sched, out, sched->bytes[DTN_OUT]);
    }
    for (int i = 1; i < x->n; i++) {
        int peer = exchange_peer(&ex, i);

        if (exchange_to(&ex, peer) == 0)
            continue;
        if (mapped[peer])
            dtn_sched_wait(sched, peer, DTN_TAG_DONE);
        else
            dtn_sched_flush(sched, peer);
    }
    sched->bytes[DTN_TMP] = ex.pack_bytes;
    return dtn_emit_end(sched, err);
}
