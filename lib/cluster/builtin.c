/* builtin.c - the clusters that need no file
 *
 * If the launcher says how many ranks run on each host, no file is needed.  The
 * transport has its defaults, and one mesh "world" with one dimension "world"
 * covers all ranks.  Example: a Slurm step with SLURM_STEP_NODELIST=n[0-2] and
 * SLURM_STEP_TASKS_PER_NODE=2(x2),1 has ranks 0-1 on n0, 2-3 on n1 and 4 on n2.
 * It has two [nodes] sections: one for the hosts with two ranks, and one for
 * the host with one rank.
 */
#include "cluster/builtin.h"
#include "base/error.h"
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "cluster/file.h"
#include "cluster/hostlist.h"
#include "cluster/pack.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ building --- */

/* Find or add the [nodes] section of hosts with `nranks` ranks; -1: not enough
 * memory.  There are few of them, whatever the number of hosts.
 */
static int builtin_nodes(struct dtensor_cluster *c, int nranks)
{
    struct dtn_nodes *nodes;
    int i;

    for (i = 0; i < c->nnodes; i++)
        if (c->nodes[i].nranks == nranks)
            return i;
    nodes = realloc(c->nodes, ((size_t)i + 1) * sizeof *nodes);
    if (!nodes)
        return -1;
    c->nodes = nodes;
    nodes[i] = (struct dtn_nodes){ .nranks = nranks, .gid_index = -1,
                                   .nrails = 1 };
    snprintf(nodes[i].name, sizeof nodes[i].name, "ranks-%d", nranks);
    c->nnodes++;
    return i;
}

/* An empty cluster with room for `nhosts` hosts.  NULL: not enough memory. */
static struct dtensor_cluster *builtin_create(const char *name, int nhosts)
{
    struct dtensor_cluster *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->path = strdup("built-in");
    c->hosts = calloc((size_t)nhosts, sizeof *c->hosts);
    c->meshes = calloc(1, sizeof *c->meshes);
    dtn_cluster_defaults(c);
    if (c->path && c->hosts && c->meshes)
        return c;
    dtensor_cluster_destroy(c);
    return NULL;
}

static bool builtin_add(struct dtensor_cluster *c, const char *name,
                        const char *address, int nranks)
{
    struct dtn_host *host = &c->hosts[c->nhosts++];

    host->name = strdup(name);
    host->address = strcmp(address, name) == 0 ? host->name : strdup(address);
    host->first_rank = c->world_size;
    host->nranks = nranks;
    host->nodes = builtin_nodes(c, nranks);
    c->world_size += nranks;
    return host->name && host->address && host->nodes >= 0;
}

static bool builtin_mesh(struct dtensor_cluster *c)
{
    struct dtn_mesh_def *mesh = &c->meshes[0];

    if (!dtn_cluster_pack(c))
        return false;
    c->nmeshes = 1;
    strcpy(mesh->name, "world");
    strcpy(mesh->dim_name[0], "world");
    mesh->ndim = 1;
    mesh->size[0] = c->world_size;
    mesh->ranks = dtn_ranks_all(c->world_size);
    return true;
}

/* ------------------------------------------------------------- clusters --- */

int dtn_cluster_local(const char *host, int nranks,
                      struct dtensor_cluster **clusterp,
                      struct dtensor_error *err)
{
    struct dtensor_cluster *c;

    if (nranks < 1 || nranks > DTN_MAX_LOCAL)
        return dtn_fail(err, DTENSOR_EINVAL, "cluster: %d ranks on one host, "
                        "expected 1 to %d", nranks, DTN_MAX_LOCAL);
    c = builtin_create("local", 1);
    if (!c || !builtin_add(c, host, "127.0.0.1", nranks) || !builtin_mesh(c)) {
        dtensor_cluster_destroy(c);
        return dtn_fail_nomem(err, "cluster", sizeof *c);
    }
    *clusterp = c;
    return 0;
}

int dtn_cluster_regular(int nranks, int per_host,
                        struct dtensor_cluster **clusterp,
                        struct dtensor_error *err)
{
    const int each = per_host ? per_host : nranks;
    struct dtensor_cluster *c;
    char name[24];
    bool good;

    if (nranks < 1 || nranks > DTN_MAX_WORLD || per_host < 0 ||
        each > DTN_MAX_LOCAL)
        return dtn_fail(err, DTENSOR_EINVAL, "cluster: %d ranks, %d on a host; "
                        "expected 1 to %d, and up to %d on a host", nranks,
                        each, DTN_MAX_WORLD, DTN_MAX_LOCAL);
    c = builtin_create("plan", (nranks + each - 1) / each);
    good = c != NULL;
    for (int first = 0; first < nranks && good; first += each) {
        snprintf(name, sizeof name, "host%d", first / each);
        good = builtin_add(c, name, name, nranks - first < each
                                          ? nranks - first : each);
    }
    if (!good || !builtin_mesh(c)) {
        dtensor_cluster_destroy(c);
        return dtn_fail_nomem(err, "cluster", sizeof *c);
    }
    *clusterp = c;
    return 0;
}

static int builtin_step(char **names, const int counts[], int nhosts,
                        struct dtensor_cluster **clusterp,
                        struct dtensor_error *err)
{
    struct dtensor_cluster *c;
    int64_t ranks = 0;
    bool good;

    for (int i = 0; i < nhosts; i++)
        ranks += counts[i];
    if (ranks > DTN_MAX_WORLD)
        return dtn_fail(err, DTENSOR_ECONF, "SLURM_STEP_TASKS_PER_NODE: %"
                        PRId64 " ranks; expected at most %d (start fewer)",
                        ranks, DTN_MAX_WORLD);
    c = builtin_create("slurm", nhosts);
    good = c != NULL;
    for (int i = 0; i < nhosts && good; i++)
        good = builtin_add(c, names[i], names[i], counts[i]);
    if (!good || !builtin_mesh(c)) {
        dtensor_cluster_destroy(c);
        return dtn_fail_nomem(err, "cluster",
                              (size_t)nhosts * sizeof *c->hosts);
    }
    *clusterp = c;
    return 0;
}

int dtn_cluster_slurm_step(struct dtensor_cluster **clusterp,
                           struct dtensor_error *err)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
    char **names = NULL, why[300];
    int *counts = NULL, nnames = 0, ncounts = 0, rc;

    if (!list || !tasks)
        return dtn_fail(err, DTENSOR_ECONF, "%s is not set: start the program "
                        "with srun, or name a cluster file in DTN_CLUSTER",
                        list ? "SLURM_STEP_TASKS_PER_NODE"
                             : "SLURM_STEP_NODELIST");
    rc = dtn_hostlist_expand(list, &names, &nnames, why, sizeof why);
    if (rc)
        return dtn_fail(err, rc, "SLURM_STEP_NODELIST: %s", why);
    rc = dtn_counts_expand(tasks, &counts, &ncounts, why, sizeof why);
    if (rc)
        rc = dtn_fail(err, rc, "SLURM_STEP_TASKS_PER_NODE: %s", why);
    else if (ncounts != nnames)
        rc = dtn_fail(err, DTENSOR_ECONF, "SLURM_STEP_TASKS_PER_NODE is \"%s\", "
                      "for %d nodes, but SLURM_STEP_NODELIST is \"%.200s\", %d "
                      "nodes: start the program with srun", tasks, ncounts,
                      list, nnames);
    else
        rc = builtin_step(names, counts, nnames, clusterp, err);
    free(counts);
    dtn_hostlist_free(names, nnames);
    return rc;
}
