/* fingerprint.c - what a rank is doing, in 32 bits
 *
 * Four bits name the collective, five the dtype and four the reduction, so that
 * both sides of a mismatch can be worded; nineteen hold a hash of the rest
 * (counts, root, ranks).  Two calls that differ only there collide once in half
 * a million.  What the hash hides, the values that people want to read, each rank
 * keeps of its last 16 calls (struct dtn_said), and tells when asked.
 */
#include "coll/coll.h"

_Static_assert(DTN_NCOLLS <= 16 && DTENSOR_NDTYPES <= 32
               && DTN_NREDOPS <= 16, "each fits its bits");

uint32_t dtn_fingerprint(int coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint32_t hash)
{
    return (uint32_t)coll << 28 | (uint32_t)dtype << 23 | (uint32_t)dtn_redop_kind(redop) << 19
         | ((hash ^ hash >> 19) & 0x7ffff);
}

/* The odd constant, 2^64 over the golden ratio, spreads small numbers. */
uint32_t dtn_fingerprint_mix(uint32_t fingerprint, size_t more)
{
    return fingerprint ^ (uint32_t)(((uint64_t)more
                                     * UINT64_C(0x9e3779b97f4a7c15)) >> 45);
}

size_t dtn_fingerprint_size(uint32_t fingerprint)
{
    const size_t size = dtensor_dtype_size((enum dtensor_dtype)
                                           (fingerprint >> 23 & 31));

    return size > 0 ? size : 1;
}

/* ---------------------------------------------------------------- words --- */

struct dtn_said dtn_call_said(const struct dtn_group *group,
                              const struct dtn_call *call,
                              uint32_t fingerprint)
{
    struct dtn_said said = { .base = fingerprint, .group = group->hash,
        .fingerprint = dtn_fingerprint_mix(fingerprint, call->number),
        .number = call->number, .other = call->root };

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

/* Of the last calls of this rank the one with that fingerprint.  The number that
 * was noted is that of the last call over these ranks at the time; one that had
 * been started before has a lower one.
 */
static bool said_recall(const struct dtensor_ctx *ctx, uint32_t fingerprint,
                        struct dtn_said *said)
{
    uint64_t i = 0;

    if (ctx->making && ctx->making->fingerprint == fingerprint) {
        *said = *ctx->making;
        return true;
    }
    while (i < DTN_SAID_MAX && ctx->said[(ctx->calls - i) % DTN_SAID_MAX]
                                   .fingerprint != fingerprint)
        i++;
    if (i == DTN_SAID_MAX)
        return false;
    *said = ctx->said[(ctx->calls - i) % DTN_SAID_MAX];
    while (said->number > 0 && i < 2 * DTN_SAID_MAX
           && dtn_fingerprint_mix(said->base, said->number) != fingerprint) {
        said->number--;
        i++;
    }
    if (dtn_fingerprint_mix(said->base, said->number) != fingerprint)
        said->number = 0;
    return true;
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
    const uint32_t redop = said->fingerprint >> 19 & 15;
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

static char *said_describe(const struct dtn_said *said, char *buf, size_t size)
{
    const enum dtn_coll coll = (enum dtn_coll)(said->fingerprint >> 28);
    const char *dtype = dtensor_dtype_name((enum dtensor_dtype)
                                           (said->fingerprint >> 23 & 31));

    if (coll >= DTN_NCOLLS)
        snprintf(buf, size, "?");
    else if (coll == DTN_COLL_BARRIER)
        snprintf(buf, size, "barrier");
    else if (said->kind == DTN_SAID_SENT || said->kind == DTN_SAID_RECEIVED)
        edge_words(said, coll, dtype, buf, size);
    else
        call_words(said, coll, dtype, buf, size);
    return buf;
}

const struct dtn_coll_words dtn_coll_words = { said_describe, said_recall };
