/* path.c - how buffers of a device reach the peers, in words
 *
 * "allreduce by ring over 4 ranks; GPU memory staged: tcp reaches host memory
 * only".  A run notes what it did (lib/coll/exec/direct.c); the words are put
 * together when somebody asks.
 */
#include "job/path.h"
#include "cluster/cluster.h"
#include "job/ctx.h"

#include <stdbool.h>
#include <stdio.h>

const char *dtn_path_plan(struct dtensor_ctx *ctx)
{
    struct dtn_path *path = &ctx->path;

    if (path->call == 0 || path->call != ctx->calls)
        return ctx->plan_text;
    snprintf(path->plan, sizeof path->plan, "%s; GPU memory %s%s%s%s",
             ctx->plan_text, path->why[0] ? "staged: " : "in place", path->why,
             path->by_program ? "; reduced on copies in host memory, by a "
                                "function of the program" : "",
             path->streams ? ", GPUs signal" : "");
    return path->plan;
}

static const char *path_over(enum dtn_wire wire)
{
    switch (wire) {
    case DTN_WIRE_RC:
    case DTN_WIRE_AUTO:
        return "over rc in place where the card can register it (see "
               "dtensor-conf --fabric)";
    case DTN_WIRE_SHM:
        return "over shm in place where peers can map it";
    case DTN_WIRE_TCP:
        break;
    }
    return "over tcp staged in host memory";
}

char *dtn_path_expected(const struct dtensor_ctx *ctx, char *buf, size_t size)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    const bool between = cluster->nhosts > 1;
    bool inside = false;

    for (int h = 0; h < cluster->nhosts; h++)
        inside |= cluster->hosts[h].nranks > 1;
    snprintf(buf, size, "%s%s%s",
             inside ? path_over(cluster->transport.intra_node) : "",
             inside && between ? ", " : "",
             between ? path_over(cluster->transport.inter_node) : "");
    return buf;
}
