/* wire.h - private to this room: transports, and the health of peers */
#ifndef DTN_WIRE_H
#define DTN_WIRE_H

#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_mismatch;
struct dtn_wait;

/* Open the transports of the cluster file and exchange addresses.
 * Collective: the world.
 */
int dtn_wire_open(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Before that: replace inter_node = auto by what all ranks can use.
 * Collective: the world.
 */
int dtn_wire_negotiate(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Exchange with a connected peer the addresses of the boxes for eager messages.
 * 0: both know; EAGAIN: call again.   Errors: ENOMEM, EPEER, EMISMATCH
 */
int dtn_eager_meet(struct dtensor_ctx *ctx, int rank,
                   struct dtensor_error *err);

/* Check the peer's health: 0, or the context is poisoned.  `listening`: a
 * signal that it has sent counts more than that it is gone.  `wait` NULL: not
 * waiting.
 */
int dtn_peer_check(struct dtensor_ctx *ctx, int peer, bool listening,
                   const struct dtn_wait *wait);

/* Put the rows from number *at on; 0: all are taken.  Else as put_rows(). */
static inline int dtn_wire_rows(struct dtn_transport *tp, int peer,
                                struct dtn_remote dst,
                                const struct dtn_strided *rows, size_t *at)
{
    int rc = 0;

    while (rc == 0 && *at < rows->n) {
        const ptrdiff_t from = (ptrdiff_t)*at;
        const struct dtn_remote to = {
            dst.addr + (uint64_t)(from * rows->dst_step), dst.key
        };
        struct dtn_strided rest = *rows;
        size_t done = 0;

        rest.src += from * rows->src_step;
        rest.n -= *at;
        rc = tp->ops->put_rows(tp, peer, to, &rest, &done);
        *at += done;
    }
    return rc;
}

/* Fail because the peer is gone. */
int dtn_peer_failure_report(struct dtensor_ctx *ctx, int peer);

/* Nothing can be done for the peer now.  Returns EAGAIN; or a code if the peer
 * has failed or op_timeout has passed, and then the context is poisoned.
 */
int dtn_poll_later(struct dtensor_ctx *ctx, int peer, bool listening,
                   struct dtn_wait *wait);

/* The wait for the peer since `since_ns` was too long: poison the context. */
int dtn_await_expired(struct dtensor_ctx *ctx, int peer, int64_t since_ns);

/* Has the tree reported a mismatch?  A peer that is gone may be about to report
 * one: dtn_mismatch_wait() waits 0.2 s for that.
 */
bool dtn_mismatch_wait(struct dtensor_ctx *ctx, int peer,
                       struct dtn_mismatch *mismatch);

bool dtn_mismatch_known(const struct dtensor_ctx *ctx,
                        struct dtn_mismatch *mismatch);

/* Look for a mismatch that no signal shows, after a wait of DTN_STALL_NS.
 * 0: there is none.
 */
#define DTN_STALL_NS INT64_C(1000000000)
int dtn_mismatch_stalled(struct dtensor_ctx *ctx);

/* Close all transports that are open, also after a failed dtn_wire_open(). */
void dtn_wire_close(struct dtensor_ctx *ctx);

#endif
