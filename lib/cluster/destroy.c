/* destroy.c - free a cluster, complete or not
 *
 * Every list is counted as it grows.  So the counts are correct even if the
 * creation failed: if it stopped after two of three hosts, nhosts is 2.
 */
#include "cluster/cluster.h"
#include "cluster/hostlist.h"
#include "cluster/plan.h"
#include "dtensor.h"

#include <stdlib.h>

static void nodes_free(struct dtn_nodes *nodes)
{
    dtn_hostlist_free(nodes->hca, nodes->nranks);
    dtn_hostlist_free(nodes->cpus, nodes->nranks);
    free(nodes->gpus);
}

void dtensor_cluster_destroy(struct dtensor_cluster *cluster)
{
    if (!cluster)
        return;
    for (int i = 0; !cluster->names && i < cluster->nhosts; i++) {
        if (cluster->hosts[i].address != cluster->hosts[i].name)
            free(cluster->hosts[i].address);
        free(cluster->hosts[i].name);
    }
    for (int i = 0; i < cluster->nnodes; i++)
        nodes_free(&cluster->nodes[i]);
    for (int i = 0; i < cluster->nmeshes; i++)
        free((void *)cluster->meshes[i].ranks.list);
    for (int i = 0; i < cluster->nplans; i++)
        dtn_plan_def_free(&cluster->plans[i]);
    free(cluster->plans);
    free(cluster->names);
    free(cluster->hosts);
    free(cluster->nodes);
    free(cluster->meshes);
    free(cluster->path);
    free(cluster);
}
