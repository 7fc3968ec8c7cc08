/* hosts.c - which host each position of a mesh is on */
#include "tools/draw/hosts.h"

#include <stdlib.h>
#include <string.h>

static void hosts_number(const struct dtensor_mesh *mesh, int per_host,
                         int host[])
{
    for (int p = 0; p < dtensor_mesh_size(mesh); p++)
        host[p] = per_host > 0 ? dtensor_mesh_rank(mesh, p) / per_host : 0;
}

/* Ranks of a file are numbered host by host: a host begins at local rank 0. */
static void hosts_read(const struct dtensor_mesh *mesh,
                       const struct dtensor_cluster *cluster, int host[])
{
    struct dtensor_cluster_info info;
    struct dtensor_cluster_rank rank;
    int number = -1;

    dtensor_cluster_info(cluster, &info);
    for (int r = 0; r < info.nranks; r++) {
        int p = dtensor_mesh_index(mesh, r);

        if (dtensor_cluster_rank(cluster, r, &rank, NULL) == 0)
            number += rank.local == 0;
        if (p >= 0)
            host[p] = number;
    }
}

int *draw_hosts(const struct dtensor_mesh *mesh, const char *path, int per_host)
{
    int *host = calloc((size_t)dtensor_mesh_size(mesh) + 1, sizeof *host);
    struct dtensor_cluster *cluster;

    if (host && path) {
        if (dtensor_cluster_read(path, NULL, NULL, &cluster, NULL) != 0) {
            free(host);
            return NULL;
        }
        hosts_read(mesh, cluster, host);
        dtensor_cluster_destroy(cluster);
    } else if (host) {
        hosts_number(mesh, per_host, host);
    }
    return host;
}
