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

/* Data-plane calls that wait.  They return 0, or a code; then the context is
 * poisoned, with the text in ctx->failure.err.  They do not allocate.
 */
int dtn_put(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
            const void *src, size_t size);
int dtn_flush(struct dtensor_ctx *ctx, int peer);

/* Put rows from number *at on, which is increased by those that were taken.
 * EINVAL: they must be put one by one; the context is not poisoned.
 */
int dtn_put_rows(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
                 const struct dtn_strided *rows, size_t *at);
int dtn_fetch(struct dtensor_ctx *ctx, int peer, void *dst,
              struct dtn_remote src, size_t size);

/* 0: all bytes read by CMA so far came from the peer, which is still alive.  To
 * be called before these bytes are used.  Costs a system call.
 */
int dtn_fetched(struct dtensor_ctx *ctx, int peer);

/* Send a signal with signal->len bytes of `data`, at most
 * dtn_wire_eager_bytes(), which may change as soon as it returns.  The payload
 * of the signal need not be set.
 */
int dtn_signal(struct dtensor_ctx *ctx, int peer, struct dtn_signal *signal,
               const void *data);

/* Send it if it can leave now: 0 or what the transport returned.  The context
 * is not poisoned; dtn_signal() takes the same signal afterwards.
 */
int dtn_try_signal(struct dtensor_ctx *ctx, int peer, struct dtn_signal *signal,
                   const void *data);

/* A call on the transport of this peer returned `rc`: poison the context. */
int dtn_await_failed(struct dtensor_ctx *ctx, int peer, int rc);

/* Begin to wait for another rank. */
void dtn_ctx_wait(struct dtensor_ctx *ctx, struct dtn_wait *wait);

/* One turn of a wait for `peer`: drive the transports, pause, and check the
 * peer when it is time.  If `listening`, a signal of the peer counts more than
 * that it is gone.  0: continue to wait.
 */
int dtn_await_progress(struct dtensor_ctx *ctx, int peer, bool listening,
                       struct dtn_wait *wait);

/* The data of the signal of dtn_await().  Valid until dtn_consume(). */
const void *dtn_eager_data(const struct dtensor_ctx *ctx, int peer,
                           const struct dtn_signal *signal);

/* This rank awaits `signal` next from the peer, with data that may go straight
 * to `dst`; NULL: it no longer does.  If they do, dtn_eager_data() is `dst`.
 */
void dtn_expect(struct dtensor_ctx *ctx, int peer,
                const struct dtn_signal *signal, void *dst);

/* The next signal from peer; consume it with dtn_consume(). */
int dtn_await(struct dtensor_ctx *ctx, int peer,
              const struct dtn_signal **signalp);
void dtn_consume(struct dtensor_ctx *ctx, int peer);

/* The same without waiting.  EAGAIN: there is none yet.  The caller zeroes
 * `wait` before the first call; the deadline counts from the second.
 */
int dtn_poll(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
             const struct dtn_signal **signalp);

/* dtn_put(), dtn_put_rows(), dtn_flush() and dtn_signal() without waiting:
 * EAGAIN: call again.
 * *moved, 0 at first, counts the bytes of the put that were taken.
 */
int dtn_poll_put(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                 struct dtn_remote dst, const void *src, size_t size,
                 size_t *moved);
int dtn_poll_rows(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                  struct dtn_remote dst, const struct dtn_strided *rows,
                  size_t *at);
int dtn_poll_flush(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);
int dtn_poll_signal(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                    struct dtn_signal *signal, const void *data);

/* Record the failure if it is the first, send it to the peers, and return
 * `code`.  Later calls keep the first text.
 */
int dtn_poison(struct dtensor_ctx *ctx, int code, int culprit,
               const char *fmt, ...) DTN_PRINTF(4, 5);

/* Poison with EMISMATCH and a text with the calls of both sides.  All other
 * ranks, which may be in neither call, get the same text.   Blocks: at most two
 * seconds, for the report of the other side.
 */
int dtn_poison_mismatch(struct dtensor_ctx *ctx,
                        const struct dtn_mismatch *mismatch);

/* Is the signal a peer's report of a mismatch?  It is the last in its queue. */
bool dtn_signal_mismatch(const struct dtn_signal *signal,
                         struct dtn_mismatch *mismatch);

/* 0, or the code of the recorded failure with its text in *err: for a call in
 * which the failure occurs.
 */
int dtn_ctx_check(const struct dtensor_ctx *ctx, struct dtensor_error *err);

/* The same for a call that begins: the text says that an earlier call failed.
 *
 * Errors: EINVAL  this process was forked after the context was made
 */
int dtn_ctx_ready(const struct dtensor_ctx *ctx, struct dtensor_error *err);

/* The same for a call on tensors, which a context that only plans can follow:
 * its tensors have no elements, so that nothing is computed or sent.
 */
int dtn_ctx_follows(const struct dtensor_ctx *ctx, struct dtensor_error *err);

#endif
