/* poll.c - progress of a started call without waiting for a peer
 *
 * Each function does what is possible now, and returns EAGAIN where the same
 * function in await.c would wait.  For example, a put of 64 MiB over tcp to a
 * rank that computes fills the socket, about 4 MiB, and returns.  The next
 * dtensor_test() continues there.  From the second poll on, once a millisecond
 * it also checks what a blocking call checks in its pauses: is the peer alive,
 * and has op_timeout passed?
 */
#include "base/wait.h"
#include "cluster/world.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>

int dtn_poll_later(struct dtensor_ctx *ctx, int peer, bool listening,
                   struct dtn_wait *wait)
{
    int64_t now;

    if (wait->start_ns == 0) {    /* often the next look finds it: no clock   */
        wait->start_ns = DTN_WAIT_POLLED;
        return DTENSOR_EAGAIN;
    }
    now = dtn_now_ns();
    if (wait->start_ns == DTN_WAIT_POLLED)
        wait->start_ns = wait->next_look_ns = now;
    if (now - wait->start_ns > ctx->world.cluster->transport.op_timeout_ns)
        return dtn_await_expired(ctx, peer, wait->start_ns);
    if (now < wait->next_look_ns)
        return DTENSOR_EAGAIN;
    wait->next_look_ns = now + 1000000;
    return dtn_peer_check(ctx, peer, listening, wait) == 0
         ? DTENSOR_EAGAIN : ctx->failure.err.code;
}

/* A call on a transport has returned `rc`: go on, or poison the context. */
static int poll_again(struct dtensor_ctx *ctx, int peer, int rc,
                      struct dtn_wait *wait)
{
    if (rc != DTENSOR_EAGAIN)
        return dtn_await_failed(ctx, peer, rc);
    ctx->made_progress |= dtn_ctx_progress(ctx);
    return dtn_poll_later(ctx, peer, false, wait);
}

int dtn_poll(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
             const struct dtn_signal **signalp)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;

    ctx->made_progress |= dtn_ctx_progress(ctx);
    *signalp = tp->ops->peek(tp, peer);
    if (!*signalp)
        return dtn_poll_later(ctx, peer, true, wait);
    ctx->made_progress = true;
    return 0;
}

int dtn_poll_put(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                 struct dtn_remote dst, const void *src, size_t size,
                 size_t *moved)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    size_t done;
    int rc;

    while (*moved < size) {
        const struct dtn_remote to = { dst.addr + *moved, dst.key };

        done = 0;
        rc = tp->ops->put(tp, peer, to, (const char *)src + *moved,
                          size - *moved, &done);
        *moved += done;
        if (done > 0) {
            wait->start_ns = 0;
            ctx->made_progress = true;
        }
        if (rc != 0)
            return poll_again(ctx, peer, rc, wait);
    }
    return 0;
}

int dtn_poll_rows(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                  struct dtn_remote dst, const struct dtn_strided *rows,
                  size_t *at)
{
    const size_t before = *at;
    int rc = dtn_wire_rows(ctx->peers[peer].tp, peer, dst, rows, at);

    if (*at > before) {
        wait->start_ns = 0;
        ctx->made_progress = true;
    }
    return rc == 0 || rc == DTENSOR_EINVAL ? rc
         : poll_again(ctx, peer, rc, wait);
}

int dtn_poll_flush(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    int rc = tp->ops->flush(tp, peer);

    return rc == 0 ? 0 : poll_again(ctx, peer, rc, wait);
}

int dtn_poll_signal(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                    struct dtn_signal *signal, const void *data)
{
    const int rc = dtn_try_signal(ctx, peer, signal, data);

    return rc == 0 ? 0 : poll_again(ctx, peer, rc, wait);
}
