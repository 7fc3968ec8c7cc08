/* wire.h - private to the net room: a context's transports */
#ifndef DTN_WIRE_H
#define DTN_WIRE_H

#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>

struct dtn_mismatch;
struct dtn_wait;

/* Open the transports the cluster file asks for and learn the peers'
 * addresses.  `all` is scratch for world_size blobs.  Collective: the world.
 */
int dtn_wire_open(struct dtensor_ctx *ctx, struct dtn_blob all[],
                  struct dtensor_error *err);

/* Before that, inter_node = auto becomes what all ranks can use.  Collective:
 * the world.
 */
int dtn_wire_negotiate(struct dtensor_ctx *ctx, struct dtn_blob all[],
                       struct dtensor_error *err);

/* Tell a connected peer where what we carry to each other goes, and learn it.
 * 0: both know; EAGAIN: call again.   Errors: ENOMEM, EPEER, EMISMATCH
 */
int dtn_eager_meet(struct dtensor_ctx *ctx, int rank,
                   struct dtensor_error *err);

/* Is this peer, that connect() was called for, well?  If not, the context is
 * poisoned on account of who is to blame.
 */
int dtn_look(struct dtensor_ctx *ctx, int peer);

/* The one of these ranks, not connected yet, that was gone first as far as the
 * bootstrap's tree tells; -1: none.  And to fail on its account.
 */
int dtn_peer_failure_first(struct dtensor_ctx *ctx, const int ranks[], int n);
int dtn_peer_failure_report(struct dtensor_ctx *ctx, int peer);

/* The peer is gone; who is to blame when it is not itself?  Who told so, and
 * *culprit and *code: the peer, or else the first rank that failed; -1: nobody.
 * Blocks: 0.2 s at most, for the tree to tell.
 */
int dtn_peer_failure_wait(struct dtensor_ctx *ctx, int peer, int *culprit,
                          int *code);

/* Look at the peer: 0, or the context is poisoned.  `listening`: what it said
 * before it went counts more than that it is gone.  `wait` NULL: not waiting.
 */
int dtn_peer_check(struct dtensor_ctx *ctx, int peer, bool listening,
                   const struct dtn_wait *wait);

/* A call on the transport of this peer failed: poison the context. */
int dtn_await_failed(struct dtensor_ctx *ctx, int peer, int rc);

/* One try at every peer of these that is not connected: how many are left, of
 * which *waiting is the first; or a code, and the context is poisoned.
 */
int dtn_connect_try(struct dtensor_ctx *ctx, const int ranks[], int n,
                    int *waiting);

/* dtn_poison() in two steps: keep the words, tell the others. */
int dtn_poison_record(struct dtensor_ctx *ctx, int code, int culprit,
                      const char *what);
void dtn_poison_tell(struct dtensor_ctx *ctx, int code, int culprit);

/* Did a peer that gave up say before what was called?  Did anyone over the tree,
 * who may be about to?
 */
bool dtn_mismatch_heard(struct dtensor_ctx *ctx, int peer,
                        struct dtn_mismatch *mismatch);
bool dtn_mismatch_told(struct dtensor_ctx *ctx, int peer,
                       struct dtn_mismatch *mismatch);

/* The same without waiting: has the tree told of one? */
bool dtn_mismatch_known(const struct dtensor_ctx *ctx,
                        struct dtn_mismatch *mismatch);

/* Look for a mismatch that no signal shows, after a wait of DTN_STALL_NS.
 * 0: there is none.
 */
#define DTN_STALL_NS INT64_C(1000000000)
int dtn_mismatch_stalled(struct dtensor_ctx *ctx);

/* Wait until a signal to this peer would be taken. */
int dtn_await_room(struct dtensor_ctx *ctx, int peer);

/* Close what is open, half or whole. */
void dtn_wire_close(struct dtensor_ctx *ctx);

#endif
