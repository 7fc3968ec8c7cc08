/* doubling.c - allreduce by recursive doubling: the fewest hops
 *
 * In round k two ranks whose numbers differ in bit k exchange their sums so
 * far, so after log2(n) rounds every rank has the result.  A tree needs twice
 * as many hops, up and down; a ring, which moves less data, needs 2 (n-1).  If
 * n is not a power of two, some ranks are guests: they hand their term to a
 * neighbour and wait for the result.  Of 6 ranks, 1 and 3 are guests, and the
 * other four double:
 *
 *     before    0 <- 1    2 <- 3
 *     round 0   {0,1} with {2,3}      {4} with {5}
 *     round 1   {0,1,2,3} with {4,5}, two of them at a time
 *     after     0 -> 1    2 -> 3
 *
 * The sum of the lower ranks is always the left operand, so all ranks compute
 * the same tree and have the same bits: ((0+1)+(2+3))+(4+5).
 *
 * The sum of this rank and the received sum lie side by side in ACC.  They are
 * folded into a slot of the next such pair, or into OUT at last.  Two pairs
 * take turns: READY for round k+2 is sent after round k was folded and flushed.
 * Short sums are sent eagerly, without READY.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>

struct doubling {
    struct dtn_sched *sched;
    int me;
    int rounds;
    int nguests;                  /* ranks 1, 3, .. 2 nguests - 1 are guests  */
    int guest;                    /* guest of this rank, or -1                */
    int number;                   /* number of this rank among the 2^rounds   */
                                  /* that double                              */
    size_t bytes;
    bool eager;
};

static struct doubling doubling_make(const struct dtn_call *call,
                                     struct dtn_sched *sched)
{
    struct doubling d = {
        .sched = sched, .me = call->me, .guest = -1,
        .bytes = call->count * dtensor_dtype_size(call->dtype)
    };

    while (2 << d.rounds <= call->n)
        d.rounds++;
    d.nguests = call->n - (1 << d.rounds);
    d.number = call->me < 2 * d.nguests ? call->me / 2
                                        : call->me - d.nguests;
    if (call->me < 2 * d.nguests && call->me % 2 == 0)
        d.guest = call->me + 1;
    d.eager = dtn_emit_partial_bytes(sched, d.bytes) <= sched->eager_bytes;
    return d;
}

static int doubling_partner(const struct doubling *d, int k)
{
    int number = d->number ^ 1 << k;

    return number < d->nguests ? 2 * number : number + d->nguests;
}

/* The slot of one side in the pair of round k; -1 is the pair before round 0.
 */
static struct dtn_span doubling_slot(const struct doubling *d, int rank, int k,
                                     int side)
{
    return dtn_span_at(rank, DTN_ACC, (size_t)(2 * (k & 1) + side) * d->bytes);
}

/* The side of this rank's sum in the pair of round k. */
static int doubling_side(const struct doubling *d, int k)
{
    return d->number >> k & 1;
}

/* The place of the sum with which round k begins; the last sum is the result.
 */
static struct dtn_span doubling_sum(const struct doubling *d, int k)
{
    return k == d->rounds ? dtn_span_at(d->me, DTN_OUT, 0)
                          : doubling_slot(d, d->me, k, doubling_side(d, k));
}

/* Send bytes to a peer: eagerly, or by a put after its READY. */
static void doubling_send(const struct doubling *d, int peer,
                          struct dtn_span dst, struct dtn_span src)
{
    if (d->eager) {
        dtn_sched_send_eager(d->sched, peer, src, d->bytes);
        return;
    }
    dtn_sched_wait(d->sched, peer, DTN_TAG_READY);
    dtn_sched_put(d->sched, peer, dst, src, d->bytes);
    dtn_sched_signal(d->sched, peer, DTN_TAG_DATA);
}

static void doubling_receive(const struct doubling *d, int peer,
                             struct dtn_span dst)
{
    if (d->eager)
        dtn_sched_recv_eager(d->sched, peer, dst, d->bytes);
    else
        dtn_sched_wait(d->sched, peer, DTN_TAG_DATA);
}

/* READY to the partner of round k, if there is such a round. */
static void doubling_invite(const struct doubling *d, int k)
{
    if (!d->eager && k < d->rounds)
        dtn_sched_signal(d->sched, doubling_partner(d, k), DTN_TAG_READY);
}

/* The sum before round 0: this rank's term and that of its guest. */
static void doubling_begin(const struct doubling *d)
{
    struct dtn_span in = dtn_span_at(d->me, DTN_IN, 0);

    if (d->guest >= 0 && !d->eager)
        dtn_sched_signal(d->sched, d->guest, DTN_TAG_READY);
    doubling_invite(d, 0);
    if (d->guest < 0) {
        dtn_sched_copy(d->sched, doubling_sum(d, 0), in, d->bytes);
    } else {
        dtn_sched_copy(d->sched, doubling_slot(d, d->me, -1, 0), in, d->bytes);
        doubling_receive(d, d->guest, doubling_slot(d, d->me, -1, 1));
        dtn_sched_fold_slots(d->sched, doubling_sum(d, 0),
                             doubling_slot(d, d->me, -1, 0), d->bytes, 2);
    }
    doubling_invite(d, 1);
}

static void doubling_round(const struct doubling *d, int k)
{
    int peer = doubling_partner(d, k), side = doubling_side(d, k);

    doubling_send(d, peer, doubling_slot(d, peer, k, side), doubling_sum(d, k));
    doubling_receive(d, peer, doubling_slot(d, d->me, k, !side));
    dtn_sched_fold_slots(d->sched, doubling_sum(d, k + 1),
                         doubling_slot(d, d->me, k, 0), d->bytes, 2);
    if (!d->eager)
        dtn_sched_flush(d->sched, peer);
    doubling_invite(d, k + 2);
}

/* A guest sends its term and receives the result.  In place the result
 * overwrites the term, so the term is flushed before DATA tells the host to
 * write.
 */
static void doubling_visit(const struct doubling *d, int host)
{
    struct dtn_span in = dtn_span_at(d->me, DTN_IN, 0);

    d->sched->bytes[DTN_ACC] = dtn_emit_term_bytes(d->sched, d->bytes);
    in = dtn_emit_term(d->sched, in, dtn_span_at(d->me, DTN_ACC, 0), d->bytes);
    if (d->eager) {
        dtn_sched_send_eager(d->sched, host, in, d->bytes);
        dtn_sched_recv_eager(d->sched, host, dtn_span_at(d->me, DTN_OUT, 0),
                             d->bytes);
        return;
    }
    d->sched->exposed[DTN_OUT] = true;
    dtn_sched_wait(d->sched, host, DTN_TAG_READY);
    dtn_sched_put(d->sched, host, doubling_slot(d, host, -1, 1), in, d->bytes);
    dtn_sched_flush(d->sched, host);
    dtn_sched_signal(d->sched, host, DTN_TAG_DATA);
    dtn_sched_signal(d->sched, host, DTN_TAG_READY);
    dtn_sched_wait(d->sched, host, DTN_TAG_DATA);
}

int dtn_emit_allreduce_doubling(const struct dtn_call *call,
                                struct dtn_sched *sched,
                                struct dtensor_error *err)
{
    struct doubling d;

    dtn_emit_begin(sched, "allreduce doubling", call);
    d = doubling_make(call, sched);
    if (call->n == 1) {
        dtn_emit_alone(sched);
        return dtn_emit_end(sched, err);
    }
    if (call->me < 2 * d.nguests && d.guest < 0) {
        doubling_visit(&d, call->me - 1);
        return dtn_emit_end(sched, err);
    }
    sched->bytes[DTN_ACC] = 4 * d.bytes;
    sched->exposed[DTN_ACC] = !d.eager;
    doubling_begin(&d);
    for (int k = 0; k < d.rounds; k++)
        doubling_round(&d, k);
    if (d.guest >= 0) {
        doubling_send(&d, d.guest, dtn_span_at(d.guest, DTN_OUT, 0),
                      dtn_span_at(call->me, DTN_OUT, 0));
        if (!d.eager)
            dtn_sched_flush(sched, d.guest);
    }
    return dtn_emit_end(sched, err);
}
