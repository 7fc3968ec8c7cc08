/* eager.c - eager messages of up to 4 KiB, or 64 KiB over tcp
 *
 * A signal holds 44 bytes of data.  Longer messages, up to 4 KiB, use an eager
 * box: each peer has one with 16 places, one for each signal in flight.  The
 * transport writes the data of signal number 20 to place 20 % 16 = 4, together
 * with the signal.  It takes a signal only after the one 16 before it was
 * consumed, so the place is free.  No address is asked for and no answer is
 * needed: a short message takes one hop on every transport.
 *
 * Over rc and tcp the bytes of a message arrive in memory of the transport,
 * which keeps them there, so no box is made.  Over tcp messages of up to 64 KiB
 * are eager, and at most 384 KiB for each peer can be on their way.
 */
#include "base/error.h"
#include "boot/boot.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/eager.h"
#include "job/wire.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

#define EAGER_TAG DTN_TAG_MAX     /* of the signal that names our box         */
#define EAGER_BOX_BYTES ((size_t)DTN_QUEUE_DEPTH * DTN_EAGER_MAX)

/* Make the box for a peer, unless the transport keeps the data. */
static int eager_make(struct dtensor_ctx *ctx, struct dtn_peer *peer,
                      struct dtensor_error *err)
{
    if (peer->tp->ops->kept)
        return 0;
    if (!peer->eager.in)
        peer->eager.in = dtn_arena_alloc(&ctx->arena, EAGER_BOX_BYTES);
    if (!peer->eager.in)
        return dtn_arena_fail(&ctx->arena, "connect", EAGER_BOX_BYTES, err);
    if (peer->tp->ops->reg(peer->tp, peer->eager.in, EAGER_BOX_BYTES,
                           &peer->eager.name) != 0)
        return dtn_fail_nomem(err, "connect", EAGER_BOX_BYTES);
    return 0;
}

/* The call for which two ranks connect; they compare it.  0: none, because a
 * message differs on its two sides and is compared later.
 */
static uint64_t eager_call(const struct dtensor_ctx *ctx)
{
    return ctx->connecting_call && ctx->connecting_call->group != 0
               ? ctx->connecting_call->fingerprint
               : 0;
}

static bool eager_another_call(const struct dtensor_ctx *ctx,
                               const struct dtn_signal *signal)
{
    const uint64_t mine = eager_call(ctx);

    return mine != 0 && signal->fingerprint != 0 && signal->fingerprint != mine;
}

/* The peer has sent the address of its box. */
static int eager_learn(struct dtensor_ctx *ctx, int rank,
                       const struct dtn_signal *signal,
                       struct dtensor_error *err)
{
    struct dtn_peer *peer = &ctx->peers[rank];

    if (signal->tag != EAGER_TAG || signal->len != sizeof peer->eager.remote)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, rank, "connect: rank %d "
                             "sent another message than the address of its "
                             "eager box (is it of the same version?)", rank);
    if (eager_another_call(ctx, signal))
        return dtn_poison_mismatch(
            ctx, &(struct dtn_mismatch) {
                     .rank = rank,
                     .called = signal->fingerprint,
                     .witness = ctx->world.rank,
                     .expected = ctx->connecting_call->fingerprint });
    memcpy(&peer->eager.remote, signal->payload, sizeof peer->eager.remote);
    dtn_consume(ctx, rank);
    peer->eager.remote_known = true;
    return 0;
}

int dtn_eager_meet(struct dtensor_ctx *ctx, int rank, struct dtensor_error *err)
{
    struct dtn_peer *peer = &ctx->peers[rank];
    struct dtn_signal signal = { .tag = EAGER_TAG,
                                 .fingerprint = eager_call(ctx) };
    const struct dtn_signal *record;
    int rc = 0;

    if (!peer->eager.name_sent) {
        rc = eager_make(ctx, peer, err);
        if (rc != 0)
            return rc;
        signal.len = sizeof peer->eager.name;
        memcpy(signal.payload, &peer->eager.name, sizeof peer->eager.name);
        rc = peer->tp->ops->signal(peer->tp, rank, &signal, NULL);
        if (rc != 0)
            return rc == DTENSOR_EAGAIN ? rc : dtn_fail_rank(err, rc, rank,
                "the first signal to it failed with %s", dtensor_errname(rc));
        peer->sent++;
        peer->eager.name_sent = true;
    }
    if (!peer->eager.remote_known) {
        record = peer->tp->ops->peek(peer->tp, rank);
        rc = record ? eager_learn(ctx, rank, record, err) : DTENSOR_EAGAIN;
    }
    return rc;
}

void dtn_expect(struct dtensor_ctx *ctx, int rank,
                const struct dtn_signal *signal, void *dst)
{
    struct dtn_transport *tp = ctx->peers[rank].tp;

    if (tp->ops->expect)
        tp->ops->expect(tp, rank, signal, dst);
}

const void *dtn_eager_data(const struct dtensor_ctx *ctx, int rank,
                           const struct dtn_signal *signal)
{
    const struct dtn_peer *peer = &ctx->peers[rank];

    return signal->len <= DTN_PAYLOAD_MAX ? signal->payload
         : peer->eager.in ? peer->eager.in + dtn_eager_offset(peer->consumed)
         : peer->tp->ops->kept(peer->tp, rank);
}
