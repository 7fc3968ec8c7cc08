/* coll.c - one collective call, from its description to its end
 *
 * The arguments are checked, then the plan of the call is found and run.  A
 * table says, for each collective, how many blocks of `count` elements its
 * two buffers hold: all-gather over 4 ranks with count 10 reads 10 and writes
 * 40.
 */
#include "coll/plans.h"

#include <string.h>

/* Blocks of `count` in a buffer: none, one, or one for each rank. */
enum blocks { NONE, ONE, EACH };

static const struct {
    enum blocks in, out;
    bool reduces;
    bool in_place;
} shapes[DTN_NCOLLS] = {
    [DTN_COLL_ALLREDUCE]      = { ONE, ONE, true, true },
    [DTN_COLL_REDUCE]         = { ONE, ONE, true, true },
    [DTN_COLL_BROADCAST]      = { ONE, ONE, false, true },
    [DTN_COLL_ALLGATHER]      = { ONE, EACH, false, true },
    [DTN_COLL_REDUCE_SCATTER] = { EACH, ONE, true, true },
    [DTN_COLL_ALL_TO_ALL]     = { EACH, EACH, false, false },
    [DTN_COLL_BARRIER]        = { NONE, NONE, false, false },
};

static bool buffer_bytes(const struct dtn_call *call, enum blocks blocks,
                         size_t *bytes)
{
    size_t n = blocks == EACH ? (size_t)call->n : blocks == ONE ? 1 : 0;

    return dtn_mul_size(call->count, dtensor_dtype_size(call->dtype), bytes)
        && dtn_mul_size(*bytes, n, bytes);
}

/* May `out` stand there?  Apart from `in`, or in place as dtensor.h says. */
static bool buffers_fit(const struct dtn_call *call, const void *in,
                        size_t in_bytes, const void *out, size_t out_bytes)
{
    uintptr_t a = (uintptr_t)in, b = (uintptr_t)out, want_a = b, want_b = a;
    size_t own = call->count * dtensor_dtype_size(call->dtype)
               * (size_t)call->me;

    if (in_bytes == 0 || out_bytes == 0 || !out
        || a + in_bytes <= b || b + out_bytes <= a)
        return true;
    if (call->coll == DTN_COLL_ALLGATHER)
        want_a = b + own;
    if (call->coll == DTN_COLL_REDUCE_SCATTER)
        want_b = a + own;
    return shapes[call->coll].in_place && (call->coll == DTN_COLL_ALLGATHER
                                           ? a == want_a : b == want_b);
}

static int call_check(const struct dtn_group *group,
                      const struct dtn_call *call, const void *in,
                      const void *out, struct dtensor_error *err)
{
    const char *name = dtn_coll_name(call->coll);
    size_t in_bytes, out_bytes;
    bool wants_out = call->coll != DTN_COLL_REDUCE || call->root == call->me;

    if (call->me < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: rank %d is not in this mesh "
                        "of %d ranks (only its members call)", name,
                        group->ctx->self.rank, group->n);
    if (!dtn_dtype_ok(call->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: there is no dtype %d", name,
                        (int)call->dtype);
    if (shapes[call->coll].reduces && !dtn_redop_ok(call->redop, call->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no reduction %s for %s "
                        "(bit operations need integers)", name,
                        dtensor_redop_name(call->redop),
                        dtensor_dtype_name(call->dtype));
    if (call->root < 0 || call->root >= call->n)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: root %d is not a position "
                        "of the mesh; expected 0 to %d", name, call->root,
                        call->n - 1);
    if (!buffer_bytes(call, shapes[call->coll].in, &in_bytes)
        || !buffer_bytes(call, shapes[call->coll].out, &out_bytes))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %zu elements of %s for %d "
                        "ranks overflow memory", name, call->count,
                        dtensor_dtype_name(call->dtype), call->n);
    if ((in_bytes && !in) || (out_bytes && !out && wants_out))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: a buffer is NULL, but %zu "
                        "elements were asked for", name, call->count);
    if (!buffers_fit(call, in, in_bytes, out, out_bytes))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: in and out overlap (they "
                        "may only be in place as dtensor_%s(3) says)", name,
                        name);
    return 0;
}

/* No plan could be made.  The others may have made theirs and wait: tell them.
 */
static int call_give_up(const struct dtn_group *group, int rc,
                        const struct dtensor_error *why,
                        struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = group->ctx;

    if (ctx->failure.code == 0 && group->n > 1)
        dtn_poison(ctx, rc, ctx->self.rank, "%s", why->text);
    if (err)
        *err = *why;
    return rc;
}

int dtn_call_run(const struct dtn_group *group, struct dtn_call *call,
                 const void *in, void *out, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = group->ctx;
    const struct dtn_cached_plan *cached;
    struct dtensor_error why;
    int rc;

    call->n = group->n;
    call->me = group->me;
    rc = call_check(group, call, in, out, err);
    if (rc == 0)
        rc = dtn_ctx_check(ctx, err);
    if (rc != 0)
        return rc;
    rc = dtn_plans_get(group, call, &cached, &why);
    if (rc != 0)
        return call_give_up(group, rc, &why, err);
    memcpy(ctx->plan_text, cached->text, sizeof cached->text);
    return dtn_plan_run(cached->plan, in, out, cached->fingerprint, err);
}
