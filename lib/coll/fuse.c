/* fuse.c - runs recorded calls together
 *
 * All sends and receives of a group become one schedule (message.c).
 * Collectives that differ only in count and buffers become one call with the
 * sum of the counts: ten allreduces of 100 floats become one of 1000, with one
 * message to a peer instead of ten.  Above 64 KiB packing costs more than it
 * saves, so larger calls run one by one.
 *
 * What runs as one is a unit.  dtensor_group_end() waits for all units;
 * dtensor_group_start() appends a request that ends after theirs.  If messages
 * are the only unit, and lie where they are sent from and received, the end
 * runs them as a call, and the start makes one request of them (recorded.c).
 */
#include "base/compiler.h"
#include "base/error.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "coll/message.h"
#include "coll/recorded.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

#define FUSE_MAX_BYTES ((size_t)64 << 10)

/* ---------------------------------------------------------- collectives --- */

static bool items_alike(const struct dtn_recorded_call *a,
                        const struct dtn_recorded_call *b)
{
    return a->group->ranks == b->group->ranks && a->call.coll == b->call.coll
        && a->call.root == b->call.root && a->call.dtype == b->call.dtype
        && a->call.redop == b->call.redop && !a->call.counts
        && !b->call.counts;
}

/* Add a call to the last unit of similar calls, if it has room, or else to a
 * new unit, units[n].  All ranks do the same.  Returns the number of units.
 */
static int units_add(struct dtn_fused units[], int n,
                     struct dtn_recorded_call items[], int i)
{
    struct dtn_fused *unit = &units[n];
    struct dtn_call more;

    for (int u = n - 1; u > 0; u--) {
        if (!items_alike(&items[units[u].first], &items[i]))
            continue;
        more = units[u].call;
        more.count += items[i].call.count;
        if (dtn_call_bytes(&more) > FUSE_MAX_BYTES)
            break;
        units[u].call.count = more.count;
        items[units[u].last].next = i;
        units[u].last = i;
        return n;
    }
    *unit = (struct dtn_fused){ .call = items[i].call, .first = i, .last = i };
    return n + 1;
}

/* Copy the buffers of all items of a unit to or from the packed buffer: block r
 * of each item beside block r of the next.
 */
static int unit_copy(struct dtensor_ctx *ctx, const struct dtn_fused *unit,
                     enum dtn_space space, struct dtensor_error *err)
{
    const struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    size_t elem = dtensor_dtype_size(unit->call.dtype), before = 0, whole;
    size_t stride = unit->call.count * elem;
    int rc = 0;

    dtn_call_bytes_of(&unit->call, space, &whole);
    for (int i = unit->first; i >= 0; i = recorded->items[i].next) {
        const struct dtn_recorded_call *item = &recorded->items[i];
        size_t bytes = item->call.count * elem;

        if (bytes == 0)
            continue;
        for (size_t at = before, b = 0; rc == 0 && at < whole;
             at += stride, b++) {
            unsigned char *packed = unit->packed[space] + at;

            if (space == DTN_IN)
                rc = dtn_buffer_copy(ctx, packed, (const char *)item->in
                                     + b * bytes, bytes, err);
            else
                rc = dtn_buffer_copy(ctx, (char *)item->out + b * bytes,
                                     packed, bytes, err);
        }
        before += bytes;
    }
    return rc;
}

static int unit_pack(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                     struct dtensor_error *err)
{
    size_t bytes;

    for (int s = DTN_IN; s <= DTN_OUT; s++) {
        dtn_call_bytes_of(&unit->call, (enum dtn_space)s, &bytes);
        unit->packed[s] = dtn_arena_alloc(&ctx->arena, bytes + 1);
        if (!unit->packed[s])
            return dtn_arena_fail(&ctx->arena, "group", bytes, err);
    }
    return unit_copy(ctx, unit, DTN_IN, err);
}

static int unit_start(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                      struct dtensor_error *err)
{
    struct dtn_recorded_call *item =
        &dtn_coll_of(ctx)->recorded->items[unit->first];
    struct dtensor_error why;
    int rc = 0;

    if (unit->first == unit->last)
        return dtn_call_start(item->group, &unit->call, item->in, item->out,
                              &unit->request, err);
    rc = unit_pack(ctx, unit, &why);
    if (rc != 0)
        return dtn_call_give_up(item->group, rc, &why, err);
    return dtn_call_start(item->group, &unit->call, unit->packed[DTN_IN],
                          unit->packed[DTN_OUT], &unit->request, err);
}

/* --------------------------------------------------------------- making --- */

static void unit_free_packed(struct dtensor_ctx *ctx, struct dtn_fused *unit)
{
    for (int s = DTN_IN; s <= DTN_OUT; s++) {
        dtn_arena_free(&ctx->arena, unit->packed[s]);
        unit->packed[s] = NULL;
    }
}

/* A unit has ended with `rc`: copy the received data to its place.  `edges` is
 * not NULL for messages.
 */
static int unit_unpack(struct dtensor_ctx *ctx, const struct dtn_fused *unit,
                       struct dtn_edge edges[], int rc,
                       struct dtensor_error *err)
{
    if (rc != 0 || !unit->request)
        return rc;
    if (edges)
        return dtn_messages_unpack(ctx, unit, edges, err);
    return unit->packed[DTN_OUT] ? unit_copy(ctx, unit, DTN_OUT, err) : 0;
}

/* The result of a unit that has ended. */
static int unit_result(const struct dtn_fused *unit, struct dtensor_error *err)
{
    const struct dtensor_request *request = unit->request;

    if (!request || request->rc == 0)
        return 0;
    if (err)
        *err = request->err;
    return request->rc;
}

/* Run the messages, which are the only unit; or let the caller start them, if
 * they can run again as they are.
 */
static int group_messages(struct dtensor_ctx *ctx,
                          struct dtn_recorded *recorded, bool now,
                          struct dtensor_error *err)
{
    struct dtn_fused *unit = &recorded->units[0];
    const bool packed = unit->packed[DTN_IN] || unit->packed[DTN_OUT];
    int rc;

    if (!now && packed)
        return dtn_messages_start(ctx, unit, err);
    rc = dtn_messages_find(ctx, unit, err);
    if (rc == 0 && now)
        rc = dtn_cached_run(recorded->run.cached, recorded->run.in,
                            recorded->run.out, 0, err);
    if (rc != 0)
        return rc;
    if (!packed)
        recorded->nlast = recorded->n;
    return dtn_messages_unpack(ctx, unit, recorded->edges, err);
}

/* Start the units.  If there are messages only, `now` runs them. */
static int group_units(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                       bool now, struct dtensor_error *err)
{
    struct dtn_fused *units = recorded->units;
    int nmessages = 0, rc = 0;

    recorded->nunits = 1;
    units[0] = (struct dtn_fused){ .request = NULL };
    for (int i = 0; i < recorded->n; i++) {
        if (dtn_recorded_is_message(&recorded->items[i]))
            nmessages++;
        else
            recorded->nunits = units_add(units, recorded->nunits,
                                         recorded->items, i);
    }
    for (int u = 1; rc == 0 && u < recorded->nunits; u++)
        rc = unit_start(ctx, &units[u], err);
    if (rc != 0 || nmessages == 0)
        return rc;
    rc = dtn_messages_make(ctx, &units[0], recorded->edges, err);
    if (rc != 0)
        return rc;
    return recorded->nunits == 1
         ? group_messages(ctx, recorded, now, err)
         : dtn_messages_start(ctx, &units[0], err);
}

/* Copy what was received to its place.  All units have ended, or with `waits`
 * it waits for them.  Returns `rc`, or if that is 0 the first error of a unit.
 */
static int group_unpack(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                        bool waits, int rc, struct dtensor_error *err)
{
    struct dtn_recorded *open = dtn_coll_of(ctx)->recorded;

    dtn_coll_of(ctx)->recorded = recorded;
    for (int u = 0; u < recorded->nunits; u++) {
        struct dtn_fused *unit = &recorded->units[u];
        struct dtensor_error *first = rc == 0 ? err : NULL;
        int done = waits ? dtensor_wait(unit->request, first)
                         : unit_result(unit, first);

        done = unit_unpack(ctx, unit, u == 0 ? recorded->edges : NULL, done,
                           first);
        unit_free_packed(ctx, unit);
        if (waits)
            unit->request = NULL;
        rc = rc == 0 ? done : rc;
    }
    dtn_coll_of(ctx)->recorded = open;
    return rc;
}

/* Close the group, and start its units, or run them `now`.  After an error they
 * have ended.
 */
static int group_close(struct dtensor_ctx *ctx, bool now,
                       struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    int rc;

    if (!recorded)
        return dtn_fail(err, DTENSOR_EINVAL, "group: none was begun "
                        "(dtensor_group_begin() comes first)");
    recorded->nlast = recorded->nunits = 0;
    rc = dtn_recorded_room(ctx, err);
    if (rc == 0)
        rc = group_units(ctx, recorded, now, err);
    dtn_coll_of(ctx)->recorded = NULL;
    if (rc != 0) {
        group_unpack(ctx, recorded, true, rc, NULL);
        dtn_recorded_keep(ctx, recorded);
    }
    return rc;
}

static DTN_NOINLINE int group_run(struct dtensor_ctx *ctx,
                                  struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    int rc = group_close(ctx, true, err);

    if (rc != 0)
        return rc;
    rc = group_unpack(ctx, recorded, true, 0, err);
    dtn_recorded_keep(ctx, recorded);
    return rc;
}

int dtn_recorded_end(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;

    return recorded && dtn_recorded_repeats(recorded)
         ? dtn_recorded_again(ctx, err) : group_run(ctx, err);
}

/* -------------------------------------------------------------- started --- */

static int group_begin(struct dtensor_request *request,
                       struct dtensor_error *err)
{
    return 0;
}

static int group_poll(struct dtensor_request *request,
                      struct dtensor_error *err)
{
    struct dtn_recorded *recorded = (struct dtn_recorded *)request;
    const struct dtn_fused *units = recorded->units;

    for (int u = 0; u < recorded->nunits; u++)
        if (units[u].request && !units[u].request->done)
            return DTENSOR_EAGAIN;
    return group_unpack(request->ctx, recorded, false, 0, err);
}

static void group_ended(struct dtensor_request *request)
{
    struct dtn_recorded *recorded = (struct dtn_recorded *)request;

    for (int u = 0; u < recorded->nunits; u++)
        unit_free_packed(request->ctx, &recorded->units[u]);
}

/* The requests of the units are not freed earlier: a blocking call finishes the
 * first request of the queue, and that may be one of them.
 */
static void group_release(struct dtensor_request *request)
{
    struct dtn_recorded *recorded = (struct dtn_recorded *)request;

    for (int u = 0; u < recorded->nunits; u++)
        dtensor_wait(recorded->units[u].request, NULL);
    dtn_recorded_keep(request->ctx, recorded);
}

static const struct dtn_request_ops group_work = {
    .begin = group_begin, .poll = group_poll, .end = group_ended,
    .release = group_release
};

int dtn_recorded_start(struct dtensor_ctx *ctx,
                       struct dtensor_request **requestp,
                       struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    struct dtensor_request *request;
    int rc = recorded && dtn_recorded_repeats(recorded)
           ? 0 : group_close(ctx, false, err);

    if (rc != 0)
        return rc;
    if (dtn_recorded_repeats(recorded))
        return dtn_recorded_restart(ctx, recorded, requestp, err);
    request = &recorded->run.request;
    request->work = &group_work;
    request->ctx = ctx;
    request->ranks.n = 0;
    dtn_ctx_hold(ctx);
    *requestp = request;
    dtn_request_start(request);
    return 0;
}
