/* facts.c - what a cluster file says, for tools that draw or list it */
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "cluster/sections.h"
#include "dtensor.h"

/* The word that the file has for a value of a key. */
static const char *facts_word(enum dtn_section_kind_id kind, const char *key,
                              int value)
{
    return dtn_word_text(dtn_key_find(&dtn_section_kinds[kind], key)->words,
                         value);
}

void dtensor_cluster_info(const struct dtensor_cluster *cluster,
                          struct dtensor_cluster_info *info)
{
    *info = (struct dtensor_cluster_info){
        .name = cluster->name, .nranks = cluster->world_size,
        .nhosts = cluster->nhosts,
        .intra_node = facts_word(DTN_KIND_TRANSPORT, "intra_node",
                                 (int)cluster->transport.intra_node),
        .inter_node = facts_word(DTN_KIND_TRANSPORT, "inter_node",
                                 (int)cluster->transport.inter_node),
        .auth = facts_word(DTN_KIND_CLUSTER, "auth", (int)cluster->auth)
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
