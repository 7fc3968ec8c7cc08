/* world.c - hosts and devices of ranks
 *
 * Ranks are numbered host by host.  So a binary search finds the host of a
 * rank: ten steps for 1024 hosts.
 */
#include "cluster/world.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdio.h>

int dtn_world_host(const struct dtn_world *world, int rank)
{
    const struct dtn_host *hosts = world->cluster->hosts;
    int low = 0, high = world->cluster->nhosts - 1, middle;

    while (low < high) {
        middle = (low + high + 1) / 2;
        if (hosts[middle].first_rank <= rank)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

char *dtn_world_rank_name(const struct dtn_world *world, int rank, char *buf,
                          size_t size)
{
    snprintf(buf, size, "rank %d on %s", rank,
             world->cluster->hosts[dtn_world_host(world, rank)].name);
    return buf;
}

const struct dtn_nodes *dtn_world_nodes(const struct dtn_world *world)
{
    int host = dtn_world_host(world, world->rank);

    return &world->cluster->nodes[world->cluster->hosts[host].nodes];
}

const char *dtn_world_device(const struct dtn_world *world)
{
    const struct dtn_nodes *nodes = dtn_world_nodes(world);

    return nodes->hca ? nodes->hca[world->local_rank] : NULL;
}
