/* request.c - work that is started now and waited for later
 *
 * Requests stand in a queue in the order they were started.  Signals between
 * two ranks have no order but that in which they were sent, so of two requests
 * that name the same peer the second begins when the first is over; those that
 * share none are under way together: an allreduce over "dp" and one over "tp"
 * of a 2 x 2 mesh, whose ranks have nobody in common but themselves.
 *
 * Requests begin in the order of the queue, never past one that cannot yet.
 * So where each rank starts its requests in an order that all agree on, the
 * first of all that is not over can begin on every rank: nothing ever waits in
 * a circle, whatever else a request needs before it begins (a bounce buffer,
 * scratch), for those that have it are before it in the queue.
 */
#include "coll/request.h"
#include "base/wait.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- working --- */

/* Is no request under way that shares a peer with this one? */
static bool request_apart(const struct dtensor_request *request)
{
    const struct dtensor_ctx *ctx = request->ctx;
    const struct dtn_coll_state *coll = dtn_coll_of(ctx);

    for (int i = 0; i < request->nranks; i++)
        if (request->ranks[i] != ctx->world.rank
            && coll->peers[request->ranks[i]].busy)
            return false;
    return true;
}

static void request_occupy(const struct dtensor_request *request, bool busy)
{
    struct dtn_coll_state *coll = dtn_coll_of(request->ctx);

    for (int i = 0; i < request->nranks; i++)
        coll->peers[request->ranks[i]].busy = busy;
}

static void request_done(struct dtensor_request *request, int rc)
{
    if (request->begun)
        request_occupy(request, false);
    request->rc = rc;
    request->done = true;
    if (request->work->end)
        request->work->end(request);
}

/* Do what can be done now: true when it is over. */
static bool request_advance(struct dtensor_request *request)
{
    int rc = dtn_ctx_check(request->ctx, &request->err);

    if (rc == 0 && !request->begun) {
        if (!request_apart(request))
            return false;
        rc = request->work->begin(request, &request->err);
        if (rc == DTENSOR_EAGAIN)
            return false;
        request->begun = true;
        request_occupy(request, true);
    }
    if (rc == 0)
        rc = request->work->poll(request, &request->err);
    if (rc == DTENSOR_EAGAIN)
        return false;
    request_done(request, rc);
    return true;
}

/* Go through the queue once; true when something in it came to its end. */
static bool queue_advance(struct dtensor_ctx *ctx)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);
    struct dtensor_request **link = &coll->pending, *request, *before = NULL;
    bool ended = false;

    while ((request = *link)) {
        if (request_advance(request)) {
            *link = request->next;
            if (request == coll->pending_last)
                coll->pending_last = before;
            ended = true;
        } else if (request->begun) {
            before = request;
            link = &request->next;
        } else {
            break;
        }
    }
    return ended;
}

/* Until this one is done, and so all that it had to wait for.  Whenever there is
 * a signal a new wait begins: else all after the first long one would be slept
 * through.
 */
static void request_finish(struct dtensor_request *request)
{
    struct dtensor_ctx *ctx = request->ctx;
    struct dtn_wait wait;

    dtn_ctx_wait(ctx, &wait);
    while (!request->done) {
        ctx->made_progress = false;
        if (queue_advance(ctx) || ctx->made_progress)
            dtn_ctx_wait(ctx, &wait);
        else
            dtn_wait_pause(&wait);     /* dtn_poll() looks at the clock       */
        ctx->in_blocking_wait = true;
    }
    ctx->in_blocking_wait = false;
}

int dtn_requests_finish(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    int rc = 0;

    while (rc == 0 && dtn_coll_of(ctx)->pending) {
        struct dtensor_request *request = dtn_coll_of(ctx)->pending;

        request_finish(request);
        rc = request->rc;
        if (rc != 0 && err)
            *err = request->err;
    }
    return rc;
}

void dtn_requests_abandon(struct dtensor_ctx *ctx)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);
    struct dtensor_request *request;

    while ((request = coll->pending)) {
        coll->pending = request->next;
        request_done(request, dtn_ctx_check(ctx, &request->err));
    }
}

void dtn_request_start(struct dtensor_request *request)
{
    struct dtn_coll_state *coll = dtn_coll_of(request->ctx);

    request->begun = request->done = request->waited = false;
    request->next = NULL;
    if (coll->pending)
        coll->pending_last->next = request;
    else
        coll->pending = request;
    coll->pending_last = request;
    queue_advance(request->ctx);
}

/* ----------------------------------------------------------------- asking --- */

int dtensor_test(struct dtensor_request *request, int *donep,
                 struct dtensor_error *err)
{
    while (!request->done && queue_advance(request->ctx))
        ;
    if (request->done && request->rc != 0 && err)
        *err = request->err;
    if (!request->done || request->rc == 0)
        *donep = request->done;
    return request->done ? request->rc : 0;
}

int dtensor_wait(struct dtensor_request *request, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx;
    int rc;

    if (!request)
        return 0;
    request_finish(request);
    rc = request->rc;
    ctx = request->ctx;
    if (rc != 0 && err)
        *err = request->err;
    if (request->kept) {
        request->waited = true;
    } else {
        free(request);
        dtn_ctx_release(ctx);
    }
    return rc;
}
