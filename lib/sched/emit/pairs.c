/* pairs.c - collectives in which each pair of ranks is independent
 *
 * In an all-to-all, a gather or a scatter a rank only needs to know what it
 * sends to each peer and what it receives from each.  So every pair exchanges
 * its data independently: a little eagerly; more is loaded from, or put to, the
 * place that READY gives.  A peer's offset may depend on counts that this
 * rank does not know: in an all-to-all over 3 ranks where rank 0 sends {1,
 * 5000, 2} doubles, rank 1 knows the 5000 but not the 1 before it.  READY names
 * the block itself, so this needs no more messages than blocks of one size.  If
 * not all ranks know a size, the match bits verify that both sides mean the
 * same.
 *
 * A gather is the pairs that end at its root, a scatter those that begin there,
 * and a send is one pair.  Eager data of several peers goes to TMP first, as in
 * eager.c.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>

/* The data between this rank and a peer, or itself, if all ranks send
 * something.
 */
static struct dtn_edge pairs_edge(const struct dtn_call *call, int peer)
{
    bool from_root = call->me == call->root, to_root = peer == call->root;
    struct dtn_edge edge = { .peer = peer, .sends = 1, .receives = 1 };

    switch (call->coll) {
    case DTN_COLL_GATHER:
        edge.sends = to_root;
        edge.receives = from_root;
        edge.sent.bytes = dtn_call_block(call, call->me).bytes;
        edge.received = dtn_call_block(call, peer);
        break;
    case DTN_COLL_SCATTER:
        edge.sends = from_root;
        edge.receives = to_root;
        edge.sent = dtn_call_block(call, peer);
        edge.received.bytes = dtn_call_block(call, call->me).bytes;
        break;
    default:
        edge.sent = dtn_call_sent(call, peer);
        edge.received = dtn_call_received(call, peer);
        break;
    }
    edge.sent_match = edge.received_match = dtn_emit_match_bits(call, peer);
    return edge;
}

/* Is the root its only peer? */
static bool pairs_is_leaf(const struct dtn_call *call)
{
    return call->me != call->root && (call->coll == DTN_COLL_GATHER
                                      || call->coll == DTN_COLL_SCATTER);
}

/* The peers that may have data for this rank; for sends only the named peers,
 * which may be few in a large world.  In three orders: by position, upward from
 * this rank, and downward from it.  A rank exchanges nothing with itself.
 */
static int pairs_count(const struct dtn_call *call)
{
    return call->coll == DTN_COLL_PAIRS ? call->nedges
         : pairs_is_leaf(call) ? 1 : call->n;
}

static struct dtn_edge pairs_of(const struct dtn_call *call, int edge, int peer)
{
    struct dtn_edge found = call->coll == DTN_COLL_PAIRS
                          ? call->edges[edge]
                          : pairs_edge(call, pairs_is_leaf(call) ? call->root
                                                                 : peer);

    if (found.peer == call->me)
        found.sends = found.receives = 0;
    return found;
}

static struct dtn_edge pairs_nth(const struct dtn_call *call, int i)
{
    return pairs_of(call, i, i);
}

static struct dtn_edge pairs_forth(const struct dtn_call *call, int i)
{
    return pairs_of(call, i, dtn_neighbour(call, i));
}

static struct dtn_edge pairs_back(const struct dtn_call *call, int i)
{
    return pairs_of(call, call->nedges - 1 - i, dtn_neighbour(call, -i));
}

/* One direction between two ranks: nothing, eager, or rendezvous. */
enum way { SILENT, SMALL, LARGE };

/* The CPU would copy eager data to and from devices, message by message. */
static enum way way_of(const struct dtn_call *call, uint32_t exists,
                       struct dtn_range block)
{
    const size_t eager = call->on_device && call->coll != DTN_COLL_PAIRS
                       ? 0 : dtn_eager_bytes(call->eager_bytes);

    return !exists ? SILENT : block.bytes <= eager ? SMALL : LARGE;
}

static enum way pairs_sent(const struct dtn_call *call,
                           const struct dtn_edge *edge)
{
    return way_of(call, edge->sends, edge->sent);
}

static enum way pairs_received(const struct dtn_call *call,
                               const struct dtn_edge *edge)
{
    return way_of(call, edge->receives, edge->received);
}

/* Does eager data come from one peer only, or are messages independent? */
static bool pairs_alone(const struct dtn_call *call)
{
    return call->n == 2 || call->coll == DTN_COLL_SCATTER
        || call->coll == DTN_COLL_PAIRS;
}

/* Set match bits and message size of the last step. */
static void pairs_match(struct dtn_sched *sched, const struct dtn_edge *edge,
                       bool is_recv)
{
    if (is_recv)
        dtn_sched_match(sched, edge->received_match, edge->received.bytes,
                        true);
    else
        dtn_sched_match(sched, edge->sent_match, edge->sent.bytes, false);
}

static void pairs_eager(struct dtn_sched *sched, const struct dtn_edge *edge)
{
    dtn_sched_send_eager(sched, edge->peer,
                         dtn_span_at(sched->me, DTN_IN, edge->sent.offset),
                         edge->sent.bytes);
    pairs_match(sched, edge, false);
}

/* Receive eager data in TMP, block after block; of a single peer in OUT. */
static void pairs_catch(struct dtn_sched *sched, const struct dtn_call *call,
                        const struct dtn_edge *edge)
{
    struct dtn_span slot =
        dtn_span_at(call->me, DTN_OUT, edge->received.offset);

    if (!pairs_alone(call)) {
        slot = dtn_span_at(call->me, DTN_TMP, sched->bytes[DTN_TMP]);
        sched->bytes[DTN_TMP] += edge->received.bytes;
    }
    dtn_sched_recv_eager(sched, edge->peer, slot, edge->received.bytes);
    pairs_match(sched, edge, true);
}

static void pairs_own(struct dtn_sched *sched, const struct dtn_call *call)
{
    struct dtn_edge own = { .peer = call->me };

    if (call->coll != DTN_COLL_PAIRS)
        own = pairs_edge(call, call->me);
    for (int i = 0; i < call->nedges; i++)
        if (call->edges[i].peer == call->me)
            own = call->edges[i];
    if (own.sends && own.receives)
        dtn_sched_copy(
            sched, dtn_span_at(call->me, DTN_OUT, own.received.offset),
            dtn_span_at(call->me, DTN_IN, own.sent.offset), own.received.bytes);
}

/* Copy eager data from TMP to OUT, neighbouring blocks together. */
static void pairs_settle(struct dtn_sched *sched, const struct dtn_call *call)
{
    struct dtn_range run = { 0, 0 };
    size_t taken = 0;

    if (pairs_alone(call) || pairs_is_leaf(call))
        return;
    for (int r = 0; r <= call->n; r++) {
        struct dtn_edge edge = { .receives = 0 };

        if (r < call->n && r != call->me)
            edge = pairs_edge(call, r);
        if (pairs_received(call, &edge) == SMALL
            && edge.received.offset == run.offset + run.bytes) {
            run.bytes += edge.received.bytes;
            continue;
        }
        dtn_sched_copy(sched, dtn_span_at(call->me, DTN_OUT, run.offset),
                       dtn_span_at(call->me, DTN_TMP, taken), run.bytes);
        taken += run.bytes;
        run = edge.received;
        if (pairs_received(call, &edge) != SMALL)
            run.bytes = 0;
    }
}

/* ---------------------------------------------------------------- by loads */

/* Tell each peer the eager data, or the place to load from. */
static void pull_offer(struct dtn_sched *sched, const struct dtn_call *call)
{
    struct dtn_range shown = { 0, 0 };

    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_forth(call, i);

        if (pairs_sent(call, &edge) == SMALL)
            pairs_eager(sched, &edge);
        if (pairs_sent(call, &edge) != LARGE)
            continue;
        dtn_sched_offer(sched, edge.peer,
                        dtn_span_at(call->me, DTN_IN, edge.sent.offset),
                        edge.sent.bytes);
        pairs_match(sched, &edge, false);
        shown = dtn_range_hull(shown, edge.sent);
    }
    dtn_sched_expose_range(sched, DTN_IN, shown);
}

static void pull_take(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_nth(call, i);

        if (pairs_received(call, &edge) == SMALL)
            pairs_catch(sched, call, &edge);
        if (pairs_received(call, &edge) != LARGE)
            continue;
        dtn_sched_wait(sched, edge.peer, DTN_TAG_READY);
        pairs_match(sched, &edge, true);
    }
}

/* The host waits for a device before it signals, so it signals at the end. */
static void pull_load(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_back(call, i);

        if (pairs_received(call, &edge) != LARGE)
            continue;
        dtn_sched_copy(sched,
                       dtn_span_at(call->me, DTN_OUT, edge.received.offset),
                       dtn_span_at(edge.peer, DTN_IN, 0), edge.received.bytes);
        if (!call->on_device)
            dtn_sched_signal(sched, edge.peer, DTN_TAG_DONE);
    }
    for (int i = 0; call->on_device && i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_back(call, i);

        if (pairs_received(call, &edge) == LARGE)
            dtn_sched_signal(sched, edge.peer, DTN_TAG_DONE);
    }
}

static int pairs_pull(const struct dtn_call *call, const char *name,
                      struct dtn_sched *sched, struct dtensor_error *err)
{
    dtn_emit_begin(sched, name, call);
    pull_offer(sched, call);
    pull_take(sched, call);
    pairs_own(sched, call);
    pull_load(sched, call);
    pairs_settle(sched, call);
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_forth(call, i);

        if (pairs_sent(call, &edge) == LARGE)
            dtn_sched_wait(sched, edge.peer, DTN_TAG_DONE);
    }
    return dtn_emit_end(sched, err);
}

/* ----------------------------------------------------------------- by puts */

/* Send eager data, and READY with the place for what peers will put. */
static void push_offer(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_forth(call, i);

        if (pairs_received(call, &edge) == LARGE) {
            sched->exposed[DTN_OUT] = true;
            dtn_sched_offer(
                sched, edge.peer,
                dtn_span_at(call->me, DTN_OUT, edge.received.offset),
                edge.received.bytes);
            pairs_match(sched, &edge, true);
        }
        if (pairs_sent(call, &edge) == SMALL)
            pairs_eager(sched, &edge);
    }
}

static void push_take(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_nth(call, i);

        if (pairs_sent(call, &edge) == LARGE) {
            dtn_sched_wait(sched, edge.peer, DTN_TAG_READY);
            pairs_match(sched, &edge, false);
        }
        if (pairs_received(call, &edge) == SMALL)
            pairs_catch(sched, call, &edge);
    }
}

static void push_put(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_forth(call, i);

        if (pairs_sent(call, &edge) != LARGE)
            continue;
        dtn_sched_put(sched, edge.peer, dtn_span_at(edge.peer, DTN_OUT, 0),
                      dtn_span_at(call->me, DTN_IN, edge.sent.offset),
                      edge.sent.bytes);
        dtn_sched_signal(sched, edge.peer, DTN_TAG_DATA);
    }
}

static int pairs_push(const struct dtn_call *call, const char *name,
                      struct dtn_sched *sched, struct dtensor_error *err)
{
    dtn_emit_begin(sched, name, call);
    push_offer(sched, call);
    push_take(sched, call);
    push_put(sched, call);
    pairs_own(sched, call);
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_back(call, i);

        if (pairs_received(call, &edge) == LARGE)
            dtn_sched_wait(sched, edge.peer, DTN_TAG_DATA);
    }
    pairs_settle(sched, call);
    for (int i = 0; i < pairs_count(call); i++) {
        struct dtn_edge edge = pairs_forth(call, i);

        if (pairs_sent(call, &edge) == LARGE)
            dtn_sched_flush(sched, edge.peer);
    }
    return dtn_emit_end(sched, err);
}

/* --------------------------------------------------------- the collectives */

int dtn_emit_all_to_all_direct(const struct dtn_call *call,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    return pairs_pull(call, "all_to_all direct", sched, err);
}

int dtn_emit_all_to_all_device(const struct dtn_call *call,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    struct dtn_call there = *call;

    there.on_device = true;
    return pairs_pull(&there, "all_to_all device", sched, err);
}

/* Blocks of one size, so that each pair exchanges READY. */
int dtn_emit_all_to_all_stream(const struct dtn_call *call,
                               struct dtn_sched *sched,
                               struct dtensor_error *err)
{
    int rc = dtn_emit_all_to_all_device(call, sched, err);

    if (rc != 0)
        return rc;
    sched->name = "all_to_all stream";
    sched->streams = true;
    return 0;
}

int dtn_emit_all_to_all_put(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    return pairs_push(call, "all_to_all put", sched, err);
}

/* Puts even if the root could load: then all ranks copy, not only the root. */
int dtn_emit_gather_put(const struct dtn_call *call, struct dtn_sched *sched,
                        struct dtensor_error *err)
{
    return pairs_push(call, "gather put", sched, err);
}

int dtn_emit_scatter_direct(const struct dtn_call *call,
                            struct dtn_sched *sched, struct dtensor_error *err)
{
    return pairs_pull(call, "scatter direct", sched, err);
}

int dtn_emit_scatter_put(const struct dtn_call *call, struct dtn_sched *sched,
                         struct dtensor_error *err)
{
    return pairs_push(call, "scatter put", sched, err);
}

int dtn_emit_pairs_put(const struct dtn_call *call, struct dtn_sched *sched,
                       struct dtensor_error *err)
{
    return pairs_push(call, "send/recv", sched, err);
}
