/* recorded.c - records the calls of a group
 *
 * Between dtensor_group_begin() and dtensor_group_end() a call is checked and
 * recorded.  It runs at the end, together with the others (fuse.c).
 */
#include "coll/recorded.h"
#include "base/array.h"
#include "base/error.h"
#include "coll/exec.h"
#include "coll/redops.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "dtensor.h"

#include <stdlib.h>

int dtn_recorded_begin(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_recorded *recorded;
    int rc = dtn_ctx_ready(ctx, err);

    if (rc != 0)
        return rc;
    if (dtn_coll_of(ctx)->recorded)
        return dtn_fail(err, DTENSOR_EINVAL, "group: one was begun already "
                        "(dtensor_group_end() it first)");
    recorded = calloc(1, sizeof *recorded);
    dtn_coll_of(ctx)->recorded = recorded;
    return recorded ? 0 : dtn_call_nomem(ctx, "group", sizeof *recorded, err);
}

int dtn_recorded_add(struct dtensor_ctx *ctx,
                     const struct dtn_recorded_call *item,
                     struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    int rc;

    dtn_ctx_look_out(ctx);
    rc = dtn_call_check_buffers(item->group, &item->call, item->in, item->out,
                                err);
    if (rc != 0)
        return rc;
    if (!dtn_array_reserve(&recorded->items, &recorded->capacity,
                           recorded->n + 1, sizeof *item))
        return dtn_call_nomem(ctx, "group", sizeof *item, err);
    recorded->items[recorded->n] = *item;
    recorded->items[recorded->n++].next = -1;
    return 0;
}

int dtn_recorded_add_call(const struct dtn_group *group,
                          const struct dtn_call *call, const void *in,
                          void *out, struct dtensor_error *err)
{
    struct dtn_recorded_call item = { .group = group, .call = *call,
                                      .in = in, .out = out };
    int rc;

    item.call.n = group->n;
    item.call.me = group->me;
    rc = dtn_call_check(&item.call, group->ctx->world.rank, in, out, err);
    if (rc == 0)
        rc = dtn_call_resolve(group->ctx, &item.call, err);
    return rc != 0 ? rc : dtn_recorded_add(group->ctx, &item, err);
}

void dtn_recorded_destroy(struct dtn_recorded *recorded)
{
    if (!recorded)
        return;
    free(recorded->items);
    free(recorded);
}
