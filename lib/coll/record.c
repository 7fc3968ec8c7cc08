/* record.c - what this rank called, for the words about a mismatch
 *
 * A fingerprint does not show the values that users want to read, such as counts
 * and roots.  So each rank keeps those of its last 16 calls (struct dtn_said) and
 * sends them to the others after a mismatch.
 */
#include "coll/record.h"
#include "boot/boot.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>

struct dtn_said dtn_call_said(const struct dtn_group *group,
                              const struct dtn_call *call,
                              uint64_t fingerprint)
{
    struct dtn_said said = { .base = fingerprint, .group = group->hash,
        .fingerprint = dtn_fingerprint_numbered(fingerprint, call->number),
        .number = call->number, .n = (uint32_t)group->n, .other = call->root };

    if (dtn_call_private(call))
        return said;
    said.kind = call->counts ? DTN_SAID_LISTED : DTN_SAID_CALL;
    said.count = call->count;
    if (call->counts) {
        said.count = 0;
        for (int r = 0; r < call->n; r++)
            said.count += call->counts[r];
    }
    return said;
}

/* The recorded number is that of the last call over these ranks at the time; a
 * call that was started earlier has a lower one.
 */
static void said_number(struct dtn_said *said)
{
    const uint32_t noted = said->number;

    for (uint32_t i = 0; i < noted && i < 2 * DTN_SAID_MAX; i++)
        if (dtn_fingerprint_numbered(said->base, noted - i)
            == said->fingerprint) {
            said->number = noted - i;
            return;
        }
    said->number = 0;
}

/* This rank's call, i calls before the last one. */
static bool said_last(const struct dtensor_ctx *ctx, uint64_t i,
                      struct dtn_said *said)
{
    if (i >= DTN_SAID_MAX || i >= ctx->calls)
        return false;
    *said = ctx->said[(ctx->calls - i) % DTN_SAID_MAX];
    said_number(said);
    return true;
}

bool dtn_said_recall(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                     struct dtn_said *said)
{
    if (ctx->making && ctx->making->fingerprint == fingerprint) {
        *said = *ctx->making;
        return true;
    }
    for (uint64_t i = 0; said_last(ctx, i, said); i++)
        if (said->fingerprint == fingerprint)
            return true;
    return false;
}

bool dtn_said_numbered(const struct dtensor_ctx *ctx, uint64_t group,
                       uint32_t number, struct dtn_said *said)
{
    if (ctx->making && ctx->making->group == group
        && ctx->making->number == number) {
        *said = *ctx->making;
        return true;
    }
    for (uint64_t i = 0; said_last(ctx, i, said); i++)
        if (said->group == group && said->number == number)
            return true;
    return false;
}

/* "send of 4 f32 to rank 1", "all_to_all of f32, 4 from rank 0". */
static void edge_words(const struct dtn_said *said, enum dtn_coll coll,
                       const char *dtype, char *buf, size_t size)
{
    bool sent = said->kind == DTN_SAID_SENT;
    unsigned long long count = said->count;

    if (coll == DTN_COLL_PAIRS)
        snprintf(buf, size, "%s of %llu %s %s rank %d", sent ? "send" : "recv",
                 count, dtype, sent ? "to" : "from", (int)said->other);
    else
        snprintf(buf, size, "%s of %s, %llu %s rank %d", dtn_coll_name(coll),
                 dtype, count, sent ? "to" : "from", (int)said->other);
}

static void call_words(const struct dtn_said *said, enum dtn_coll coll,
                       const char *dtype, char *buf, size_t size)
{
    const struct dtn_shape *shape = &dtn_shapes[coll];
    const enum dtensor_redop redop = dtn_fingerprint_redop(said->fingerprint);
    char count[32] = "", root[32] = "";

    if (said->kind != DTN_SAID_NOTHING)
        snprintf(count, sizeof count, "%llu ", (unsigned long long)said->count);
    if (said->kind != DTN_SAID_NOTHING
        && (shape->in_at_root || shape->out_at_root))
        snprintf(root, sizeof root, " with root %d", (int)said->other);
    snprintf(buf, size, "%s of %s%s%s%s%s%s", dtn_coll_name(coll), count, dtype,
             shape->reduces ? " " : "", shape->reduces
             ? dtensor_redop_name(redop) : "", root,
             said->kind == DTN_SAID_LISTED ? " in all, a count for each rank"
                                           : "");
}

char *dtn_said_describe(const struct dtn_said *said, char *buf, size_t size)
{
    const enum dtn_coll coll = dtn_fingerprint_coll(said->fingerprint);
    const char *dtype = dtensor_dtype_name(dtn_fingerprint_dtype_of(
                                           said->fingerprint));

    if (said->text)
        snprintf(buf, size, "%s", said->text);
    else if (coll >= DTN_NCOLLS)
        snprintf(buf, size, "?");
    else if (coll == DTN_COLL_BARRIER)
        snprintf(buf, size, "barrier");
    else if (said->kind == DTN_SAID_SENT || said->kind == DTN_SAID_RECEIVED)
        edge_words(said, coll, dtype, buf, size);
    else
        call_words(said, coll, dtype, buf, size);
    return buf;
}
