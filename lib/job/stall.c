/* stall.c - a wait that lasts long is reported before its deadline
 *
 * Rank 0 waits in call 812 for rank 3, whose program has made 811 calls and
 * now reads a file.  Nothing has failed, and op_timeout is minutes away.  After
 * stall_after, 5 s by default, rank 0 queries the status of rank 3 over the
 * tree and logs one line with the calls of both.
 *
 * The thread of the heartbeats answers for a program that computes.  It reads
 * the last record, which the program has written before it counted the call;
 * the next 15 calls do not write there.
 */
#include "job/stall.h"
#include "base/log.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_NS INT64_C(1000000000)     /* how long an answer may take      */

/* The call that this rank is in, or its last one. */
static void stall_last(const struct dtensor_ctx *ctx,
                       struct dtn_call_record *call)
{
    const struct dtn_call_record *last = ctx->connecting_call;
    struct dtn_call_record found;

    if (!last && ctx->calls == 0)
        return;
    if (!last)
        last = &ctx->recent_calls[ctx->calls % DTN_RECORD_MAX];
    *call = *last;
    if (ctx->describer
        && ctx->describer->recall(ctx, last->fingerprint, &found))
        *call = found;
}

/* The same by the beating thread, while the program may make calls. */
static void stall_peek(const struct dtensor_ctx *ctx,
                       struct dtn_call_record *call)
{
    uint64_t calls;

    do {
        calls = atomic_load_explicit(&ctx->calls, memory_order_acquire);
        if (calls > 0)
            memcpy(call, &ctx->recent_calls[calls % DTN_RECORD_MAX],
                   offsetof(struct dtn_call_record, text));
    } while (ctx->calls - calls > DTN_RECORD_MAX - 2);
}

/* The call, or of messages the one that waits. */
static void stall_step(const struct dtensor_ctx *ctx,
                       const struct dtn_call_record *call,
                       struct dtn_call_record *step)
{
    if (call->group != 0 || !ctx->describer->waits(ctx, step)
        || step->group != 0)
        *step = *call;
    step->number = step->group != 0 ? step->number : 0;
}

static void stall_tell(void *arg, bool waits, struct dtn_call_record *call)
{
    struct dtn_call_record last = { .kind = DTN_RECORD_NOTHING };

    if (!waits) {
        stall_peek(arg, call);
        return;
    }
    stall_last(arg, &last);
    stall_step(arg, &last, call);
}

void dtn_stall_open(struct dtensor_ctx *ctx)
{
    dtn_boot_status_by(ctx->boot, stall_tell, ctx);
}

/* "barrier, no. 7 over 4 ranks" */
static char *stall_call(const struct dtensor_ctx *ctx,
                        const struct dtn_call_record *call, char *buf,
                        size_t size)
{
    struct dtn_call_record own;
    char what[DTN_RECORD_TEXT], number[48] = "";

    if (!call->text && ctx->describer->recall(ctx, call->fingerprint, &own))
        call = &own;
    if (call->number > 0)
        snprintf(number, sizeof number, ", no. %u over %u ranks",
                 (unsigned)call->number, (unsigned)call->n);
    snprintf(buf, size, "%s%s",
             ctx->describer->describe(call, what, sizeof what), number);
    return buf;
}

/* Both ranks wait in one call: what the transport knows, if a network may keep
 * them from connecting.  Ranks that map each other's memory are only slow.
 */
static const char *stall_apart(const struct dtensor_ctx *ctx, int rank,
                               char *buf, size_t size)
{
    const struct dtn_peer *peer = &ctx->peers[rank];

    *buf = '\0';
    if (peer->tp && !peer->connected && !peer->tp->ops->map)
        peer->tp->ops->why(peer->tp, rank, buf, size);
    return buf;
}

/* Does the peer wait in a message?  alike: in one or in the same call, as this
 * rank does?
 */
static bool stall_message(const struct dtn_rank_status *status)
{
    return status->waits && status->call.group == 0
        && (status->call.kind == DTN_RECORD_SENT
            || status->call.kind == DTN_RECORD_RECEIVED);
}

static bool stall_alike(const struct dtn_rank_status *status,
                        const struct dtn_call_record *mine)
{
    return status->call.fingerprint == mine->fingerprint
        || (stall_message(status) && mine->group == 0);
}

/* Does this rank wait until it may send, for a rank that does so, too?  Both
 * may send first, or both are in a ring of ranks that do.
 */
static bool stall_sends(const struct dtensor_ctx *ctx,
                        const struct dtn_rank_status *status)
{
    struct dtn_call_record step;

    return status && stall_message(status)
        && status->call.kind == DTN_RECORD_SENT
        && ctx->describer->waits(ctx, &step) && step.group == 0
        && step.kind == DTN_RECORD_SENT;
}

static void stall_same(const struct dtensor_ctx *ctx, int rank,
                       const struct dtn_rank_status *status, char *buf,
                       size_t size)
{
    char why[320], call[DTN_RECORD_TEXT + 48];

    stall_apart(ctx, rank, why, sizeof why);
    snprintf(buf, size, "waits in %s%s%s%s", stall_message(status)
             ? stall_call(ctx, &status->call, call, sizeof call)
             : "the same call",
             stall_sends(ctx, status) ? ": if all send first, one has to "
             "receive first, or all use dtensor_group_begin()" : "",
             *why ? "; " : "", why);
}

static void stall_peer(const struct dtensor_ctx *ctx, int peer,
                       const struct dtn_rank_status *status, char *buf,
                       size_t size)
{
    struct dtn_call_record mine = { .kind = DTN_RECORD_NOTHING };
    char call[DTN_RECORD_TEXT + 48];
    bool same;

    stall_last(ctx, &mine);
    same = stall_alike(status, &mine);
    if (status->waits && same)
        stall_same(ctx, peer, status, buf, size);
    else if (status->waits)
        snprintf(buf, size, "waits in %s",
                 stall_call(ctx, &status->call, call, sizeof call));
    else if (same)
        snprintf(buf, size, "waits for nobody; its last call is the same");
    else if (status->call.fingerprint == 0)
        snprintf(buf, size, "is in no call and has made none");
    else
        snprintf(buf, size, "is in no call; its last is %s",
                 stall_call(ctx, &status->call, call, sizeof call));
}

char *dtn_stall_words(const struct dtensor_ctx *ctx, int peer, int64_t since_ns,
                      char *buf, size_t size)
{
    struct dtn_rank_status status;

    *buf = '\0';
    if (!ctx->describer || size < 8
        || !dtn_boot_status(ctx->boot, peer, since_ns, &status))
        return buf;
    memcpy(buf, " and ", 6);
    stall_peer(ctx, peer, &status, buf + 5, size - 5);
    return buf;
}

/* Log one line.  If the peer waits itself, it is not the cause, and the line
 * needs DTN_LOG=info, unless the two cannot connect or may both send first.
 * dtensor-run asks for these lines only.
 */
static void stall_log(struct dtensor_ctx *ctx, int peer, int64_t waited_ns,
                      const struct dtn_rank_status *status)
{
    struct dtn_call_record mine = { .kind = DTN_RECORD_NOTHING };
    char call[DTN_RECORD_TEXT + 48], name[320], time[32];
    char does[DTN_RECORD_TEXT + 340] = "does not say what it does", why[320];
    struct dtn_call_record step;

    stall_last(ctx, &mine);
    stall_step(ctx, &mine, &step);
    if (status)
        stall_peer(ctx, peer, status, does, sizeof does);
    dtn_log(&ctx->log, status && status->waits && stall_alike(status, &mine)
            && !stall_sends(ctx, status)
            && !*stall_apart(ctx, peer, why, sizeof why) ? DTN_LOG_INFO
                                                         : DTN_LOG_STALL,
            "stall: %s, has waited %s for %s, which %s",
            stall_call(ctx, &step, call, sizeof call),
            dtn_format_time(waited_ns, time, sizeof time),
            dtn_world_rank_name(&ctx->world, peer, name, sizeof name), does);
}

void dtn_stall_check(struct dtensor_ctx *ctx, int peer, int64_t since_ns)
{
    const uint64_t call = 2 * ctx->calls + (ctx->connecting_call != NULL) + 1;
    const int64_t now = dtn_now_ns();
    struct dtn_stall *stall = &ctx->stall;
    struct dtn_rank_status status;
    bool known;

    if (!ctx->describer || stall->logged == call
        || now - since_ns < ctx->world.cluster->transport.stall_after_ns)
        return;
    if (stall->peer != peer || stall->since_ns != since_ns) {
        *stall = (struct dtn_stall){ .peer = peer, .since_ns = since_ns,
                                     .asked_ns = now };
        dtn_boot_query(ctx->boot, peer);
    }
    known = dtn_boot_status(ctx->boot, peer, stall->asked_ns - ANSWER_NS,
                           &status);
    if (!known && now - stall->asked_ns < ANSWER_NS)
        return;
    stall->logged = call;
    stall_log(ctx, peer, now - since_ns, known ? &status : NULL);
}
