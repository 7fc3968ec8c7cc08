/* fingerprint.c - a call of a rank in 64 bits
 *
 * Four bits name the collective, five the dtype and four the reduction, so that
 * both sides of a mismatch can be worded; 51 hold a hash of everything else:
 * counts, root, ranks, the number of the call, the size of a message, both
 * specs of a redistribute.  Two calls that differ only there are taken for the
 * same once in 2*10^15 times.  The hash does not show the values that users
 * want to read.  So each rank keeps the values of its last 16 calls (struct
 * dtn_said) and sends them to the others after a mismatch.
 */
#include "coll/coll.h"

enum { REDOP_AT = 51, DTYPE_AT = 55, COLL_AT = 60 };
#define HASH_MASK ((UINT64_C(1) << REDOP_AT) - 1)

_Static_assert(DTN_NCOLLS <= 16 && DTENSOR_NDTYPES <= 32
               && DTN_NREDOPS <= 16, "each fits its bits");

uint64_t dtn_fingerprint(enum dtn_coll coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint64_t hash)
{
    return (uint64_t)coll << COLL_AT | (uint64_t)dtype << DTYPE_AT
         | (uint64_t)dtn_redop_kind(redop) << REDOP_AT
         | (dtn_fingerprint_hash(DTN_MIX_CALL, hash) & HASH_MASK);
}

uint64_t dtn_fingerprint_dtype(enum dtensor_dtype dtype)
{
    return (uint64_t)dtype << DTYPE_AT;
}

enum dtn_coll dtn_fingerprint_coll(uint64_t fingerprint)
{
    return (enum dtn_coll)(fingerprint >> COLL_AT);
}

static enum dtensor_dtype fingerprint_dtype(uint64_t fingerprint)
{
    return (enum dtensor_dtype)(fingerprint >> DTYPE_AT & 31);
}

size_t dtn_fingerprint_size(uint64_t fingerprint)
{
    const size_t size = dtensor_dtype_size(fingerprint_dtype(fingerprint));

    return size > 0 ? size : 1;
}

/* ---------------------------------------------------------------- words --- */

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
    const int redop = (int)(said->fingerprint >> REDOP_AT & 15);
    char count[32] = "", root[32] = "";

    if (said->kind != DTN_SAID_NOTHING)
        snprintf(count, sizeof count, "%llu ", (unsigned long long)said->count);
    if (said->kind != DTN_SAID_NOTHING
        && (shape->in_at_root || shape->out_at_root))
        snprintf(root, sizeof root, " with root %d", (int)said->other);
    snprintf(buf, size, "%s of %s%s%s%s%s%s", dtn_coll_name(coll), count, dtype,
             shape->reduces ? " " : "", shape->reduces
             ? dtensor_redop_name((enum dtensor_redop)redop) : "", root,
             said->kind == DTN_SAID_LISTED ? " in all, a count for each rank"
                                           : "");
}

char *dtn_said_describe(const struct dtn_said *said, char *buf, size_t size)
{
    const enum dtn_coll coll = dtn_fingerprint_coll(said->fingerprint);
    const char *dtype = dtensor_dtype_name(fingerprint_dtype(
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
