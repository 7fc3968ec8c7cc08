/* request.c - operations that are started now and awaited later
 *
 * Requests stand in a queue in the order in which they were started.  Signals
 * between two ranks are ordered only by their sending.  So if two requests name
 * the same peer, the second begins when the first has ended.  Requests without
 * a common peer run at the same time: an allreduce over "dp" and one over "tp"
 * of a 2 x 2 mesh have no common rank but this one.
 *
 * Requests begin in the order of the queue; none overtakes one that cannot
 * begin yet.  If all ranks start their requests in the same order, the first
 * unfinished request can begin on every rank.  So no circle of waiting is
 * possible, whatever else a request needs before it begins (a bounce buffer,
 * scratch): the requests that hold it are before it in the queue.
 */
#include "coll/request.h"
#include "base/compiler.h"
#include "base/ranks.h"
#include "base/wait.h"
#include "coll/exec.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- working --- */

/* Does no active request share a peer with this one? */
static bool request_apart(const struct dtensor_request *request)
{
    const struct dtensor_ctx *ctx = request->ctx;
    const struct dtn_coll_state *coll = dtn_coll_of(ctx);

    for (int i = 0; i < request->ranks.n; i++)
        if (dtn_ranks_at(&request->ranks, i) != ctx->world.rank
            && coll->peers[dtn_ranks_at(&request->ranks, i)].busy)
            return false;
    return true;
}

static void request_occupy(const struct dtensor_request *request, bool busy)
{
    struct dtn_coll_state *coll = dtn_coll_of(request->ctx);

    for (int i = 0; i < request->ranks.n; i++)
        coll->peers[dtn_ranks_at(&request->ranks, i)].busy = busy;
}

static void request_done(struct dtensor_request *request, int rc)
{
    if (request->begun)
        request_occupy(request, false);
    if (dtn_ctx_check(request->ctx, NULL) != 0)
        dtn_exec_give_up(request->ctx);
    request->rc = rc;
    request->done = true;
    if (request->work->end)
        request->work->end(request);
}

/* Do what can be done now: true if it has ended. */
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

/* Go through the queue once; true if a request has ended. */
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

/* If there is no other request, wait for its peers, without a look at the
 * queue: true if it has ended.
 */
static bool request_alone(struct dtensor_request *request)
{
    struct dtn_coll_state *coll = dtn_coll_of(request->ctx);
    int rc;

    if (coll->pending != request || request->next || !request->begun
        || !request->work->finish)
        return false;
    rc = request->work->finish(request, &request->err);
    if (rc == DTENSOR_EAGAIN)
        return false;
    coll->pending = NULL;
    request_done(request, rc);
    return true;
}

/* Wait until this request, and all that it waits for, have ended.  After each
 * signal a new wait begins.  Otherwise the wait would sleep through all short
 * requests after the first long one.
 */
static void request_finish(struct dtensor_request *request)
{
    struct dtensor_ctx *ctx = request->ctx;
    struct dtn_wait wait;

    dtn_ctx_wait(ctx, &wait);
    while (!request->done) {
        ctx->made_progress = false;
        if (request_alone(request) || queue_advance(ctx) || ctx->made_progress)
            dtn_ctx_wait(ctx, &wait);
        else
            dtn_wait_pause(&wait);     /* dtn_poll() checks the clock         */
        ctx->in_blocking_wait = true;
    }
    ctx->in_blocking_wait = false;
}

static DTN_NOINLINE int requests_finish(struct dtensor_ctx *ctx,
                                        struct dtensor_error *err)
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

int dtn_requests_finish(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    return dtn_coll_of(ctx)->pending ? requests_finish(ctx, err) : 0;
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

/* --------------------------------------------------------------- asking --- */

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
        return rc;
    }
    if (request->work->release)
        request->work->release(request);
    else
        free(request);
    dtn_ctx_release(ctx);
    return rc;
}
