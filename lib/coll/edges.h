/* edges.h - private to the coll room: data between this rank and its peers */
#ifndef DTN_COLL_EDGES_H
#define DTN_COLL_EDGES_H

#include "sched/call.h"
#include "sched/sched.h"

struct dtensor_ctx;
struct dtn_recorded_call;

/* of: the edge of a peer, created if there is none.  add: a message to its
 * edge; its bytes follow those already there.  sort: from the next rank on, so
 * that not all ranks begin with the same peer.
 */
struct dtn_edge *dtn_edge_of(struct dtensor_ctx *ctx, struct dtn_call *call,
                             struct dtn_edge edges[], int peer);
void dtn_edge_add(struct dtn_call *call, struct dtn_edge edges[],
                  struct dtn_recorded_call *item);
void dtn_edges_sort(struct dtensor_ctx *ctx, struct dtn_edge edges[], int n);

static inline struct dtn_range *dtn_edge_range(struct dtn_edge *edge,
                                               enum dtn_space side)
{
    return side == DTN_IN ? &edge->sent : &edge->received;
}

#endif
