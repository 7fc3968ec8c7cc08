/* facts.c - what a cluster file says, for tools that draw or list it */
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "dtensor.h"

static const char *const facts_wires[] = {
    [DTN_WIRE_SHM] = "shm", [DTN_WIRE_TCP] = "tcp", [DTN_WIRE_RC] = "rc",
    [DTN_WIRE_AUTO] = "auto"
};
static const char *const facts_auths[] = {
    [DTN_AUTH_AUTO] = "auto", [DTN_AUTH_NONE] = "none",
    [DTN_AUTH_KEY] = "key", [DTN_AUTH_MUNGE] = "munge"
};

void dtensor_cluster_info(const struct dtensor_cluster *cluster,
                          struct dtensor_cluster_info *info)
{
    *info = (struct dtensor_cluster_info){
        .name = cluster->name, .nranks = cluster->world_size,
        .nhosts = cluster->nhosts,
        .intra_node = facts_wires[cluster->transport.intra_node],
        .inter_node = facts_wires[cluster->transport.inter_node],
        .auth = facts_auths[cluster->auth]
    };
}

int dtensor_cluster_rank(const struct dtensor_cluster *cluster, int rank,
                         struct dtensor_cluster_rank *info,
                         struct dtensor_error *err)
{
    const struct dtn_nodes *nodes;
    const struct dtn_host *host;
    int local;

    if (rank < 0 || rank >= cluster->world_size)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no rank %d (it has %d)",
                        cluster->path, rank, cluster->world_size);
    host = dtn_host_of(cluster, rank);
    nodes = &cluster->nodes[host->nodes];
    local = rank - host->first_rank;
    *info = (struct dtensor_cluster_rank){
        .host = host->name, .address = host->address, .local = local,
        .gpu = nodes->ngpus > 0 ? nodes->gpus[local % nodes->ngpus] : -1,
        .hca = nodes->hca ? nodes->hca[local] : NULL,
        .cpus = nodes->cpus ? nodes->cpus[local]
              : nodes->cpus_numa ? "numa" : NULL
    };
    return 0;
}
