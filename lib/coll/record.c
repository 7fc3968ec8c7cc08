/* record.c - the last calls of this rank, for the report of a mismatch
 *
 * A fingerprint does not show the values that users want to read, such as
 * counts and roots.  So each rank keeps those of its last 16 calls, and sends
 * them to the others after a mismatch.
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

struct dtn_call_record dtn_call_record_of(const struct dtn_group *group,
                                          const struct dtn_call *call,
                                          uint64_t fingerprint)
{
    struct dtn_call_record record = { .base = fingerprint, .group = group->hash,
        .fingerprint = dtn_fingerprint_numbered(fingerprint, call->number),
        .number = call->number, .n = (uint32_t)group->n, .other = call->root };

    if (dtn_call_private(call))
        return record;
    record.kind = call->counts ? DTN_RECORD_LISTED : DTN_RECORD_CALL;
    record.count = call->count;
    if (call->counts) {
        record.count = 0;
        for (int r = 0; r < call->n; r++)
            record.count += call->counts[r];
    }
    return record;
}

/* The recorded number is that of the last call over these ranks at that time; a
 * call that was started earlier has a lower number.
 */
static void said_number(struct dtn_call_record *record)
{
    const uint32_t noted = record->number;

    for (uint32_t i = 0; i < noted && i < 2 * DTN_RECORD_MAX; i++)
        if (dtn_fingerprint_numbered(record->base, noted - i)
            == record->fingerprint) {
            record->number = noted - i;
            return;
        }
    record->number = 0;
}

/* This rank's call, i calls before the last one. */
static bool said_last(const struct dtensor_ctx *ctx, uint64_t i,
                      struct dtn_call_record *record)
{
    if (i >= DTN_RECORD_MAX || i >= ctx->calls)
        return false;
    *record = ctx->recent_calls[(ctx->calls - i) % DTN_RECORD_MAX];
    said_number(record);
    return true;
}

bool dtn_record_recall(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                       struct dtn_call_record *record)
{
    if (ctx->connecting_call
        && ctx->connecting_call->fingerprint == fingerprint) {
        *record = *ctx->connecting_call;
        return true;
    }
    for (uint64_t i = 0; said_last(ctx, i, record); i++)
        if (record->fingerprint == fingerprint)
            return true;
    return false;
}

void dtn_record_forget(struct dtensor_ctx *ctx, const char *text)
{
    for (int i = 0; i < DTN_RECORD_MAX; i++)
        if (ctx->recent_calls[i].text == text)
            ctx->recent_calls[i].text = NULL;
}

bool dtn_record_numbered(const struct dtensor_ctx *ctx, uint64_t group,
                         uint32_t number, struct dtn_call_record *record)
{
    if (ctx->connecting_call && ctx->connecting_call->group == group
        && ctx->connecting_call->number == number) {
        *record = *ctx->connecting_call;
        return true;
    }
    for (uint64_t i = 0; said_last(ctx, i, record); i++)
        if (record->group == group && record->number == number)
            return true;
    return false;
}

/* "send of 4 f32 to rank 1", "all_to_allv of f32, 4 from rank 0", or "... 4 to
 * and 5 from rank 0".
 */
static void edge_words(const struct dtn_call_record *record, enum dtn_coll coll,
                       const char *dtype, char *buf, size_t size)
{
    bool sent = record->kind == DTN_RECORD_SENT;
    unsigned long long count = record->count;

    if (coll == DTN_COLL_PAIRS)
        snprintf(buf, size, "%s of %llu %s %s rank %d", sent ? "send" : "recv",
                 count, dtype, sent ? "to" : "from", (int)record->other);
    else if (record->kind == DTN_RECORD_BLOCKS)
        snprintf(buf, size, "%sv of %s, %llu to and %llu from rank %d",
                 dtn_coll_name(coll), dtype, count,
                 (unsigned long long)record->back, (int)record->other);
    else
        snprintf(buf, size, "%sv of %s, %llu %s rank %d", dtn_coll_name(coll),
                 dtype, count, sent ? "to" : "from", (int)record->other);
}

static void call_words(const struct dtn_call_record *record, enum dtn_coll coll,
                       const char *dtype, char *buf, size_t size)
{
    const struct dtn_coll_info *shape = &dtn_coll_infos[coll];
    const enum dtensor_redop redop = dtn_fingerprint_redop(record->fingerprint);
    char count[32] = "", root[32] = "";

    if (record->kind != DTN_RECORD_NOTHING)
        snprintf(count, sizeof count, "%llu ",
                 (unsigned long long)record->count);
    if (record->kind != DTN_RECORD_NOTHING
        && (shape->in_at_root || shape->out_at_root))
        snprintf(root, sizeof root, " with root %d", (int)record->other);
    snprintf(buf, size, "%s of %s%s%s%s%s%s", dtn_coll_name(coll), count, dtype,
             shape->reduces ? " " : "",
             shape->reduces ? dtensor_redop_name(redop) : "", root,
             record->kind == DTN_RECORD_LISTED
                 ? " in all, a count for each rank"
                 : "");
}

char *dtn_record_describe(const struct dtn_call_record *record, char *buf,
                          size_t size)
{
    const enum dtn_coll coll = dtn_fingerprint_coll(record->fingerprint);
    const char *dtype = dtensor_dtype_name(dtn_fingerprint_dtype_of(
                                           record->fingerprint));

    if (record->text)
        snprintf(buf, size, "%s", record->text);
    else if (coll >= DTN_NCOLLS)
        snprintf(buf, size, "?");
    else if (coll == DTN_COLL_BARRIER || (coll == DTN_COLL_PAIRS
                                          && record->kind < DTN_RECORD_SENT))
        snprintf(buf, size, "%s", dtn_coll_name(coll));
    else if (record->kind >= DTN_RECORD_SENT)
        edge_words(record, coll, dtype, buf, size);
    else
        call_words(record, coll, dtype, buf, size);
    return buf;
}
