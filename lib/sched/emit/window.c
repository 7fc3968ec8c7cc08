/* window.c - collectives of private memory, through a small window
 *
 * Peers cannot load from memory of malloc().  If a rank copies all of it to
 * where they can, 8 MiB go to a second place, leave the cache, and come back
 * from there.  Here each rank has a window in TMP of a few slots, and stages
 * its data piece by piece: while the peers load piece 5, it stages piece 6.
 * The window stays in the caches, since its lines are used again and again.
 *
 * An allgather of 2 x 1 MiB moves 16 pieces of 64 KiB each way.  A rank that
 * has all DATA for piece 5 knows that the peers have loaded piece 3, so three
 * slots would do.  But a store to a line that a peer has read lately is slow.
 * us of 2 ranks:
 *
 *                                    near CPUs     far CPUs
 *      allgather, 3 and 8 slots, 2 MiB   174  110    523  497
 *                                8 MiB  1027  847   2390 1470
 *      all_to_all                2 MiB   180  118    512  487
 *                                8 MiB  1103 1054   2238 1389
 *      allreduce, 2 and 5 slots, 2 MiB   330  196    969  833
 *                                8 MiB  1701 1329   4123 3164
 *
 * In an allreduce a slot has room for the result too: the peers load the sums
 * of piece 4 while this rank folds piece 5.  Terms are folded by the same rank
 * and in the same order as in direct.c, so the bits are the same.
 */
#include "base/compiler.h"
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emitters.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

#define SLOT_BYTES ((size_t)64 << 10)        /* staged at once, for all peers */
#define PIECE_MIN_BYTES ((size_t)4 << 10)
#define CALL_MIN_BYTES ((size_t)128 << 10)   /* below, nothing overlaps       */
#define WINDOW_MAX_BYTES ((size_t)8 << 20)
enum { SIGNALS_MAX = 2048 };                 /* of a run, or pieces grow      */

struct window {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    bool same;                    /* all peers load the same piece            */
    size_t piece;                 /* bytes that a peer loads at once          */
    int npieces;                  /* of the largest block                     */
    int places;                   /* pieces in a slot                         */
    int slots;                    /* of the window                            */
};

/* Block r of IN: what goes to that rank; and of OUT: what comes from it. */
static struct dtn_range window_sent(const struct dtn_call *call, int r)
{
    if (call->coll == DTN_COLL_ALLGATHER)
        return (struct dtn_range){ 0, dtn_call_block(call, call->me).bytes };
    return call->coll == DTN_COLL_ALL_TO_ALL ? dtn_call_sent(call, r)
                                             : dtn_call_block(call, r);
}

static struct dtn_range window_received(const struct dtn_call *call, int r)
{
    if (call->coll == DTN_COLL_REDUCE_SCATTER)
        return (struct dtn_range){ 0, dtn_call_block(call, call->me).bytes };
    return call->coll == DTN_COLL_ALL_TO_ALL ? dtn_call_received(call, r)
                                             : dtn_call_block(call, r);
}

static struct window window_of(const struct dtn_call *call)
{
    const bool same = call->coll == DTN_COLL_ALLGATHER,
               answers = call->coll == DTN_COLL_ALLREDUCE;
    const size_t line = DTN_CACHE_LINE, block = window_sent(call, 0).bytes;
    const size_t most = SIGNALS_MAX / (size_t)call->n + 1;
    const size_t peers = same || call->n < 2 ? 1 : (size_t)call->n - 1;
    struct window w = { .call = call, .same = same,
                        .piece = SLOT_BYTES / peers / line * line,
                        .places = same ? 1 : call->n + answers,
                        .slots = answers ? 5 : 8 };

    if (w.piece < PIECE_MIN_BYTES)
        w.piece = PIECE_MIN_BYTES;
    if (block / w.piece >= most)
        w.piece = (block / most / line + 1) * line;
    w.npieces = (int)((block + w.piece - 1) / w.piece);
    if (w.slots > w.npieces)
        w.slots = w.npieces > 0 ? w.npieces : 1;
    return w;
}

static size_t window_bytes(const struct window *w)
{
    return (size_t)w->slots * (size_t)w->places * w->piece;
}

/* Piece i of a block. */
static struct dtn_range window_piece(const struct window *w,
                                     struct dtn_range block, int i)
{
    const size_t at = (size_t)i * w->piece;
    const size_t left = at < block.bytes ? block.bytes - at : 0;

    return (struct dtn_range){ block.offset + at,
                               left < w->piece ? left : w->piece };
}

/* A place in the slot of piece i, of that rank; -1: of every rank. */
static struct dtn_span window_place(const struct window *w, int rank, int i,
                                    int place)
{
    const size_t slot = (size_t)(i % w->slots);

    return dtn_span_at(rank, DTN_TMP,
                       (slot * (size_t)w->places + (size_t)place) * w->piece);
}

/* Stage piece i of every block that a peer loads; copy that of this rank. */
static void window_stage(const struct window *w, int i)
{
    const struct dtn_call *call = w->call;
    const int me = call->me;
    const struct dtn_range in = window_piece(w, window_sent(call, me), i);
    const struct dtn_range out = window_piece(w, window_received(call, me), i);

    for (int d = 1; d < (w->same ? 2 : call->n) && i < w->npieces; d++) {
        const int peer = dtn_neighbour(call, d);
        const struct dtn_range from = window_piece(w, window_sent(call, peer),
                                                   i);

        dtn_sched_copy(w->sched, window_place(w, me, i, w->same ? 0 : peer),
                       dtn_span_at(me, DTN_IN, from.offset), from.bytes);
    }
    if (i < w->npieces && !dtn_coll_infos[call->coll].reduces)
        dtn_sched_copy(w->sched, dtn_span_at(me, DTN_OUT, out.offset),
                       dtn_span_at(me, DTN_IN, in.offset), out.bytes);
}

/* Fold piece i of this rank's block. */
static void window_fold(const struct window *w, int i)
{
    const int me = w->call->me;
    const struct dtn_range in = window_piece(w, window_sent(w->call, me), i);
    const struct dtn_range out = window_piece(w, window_received(w->call, me),
                                              i);

    dtn_sched_fold_with(w->sched, dtn_span_at(me, DTN_OUT, out.offset),
                        window_place(w, -1, i, me), out.bytes,
                        dtn_span_at(me, DTN_IN, in.offset));
}

/* Load piece i of each peer from that place of its slot. */
static void window_load(const struct window *w, int i, int place)
{
    for (int d = 1; d < w->call->n; d++) {
        const int peer = dtn_neighbour(w->call, -d);
        const struct dtn_range out = window_piece(
            w, window_received(w->call, peer), i);

        dtn_sched_copy(w->sched, dtn_span_at(w->call->me, DTN_OUT, out.offset),
                       window_place(w, peer, i, place), out.bytes);
    }
}

/* DATA says that a piece is staged. */
static void window_move(const struct window *w)
{
    for (int i = 0; i < w->npieces; i++) {
        dtn_emit_wait_all(w->sched, w->call, DTN_TAG_DATA);
        window_stage(w, i + 1);
        if (i + 1 < w->npieces)
            dtn_emit_signal_all(w->sched, w->call, DTN_TAG_DATA);
        if (dtn_coll_infos[w->call->coll].reduces)
            window_fold(w, i);
        else
            window_load(w, i, w->same ? 0 : w->call->me);
    }
}

/* DATA says that a piece is staged, and that the result before it is there. */
static void window_answer(const struct window *w)
{
    const struct dtn_call *call = w->call;
    const int me = call->me, place = call->n;

    for (int i = 0; i <= w->npieces; i++) {
        const struct dtn_range sum = window_piece(
            w, window_received(call, me), i);

        dtn_emit_wait_all(w->sched, call, DTN_TAG_DATA);
        if (i > 0)
            window_load(w, i - 1, place);
        if (i == w->npieces)
            break;
        window_stage(w, i + 1);
        window_fold(w, i);
        dtn_sched_copy(w->sched, window_place(w, me, i, place),
                       dtn_span_at(me, DTN_OUT, sum.offset), sum.bytes);
        dtn_emit_signal_all(w->sched, call, DTN_TAG_DATA);
    }
}

static int window_emit(const struct dtn_call *call, const char *name,
                       struct dtn_sched *sched, struct dtensor_error *err)
{
    struct window w = window_of(call);

    dtn_emit_begin(sched, name, call);
    w.sched = sched;
    sched->bytes[DTN_TMP] = window_bytes(&w);
    sched->exposed[DTN_TMP] = sched->lent = true;
    dtn_emit_signal_all(sched, call, DTN_TAG_READY);
    dtn_emit_wait_all(sched, call, DTN_TAG_READY);
    window_stage(&w, 0);
    dtn_emit_signal_all(sched, call, DTN_TAG_DATA);
    if (call->coll == DTN_COLL_ALLREDUCE)
        window_answer(&w);
    else
        window_move(&w);
    dtn_emit_signal_all(sched, call, DTN_TAG_DONE);
    dtn_emit_wait_all(sched, call, DTN_TAG_DONE);
    return dtn_emit_end(sched, err);
}

static int allreduce_emit(const struct dtn_call *call, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    return window_emit(call, "allreduce window", sched, err);
}

static int allgather_emit(const struct dtn_call *call, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    return window_emit(call, "allgather window", sched, err);
}

static int reduce_scatter_emit(const struct dtn_call *call,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    return window_emit(call, "reduce_scatter window", sched, err);
}

static int all_to_all_emit(const struct dtn_call *call,
                           struct dtn_sched *sched, struct dtensor_error *err)
{
    return window_emit(call, "all_to_all window", sched, err);
}

dtn_emit_f *const dtn_window_emitters[DTN_NCOLLS] = {
    [DTN_COLL_ALLREDUCE] = allreduce_emit,
    [DTN_COLL_ALLGATHER] = allgather_emit,
    [DTN_COLL_REDUCE_SCATTER] = reduce_scatter_emit,
    [DTN_COLL_ALL_TO_ALL] = all_to_all_emit,
};

bool dtn_window_suits(const struct dtn_call *call)
{
    struct dtn_range in, out;
    struct window w;

    if (!dtn_window_emitters[call->coll] || call->n < 2 || call->on_device
        || call->counts || call->made)
        return false;
    in = window_sent(call, 0);
    out = window_received(call, 0);
    w = window_of(call);
    return (in.bytes > out.bytes ? in.bytes : out.bytes) * (size_t)call->n
               >= CALL_MIN_BYTES
        && window_bytes(&w) <= WINDOW_MAX_BYTES;
}
