/* message.c - sends and receives
 *
 * A send and its receive are an edge of a schedule that names two ranks only:
 * up to 4 KiB eagerly, over tcp up to 64, more by rendezvous with READY, put
 * and DATA.  In a group of calls, all data from one rank to another is one
 * edge, and the order of the calls does not matter: in a ring of 4 ranks each
 * rank first sends 1 MiB and then receives, and this takes one READY and one
 * DATA for each rank.
 *
 * Data in a single buffer is sent and received in place.  So is data in memory
 * of dtensor_alloc(), if it is the only message to or from its peer.  The rest
 * is packed, which costs about as much as staging.
 */
#include "coll/message.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/units.h"
#include "coll/edges.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "coll/pack.h"
#include "coll/recorded.h"
#include "coll/repeat.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The ranks of the world as a group. */
static struct dtn_group group_everyone(struct dtensor_ctx *ctx)
{
    return (struct dtn_group){ .ctx = ctx, .n = ctx->world.size,
                               .me = ctx->world.rank,
                               .ranks = &dtn_coll_of(ctx)->everyone };
}

static const char *message_name(const struct dtn_recorded_call *item)
{
    return item->part.in ? "send" : "recv";
}

/* Check a send or receive to or from position `at`; fills in the rest. */
static int message_check(struct dtn_recorded_call *item, const void *buf,
                         int at, struct dtensor_error *err)
{
    const struct dtn_group *group = item->group;
    const struct dtn_call *call = &item->call;
    const char *name = message_name(item);
    size_t *bytes = &item->part.bytes[dtn_recorded_side(item)];

    if (group->me < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: rank %d is not in this mesh "
                        "of %d ranks (only its members call)", name,
                        group->ctx->world.rank, group->n);
    if (at < 0 || at >= group->n)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: peer %d is not a position of "
                        "the mesh; expected 0 to %d", name, at, group->n - 1);
    if (!dtn_dtype_ok(call->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: there is no dtype %d", name,
                        (int)call->dtype);
    if (!dtn_mul_size(call->count, dtensor_dtype_size(call->dtype),
                      bytes) || *bytes > PTRDIFF_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %zu elements of %s overflow "
                        "memory", name, call->count,
                        dtensor_dtype_name(call->dtype));
    if (!buf && *bytes > 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: the buffer is NULL, but %zu "
                        "bytes are to %s", name, *bytes,
                        item->part.in ? "be sent" : "come");
    item->peer = dtn_ranks_at(group->ranks, at);
    return 0;
}

/* Run a single message. */
static int message_run(struct dtn_recorded_call *item,
                       struct dtn_cached_exec **cachedp,
                       struct dtensor_error *err)
{
    struct dtn_edge edge;
    struct dtn_call call = { .coll = DTN_COLL_PAIRS, .dtype = DTENSOR_U8,
                             .edges = &edge };
    struct dtn_group everyone = group_everyone(item->group->ctx);
    int rc;

    if (item->peer == item->group->ctx->world.rank)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: rank %d is this rank itself "
                        "(in a group it can send and receive)",
                        message_name(item), item->peer);
    dtn_edge_add(&call, &edge, item);
    rc = dtn_call_find(&everyone, &call, item->part.in, item->part.out, cachedp,
                       err);
    return rc != 0 ? rc
         : dtn_cached_run(*cachedp, item->part.in, item->part.out, 0, err);
}

/* A refused message counts too: the next one is not mistaken for it. */
static void message_skip(const struct dtn_group *group,
                         const struct dtn_message *message)
{
    struct dtn_coll_peer *peers = dtn_coll_of(group->ctx)->peers;

    if (group->me >= 0 && message->peer >= 0 && message->peer < group->n)
        peers[dtn_ranks_at(group->ranks, message->peer)]
            .messages[!message->sends]++;
}

/* Check a message, and describe it as a recorded call. */
static int message_item(const struct dtn_group *group,
                        const struct dtn_message *message,
                        struct dtn_recorded_call *item,
                        struct dtensor_error *err)
{
    static const char nothing[1];
    const void *buf = message->sends ? message->in : message->out;
    int rc;

    *item = (struct dtn_recorded_call){
        .group = group, .part.in = message->sends ? nothing : NULL,
        .position = message->peer,
        .call = { .coll = DTN_COLL_PAIRS, .dtype = message->dtype,
                  .count = message->count }
    };
    rc = message_check(item, buf, message->peer, err);
    if (rc != 0) {
        message_skip(group, message);
        return rc;
    }
    if (message->sends && buf)
        item->part.in = buf;
    item->part.out = message->out;
    return 0;
}

/* Is it the next message of the kept group? */
static bool message_is_next(const struct dtn_recorded *recorded,
                            const struct dtn_group *group,
                            const struct dtn_message *message)
{
    const struct dtn_recorded_call *last = &recorded->items[recorded->n];

    return recorded->n < recorded->nlast
        && last->group == group && last->position == message->peer
        && last->part.in == message->in && last->part.out == message->out
        && last->call.count == message->count
        && last->call.dtype == message->dtype;
}

/* The first message of a group: continue as the kept group that begins with it.
 */
static void message_first(const struct dtn_group *group,
                          const struct dtn_message *message)
{
    const struct dtn_coll_state *coll = dtn_coll_of(group->ctx);
    int i = 0;

    while (i < coll->nkept && !message_is_next(coll->kept[i], group, message))
        i++;
    if (i < coll->nkept)
        dtn_recorded_become(group->ctx, i);
}

/* Record a message.  The next one of a kept group is recorded already. */
static int message_record(const struct dtn_group *group,
                          const struct dtn_message *message,
                          struct dtensor_error *err)
{
    const struct dtn_coll_state *coll = dtn_coll_of(group->ctx);
    struct dtn_recorded_call item;
    int rc;

    if (coll->recorded->n == 0
        && !message_is_next(coll->recorded, group, message))
        message_first(group, message);
    if (message_is_next(coll->recorded, group, message) && !group->ctx->asks) {
        coll->recorded->n++;
        return 0;
    }
    rc = message_item(group, message, &item, err);
    return rc == 0 ? dtn_recorded_add(group->ctx, &item, err) : rc;
}

/* Check and run a message, and keep it if it can repeat. */
static int message_new(const struct dtn_group *group,
                       const struct dtn_message *message,
                       struct dtn_repeat *repeat, struct dtensor_error *err)
{
    struct dtn_recorded_call item;
    int rc = message_item(group, message, &item, err);

    if (rc == 0)
        rc = message_run(&item, &repeat->cached, err);
    if (rc != 0 || (!message->in && !message->out))
        repeat->group = NULL;
    return rc;
}

/* Run a message.  One that repeats needs no check. */
static int message_alone(const struct dtn_group *group,
                         const struct dtn_message *message,
                         struct dtensor_error *err)
{
    const struct dtensor_call call = {
        .coll = (enum dtensor_collective)DTN_COLL_PAIRS, .root = message->peer,
        .count = message->count, .dtype = message->dtype
    };
    struct dtn_repeat *repeat = dtn_repeat_at(dtn_coll_of(group->ctx)->repeats,
                                              &call, message->in, message->out);

    if (dtn_repeat_is(repeat, group, &call, message->in, message->out)
        && !group->ctx->asks)
        return dtn_cached_again(group->ctx, repeat->cached, message->in,
                                message->out, 0, err);
    *repeat = (struct dtn_repeat){ .group = group, .call = call,
                                   .in = message->in, .out = message->out };
    return message_new(group, message, repeat, err);
}

int dtn_message(const struct dtn_group *group, struct dtn_message message,
                struct dtensor_error *err)
{
    return dtn_coll_of(group->ctx)->recorded
         ? message_record(group, &message, err)
         : message_alone(group, &message, err);
}

int dtn_shift_start(const struct dtn_group *group, const void *in, void *out,
                    size_t bytes, struct dtensor_request **requestp,
                    struct dtensor_error *err)
{
    static const char nothing[1];
    struct dtn_recorded_call item = {
        .group = group, .part = { .in = in ? in : nothing,
                                  .bytes = { bytes, bytes } },
        .peer = dtn_ranks_at(group->ranks, (group->me + 1) % group->n),
        .call = { .coll = DTN_COLL_PAIRS, .dtype = DTENSOR_U8, .count = bytes }
    };
    struct dtn_edge edges[2];
    struct dtn_call call = { .coll = DTN_COLL_PAIRS, .dtype = DTENSOR_U8,
                             .edges = edges };
    struct dtn_group everyone = group_everyone(group->ctx);

    if (dtn_coll_of(group->ctx)->recorded)
        return dtn_fail(err, DTENSOR_EINVAL, "ring: cannot be started while a "
                        "group is open (dtensor_group_end() it first)");
    dtn_edge_add(&call, edges, &item);
    item.part.in = NULL;
    item.peer = dtn_ranks_at(group->ranks,
                             (group->me + group->n - 1) % group->n);
    dtn_edge_add(&call, edges, &item);
    dtn_edges_sort(group->ctx, edges, call.nedges);
    return dtn_call_start(&everyone, &call, in, out, requestp, err);
}

/* --------------------------------------------------------------- groups --- */

/* Has each peer at most one message on this side? */
static bool side_lone(const struct dtn_edge edges[], int n, enum dtn_space side)
{
    bool lone = true;

    for (int i = 0; i < n; i++)
        lone &= (side == DTN_IN ? edges[i].sends : edges[i].receives) <= 1;
    return lone;
}

/* The lowest buffer of a side, and whether all are where they can stay: there
 * is one only, or they are in the arena, and each peer has one.
 */
static const unsigned char *side_look(struct dtensor_ctx *ctx,
                                      const struct dtn_fused *unit,
                                      enum dtn_space side, bool *stayp)
{
    const struct dtn_call *call = &unit->call;
    bool arena = true;
    const unsigned char *low = NULL;
    int n = 0;

    for (const struct dtn_pack_part *p = unit->pack.first; p; p = p->next) {
        const unsigned char *buf = p->in ? p->in : p->out;

        if ((p->in ? DTN_IN : DTN_OUT) != side)
            continue;
        low = !low || buf < low ? buf : low;
        n++;
        arena &= dtn_arena_contains(&ctx->arena, buf, p->bytes[side]);
    }
    *stayp = n <= 1 || (arena && side_lone(call->edges, call->nedges, side));
    return low;
}

/* Place the edges of one side: where the buffers are, from `low` on, or packed
 * one after another.
 */
static void side_place(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                       struct dtn_edge edges[], enum dtn_space side,
                       const unsigned char *low)
{
    size_t at = 0;

    for (int i = 0; i < unit->call.nedges; i++) {
        struct dtn_range *range = dtn_edge_range(&edges[i], side);

        range->offset = at;
        at += range->bytes;
    }
    for (struct dtn_pack_part *p = unit->pack.first; p; p = p->next) {
        const struct dtn_recorded_call *item = (struct dtn_recorded_call *)p;
        struct dtn_range *range;

        if (dtn_recorded_side(item) != side)
            continue;
        range = dtn_edge_range(dtn_edge_of(ctx, &unit->call, edges, item->peer),
                               side);
        if (low)
            range->offset = (size_t)((const unsigned char *)(p->in ? p->in
                                                             : p->out) - low);
        else
            p->at[side] += range->offset;
    }
}

/* Leave a side where it is, or pack it.  Returns where it begins, NULL: it is
 * packed.
 */
static const unsigned char *side_make(struct dtensor_ctx *ctx,
                                      struct dtn_fused *unit,
                                      struct dtn_edge edges[],
                                      enum dtn_space side)
{
    bool stay;
    const unsigned char *low = side_look(ctx, unit, side, &stay);

    low = stay ? low : NULL;
    unit->pack.blocks[side] = !stay;
    side_place(ctx, unit, edges, side, low);
    return low;
}

static int edge_check_own(const struct dtensor_ctx *ctx,
                          const struct dtn_edge edges[], int n,
                          struct dtensor_error *err)
{
    for (int e = 0; e < n; e++)
        if (edges[e].peer == ctx->world.rank
            && (edges[e].sent_match != edges[e].received_match))
            return dtn_fail(err, DTENSOR_EMISMATCH, "group: what this rank %d "
                            "sends itself is not what it receives from itself",
                            ctx->world.rank);
    return 0;
}

int dtn_messages_make(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                      struct dtn_edge edges[], struct dtensor_error *err)
{
    struct dtn_recorded *recorded = dtn_coll_of(ctx)->recorded;
    const unsigned char *in, *out;
    int rc;

    unit->call = (struct dtn_call){ .coll = DTN_COLL_PAIRS,
                                    .dtype = DTENSOR_U8, .edges = edges };
    for (int i = 0; i < recorded->n; i++)
        if (dtn_recorded_is_message(&recorded->items[i])) {
            dtn_pack_add(&unit->pack, &recorded->items[i].part);
            dtn_edge_add(&unit->call, edges, &recorded->items[i]);
        }
    dtn_edges_sort(ctx, edges, unit->call.nedges);
    in = side_make(ctx, unit, edges, DTN_IN);
    out = side_make(ctx, unit, edges, DTN_OUT);
    recorded->packs = unit->pack.blocks[DTN_IN] || unit->pack.blocks[DTN_OUT];
    rc = edge_check_own(ctx, edges, unit->call.nedges, err);
    if (rc == 0)
        rc = dtn_pack_alloc(ctx, &unit->pack, "group", err);
    recorded->run.in = in ? in : unit->pack.mem[DTN_IN];
    recorded->run.out = out ? (void *)(uintptr_t)out : unit->pack.mem[DTN_OUT];
    for (int e = 0; e < unit->call.nedges; e++) {
        edges[e].sends = edges[e].sends > 0;
        edges[e].receives = edges[e].receives > 0;
    }
    return rc;
}

int dtn_messages_find(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                      struct dtensor_error *err)
{
    struct dtn_call_request *run = &dtn_coll_of(ctx)->recorded->run;
    struct dtn_group everyone = group_everyone(ctx);

    return dtn_call_find(&everyone, &unit->call, run->in, run->out,
                         &run->cached, err);
}

int dtn_messages_start(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                       struct dtensor_error *err)
{
    struct dtn_call_request *run = &dtn_coll_of(ctx)->recorded->run;
    struct dtn_group everyone = group_everyone(ctx);
    int rc = dtn_pack_copy(ctx, &unit->pack, DTN_IN, err);

    return rc != 0 ? rc : dtn_call_start(&everyone, &unit->call, run->in,
                                         run->out, &unit->request, err);
}
