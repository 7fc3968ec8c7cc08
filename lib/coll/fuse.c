/* fuse.c - runs recorded calls together
 *
 * All sends and receives of a group become one schedule (message.c).
 * Collectives that differ only in count and buffers become one call with the
 * sum of the counts: five allreduces of 100 floats become one of 500, with one
 * message to a peer instead of five, if that costs less (pack.c).
 *
 * What runs as one is a unit.  dtensor_group_end() waits for all units;
 * dtensor_group_start() appends a request that ends after theirs.  If messages
 * are the only unit, the end runs them as a call, and the start makes one
 * request of them (recorded.c).
 */
#include "base/compiler.h"
#include "base/error.h"
#include "coll/choose.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "coll/message.h"
#include "coll/pack.h"
#include "coll/recorded.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

/* ---------------------------------------------------------- collectives --- */

static bool items_alike(const struct dtn_recorded_call *a,
                        const struct dtn_recorded_call *b)
{
    return a->group->ranks == b->group->ranks && a->call.coll == b->call.coll
        && a->call.root == b->call.root && a->call.dtype == b->call.dtype
        && a->call.redop == b->call.redop;
}

/* The first call of a unit. */
static const struct dtn_recorded_call *unit_first(const struct dtn_fused *unit)
{
    return (const struct dtn_recorded_call *)unit->pack.first;
}

/* The bound of a call, which is the same for each of that size. */
static int unit_bound(const struct dtn_recorded_call *item, size_t *boundp,
                      struct dtensor_error *err)
{
    const struct dtn_group *group = item->group;
    const struct dtn_pack_known asked = {
        .ranks = group->ranks, .bytes = item->part.bytes[DTN_IN],
        .how = (int)item->call.coll + DTN_NCOLLS * item->call.on_device };
    struct dtn_pack_known *known =
        dtn_coll_of(group->ctx)->packs
        + (asked.bytes / 4 + (size_t)asked.how) % DTN_PACK_KNOWN;
    const struct dtn_model *model;
    struct dtensor_error why;
    int rc;

    if (known->ranks != asked.ranks || known->bytes != asked.bytes
        || known->how != asked.how) {
        rc = dtn_model_of(group, &model, &why);
        if (rc != 0)
            return dtn_call_give_up(group, rc, &why, err);
        *known = asked;
        known->bound = dtn_pack_bound(&item->call, model);
    }
    *boundp = item->call.counts ? 0 : known->bound;
    return 0;
}

/* The last unit of similar calls, if it has room, or else a new one, units[n].
 * All ranks do the same.
 */
static int units_find(struct dtn_fused units[], int n,
                      const struct dtn_recorded_call *item, size_t bound)
{
    int u = n - 1;

    if (bound == 0)
        return n;
    while (u > 0 && (units[u].bound == 0
                     || !items_alike(unit_first(&units[u]), item)))
        u--;
    return u > 0 && units[u].pack.bytes[DTN_IN] + item->part.bytes[DTN_IN]
                    <= bound ? u : n;
}

/* Add a call to a unit, one of *np or a new one. */
static int units_add(struct dtn_fused units[], int *np,
                     struct dtn_recorded_call *item, struct dtensor_error *err)
{
    size_t bound;
    int u, rc;

    item->part.bytes[DTN_IN] = item->part.bytes[DTN_OUT] =
        item->call.count * dtensor_dtype_size(item->call.dtype);
    rc = unit_bound(item, &bound, err);
    if (rc != 0)
        return rc;
    u = units_find(units, *np, item, bound);
    if (u < *np)
        units[u].call.count += item->call.count;
    else
        units[(*np)++] = (struct dtn_fused){ .call = item->call,
                                             .bound = bound };
    dtn_pack_add(&units[u].pack, &item->part);
    return 0;
}

/* Block r of each call is beside block r of the next. */
static int unit_pack(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                     struct dtensor_error *err)
{
    struct dtn_pack *pack = &unit->pack;
    size_t whole;
    int rc;

    for (int s = DTN_IN; s <= DTN_OUT; s++) {
        dtn_call_bytes_of(&unit->call, (enum dtn_space)s, &whole);
        pack->blocks[s] = pack->bytes[s] > 0 ? whole / pack->bytes[s] : 0;
    }
    rc = dtn_pack_alloc(ctx, pack, "group", err);
    return rc == 0 ? dtn_pack_copy(ctx, pack, DTN_IN, err) : rc;
}

static int unit_start(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                      struct dtensor_error *err)
{
    const struct dtn_recorded_call *item = unit_first(unit);
    struct dtensor_error why;
    int rc = 0;

    if (unit->pack.first == unit->pack.last)
        return dtn_call_start(item->group, &unit->call, item->part.in,
                              item->part.out, &unit->request, err);
    rc = unit_pack(ctx, unit, &why);
    if (rc != 0)
        return dtn_call_give_up(item->group, rc, &why, err);
    return dtn_call_start(item->group, &unit->call, unit->pack.mem[DTN_IN],
                          unit->pack.mem[DTN_OUT], &unit->request, err);
}

/* --------------------------------------------------------------- making --- */

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

/* Start the units.  If messages are the only one it is only made, and the group
 * is as one that repeats.
 */
static int group_units(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                       struct dtensor_error *err)
{
    struct dtn_fused *units = recorded->units;
    int nmessages = 0, rc = 0;

    recorded->nunits = 1;
    units[0].request = NULL;
    dtn_pack_clear(&units[0].pack);
    for (int i = 0; rc == 0 && i < recorded->n; i++) {
        if (dtn_recorded_is_message(&recorded->items[i]))
            nmessages++;
        else
            rc = units_add(units, &recorded->nunits, &recorded->items[i], err);
    }
    for (int u = 1; rc == 0 && u < recorded->nunits; u++)
        rc = unit_start(ctx, &units[u], err);
    if (rc != 0 || nmessages == 0)
        return rc;
    rc = dtn_messages_make(ctx, &units[0], recorded->edges, err);
    if (rc == 0)
        rc = recorded->nunits > 1 ? dtn_messages_start(ctx, &units[0], err)
                                  : dtn_messages_find(ctx, &units[0], err);
    if (rc == 0 && recorded->nunits == 1)
        dtn_recorded_can_repeat(ctx, recorded);
    return rc;
}

/* Copy what was received to its place.  All units have ended, or with `waits`
 * it waits for them.  Returns `rc`, or if that is 0 the first error of a unit.
 */
static int group_unpack(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                        bool waits, int rc, struct dtensor_error *err)
{
    for (int u = 0; u < recorded->nunits; u++) {
        struct dtn_fused *unit = &recorded->units[u];
        struct dtensor_error *first = rc == 0 ? err : NULL;
        int done = waits ? dtensor_wait(unit->request, first)
                         : unit_result(unit, first);

        if (done == 0 && unit->request)
            done = dtn_pack_copy(ctx, &unit->pack, DTN_OUT, first);
        if (u > 0)
            dtn_pack_free(ctx, &unit->pack);
        if (waits)
            unit->request = NULL;
        rc = rc == 0 ? done : rc;
    }
    return rc;
}

/* Close the group, and start its units, or only make them.  After an error they
 * have ended.
 */
static int group_close(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    int rc;

    if (!recorded)
        return dtn_fail(err, DTENSOR_EINVAL, "group: none was begun "
                        "(dtensor_group_begin() comes first)");
    recorded->nlast = recorded->nunits = 0;
    rc = dtn_recorded_room(ctx, err);
    if (rc == 0)
        rc = group_units(ctx, recorded, err);
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
    int rc = group_close(ctx, err);

    if (rc != 0)
        return rc;
    if (dtn_recorded_repeats(recorded))
        return dtn_recorded_again(ctx, recorded, err);
    rc = group_unpack(ctx, recorded, true, 0, err);
    dtn_recorded_keep(ctx, recorded);
    return rc;
}

int dtn_recorded_end(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;

    return recorded && dtn_recorded_repeats(recorded)
         ? dtn_recorded_again(ctx, recorded, err) : group_run(ctx, err);
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

    for (int u = 1; u < recorded->nunits; u++)
        dtn_pack_free(request->ctx, &recorded->units[u].pack);
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

static DTN_NOINLINE int group_start(struct dtensor_ctx *ctx,
                                    struct dtensor_request **requestp,
                                    struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    struct dtensor_request *request;
    int rc = group_close(ctx, err);

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

int dtn_recorded_start(struct dtensor_ctx *ctx,
                       struct dtensor_request **requestp,
                       struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;

    return recorded && dtn_recorded_repeats(recorded)
         ? dtn_recorded_restart(ctx, recorded, requestp, err)
         : group_start(ctx, requestp, err);
}
