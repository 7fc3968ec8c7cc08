/* poison.c - the first failure of a context
 *
 * The first failure poisons the context: its text is kept and is sent to the
 * peers and over the bootstrap's tree, and every later call fails with it.
 * Example: rank 1 fails because rank 2 is dead; rank 0, which waits for rank 1,
 * then names rank 2 too.
 */
#include "job/poison.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "cluster/world.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/failure.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "job/suspects.h"
#include "job/wiring.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

int dtn_poison_record(struct dtensor_ctx *ctx, int code, int culprit,
                         const char *what)
{
    const char *plan = dtn_last_plan_text(&ctx->last_plan);
    const char *costs = strstr(plan, " (");             /* not of interest */
    const int length = costs ? (int)(costs - plan) : (int)strlen(plan);
    char me[320];

    ctx->failure.at_ns = dtn_now_ns();
    dtn_fail_rank(
        &ctx->failure.err, code, culprit, "%s: %.*s%scall %llu: %s",
        dtn_world_rank_name(&ctx->world, ctx->world.rank, me, sizeof me),
        length, plan, length > 0 ? ", " : "",
        (unsigned long long)ctx->calls + (ctx->connecting_call != NULL), what);
    return code;
}

/* Transports carry 8 bits. */
enum { CODE_BITS = 4, CODE_MASK = (1 << CODE_BITS) - 1 };

static int poison_word(int code, enum dtn_loss loss)
{
    return -(-code | (int)loss << CODE_BITS);
}

int dtn_poison_code(int word)
{
    return -(-word & CODE_MASK);
}

int dtn_peer_health(struct dtensor_ctx *ctx, int peer, int *culprit, int *code,
                    enum dtn_loss *loss)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    int word = 0;
    int health = tp->ops->health(tp, peer, culprit, &word);

    if (health != DTENSOR_EABORT)
        return health;
    *code = dtn_poison_code(word);
    *loss = -word >> CODE_BITS < DTN_NLOSSES
          ? (enum dtn_loss)(-word >> CODE_BITS) : DTN_LOSS_NONE;
    return health;
}

void dtn_poison_tell(struct dtensor_ctx *ctx, int code, int culprit)
{
    for (int t = 0; t < ctx->ntransports; t++)
        ctx->transports[t]->ops->abort(ctx->transports[t], culprit,
                                       poison_word(code, ctx->failure.loss));
    dtn_boot_report_failure(ctx->boot, culprit, code, &ctx->failure.mismatch);
}

int dtn_poison(struct dtensor_ctx *ctx, int code, int culprit,
               const char *fmt, ...)
{
    char what[480];
    va_list ap;

    if (ctx->failure.err.code != 0)
        return ctx->failure.err.code;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    dtn_poison_record(ctx, code, culprit, what);
    dtn_poison_tell(ctx, code, culprit);
    dtn_suspects_write(&ctx->world, ctx->boot, ctx->failure.loss,
                       &ctx->failure.err);
    return code;
}

int dtn_ctx_check(const struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    if (ctx->failure.err.code != 0 && err)
        *err = ctx->failure.err;
    return ctx->failure.err.code;
}

int dtn_ctx_ready(const struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtensor_error *first = &ctx->failure.err;

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

int dtn_ctx_follows(const struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    return ctx->planning && !ctx->finished ? 0 : dtn_ctx_ready(ctx, err);
}

int dtn_call_give_up(const struct dtn_group *group, int rc,
                     const struct dtensor_error *why,
                     struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = group->ctx;

    if (ctx->failure.err.code == 0 && group->n > 1)
        dtn_poison(ctx, rc, ctx->world.rank, "%s", why->text);
    if (err)
        *err = *why;
    return rc;
}

/* ---------------------------------------------- failures of other ranks --- */

/* A rank that this call needs and that left before it was connected; -1: none.
 * If it was between this rank and another in the tree, this rank does not learn
 * why the other gave up.
 */
static int poison_left(struct dtensor_ctx *ctx)
{
    return dtn_peer_failure_first(ctx, ctx->wiring.connecting,
                                  ctx->wiring.nconnecting);
}

/* Wait for news of a rank, so long at most. */
static bool poison_listen(struct dtensor_ctx *ctx,
                          const struct dtn_peer_failure *failure,
                          int64_t most_ns)
{
    const struct timespec pause = { 0, 1000000 };
    const int64_t end = dtn_now_ns() + most_ns;

    dtn_boot_watch(ctx->boot);
    while (failure->order == 0 && dtn_now_ns() < end) {
        nanosleep(&pause, NULL);
        dtn_boot_watch(ctx->boot);
    }
    return failure->order > 0;
}

int dtn_peer_failure_wait(struct dtensor_ctx *ctx, int peer, int *culprit,
                          int *code)
{
    const struct dtn_peer_failure *failure = dtn_boot_peer_failure(ctx->boot,
                                                                   peer);
    int teller = peer;

    if (!poison_listen(ctx, failure, DTN_FAILURE_NOTICE_NS)
        && dtn_boot_first_failure(ctx->boot) < 0
        && dtn_boot_unheard(ctx->boot, peer))
        poison_listen(ctx, failure, dtn_boot_decides_ns(ctx->boot));
    if (failure->order == 0)
        teller = dtn_boot_first_failure(ctx->boot);
    if (teller < 0 && (teller = poison_left(ctx)) >= 0) {
        *culprit = teller;
        *code = DTENSOR_EPEER;
        return teller;
    }
    if (teller < 0)
        return -1;
    *culprit = dtn_boot_peer_failure(ctx->boot, teller)->culprit;
    *code = dtn_boot_peer_failure(ctx->boot, teller)->code;
    return *culprit == peer && (*code == 0 || *code == DTENSOR_EPEER) ? -1
         : teller;
}

void dtn_peer_failure_wait_own(struct dtensor_ctx *ctx)
{
    poison_listen(ctx, dtn_boot_peer_failure(ctx->boot, ctx->world.rank),
                  DTN_FAILURE_NOTICE_NS);
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
