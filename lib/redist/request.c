/* request.c - redistributes that are started now and awaited later
 *
 * A redistribute of several steps runs one schedule after another.  Results
 * between the steps are in scratch memory that the context has only once.  So a
 * second redistribute that needs it begins when the first has ended.  While a
 * rank computes and calls dtensor_test() now and then, peers put into its
 * memory or load from it.  Over shared memory a rank waits for two signals
 * only, READY and DONE.
 */
#include "base/error.h"
#include "coll/exec.h"
#include "coll/request.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "job/watcher.h"
#include "mesh/mesh.h"
#include "redist/fail.h"
#include "redist/plan.h"
#include "redist/redist.h"
#include "redist/run.h"
#include "redist/scratch.h"
#include "sched/fingerprint.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct redist_request {
    struct dtensor_request request;
    struct dtensor_plan *plan;
    const void *in;                    /* of the step                         */
    void *to;
    void *out;                         /* of the last                         */
    int step;
    uint32_t number;                   /* of the redistribute                 */
    bool running;                      /* the step has been started           */
    struct dtn_flight flight;          /* for who counts                      */
};

static int redist_begin(struct dtensor_request *request,
                        struct dtensor_error *err)
{
    struct redist_request *r = (struct redist_request *)request;

    return dtn_redist_hold(r->plan, request, err);
}

/* Continue the step, or start it. */
static int redist_step(struct redist_request *r, struct dtensor_error *err)
{
    struct dtn_redist_step *step = &r->plan->step[r->step];
    int rc = 0;

    if (!r->running) {
        r->to = dtn_redist_target(r->plan, r->step, r->out);
        rc = dtn_exec_start(step->exec, r->in, r->to, dtn_fingerprint_numbered(
                            step->fingerprint, r->number), err);
        r->running = rc == 0;
    }
    if (rc == 0)
        rc = dtn_exec_poll(step->exec, err);
    if (rc != 0)
        return rc;
    r->running = false;
    rc = dtn_phase_finish(&step->phase, r->to, step->count, err);
    if (rc != 0)
        return rc;
    r->in = r->to;
    r->step++;
    return 0;
}

static int redist_poll(struct dtensor_request *request,
                       struct dtensor_error *err)
{
    struct redist_request *r = (struct redist_request *)request;
    struct dtn_watcher *watcher = request->ctx->watcher;
    int rc = 0;

    if (watcher)
        dtn_redist_tell(r->plan, true);
    while (rc == 0 && r->step < r->plan->nsteps) {
        if (dtn_redist_idle(&r->plan->step[r->step]))
            r->step++;
        else
            rc = redist_step(r, err);
    }
    if (watcher)
        watcher->end(watcher);
    return rc;
}

static void redist_end(struct dtensor_request *request)
{
    struct redist_request *r = (struct redist_request *)request;

    dtn_watch_landed(request->ctx, &r->flight);
    dtn_redist_release(request->ctx, request);
    dtn_last_plan_is(&request->ctx->last_plan, r->plan->text);
}

static const struct dtn_request_ops redist_work = {
    .begin = redist_begin, .poll = redist_poll, .end = redist_end
};

static int redist_request_new(struct dtensor_plan *plan, const void *in,
                              void *out, struct dtensor_request **requestp,
                              struct dtensor_error *err)
{
    const struct dtn_group *group = &plan->all->group;
    struct redist_request *r = calloc(1, sizeof *r);

    if (!r)
        return dtn_fail_nomem(err, "plan", sizeof *r);
    r->request = (struct dtensor_request){ .work = &redist_work,
        .ctx = plan->dst.mesh->ctx, .ranks = *group->ranks };
    dtn_ctx_hold(r->request.ctx);
    r->plan = plan;
    r->number = dtn_redist_number(plan);
    r->in = in;
    r->out = out;
    *requestp = &r->request;
    return 0;
}

int dtn_request_redist(struct dtensor_plan *plan,
                       const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, const void *in,
                       void *out, struct dtensor_request **requestp,
                       struct dtensor_error *err)
{
    struct dtensor_request *request = NULL;
    struct dtensor_error why;
    int rc = dtn_redist_fits(plan, src, dst, err);

    if (rc == 0)
        rc = dtn_ctx_ready(dst->mesh->ctx, err);
    if (rc != 0)
        return rc;
    rc = dtn_redist_calls(plan, &why);
    if (rc == 0 && plan->nsteps == 0 && plan->out_bytes > 0 && in != out)
        rc = dtn_buffer_copy(dst->mesh->ctx, out, in, plan->out_bytes, &why);
    if (rc == 0)
        rc = redist_request_new(plan, in, out, &request, &why);
    if (rc != 0)
        return dtn_redist_give_up(src, dst, rc, &why, err);
    *requestp = request;
    if (request->ctx->watcher && plan->all->group.me >= 0) {
        dtn_redist_tell(plan, false);
        request->ctx->watcher->end(request->ctx->watcher);
        ((struct redist_request *)request)->flight =
            request->ctx->watcher->flight;
    }
    request->done = plan->all->group.me < 0 || plan->nsteps == 0;
    if (!request->done)
        dtn_request_start(request);
    return 0;
}
