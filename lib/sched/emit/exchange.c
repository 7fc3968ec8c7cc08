/* exchange.c - boxes from any rank to any rank: the data of a redistribute
 *
 * Each rank has the list of pieces it receives, in the order to apply them, and
 * the list of pieces it sends.  Example: a 4 x 4 matrix over 2 ranks changes
 * from rows to columns.  Rank 0 has rows 0 and 1, later columns 0 and 1.  It
 * receives a 2 x 2 box from itself (strides 2 <- 4) and one at row 2 from rank
 * 1, and sends columns 2 and 3 to rank 1.  There are three ways, which depend
 * on the source:
 *
 *     this rank    the box is copied from IN to OUT
 *     it maps      READY from the source; the box is loaded from its IN
 *                  straight into place; DONE to the source
 *     it does not  READY to the source, which puts the box run by run
 *     map          straight into place and signals DATA
 *
 * Every put has a cost.  So runs shorter than row_bytes, such as these of 2
 * elements, are packed in the source's TMP.  If the receiver's own runs are
 * short, or if it must accumulate the data, the box goes row-major to a window
 * in its TMP and is applied from there.  Of f32[4096,4096] over 8 ranks, runs
 * are 2 KiB: no rank copies anything but the part that it keeps.
 *
 * If partial results are wider than elements, terms are accumulated in ACC,
 * which has the layout of OUT, and finalised at the end: four bf16 terms that
 * arrive in OUT, in TMP or by a load are each converted into ACC, and the sum
 * is rounded once.
 *
 * Data that does not fit into a window goes in rounds (parcels.c).  READY gives
 * the place of the window of its round.  A receiver has three windows for a
 * peer, a source two packing buffers, and in round k they do, in this order,
 *
 *     READY for k + 2, pack and put round k + 1, unpack round k
 *
 * so one round is unpacked while the next one is transferred.  Ranks without
 * data for each other exchange nothing, not even a signal.
 */
#include "sched/emit/exchange.h"
#include "base/box.h"
#include "base/reduce.h"
#include "sched/emit/emit.h"
#include "sched/emit/parcels.h"
#include "sched/exchange.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------------------- boxes */

/* Are these the strides of a box stored row-major, without gaps? */
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

/* dst = src, or dst op= src, over a box; a contiguous one needs no box. */
static void exchange_apply(struct dtn_exchanger *ex, struct dtn_span dst,
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

/* ------------------------------------------------------------------ phases */

static size_t least(int a, int b)
{
    return (size_t)(a < b ? a : b);
}

/* Set the sizes of the spaces and what peers access.  In TMP the windows come
 * first, then the packing buffers.
 */
static void exchange_spaces(struct dtn_exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;
    struct dtn_sched *sched = ex->sched;
    size_t *tmp = &sched->bytes[DTN_TMP];

    sched->bytes[DTN_IN] = x->in_count * ex->elem_bytes;
    sched->bytes[DTN_OUT] = x->out_count * ex->elem_bytes;
    for (int i = 0; i < ex->received.n; i++) {
        const struct dtn_parcel *parcel = &ex->received.list[i];
        const struct dtn_partner *p = dtn_exchange_partner(ex,
                                                       parcel->piece->source);

        if (p && !p->maps)
            sched->exposed[parcel->lands ? DTN_OUT : DTN_TMP] = true;
    }
    for (int i = 0; i < ex->npartners; i++) {
        struct dtn_partner *p = &ex->partners[i];

        sched->exposed[DTN_IN] = sched->exposed[DTN_IN] || (p->maps && p->gets);
        p->window = *tmp;
        *tmp += p->window_bytes * least(p->in.rounds, DTN_PEER_WINDOWS);
    }
    for (int i = 0; i < ex->npartners; i++) {
        ex->partners[i].pack = *tmp;
        *tmp += ex->partners[i].pack_bytes *
                least(ex->partners[i].out.rounds, DTN_PEER_PACKS);
    }
}

/* Is anything accumulated whose partial results are wider than elements? */
static void exchange_widen(struct dtn_exchanger *ex)
{
    bool adds = false;

    for (int i = 0; i < ex->x->nreceived; i++)
        adds = adds || ex->x->received[i].accumulate;
    ex->uses_acc = adds && dtn_reduction_converts(&ex->sched->reduction);
    ex->sched->bytes[DTN_ACC] = ex->uses_acc ? ex->sched->bytes[DTN_OUT] : 0;
}

/* The window in TMP for a peer's parcels of a round. */
static size_t partner_window(const struct dtn_partner *p, int round)
{
    return p->window_bytes ? p->window + p->window_bytes *
                             (size_t)(round % DTN_PEER_WINDOWS) : 0;
}

/* READY: the peer may load from IN, or put a round into its window and OUT. */
static void exchange_invite(struct dtn_exchanger *ex, int round)
{
    for (int i = 0; i < ex->npartners; i++) {
        const struct dtn_partner *p = &ex->partners[i];

        if (p->maps && p->gets && round == 0)
            dtn_sched_signal(ex->sched, p->rank, DTN_TAG_READY);
        else if (!p->maps && round < p->in.rounds)
            dtn_sched_offer(ex->sched, p->rank,
                            dtn_span_at(ex->x->me, DTN_TMP,
                                        partner_window(p, round)),
                            p->window_bytes);
    }
}

/* The packing buffer in TMP for a round; earlier puts from it are flushed
 * first.
 */
static size_t partner_pack(struct dtn_exchanger *ex, struct dtn_partner *p,
                           int round)
{
    const int pack = round % DTN_PEER_PACKS;

    if (p->packed < round) {
        if (p->busy >> pack & 1) {
            dtn_sched_flush(ex->sched, p->rank);
            p->busy = 0;
        }
        p->busy |= 1u << pack;
        p->packed = round;
    }
    return p->pack + (size_t)pack * p->pack_bytes;
}

/* The source of a parcel to put: in IN, or packed in TMP as the receiver stores
 * it, and its strides there.
 */
static struct dtn_span parcel_pack(struct dtn_exchanger *ex,
                                   const struct dtn_parcel *parcel,
                                   struct dtn_partner *p,
                                   struct dtn_piece *piece)
{
    const int me = ex->x->me;
    struct dtn_span in = dtn_span_at(me, DTN_IN, piece->src_offset
                                            * ex->elem_bytes);
    struct dtn_box flat = piece->box;
    struct dtn_span packed;

    if (!parcel->lands)
        dtn_box_flatten(&piece->box, piece->box.dst_stride);
    if (!parcel->packs)
        return in;
    packed = dtn_span_at(me, DTN_TMP, partner_pack(ex, p, parcel->round) +
                         parcel->at * ex->elem_bytes);
    dtn_box_flatten(&flat, flat.dst_stride);
    exchange_apply(ex, packed, in, flat, false);
    dtn_box_flatten(&piece->box, piece->box.src_stride);
    return packed;
}

/* Put one parcel; `first`: it is the first of its round for this receiver. */
static void parcel_push(struct dtn_exchanger *ex,
                        const struct dtn_parcel *parcel,
                        struct dtn_partner *p, bool first)
{
    struct dtn_piece piece = dtn_parcel_piece(parcel);
    struct dtn_span dst = parcel->lands
        ? dtn_span_at(p->rank, DTN_OUT, piece.dst_offset * ex->elem_bytes)
        : dtn_span_at(p->rank, DTN_TMP, parcel->at * ex->elem_bytes);
    struct dtn_span src;
    struct dtn_box *box = &piece.box;

    src = parcel_pack(ex, parcel, p, &piece);
    if (first)
        dtn_sched_wait(ex->sched, p->rank, DTN_TAG_READY);
    dtn_box_coalesce(box);
    if (box_is_flat(box, box->dst_stride) && box_is_flat(box, box->src_stride))
        dtn_sched_put(ex->sched, p->rank, dst, src,
                      (size_t)parcel->count * ex->elem_bytes);
    else
        dtn_sched_put_box(ex->sched, p->rank, dst, src, box);
}

/* Put all parcels of a round, one peer after another. */
static void exchange_send(struct dtn_exchanger *ex, int round)
{
    const struct dtn_partner *last = NULL;
    const struct dtn_parcel *parcel;

    while ((parcel = dtn_parcels_next(&ex->sent, round))) {
        struct dtn_partner *p =
            dtn_exchange_partner(ex, parcel->piece->receiver);

        if (last && last != p)
            dtn_sched_signal(ex->sched, last->rank, DTN_TAG_DATA);
        parcel_push(ex, parcel, p, last != p);
        last = p;
    }
    if (last)
        dtn_sched_signal(ex->sched, last->rank, DTN_TAG_DATA);
}

/* Apply a received parcel to OUT or ACC. */
static void parcel_apply(struct dtn_exchanger *ex,
                         const struct dtn_parcel *parcel,
                         const struct dtn_partner *p)
{
    struct dtn_piece piece = dtn_parcel_piece(parcel);
    const int me = ex->x->me;
    struct dtn_span out = dtn_span_at(me, ex->uses_acc ? DTN_ACC : DTN_OUT,
                                      piece.dst_offset * ex->elem_bytes);
    struct dtn_span in = dtn_span_at(piece.source, DTN_IN, piece.src_offset
                                                      * ex->elem_bytes);

    if (p && !p->maps && parcel->lands) {
        if (!ex->uses_acc)
            return;
        in = dtn_span_at(me, DTN_OUT, out.offset);
        memcpy(piece.box.src_stride, piece.box.dst_stride,
               sizeof piece.box.src_stride);
    } else if (p && !p->maps) {
        in = dtn_span_at(me, DTN_TMP, partner_window(p, parcel->round) +
                         parcel->at * ex->elem_bytes);
        dtn_box_flatten(&piece.box, piece.box.src_stride);
    }
    exchange_apply(ex, out, in, piece.box, piece.accumulate);
}

/* Apply all parcels received in a round, in order; parcels that were put wait
 * for their DATA here.
 */
static void exchange_receive(struct dtn_exchanger *ex, int round)
{
    const struct dtn_parcel *parcel;

    while ((parcel = dtn_parcels_next(&ex->received, round))) {
        struct dtn_partner *p = dtn_exchange_partner(ex, parcel->piece->source);

        if (p && p->came < (p->maps ? 0 : round))
            dtn_sched_wait(ex->sched, p->rank,
                           p->maps ? DTN_TAG_READY : DTN_TAG_DATA);
        parcel_apply(ex, parcel, p);
        if (!p)
            continue;
        p->came = round;
        if (--p->left == 0 && p->maps)
            dtn_sched_signal(ex->sched, p->rank, DTN_TAG_DONE);
    }
}

/* End: all loads from this rank are done, all puts from it are flushed. */
static void exchange_end(struct dtn_exchanger *ex)
{
    for (int i = 0; i < ex->npartners; i++) {
        const struct dtn_partner *p = &ex->partners[i];

        if (!p->gets)
            continue;
        if (p->maps)
            dtn_sched_wait(ex->sched, p->rank, DTN_TAG_DONE);
        else
            dtn_sched_flush(ex->sched, p->rank);
    }
}

/* Finalise ACC into OUT: all of it if OUT began as neutral elements, else the
 * pieces that do not accumulate.
 */
static void exchange_drop(struct dtn_exchanger *ex)
{
    const struct dtn_exchange *x = ex->x;
    struct dtn_sched *sched = ex->sched;
    struct dtn_span out = dtn_span_at(x->me, DTN_OUT, 0);
    struct dtn_span acc = dtn_span_at(x->me, DTN_ACC, 0);

    sched->reduction.divisor = x->scale;
    if (x->neutral)
        dtn_sched_copy(sched, out, acc, sched->bytes[DTN_OUT]);
    for (int i = 0; !x->neutral && i < x->nreceived; i++) {
        struct dtn_box box = x->received[i].box;

        if (x->received[i].accumulate)
            continue;
        memcpy(box.src_stride, box.dst_stride, sizeof box.src_stride);
        acc.offset = x->received[i].dst_offset * ex->elem_bytes;
        out.offset = acc.offset;
        exchange_apply(ex, out, acc, box, false);
    }
}

static void exchange_emit(struct dtn_exchanger *ex)
{
    struct dtn_sched *sched = ex->sched;
    struct dtn_span out = dtn_span_at(ex->x->me, DTN_OUT, 0);
    struct dtn_span acc = dtn_span_at(ex->x->me, DTN_ACC, 0);

    sched->rounds = ex->rounds;
    exchange_spaces(ex);
    exchange_widen(ex);
    if (ex->x->neutral)
        dtn_sched_neutral(sched, ex->uses_acc ? acc : out,
                          sched->bytes[DTN_OUT]);
    exchange_invite(ex, 0);
    exchange_invite(ex, 1);
    exchange_send(ex, 0);
    for (int k = 0; k < ex->rounds; k++) {
        exchange_invite(ex, k + 2);
        exchange_send(ex, k + 1);
        exchange_receive(ex, k);
    }
    if (ex->uses_acc) {
        exchange_drop(ex);
    } else if (ex->x->scale > 1) {
        sched->divisor = ex->x->scale;
        dtn_sched_scale(sched, out, sched->bytes[DTN_OUT]);
    }
    exchange_end(ex);
}

int dtn_emit_exchange(const struct dtn_exchange *x, struct dtn_sched *sched,
                      struct dtensor_error *err)
{
    struct dtn_exchanger ex = { .sched = sched, .x = x,
                            .elem_bytes = dtensor_dtype_size(x->dtype),
                            .row_bytes = x->row_bytes ? x->row_bytes
                                                      : DTN_ROW_BYTES };
    int rc;

    ex.most = x->window_bytes ? (int64_t)(x->window_bytes / ex.elem_bytes)
                              : INT64_MAX;
    ex.most += ex.most == 0;
    rc = dtn_exchange_cut(&ex, err);
    if (rc == 0) {
        dtn_sched_init(sched, x->name, x->n, x->me, x->dtype, x->redop);
        sched->reduction.divisor = 1;          /* until all terms are there   */
        sched->expose = DTN_EXPOSE_STAGED_ONLY;  /* else one system call per  */
                                                 /* row                       */
        exchange_emit(&ex);
        rc = dtn_emit_end(sched, err);
    }
    dtn_exchange_fini(&ex);
    return rc;
}
