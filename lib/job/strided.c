/* strided.c - a put of rows that waits
 *
 * A transport takes as many rows as it has room for: of 512 rows of 2 KiB over
 * rc, whose queue has 128 places, all 512 in 37 requests, or fewer while others
 * are under way.  The rest follows when there is room again.
 */
#include "base/wait.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stddef.h>

int dtn_put_rows(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
                 const struct dtn_strided *rows, size_t *at)
{
    struct dtn_wait wait;
    size_t before;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    for (;;) {
        before = *at;
        rc = dtn_wire_rows(ctx->peers[peer].tp, peer, dst, rows, at);
        if (*at > before)
            dtn_ctx_wait(ctx, &wait);
        if (rc == 0 || rc == DTENSOR_EINVAL)
            return rc;
        if (rc != DTENSOR_EAGAIN)
            return dtn_await_failed(ctx, peer, rc);
        rc = dtn_await_progress(ctx, peer, false, &wait);
        if (rc != 0)
            return rc;
    }
}
