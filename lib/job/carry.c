/* carry.c - bytes that go with a signal
 *
 * A signal holds 44 bytes.  Up to 4 KiB more may go beside it: for each peer
 * there is a box of 16 places, one for each signal that may be under way, and
 * what signal number 20 carries is put into place 20 % 16 = 4 before it.  A
 * signal can be sent only when the one 16 before it was consumed, so the place
 * is free then; no address is asked for and nothing is answered.  A short
 * message thus takes one hop, whatever the transport.
 *
 * Where the peer's memory is mapped the bytes are copied straight into its
 * box.  Where a small put goes along with its signal they leave from where they
 * are; else from a box of our own, whose places are free when the peer's are.
 */
#include "base/error.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

#define CARRY_TAG UINT16_MAX      /* of the signal that names our box          */
#define CARRY_BOX_BYTES ((size_t)DTN_QUEUE_DEPTH * DTN_CARRY_MAX)

static unsigned char *carry_place(unsigned char *box, uint64_t number)
{
    return box + number % DTN_QUEUE_DEPTH * DTN_CARRY_MAX;
}

/* Make the box for a peer. */
static int carry_make(struct dtensor_ctx *ctx, struct dtn_peer *peer,
                      struct dtensor_error *err)
{
    if (!peer->carry.in)
        peer->carry.in = dtn_arena_alloc(&ctx->arena, CARRY_BOX_BYTES);
    if (!peer->carry.in)
        return dtn_arena_fail(&ctx->arena, "connect", CARRY_BOX_BYTES, err);
    if (peer->tp->ops->reg(peer->tp, peer->carry.in, CARRY_BOX_BYTES,
                           &peer->carry.name) != 0)
        return dtn_fail_nomem(err, "connect", CARRY_BOX_BYTES);
    return 0;
}

/* Ranks connect for a call that both make, and compare it.  Messages differ on
 * the two sides and are compared later; 0: no call.
 */
static uint64_t carry_call(const struct dtensor_ctx *ctx)
{
    return ctx->making && ctx->making->group != 0 ? ctx->making->fingerprint : 0;
}

static bool carry_another_call(const struct dtensor_ctx *ctx,
                               const struct dtn_signal *signal)
{
    const uint64_t mine = carry_call(ctx);

    return mine != 0 && signal->fingerprint != 0 && signal->fingerprint != mine;
}

/* The peer said where its box is. */
static int carry_learn(struct dtensor_ctx *ctx, int rank,
                       const struct dtn_signal *signal,
                       struct dtensor_error *err)
{
    struct dtn_peer *peer = &ctx->peers[rank];

    if (signal->tag != CARRY_TAG || signal->len != sizeof peer->carry.remote)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, rank, "rank %d says "
                             "something else than where its box is (is it of "
                             "the same version?)", rank);
    if (carry_another_call(ctx, signal))
        return dtn_poison_mismatch(ctx, &(struct dtn_mismatch){
            .rank = rank, .called = signal->fingerprint,
            .witness = ctx->self.rank, .expected = ctx->making->fingerprint });
    memcpy(&peer->carry.remote, signal->payload, sizeof peer->carry.remote);
    peer->carry.mapped = peer->tp->ops->map(peer->tp, rank,
                                            peer->carry.remote);
    if (!peer->carry.mapped) {
        peer->carry.out = dtn_arena_alloc(&ctx->arena, CARRY_BOX_BYTES);
        if (!peer->carry.out)
            return dtn_arena_fail(&ctx->arena, "connect", CARRY_BOX_BYTES, err);
    }
    dtn_consume(ctx, rank);
    peer->carry.known = true;
    return 0;
}

int dtn_carry_meet(struct dtensor_ctx *ctx, int rank, struct dtensor_error *err)
{
    struct dtn_peer *peer = &ctx->peers[rank];
    struct dtn_signal signal = { .tag = CARRY_TAG,
                                 .fingerprint = carry_call(ctx) };
    const struct dtn_signal *said;
    int rc = 0;

    if (!peer->carry.told) {
        rc = carry_make(ctx, peer, err);
        if (rc != 0)
            return rc;
        signal.len = sizeof peer->carry.name;
        memcpy(signal.payload, &peer->carry.name, sizeof peer->carry.name);
        rc = peer->tp->ops->signal(peer->tp, rank, &signal);
        if (rc != 0)
            return rc == DTENSOR_EAGAIN ? rc : dtn_fail_rank(err, rc, rank,
                "the first signal to it failed with %s", dtensor_errname(rc));
        peer->sent++;
        peer->carry.told = true;
    }
    if (!peer->carry.known) {
        said = peer->tp->ops->peek(peer->tp, rank);
        rc = said ? carry_learn(ctx, rank, said, err) : DTENSOR_EAGAIN;
    }
    return rc;
}

/* May these bytes leave from where they are, for they leave at once? */
static bool carry_along(const struct dtensor_ctx *ctx,
                        const struct dtn_peer *peer, const void *data,
                        size_t size)
{
    return size <= peer->tp->along_bytes
        && dtn_arena_contains(&ctx->arena, data, size);
}

static int carry_signal(struct dtensor_ctx *ctx, int rank,
                        struct dtn_wait *wait, const struct dtn_signal *signal)
{
    return wait ? dtn_poll_signal(ctx, rank, wait, signal)
                : dtn_signal(ctx, rank, signal);
}

/* Put them into the peer's box and signal. */
static int carry_put(struct dtensor_ctx *ctx, int rank, struct dtn_wait *wait,
                     size_t *moved, const struct dtn_signal *signal,
                     const void *data)
{
    struct dtn_peer *peer = &ctx->peers[rank];
    struct dtn_remote to = peer->carry.remote;
    unsigned char *from = carry_place(peer->carry.out, peer->sent);
    bool along = carry_along(ctx, peer, data, signal->len);
    int rc;

    to.addr += (uint64_t)(from - peer->carry.out);
    if (!along && *moved == 0)
        memcpy(from, data, signal->len);
    if (!along)
        data = from;
    rc = wait ? dtn_poll_put(ctx, rank, wait, to, data, signal->len, moved)
              : dtn_put(ctx, rank, to, data, signal->len);
    if (rc == 0)
        rc = carry_signal(ctx, rank, wait, signal);
    if (rc == 0)
        *moved = 0;
    return rc == 0 && along ? dtn_flush(ctx, rank) : rc;
}

int dtn_carry(struct dtensor_ctx *ctx, int rank, struct dtn_wait *wait,
              size_t *moved, struct dtn_signal *signal, const void *data)
{
    struct dtn_peer *peer = &ctx->peers[rank];
    int rc;

    if (signal->len <= DTN_PAYLOAD_MAX) {
        if (signal->len > 0)
            memcpy(signal->payload, data, signal->len);
        return carry_signal(ctx, rank, wait, signal);
    }
    rc = wait ? 0 : dtn_await_room(ctx, rank);
    if (rc != 0)
        return rc;
    if (!peer->carry.mapped)
        return carry_put(ctx, rank, wait, moved, signal, data);
    memcpy(carry_place(peer->carry.mapped, peer->sent), data, signal->len);
    return carry_signal(ctx, rank, wait, signal);
}

const void *dtn_carried(const struct dtensor_ctx *ctx, int rank,
                        const struct dtn_signal *signal)
{
    const struct dtn_peer *peer = &ctx->peers[rank];

    return signal->len <= DTN_PAYLOAD_MAX ? signal->payload
         : carry_place(peer->carry.in, peer->consumed);
}
