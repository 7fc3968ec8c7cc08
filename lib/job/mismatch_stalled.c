/* mismatch_stalled.c - different calls of ranks that wait
 *
 * Most mismatches show in a signal with the wrong fingerprint (mismatch.c).
 * Some never do: if rank 1 calls broadcast of root 0, and rank 0 broadcast of
 * root 1, each waits and nothing arrives.  So a rank that has waited long sends
 * its call over the tree, and compares it with those of others.
 */
#include "boot/boot.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* A record of a message or a block from or to this rank.  Does it differ from
 * what this rank expects of it, in the same call?  Or does this rank wait for
 * that peer, in a call that is no message?
 */
static bool stalled_edge(const struct dtensor_ctx *ctx,
                         const struct dtn_peer_call_report *report,
                         const struct dtn_call_record *last,
                         struct dtn_call_record *mine)
{
    if (report->record.kind < DTN_RECORD_SENT
        || report->record.kind == DTN_RECORD_JUDGED
        || report->record.other != ctx->world.rank)
        return false;
    if (ctx->describer->edge(ctx, report->rank,
                             report->record.kind == DTN_RECORD_SENT, mine))
        return mine->group == report->record.group
            && mine->number == report->record.number
            && mine->fingerprint != report->record.fingerprint;
    *mine = *last;
    return report->record.group == 0 && last->group != 0 && last->number > 0;
}

static bool stalled_call(const struct dtn_peer_call_report *report,
                         const struct dtn_call_record *mine)
{
    return report->record.kind < DTN_RECORD_SENT && mine->number > 0
        && report->record.group == mine->group
        && report->record.number == mine->number
        && report->record.fingerprint != mine->fingerprint;
}

/* Compare this rank's call with those of the others, then send it.  This also
 * finds a send that is too long for a signal and meets a shorter recv: the one
 * waits for READY, the other for data in a signal.
 */
static int stalled_judge(struct dtensor_ctx *ctx)
{
    const struct dtn_call_record *last =
        &ctx->recent_calls[ctx->calls % DTN_RECORD_MAX];
    const struct dtn_peer_call_report *report;
    struct dtn_call_record call, edge;

    if (ctx->connecting_call)
        last = ctx->connecting_call;
    if (!ctx->describer
        || !ctx->describer->recall(ctx, last->fingerprint, &call))
        return 0;
    for (uint32_t i = 0; (report = dtn_boot_call_report(ctx->boot, i)); i++) {
        if (report->rank == ctx->world.rank)
            continue;
        if (stalled_edge(ctx, report, &call, &edge)) {
            dtn_boot_report_call(ctx->boot, ctx->world.rank, &edge);
            return dtn_poison_mismatch(ctx, &(struct dtn_mismatch){
                .rank = report->rank, .called = report->record.fingerprint,
                .witness = ctx->world.rank, .expected = edge.fingerprint });
        }
        if (stalled_call(report, &call))
            return dtn_poison_mismatch(ctx, &(struct dtn_mismatch){
                .rank = report->rank, .called = report->record.fingerprint,
                .witness = ctx->world.rank, .expected = call.fingerprint });
    }
    if (call.number > 0)
        dtn_boot_report_call(ctx->boot, ctx->world.rank, &call);
    if (ctx->describer->waits(ctx, &edge))
        dtn_boot_report_call(ctx->boot, ctx->world.rank, &edge);
    return 0;
}

int dtn_mismatch_stalled(struct dtensor_ctx *ctx)
{
    int rc;

    dtn_boot_hold(ctx->boot);
    rc = stalled_judge(ctx);
    dtn_boot_release(ctx->boot);
    return rc;
}
