/* edges.c - what a rank sends to, and receives from, each peer
 *
 * An edge has all data between this rank and one peer, in both directions: the
 * bytes of its messages one after the other, and match bits that follow from
 * their counts and dtypes in order.
 */
#include "coll/edges.h"
#include "coll/recorded.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The match bits of a message.  The dtype stays readable; several messages
 * together have the dtype of bytes.  Messages to a higher rank and from it
 * differ, so that match bits show the direction.
 */
static uint64_t message_match(uint64_t match_bits, bool upward,
                              const struct dtn_recorded_call *item)
{
    const enum dtensor_dtype dtype = item->call.dtype;
    const uint64_t earlier =
        match_bits ? dtn_fingerprint_hash(DTN_MIX_MESSAGE, match_bits + dtype)
                   : (uint64_t)upward << 63;

    return dtn_fingerprint_dtype(match_bits ? DTENSOR_U8 : dtype)
         | dtn_fingerprint_mix(DTN_MIX_MESSAGE, earlier + item->call.count);
}

/* The peer's entry has the index of its edge in its last group; it is valid if
 * that edge has this peer.
 */
struct dtn_edge *dtn_edge_of(struct dtensor_ctx *ctx, struct dtn_call *call,
                             struct dtn_edge edges[], int peer)
{
    int *index = &dtn_coll_of(ctx)->peers[peer].edge;

    if (*index < call->nedges && edges[*index].peer == peer)
        return &edges[*index];
    *index = call->nedges++;
    edges[*index] = (struct dtn_edge){ .peer = peer,
        .distance = (uint32_t)(peer - ctx->world.rank + (peer < ctx->world.rank
                               ? ctx->world.size : 0)) };
    return &edges[*index];
}

static int edge_compare(const void *a, const void *b)
{
    const struct dtn_edge *x = a, *y = b;

    return (x->distance > y->distance) - (x->distance < y->distance);
}

void dtn_edges_sort(struct dtensor_ctx *ctx, struct dtn_edge edges[], int n)
{
    qsort(edges, (size_t)n, sizeof edges[0], edge_compare);
    for (int i = 0; i < n; i++)
        dtn_coll_of(ctx)->peers[edges[i].peer].edge = i;
}

void dtn_edge_add(struct dtn_call *call, struct dtn_edge edges[],
                  struct dtn_recorded_call *item)
{
    struct dtensor_ctx *ctx = item->group->ctx;
    struct dtn_edge *edge = dtn_edge_of(ctx, call, edges, item->peer);
    const enum dtn_space side = dtn_recorded_side(item);
    struct dtn_range *range;

    if (item->part.in) {
        edge->sends++;
        edge->sent_match = message_match(edge->sent_match,
                                         item->peer > ctx->world.rank, item);
    } else {
        edge->receives++;
        edge->received_match = message_match(edge->received_match,
                                             item->peer < ctx->world.rank,
                                             item);
    }
    range = dtn_edge_range(edge, side);
    item->part.at[side] = range->bytes;
    range->bytes += item->part.bytes[side];
}
