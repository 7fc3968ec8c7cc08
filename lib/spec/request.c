/* request.c - redistributes that are started now and waited for later
 *
 * Signals between two ranks arrive in the order they were sent, so what is under
 * way must be one thing at a time: requests stand in a queue in the order they
 * were started, the first is worked on whenever anyone of them is tested, and any
 * other collective call finishes them all before it begins.  While a rank computes
 * and tests now and then, peers put into its memory or load from it; of a turn
 * over shared memory by 4 ranks nothing waits for anybody but READY and DONE.
 */
#include "spec/redist.h"

#include <stdlib.h>
#include <string.h>

struct dtensor_request {
    struct dtn_pending pending;        /* first: the head is ctx->pending     */
    struct dtensor_request *next;      /* started after it                    */
    struct dtensor_ctx *ctx;
    struct dtensor_plan *plan;
    const void *in;                    /* of the step                         */
    void *to;
    void *out;                         /* of the last                         */
    int step;
    bool running;                      /* the step has been started           */
    bool done;
    int rc;
    struct dtensor_error err;          /* when rc < 0                         */
};

/* ---------------------------------------------------------------- working --- */

/* Take the step up where it was left, or start it. */
static int request_step(struct dtensor_request *request,
                        struct dtensor_error *err)
{
    struct dtn_redist_step *step = &request->plan->step[request->step];
    int rc = 0;

    if (!request->running) {
        request->to = dtn_redist_target(request->plan, request->step,
                                        request->out);
        rc = dtn_plan_start(step->plan, request->in, request->to,
                            step->fingerprint, err);
        request->running = rc == 0;
    }
    if (rc == 0)
        rc = dtn_plan_poll(step->plan, err);
    if (rc != 0)
        return rc;
    dtn_phase_finish(&step->phase, request->to, step->count);
    request->running = false;
    request->in = request->to;
    request->step++;
    return 0;
}

/* Work on the head of the queue; EAGAIN: until a peer has done its part. */
static int request_advance(struct dtensor_ctx *ctx)
{
    struct dtensor_request *head = (struct dtensor_request *)ctx->pending;
    int rc = dtn_redist_scratch(head->plan, &head->err);

    while (rc == 0 && head->step < head->plan->nsteps) {
        if (dtn_redist_idle(&head->plan->step[head->step]))
            head->step++;
        else
            rc = request_step(head, &head->err);
    }
    if (rc == DTENSOR_EAGAIN)
        return rc;
    head->rc = rc;
    head->done = true;
    ctx->pending = head->next ? &head->next->pending : NULL;
    memcpy(ctx->plan_text, head->plan->text, sizeof head->plan->text);
    return 0;
}

/* Until this one is done, and so all that were started before it. */
static void request_finish(struct dtensor_request *request)
{
    struct dtensor_ctx *ctx = request->ctx;
    struct dtn_wait wait;

    dtn_wait_init(&wait, ctx->cluster->transport.op_timeout_ns, ctx->crowded);
    while (!request->done)
        if (request_advance(ctx) == DTENSOR_EAGAIN)
            dtn_wait_pause(&wait);     /* dtn_poll() looks at the clock       */
}

static int request_finish_pending(struct dtn_pending *pending,
                                  struct dtensor_error *err)
{
    struct dtensor_request *request = (struct dtensor_request *)pending;

    request_finish(request);
    if (request->rc != 0 && err)
        *err = request->err;
    return request->rc;
}

/* --------------------------------------------------------------- starting --- */

static void request_queue(struct dtensor_request *request)
{
    struct dtensor_request *last =
        (struct dtensor_request *)request->ctx->pending;

    if (!last) {
        request->ctx->pending = &request->pending;
        return;
    }
    while (last->next)
        last = last->next;
    last->next = request;
}

static int request_new(struct dtensor_plan *plan, const void *in, void *out,
                       struct dtensor_request **requestp,
                       struct dtensor_error *err)
{
    struct dtensor_request *request = calloc(1, sizeof *request);

    if (!request)
        return dtn_fail_nomem(err, "plan", sizeof *request);
    request->pending.finish = request_finish_pending;
    request->ctx = plan->dst.mesh->ctx;
    request->plan = plan;
    request->in = in;
    request->out = out;
    *requestp = request;
    return 0;
}

int dtn_request_start(struct dtensor_plan *plan,
                      const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, const void *in,
                      void *out, struct dtensor_request **requestp,
                      struct dtensor_error *err)
{
    struct dtensor_request *request = NULL;
    struct dtensor_error why;
    int rc = dtn_redist_fits(plan, src, dst, err);

    if (rc == 0)
        rc = dtn_ctx_check(dst->mesh->ctx, err);
    if (rc != 0)
        return rc;
    rc = dtn_redist_calls(plan, &why);
    if (rc == 0)
        rc = request_new(plan, in, out, &request, &why);
    if (rc != 0)
        return dtn_redist_give_up(src, dst, rc, &why, err);
    *requestp = request;
    if (plan->all->group.me < 0 || plan->nsteps == 0) {
        if (plan->nsteps == 0 && plan->out_bytes > 0 && in != out)
            memcpy(out, in, plan->out_bytes);
        request->done = true;
        return 0;
    }
    request_queue(request);
    if (request->ctx->pending == &request->pending)
        request_advance(request->ctx);
    return 0;
}

/* ----------------------------------------------------------------- asking --- */

int dtensor_test(struct dtensor_request *request, int *donep,
                 struct dtensor_error *err)
{
    while (!request->done && request_advance(request->ctx) == 0)
        ;
    if (request->rc != 0 && err)
        *err = request->err;
    if (request->rc == 0)
        *donep = request->done;
    return request->rc;
}

int dtensor_wait(struct dtensor_request *request, struct dtensor_error *err)
{
    int rc;

    if (!request)
        return 0;
    request_finish(request);
    rc = request->rc;
    if (rc != 0 && err)
        *err = request->err;
    free(request);
    return rc;
}
