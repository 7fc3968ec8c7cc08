/* start.c - collectives that are started, once or many times
 *
 * dtensor_call_start() takes the executable of the call from the context and
 * holds it until the request ends.  A persistent call has its own executable,
 * staging memory and request, all made at its creation: to start it a million
 * times allocates nothing (tests/coll/test_requests.c counts).
 */
#include "base/error.h"
#include "base/ranks.h"
#include "coll/exec.h"
#include "coll/exec/run.h"
#include "coll/execs.h"
#include "coll/request.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

struct dtensor_persistent {
    struct dtn_call_request coll;
    const struct dtn_group *group;     /* of a mesh, which lives as long as   */
                                       /* the context                         */
    struct dtn_cached_exec made;       /* its executable, not in the cache    */
};

int dtn_call_begin(struct dtensor_request *request, struct dtensor_error *err)
{
    struct dtn_call_request *coll = (struct dtn_call_request *)request;

    return dtn_exec_start(coll->exec, coll->in, coll->out, coll->fingerprint,
                          err);
}

int dtn_call_poll(struct dtensor_request *request, struct dtensor_error *err)
{
    return dtn_exec_poll(((struct dtn_call_request *)request)->exec, err);
}

int dtn_call_finish(struct dtensor_request *request, struct dtensor_error *err)
{
    return dtn_exec_finish(((struct dtn_call_request *)request)->exec, err);
}

static void coll_end(struct dtensor_request *request)
{
    struct dtn_call_request *coll = (struct dtn_call_request *)request;

    if (coll->cached)
        coll->cached->entry.holders--;
}

static const struct dtn_request_ops coll_work = {
    .begin = dtn_call_begin, .poll = dtn_call_poll, .finish = dtn_call_finish,
    .end = coll_end
};

int dtn_call_start(const struct dtn_group *group, struct dtn_call *call,
                   const void *in, void *out,
                   struct dtensor_request **requestp,
                   struct dtensor_error *err)
{
    struct dtn_cached_exec *cached;
    struct dtn_call_request *coll;
    struct dtensor_error why;
    int rc = dtn_run_alone(group->ctx, err);

    if (rc == 0)
        rc = dtn_call_find(group, call, in, out, &cached, err);
    if (rc != 0)
        return rc;
    coll = calloc(1, sizeof *coll);
    if (!coll)
        return dtn_call_give_up(group, dtn_fail_nomem(&why,
                                dtn_coll_name(call->coll), sizeof *coll),
                                &why, err);
    coll->request = (struct dtensor_request){ .work = &coll_work,
        .ctx = group->ctx, .ranks = call->coll == DTN_COLL_PAIRS
                                  ? dtn_exec_met(cached->exec)
                                  : *group->ranks };
    coll->cached = cached;
    coll->exec = cached->exec;
    coll->fingerprint = dtn_fingerprint_numbered(cached->fingerprint,
                                                 call->number);
    coll->in = in;
    coll->out = out;
    cached->entry.holders++;
    dtn_ctx_hold(group->ctx);
    *requestp = &coll->request;
    dtn_request_start(&coll->request);
    return 0;
}

/* Make the executable, and all that its starts need. */
static int persistent_ready(const struct dtn_group *group,
                            const struct dtn_call *call, const void *in,
                            void *out, struct dtn_cached_exec *made,
                            struct dtensor_error *err)
{
    int rc = dtn_execs_make(group, call, made, err);

    if (rc != 0)
        return rc;
    dtn_last_plan_is(&group->ctx->last_plan, made->text);
    rc = dtn_exec_connect(made->exec, err);
    if (rc == 0)
        rc = dtn_exec_repeats(made->exec, err);
    if (rc == 0)
        rc = dtn_exec_warm(made->exec, in, out, err);
    if (rc != 0) {
        dtn_last_plan_keep(&group->ctx->last_plan, made->text);
        dtn_exec_destroy(made->exec);
    }
    return rc;
}

int dtn_persistent_create(const struct dtn_group *group, struct dtn_call *call,
                          const void *in, void *out,
                          struct dtensor_persistent **persistentp,
                          struct dtensor_error *err)
{
    struct dtensor_persistent *persistent;
    struct dtn_call_request *coll;
    struct dtensor_error why;
    int rc = dtn_call_prepare(group, call, in, out, err);

    if (rc == 0)
        rc = dtn_ctx_ready(group->ctx, err);
    if (rc == 0)
        rc = dtn_requests_finish(group->ctx, err);
    if (rc != 0)
        return rc;
    persistent = calloc(1, sizeof *persistent);
    if (!persistent)
        return dtn_call_give_up(group, dtn_fail_nomem(&why,
                                dtn_coll_name(call->coll), sizeof *persistent),
                                &why, err);
    coll = &persistent->coll;
    rc = persistent_ready(group, call, in, out, &persistent->made, &why);
    if (rc != 0) {
        free(persistent);
        return dtn_call_give_up(group, rc, &why, err);
    }
    coll->request = (struct dtensor_request){ .work = &coll_work,
        .ctx = group->ctx, .ranks = *group->ranks,
        .kept = true, .done = true, .waited = true };
    coll->exec = persistent->made.exec;
    coll->in = in;
    coll->out = out;
    persistent->group = group;
    dtn_ctx_hold(group->ctx);
    *persistentp = persistent;
    return 0;
}

int dtensor_persistent_start(struct dtensor_persistent *persistent,
                             struct dtensor_request **requestp,
                             struct dtensor_error *err)
{
    struct dtensor_request *request = &persistent->coll.request;
    const struct dtn_group *group = persistent->group;
    uint32_t number = ++*group->calls;
    int rc = dtn_ctx_ready(request->ctx, err);

    if (rc != 0)
        return rc;
    if (!request->waited)                  /* even if it has ended: on all    */
                                           /* ranks                           */
        return dtn_fail(err, DTENSOR_EINVAL,
                        "persistent: it was started and not "
                        "waited for (dtensor_wait() for its last start first)");
    dtn_last_plan_is(&request->ctx->last_plan, persistent->made.text);
    persistent->coll.fingerprint =
        dtn_fingerprint_numbered(persistent->made.fingerprint, number);
    *requestp = request;
    dtn_request_start(request);
    return 0;
}

void dtensor_persistent_destroy(struct dtensor_persistent *persistent)
{
    struct dtensor_ctx *ctx;

    if (!persistent)
        return;
    ctx = persistent->coll.request.ctx;
    dtensor_wait(&persistent->coll.request, NULL);
    dtn_last_plan_keep(&ctx->last_plan, persistent->made.text);
    dtn_exec_destroy(persistent->made.exec);
    free(persistent);
    dtn_ctx_release(ctx);
}
