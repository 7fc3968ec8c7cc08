/* await.h - waiting for a peer without hanging; poisoning */
#ifndef DTN_JOB_AWAIT_H
#define DTN_JOB_AWAIT_H

#include "base/compiler.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_mismatch;
struct dtn_wait;

/* Data-plane calls that wait: 0 or a code, and then the context is poisoned
 * with the words in ctx->failure.  No allocation.
 */
int dtn_put(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
            const void *src, size_t size);
int dtn_flush(struct dtensor_ctx *ctx, int peer);
int dtn_fetch(struct dtensor_ctx *ctx, int peer, void *dst,
              struct dtn_remote src, size_t size);

/* 0: what was fetched from the peer until now was its own.  To be asked before
 * anybody is given it; a system call.
 */
int dtn_fetched(struct dtensor_ctx *ctx, int peer);
int dtn_signal(struct dtensor_ctx *ctx, int peer,
               const struct dtn_signal *signal);

/* Begin to wait for another rank. */
void dtn_ctx_wait(struct dtensor_ctx *ctx, struct dtn_wait *wait);

/* One turn of waiting for `peer`: let the transports move, pause, look around
 * when it is time.  0: go on waiting.
 */
int dtn_await_turn(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);

/* A signal with signal->len bytes of `data`, at most DTN_EAGER_MAX: in the
 * line if it has room for them, else beside it.  `wait` NULL: wait until it is
 * sent; else there is room for it (dtn_poll_room()), and EAGAIN: call again.
 * *moved is 0 at first, and again when it is sent.
 */
int dtn_eager_send(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                   size_t *moved, struct dtn_signal *signal, const void *data);

/* The data of the signal that dtn_await() gave.  Valid until dtn_consume(). */
const void *dtn_eager_data(const struct dtensor_ctx *ctx, int peer,
                           const struct dtn_signal *signal);

/* The next signal from peer; consume it with dtn_consume(). */
int dtn_await(struct dtensor_ctx *ctx, int peer,
              const struct dtn_signal **signalp);
void dtn_consume(struct dtensor_ctx *ctx, int peer);

/* The same without waiting: EAGAIN when there is none yet.  `wait` was set to
 * zero when the caller began to ask; the deadline counts from then.
 */
int dtn_poll(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
             const struct dtn_signal **signalp);

/* The same for a place in the peer's queue of signals: 0 when there is one. */
int dtn_poll_room(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);

/* dtn_put(), dtn_flush() and dtn_signal() without waiting: EAGAIN: call again.
 * *moved, 0 at first, counts the bytes of the put that were taken.
 */
int dtn_poll_put(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                 struct dtn_remote dst, const void *src, size_t size,
                 size_t *moved);
int dtn_poll_flush(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);
int dtn_poll_signal(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                    const struct dtn_signal *signal);

/* Record the first failure, tell the peers, return `code`.  Later calls keep
 * the first words.
 */
int dtn_poison(struct dtensor_ctx *ctx, int code, int culprit,
               const char *fmt, ...) DTN_PRINTF(4, 5);

/* Poison with EMISMATCH and the words of both sides; all others, who may have
 * been in neither call, get to know them and say the same.   Blocks: at most
 * two seconds, for the other side to say what it called.
 */
int dtn_poison_mismatch(struct dtensor_ctx *ctx,
                        const struct dtn_mismatch *mismatch);

/* Is the signal a peer's news of one?  Such a one ends its queue. */
bool dtn_signal_mismatch(const struct dtn_signal *signal,
                         struct dtn_mismatch *mismatch);

/* 0, or the code of the recorded failure with its words in *err: for a call in
 * which the failure occurs.
 */
int dtn_ctx_check(const struct dtensor_ctx *ctx, struct dtensor_error *err);

/* The same for a call that begins: the words say that an earlier call failed.
 *
 * Errors: EINVAL  this process was forked after the context was made
 */
int dtn_ctx_ready(const struct dtensor_ctx *ctx, struct dtensor_error *err);

#endif
