/* recorded.c - records the calls of a group
 *
 * Between dtensor_group_begin() and dtensor_group_end() a call is checked and
 * recorded.  It runs at the end, together with the others (fuse.c).
 *
 * The last groups are kept, and a group begins as the oldest of them: a program
 * that exchanges the halos of three fields in turn makes three groups again and
 * again.  If its first message is that of another kept group, it becomes that
 * one.  While its messages are those of the kept group, nothing is recorded; if
 * all are, what that group ran is run or started again, without another check
 * (repeat.h), after its messages were packed as before.  Otherwise it only uses
 * the memory.  A started group is kept when it was awaited.
 */
#include "coll/recorded.h"
#include "base/array.h"
#include "base/compiler.h"
#include "base/error.h"
#include "coll/exec.h"
#include "coll/exec/run.h"
#include "coll/execs.h"
#include "coll/message.h"
#include "coll/pack.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* There is no memory for a group: tell the other ranks, which may have begun
 * theirs and wait.
 */
static int recorded_nomem(struct dtensor_ctx *ctx, size_t bytes,
                          struct dtensor_error *err)
{
    const struct dtn_group all = { .ctx = ctx, .n = ctx->world.size };
    struct dtensor_error why;
    int rc = dtn_fail_nomem(&why, "group", bytes);

    return dtn_call_give_up(&all, rc, &why, err);
}

/* -------------------------------------------------------------- keeping --- */

/* The group i of those that are kept; it is not kept any more. */
static struct dtn_recorded *kept_take(struct dtn_coll_state *coll, int i)
{
    struct dtn_recorded *taken = coll->kept[i];

    coll->nkept--;
    memmove(&coll->kept[i], &coll->kept[i + 1],
            (size_t)(coll->nkept - i) * sizeof coll->kept[0]);
    return taken;
}

/* Keep it as the oldest again, and open another one. */
static void recorded_swap(struct dtn_coll_state *coll,
                          struct dtn_recorded *other)
{
    memmove(&coll->kept[1], &coll->kept[0],
            (size_t)coll->nkept++ * sizeof coll->kept[0]);
    coll->kept[0] = coll->recorded;
    coll->recorded = other;
}

void dtn_recorded_become(struct dtensor_ctx *ctx, int i)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);

    recorded_swap(coll, kept_take(coll, i));
}

/* The open group has no calls yet, and is none of those that are kept: use
 * memory of a group that cannot repeat, or new memory if there is room.
 */
static void recorded_renew(struct dtn_coll_state *coll)
{
    struct dtn_recorded *other;
    int i = 0;

    while (i < coll->nkept && coll->kept[i]->nlast > 0)
        i++;
    if (i < coll->nkept) {
        recorded_swap(coll, kept_take(coll, i));
    } else if (coll->nkept < DTN_KEPT_GROUPS - 1) {
        other = calloc(1, sizeof *other);
        if (other)
            recorded_swap(coll, other);
    }
}

static DTN_NOINLINE void kept_drop(struct dtensor_ctx *ctx)
{
    struct dtn_recorded *oldest = kept_take(dtn_coll_of(ctx), 0);

    if (oldest->room > 0)
        dtn_pack_free(ctx, &oldest->units[0].pack);
    dtn_recorded_destroy(oldest);
}

static void recorded_keep(struct dtensor_ctx *ctx,
                          struct dtn_recorded *recorded)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);

    if (coll->nkept == DTN_KEPT_GROUPS)
        kept_drop(ctx);
    recorded->n = 0;
    coll->kept[coll->nkept++] = recorded;
}

/* It cannot repeat without the memory that it has packed, which is freed if it
 * is large.
 */
void dtn_recorded_keep(struct dtensor_ctx *ctx, struct dtn_recorded *recorded)
{
    if (recorded->packs && dtn_pack_is_large(&recorded->units[0].pack)) {
        dtn_pack_free(ctx, &recorded->units[0].pack);
        recorded->nlast = 0;
    }
    recorded_keep(ctx, recorded);
}

/* ------------------------------------------------------------ recording --- */

int dtn_recorded_begin(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);
    int rc = dtn_ctx_ready(ctx, err);

    if (rc != 0)
        return rc;
    if (coll->recorded)
        return dtn_fail(err, DTENSOR_EINVAL, "group: one was begun already "
                        "(dtensor_group_end() it first)");
    coll->recorded = coll->nkept > 0 ? kept_take(coll, 0)
                                     : calloc(1, sizeof *coll->recorded);
    return coll->recorded
         ? 0 : recorded_nomem(ctx, sizeof *coll->recorded, err);
}

/* This group is none of those that are kept.  A program that loads CUDA in the
 * middle of a group is not noticed.
 */
static void recorded_differs(struct dtensor_ctx *ctx)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);

    if (coll->recorded->n == 0 || coll->recorded->nlast > 0)
        dtn_ctx_look_out(ctx);
    if (coll->recorded->n == 0 && coll->recorded->nlast > 0)
        recorded_renew(coll);
    coll->recorded->nlast = 0;
}

static int recorded_append(struct dtensor_ctx *ctx,
                           const struct dtn_recorded_call *item,
                           struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;

    if (!dtn_array_reserve(&recorded->items, &recorded->capacity,
                           recorded->n + 1, sizeof *item))
        return recorded_nomem(ctx, sizeof *item, err);
    recorded->items[recorded->n++] = *item;
    return 0;
}

int dtn_recorded_add(struct dtensor_ctx *ctx,
                     const struct dtn_recorded_call *item,
                     struct dtensor_error *err)
{
    int rc;

    recorded_differs(ctx);
    rc = !ctx->asks ? 0 : dtn_call_check_buffers(
        item->group, &item->call, item->part.in, item->part.out, err);
    return rc == 0 ? recorded_append(ctx, item, err) : rc;
}

int dtn_recorded_add_call(const struct dtn_group *group,
                          const struct dtn_call *call, const void *in,
                          void *out, struct dtensor_error *err)
{
    struct dtn_recorded_call item = { .group = group, .call = *call,
                                      .part = { .in = in, .out = out } };
    int rc = dtn_call_prepare(group, &item.call, in, out, err);

    recorded_differs(group->ctx);
    return rc == 0 ? recorded_append(group->ctx, &item, err) : rc;
}

/* Unit 0 keeps its packed memory. */
int dtn_recorded_room(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    const size_t n = (size_t)recorded->n + 1;
    struct dtn_fused *units;
    struct dtn_edge *edges;

    if (recorded->room > recorded->n)
        return 0;
    units = realloc(recorded->units, n * sizeof *units);
    edges = realloc(recorded->edges, n * sizeof *edges);
    recorded->units = units ? units : recorded->units;
    recorded->edges = edges ? edges : recorded->edges;
    if (!units || !edges)
        return recorded_nomem(ctx, n * sizeof *units, err);
    if (recorded->room == 0)
        units[0] = (struct dtn_fused){ .request = NULL };
    recorded->room = (int)n;
    return 0;
}

/* The executable is held, since it may be evicted while no kept group names it.
 */
static DTN_NOINLINE int again_packed(struct dtensor_ctx *ctx,
                                     struct dtn_recorded *recorded,
                                     struct dtensor_error *err)
{
    const struct dtn_call_request *run = &recorded->run;
    const struct dtn_pack *pack = &recorded->units[0].pack;
    int rc = dtn_pack_copy(ctx, pack, DTN_IN, err);

    run->cached->entry.holders++;
    if (rc == 0)
        rc = dtn_cached_again(ctx, run->cached, run->in, run->out, 0, err);
    if (rc == 0)
        rc = dtn_pack_copy(ctx, pack, DTN_OUT, err);
    run->cached->entry.holders--;
    dtn_recorded_keep(ctx, recorded);
    return rc;
}

int dtn_recorded_again(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                       struct dtensor_error *err)
{
    dtn_coll_of(ctx)->recorded = NULL;
    if (recorded->packs)
        return again_packed(ctx, recorded, err);
    recorded_keep(ctx, recorded);
    return dtn_cached_again(ctx, recorded->run.cached, recorded->run.in,
                            recorded->run.out, 0, err);
}

/* The executable is held until now, so that it is not evicted while no kept
 * group names it.  dtensor_fini() has freed it.
 */
static void restarted_release(struct dtensor_request *request)
{
    struct dtn_recorded *recorded = (struct dtn_recorded *)request;

    if (!request->ctx->finished)
        recorded->run.cached->entry.holders--;
    dtn_recorded_keep(request->ctx, recorded);
}

static int restarted_unpack(struct dtensor_request *request, int rc,
                            struct dtensor_error *err)
{
    const struct dtn_recorded *recorded = (struct dtn_recorded *)request;

    return rc != 0 || !recorded->packs ? rc
         : dtn_pack_copy(request->ctx, &recorded->units[0].pack, DTN_OUT, err);
}

static int restarted_poll(struct dtensor_request *request,
                          struct dtensor_error *err)
{
    return restarted_unpack(request, dtn_call_poll(request, err), err);
}

static int restarted_finish(struct dtensor_request *request,
                            struct dtensor_error *err)
{
    return restarted_unpack(request, dtn_call_finish(request, err), err);
}

static const struct dtn_request_ops restarted_work = {
    .begin = dtn_call_begin, .poll = restarted_poll, .finish = restarted_finish,
    .release = restarted_release
};

void dtn_recorded_can_repeat(struct dtensor_ctx *ctx,
                             struct dtn_recorded *recorded)
{
    struct dtn_call_request *run = &recorded->run;

    recorded->nlast = recorded->n;
    run->exec = run->cached->exec;
    run->fingerprint = dtn_fingerprint_numbered(run->cached->fingerprint, 0);
    run->request.work = &restarted_work;
    run->request.ctx = ctx;
    run->request.ranks = dtn_exec_met(run->exec);
}

int dtn_recorded_restart(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                         struct dtensor_request **requestp,
                         struct dtensor_error *err)
{
    struct dtn_call_request *run = &recorded->run;
    int rc = dtn_run_alone(ctx, err);

    dtn_coll_of(ctx)->recorded = NULL;
    if (rc == 0 && recorded->packs)
        rc = dtn_pack_copy(ctx, &recorded->units[0].pack, DTN_IN, err);
    if (rc != 0) {
        dtn_recorded_keep(ctx, recorded);
        return rc;
    }
    dtn_cached_touch(ctx, run->cached);
    run->cached->entry.holders++;
    dtn_ctx_hold(ctx);
    *requestp = &run->request;
    dtn_request_start(&run->request);
    return 0;
}

void dtn_recorded_destroy(struct dtn_recorded *recorded)
{
    if (!recorded)
        return;
    free(recorded->items);
    free(recorded->units);
    free(recorded->edges);
    free(recorded);
}
