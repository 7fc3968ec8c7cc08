/* world.c - hosts and devices of ranks, in numbers and in words */
#include "cluster/world.h"
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>

int dtn_world_host(const struct dtn_world *world, int rank)
{
    return (int)(dtn_host_of(world->cluster, rank) - world->cluster->hosts);
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

bool dtn_world_wants_gpu(const struct dtn_world *world)
{
    const struct dtensor_cluster *cluster = world->cluster;

    for (int m = 0; m < cluster->nmeshes; m++)
        if (cluster->meshes[m].memory == DTENSOR_CUDA
            && dtn_ranks_find(&cluster->meshes[m].ranks, world->rank) >= 0)
            return true;
    return false;
}
