/* reach.c - the wires between the ranks of a group
 *
 * Ranks of one host load from each other if shared memory is used.  In a group
 * of 2 hosts with 2 ranks each, rank 0 loads from rank 1 and puts to ranks 2
 * and 3: the wire of the group is "shm+net".
 */
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "coll/exec.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/exchange.h"

#include <stdbool.h>
#include <string.h>

bool dtn_ranks_map(const struct dtensor_ctx *ctx, int a, int b)
{
    return a == b
           || (ctx->world.cluster->transport.intra_node == DTN_WIRE_SHM
               && dtn_world_host(&ctx->world, a)
                      == dtn_world_host(&ctx->world, b));
}

bool dtn_group_maps(const struct dtn_group *group, int position)
{
    return dtn_ranks_map(group->ctx, dtn_ranks_at(group->ranks, position),
                         group->ctx->world.rank);
}

bool dtn_group_mapped(const struct dtn_group *group)
{
    bool all = true;

    for (int p = 0; all && p < group->n; p++)
        all = dtn_group_maps(group, p);
    return all;
}

/* All ranks open the same transports, so all get the same result. */
size_t dtn_group_row_bytes(const struct dtn_group *group)
{
    const struct dtensor_ctx *ctx = group->ctx;
    size_t bytes = DTN_ROW_BYTES;

    for (int t = 0; t < ctx->ntransports; t++)
        if (ctx->transports[t]->row_bytes > bytes)
            bytes = ctx->transports[t]->row_bytes;
    return bytes;
}

const char *dtn_group_wire(const struct dtn_group *group)
{
    const struct dtensor_ctx *ctx = group->ctx;
    const char *name = "", *other;

    for (int p = 0; p < group->n; p++) {
        if (dtn_ranks_at(group->ranks, p) == ctx->world.rank)
            continue;
        other = dtn_wire_to(ctx, dtn_ranks_at(group->ranks, p))->ops->name;
        if (*name && strcmp(name, other) != 0)
            return "shm+net";
        name = other;
    }
    return name;
}
