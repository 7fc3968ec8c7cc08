/* await.c - waiting for a peer without hanging, and poisoning
 *
 * A wait polls its line, and once a millisecond asks whether the peer still
 * lives and whether the deadline has passed.  The first thing that goes wrong
 * poisons the context: its words are kept, the peers are told, and a rank
 * that waits for us then blames the same culprit.  With rank 2 of four dead,
 * rank 1, waiting for it, gets EPEER; ranks 0 and 3, waiting for rank 1, find
 * its abort and get EPEER for rank 2 within a few looks.
 */
#include "job/await.h"
#include "base/error.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define NEWS_NS INT64_C(200000000)   /* for the tree to tell, and for the */
                                     /* last words of a rank it tells of  */

int dtn_poison_record(struct dtensor_ctx *ctx, int code, int culprit,
                         const char *what)
{
    const char *costs = strstr(ctx->plan_text, " (");   /* not of interest */
    const int length = costs ? (int)(costs - ctx->plan_text)
                             : (int)strlen(ctx->plan_text);
    char me[320];

    ctx->failed_ns = dtn_now_ns();
    dtn_fail_rank(
        &ctx->failure, code, culprit, "%s: %.*s%scall %llu: %s",
        dtn_world_rank_name(&ctx->world, ctx->world.rank, me, sizeof me),
        length, ctx->plan_text, length > 0 ? ", " : "",
        (unsigned long long)ctx->calls + (ctx->connecting_call != NULL), what);
    return code;
}

void dtn_poison_tell(struct dtensor_ctx *ctx, int code, int culprit)
{
    for (int t = 0; t < ctx->ntransports; t++)
        ctx->transports[t]->ops->abort(ctx->transports[t], culprit, code);
    dtn_boot_report_failure(ctx->boot, culprit, code, &ctx->mismatch);
}

int dtn_poison(struct dtensor_ctx *ctx, int code, int culprit,
               const char *fmt, ...)
{
    char what[480];
    va_list ap;

    if (ctx->failure.code != 0)
        return ctx->failure.code;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    dtn_poison_record(ctx, code, culprit, what);
    dtn_poison_tell(ctx, code, culprit);
    return code;
}

int dtn_ctx_check(const struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    if (ctx->failure.code != 0 && err)
        *err = ctx->failure;
    return ctx->failure.code;
}

int dtn_ctx_ready(const struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtensor_error *first = &ctx->failure;

    if (ctx->planning || ctx->finished)
        return dtn_ctx_check(ctx, err);
    if (dtn_ctx_forked(ctx))
        return dtn_fail(err, DTENSOR_EINVAL, "context: it belongs to the process "
                        "that this one was forked from (fork before "
                        "dtensor_init(), or exec)");
    if (first->code != 0)
        dtn_fail_rank(err, first->code, first->rank, "context: an earlier call "
                      "failed, so this one did nothing (leave the job; see the "
                      "first error): %s", first->text);
    return first->code;
}

int dtn_peer_failure_wait(struct dtensor_ctx *ctx, int peer, int *culprit,
                          int *code)
{
    const struct timespec pause = { 0, 1000000 };
    const struct dtn_peer_failure *failure = dtn_boot_peer_failure(ctx->boot,
                                                                   peer);
    int64_t end = dtn_now_ns() + NEWS_NS;
    int teller = peer;

    dtn_boot_watch(ctx->boot);
    while (failure->order == 0 && dtn_now_ns() < end) {
        nanosleep(&pause, NULL);
        dtn_boot_watch(ctx->boot);
    }
    if (failure->order == 0)
        teller = dtn_boot_first_failure(ctx->boot);
    if (teller < 0)
        return -1;
    *culprit = dtn_boot_peer_failure(ctx->boot, teller)->culprit;
    *code = dtn_boot_peer_failure(ctx->boot, teller)->code;
    return *culprit == peer && (*code == 0 || *code == DTENSOR_EPEER) ? -1
         : teller;
}

/* A rank is gone: the same line whoever told, this rank's transport or the tree,
 * with what the transport knows of it: how it was reached, and what it saw.
 */
static int await_gone(struct dtensor_ctx *ctx, int rank, const char *how)
{
    const struct dtn_peer *peer = &ctx->peers[rank];
    char name[320], why[400] = "";

    if (peer->tp)
        peer->tp->ops->why(peer->tp, rank, why, sizeof why);
    return dtn_poison(ctx, DTENSOR_EPEER, rank, "%s %s%s%s (see its output)",
                      dtn_world_rank_name(&ctx->world, rank, name, sizeof name),
                      how, *why ? ": " : "", why);
}

/* A peer gave up on account of `culprit`, for reason `code`.  If that is this
 * rank itself, then it is the others that are lost to it.
 */
static int await_abort(struct dtensor_ctx *ctx, int peer, int culprit, int code)
{
    char name[320], blamed[320], how[360];
    struct dtn_mismatch mismatch;

    dtn_world_rank_name(&ctx->world, peer, name, sizeof name);
    if (code == DTENSOR_EPEER && culprit == ctx->world.rank)
        return await_gone(ctx, peer, "gave this rank up, for it got no answer");
    if (code == DTENSOR_EPEER && culprit == peer)
        return await_gone(ctx, peer, "died or left");
    if (code == DTENSOR_EMISMATCH) {
        if (ctx->describer && (dtn_mismatch_heard(ctx, peer, &mismatch)
                               || dtn_mismatch_told(ctx, peer, &mismatch)))
            return dtn_poison_mismatch(ctx, &mismatch);
        return dtn_poison(ctx, code, culprit, "%s and another rank called what "
                          "is not the same (see the message of %s)", name,
                          name);
    }
    if (culprit < 0 || culprit >= ctx->world.size || culprit == peer)
        return dtn_poison(ctx, DTENSOR_EABORT, peer, "%s failed with %s (see "
                          "its message)", name, dtensor_errname(code));
    if (code == DTENSOR_EPEER) {
        snprintf(how, sizeof how, "died or left, %s says", name);
        return await_gone(ctx, culprit, how);
    }
    dtn_world_rank_name(&ctx->world, culprit, blamed, sizeof blamed);
    return dtn_poison(ctx, DTENSOR_EABORT, culprit, "%s gave up with %s on "
                      "account of %s (see the message of %s)", name,
                      dtensor_errname(code), blamed,
                      code == DTENSOR_EABORT ? blamed : name);
}

/* The peer is not well: say so.  When it is only gone, it may have said to
 * others why.
 */
static int await_blame(struct dtensor_ctx *ctx, int peer, int health,
                       int culprit, int code)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_mismatch mismatch;
    char name[320], why[400];
    int teller;

    if (health == DTENSOR_EABORT)
        return await_abort(ctx, peer, culprit, code);
    if (health == DTENSOR_EPEER) {
        teller = dtn_peer_failure_wait(ctx, peer, &culprit, &code);
        if (teller >= 0)
            return await_abort(ctx, teller, culprit, code);
        if (ctx->describer && dtn_mismatch_told(ctx, peer, &mismatch))
            return dtn_poison_mismatch(ctx, &mismatch);
        return await_gone(ctx, peer, "died or left while this rank waited for "
                          "it");
    }
    tp->ops->why(tp, peer, why, sizeof why);     /* this rank's own failure  */
    return dtn_poison(ctx, health, ctx->world.rank,
                      "%s is out of reach: "
                      "%s%s%s",
                      dtn_world_rank_name(&ctx->world, peer, name, sizeof name),
                      dtensor_errname(health), *why ? ": " : "", why);
}

/* Does the tree know that the peer died or gave up, though its transport does
 * not?  A queue pair to a dead process answers nothing until its retries are
 * spent.
 */
static bool await_lost(const struct dtensor_ctx *ctx, int peer)
{
    const struct dtn_peer_failure *failure = dtn_boot_peer_failure(ctx->boot,
                                                                   peer);

    return failure->order > 0 && failure->code != 0
        && dtn_now_ns() - failure->heard_ns > NEWS_NS;
}

/* A peer may send its last signal and leave: when `listening`, what it said
 * before counts more than that it is gone.
 */
int dtn_peer_check(struct dtensor_ctx *ctx, int peer, bool listening,
                   const struct dtn_wait *wait)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_mismatch mismatch;
    int culprit = peer, code = 0;
    int health = tp->ops->health(tp, peer, &culprit, &code);

    dtn_boot_watch(ctx->boot);
    if (listening && tp->ops->peek(tp, peer))
        return 0;
    if (ctx->describer && dtn_mismatch_known(ctx, &mismatch))
        return dtn_poison_mismatch(ctx, &mismatch);
    if (health == 0 && await_lost(ctx, peer))
        health = DTENSOR_EPEER;
    if (health == 0)
        return wait && dtn_now_ns() - wait->start_ns > DTN_STALL_NS
             ? dtn_mismatch_stalled(ctx) : 0;
    return await_blame(ctx, peer, health, culprit, code);
}

int dtn_peer_failure_first(struct dtensor_ctx *ctx, const int ranks[], int n)
{
    uint32_t earliest = UINT32_MAX, order;
    int first = -1;

    dtn_boot_watch(ctx->boot);
    for (int i = 0; i < n; i++) {
        order = dtn_boot_peer_failure(ctx->boot, ranks[i])->order;
        if (order > 0 && order < earliest && !ctx->peers[ranks[i]].connected
            && ranks[i] != ctx->world.rank) {
            earliest = order;
            first = ranks[i];
        }
    }
    return first;
}

int dtn_peer_failure_report(struct dtensor_ctx *ctx, int peer)
{
    return await_blame(ctx, peer, DTENSOR_EPEER, peer, DTENSOR_EPEER);
}

int dtn_look(struct dtensor_ctx *ctx, int peer)
{
    return dtn_peer_check(ctx, peer, false, NULL);
}

static int await_turn(struct dtensor_ctx *ctx, int peer, bool listening,
                      struct dtn_wait *wait)
{
    char name[320], time[32];

    for (int t = 0; t < ctx->ntransports; t++)
        ctx->transports[t]->ops->progress(ctx->transports[t]);
    switch (dtn_wait_pause(wait)) {
    case DTN_TURN_POLL:
        return 0;
    case DTN_TURN_LOOK:
        return dtn_peer_check(ctx, peer, listening, wait);
    case DTN_TURN_EXPIRED:
        break;
    }
    return dtn_poison(
        ctx, DTENSOR_ETIME, peer,
        "waited %s for %s, which is "
        "alive (is it in another call, or stopped? see "
        "[transport] op_timeout)",
        dtn_format_time(dtn_now_ns() - wait->start_ns, time, sizeof time),
        dtn_world_rank_name(&ctx->world, peer, name, sizeof name));
}

int dtn_await_turn(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait)
{
    return await_turn(ctx, peer, false, wait);
}

int dtn_await_failed(struct dtensor_ctx *ctx, int peer, int rc)
{
    int looked = dtn_peer_check(ctx, peer, false, NULL);

    return looked != 0 ? looked : await_blame(ctx, peer, rc, peer, rc);
}

/* After a call on a transport said `rc`: 0 try again, else give up. */
static int await_again(struct dtensor_ctx *ctx, int peer, int rc,
                       struct dtn_wait *wait)
{
    return rc == DTENSOR_EAGAIN ? dtn_await_turn(ctx, peer, wait)
                                : dtn_await_failed(ctx, peer, rc);
}

void dtn_ctx_wait(struct dtensor_ctx *ctx, struct dtn_wait *wait)
{
    dtn_wait_init(wait, ctx->world.cluster->transport.op_timeout_ns,
                  ctx->oversubscribed);
    wait->sharing = &ctx->shares_cpu;
}

int dtn_put(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
            const void *src, size_t size)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    const unsigned char *from = src;
    struct dtn_wait wait;
    size_t done;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    while (size > 0) {
        done = 0;
        rc = tp->ops->put(tp, peer, dst, from, size, &done);
        from += done;
        dst.addr += done;
        size -= done;
        if (rc != 0 && (rc = await_again(ctx, peer, rc, &wait)) != 0)
            return rc;
        if (done > 0)
            dtn_ctx_wait(ctx, &wait);
    }
    return 0;
}

int dtn_fetch(struct dtensor_ctx *ctx, int peer, void *dst,
              struct dtn_remote src, size_t size)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    int rc = tp->ops->fetch(tp, peer, dst, src, size);

    return rc == 0 ? 0 : dtn_await_failed(ctx, peer, rc);
}

int dtn_fetched(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    int culprit, code;

    return tp->ops->health(tp, peer, &culprit, &code) == 0
         ? 0 : dtn_look(ctx, peer);
}

int dtn_flush(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_wait wait;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    while ((rc = tp->ops->flush(tp, peer)) != 0)
        if ((rc = await_again(ctx, peer, rc, &wait)) != 0)
            return rc;
    return 0;
}

int dtn_await_room(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_wait wait;
    int rc;

    if (tp->ops->room(tp, peer))
        return 0;
    dtn_ctx_wait(ctx, &wait);
    do {
        if ((rc = dtn_await_turn(ctx, peer, &wait)) != 0)
            return rc;
    } while (!tp->ops->room(tp, peer));
    return 0;
}

int dtn_signal(struct dtensor_ctx *ctx, int peer,
               const struct dtn_signal *signal)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_wait wait;
    int rc = tp->ops->signal(tp, peer, signal);

    if (rc != 0) {
        dtn_ctx_wait(ctx, &wait);
        do {
            if ((rc = await_again(ctx, peer, rc, &wait)) != 0)
                return rc;
        } while ((rc = tp->ops->signal(tp, peer, signal)) != 0);
    }
    ctx->peers[peer].sent++;
    return 0;
}

int dtn_await(struct dtensor_ctx *ctx, int peer,
              const struct dtn_signal **signalp)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    struct dtn_wait wait;
    int rc;

    if ((*signalp = tp->ops->peek(tp, peer)))
        return 0;
    dtn_ctx_wait(ctx, &wait);
    do {
        if ((rc = await_turn(ctx, peer, true, &wait)) != 0)
            return rc;
    } while (!(*signalp = tp->ops->peek(tp, peer)));
    return 0;
}

void dtn_consume(struct dtensor_ctx *ctx, int peer)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;

    tp->ops->consume(tp, peer);
    ctx->peers[peer].consumed++;
}
