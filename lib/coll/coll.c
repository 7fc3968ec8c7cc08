/* coll.c - one collective call, from its description to its end
 *
 * The arguments are checked, then the executable of the call is found and run.
 * The first of a thousand equal calls makes the executable, in about 20 us.
 * The others find it in 20 ns; what is part of its key needs no second check.
 */
#include "base/error.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "coll/redops.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "sched/call.h"
#include "dtensor.h"

int dtn_call_check_buffers(const struct dtn_group *group,
                           const struct dtn_call *call, const void *in,
                           const void *out, struct dtensor_error *err)
{
    const char *name = dtn_coll_name(call->coll);
    int rc;

    dtn_ctx_look_out(group->ctx);
    if (!group->ctx->asks)
        return 0;
    rc = dtn_ctx_check_buffer(group->ctx, name, in, 1, err);
    return rc == 0 ? dtn_ctx_check_buffer(group->ctx, name, out, 1, err) : rc;
}

static void call_place(const struct dtn_group *group, struct dtn_call *call)
{
    call->n = group->n;
    call->me = group->me;
    call->on_device = group->on_device || group->ctx->all_on_device;
}

int dtn_call_prepare(const struct dtn_group *group, struct dtn_call *call,
                     const void *in, const void *out,
                     struct dtensor_error *err)
{
    int rc;

    call_place(group, call);
    rc = dtn_call_check(call, group->ctx->world.rank, in, out, err);
    if (rc == 0)
        rc = dtn_call_check_buffers(group, call, in, out, err);
    return rc == 0 ? dtn_call_resolve(group->ctx, call, err) : rc;
}

int dtn_call_find(const struct dtn_group *group, struct dtn_call *call,
                  const void *in, void *out, struct dtn_cached_exec **cachedp,
                  struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = group->ctx;
    struct dtensor_error why;
    int rc = ctx->asks ? dtn_call_check_buffers(group, call, in, out, err) : 0;

    if (rc != 0)
        return rc;
    call_place(group, call);
    call->ordered = ctx->world.cluster->repro;
    *cachedp = dtn_execs_again(group, call, in, out);
    if (!*cachedp) {
        rc = dtn_call_prepare(group, call, in, out, err);
        if (rc == 0)
            rc = dtn_ctx_ready(ctx, err);
        if (rc != 0)
            return rc;
        rc = dtn_execs_get(group, call, cachedp, &why);
        if (rc != 0)
            return dtn_call_give_up(group, rc, &why, err);
    }
    dtn_last_plan_is(&ctx->last_plan, (*cachedp)->text);
    return 0;
}

int dtn_call_run(const struct dtn_group *group, struct dtn_call *call,
                 const void *in, void *out, struct dtensor_error *err)
{
    struct dtn_cached_exec *cached;
    int rc = dtn_call_find(group, call, in, out, &cached, err);

    if (rc != 0)
        return rc;
    if (call->text)
        return dtn_exec_run_step(cached->exec, in, out,
                                 cached->fingerprint ^ call->plan,
                                 call->number, call->text, err);
    return dtn_cached_run(cached, in, out, call->number, err);
}
