/* show.c - print a cluster for people
 *
 * Each view is a loop over ranks, hosts or mesh positions.  It prints the lines
 * of one rank, or of all if the rank is -1.  In the two-node example `rank 5`
 * is host gpu02, local rank 1, device mlx5_0:1.
 */
#include "base/error.h"
#include "base/ranks.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "cluster/plan.h"
#include "cluster/seed.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void show_dims(const struct dtn_mesh_def *mesh, FILE *out)
{
    if (mesh->ndim == 1 && mesh->size[0] == 0) {
        fputs(mesh->name, out);      /* all ranks of a step, any number       */
        return;
    }
    fprintf(out, "%s(", mesh->name);
    for (int d = 0; d < mesh->ndim; d++)
        fprintf(out, "%s%s=%d", d ? "," : "", mesh->dim_name[d],
                mesh->size[d]);
    fputc(')', out);
}

/* "dp=1,tp=2" of row-major position i. */
static void show_coord(const struct dtn_mesh_def *mesh, int i,
                       const char *separator, FILE *out)
{
    int stride = mesh->ranks.n;

    for (int d = 0; d < mesh->ndim; d++) {
        stride /= mesh->size[d];
        fprintf(out, "%s%s=%d", d ? separator : "", mesh->dim_name[d],
                i / stride % mesh->size[d]);
    }
}

static void show_rank_summary(const struct dtensor_cluster *cluster, int rank,
                              FILE *out)
{
    const struct dtn_host *host = dtn_host_of(cluster, rank);
    const struct dtn_mesh_def *mesh = cluster->meshes;

    fprintf(out, "rank %d is local rank %d of %d on %s; meshes", rank,
            rank - host->first_rank, host->nranks, host->name);
    for (int m = 0, n = 0; m < cluster->nmeshes; m++, mesh++) {
        const int i = dtn_ranks_find(&mesh->ranks, rank);

        if (i < 0)
            continue;
        fprintf(out, "%s %s(", n++ ? "," : "", mesh->name);
        show_coord(mesh, i, ",", out);
        fputc(')', out);
    }
    fputc('\n', out);
}

static int show_summary(const struct dtensor_cluster *cluster, int rank,
                        FILE *out, struct dtensor_error *err)
{
    if (rank >= 0) {
        show_rank_summary(cluster, rank, out);
        return 0;
    }
    if (cluster->world_size == 0)
        fputs("ranks and nodes of the Slurm step; meshes", out);
    else
        fprintf(out, "%d rank%s on %d node%s; meshes", cluster->world_size,
                cluster->world_size == 1 ? "" : "s", cluster->nhosts,
                cluster->nhosts == 1 ? "" : "s");
    for (int m = 0; m < cluster->nmeshes; m++) {
        fputs(m ? ", " : " ", out);
        show_dims(&cluster->meshes[m], out);
    }
    fputc('\n', out);
    return 0;
}

/* The widest host name or address, for a column. */
static int show_width(const struct dtensor_cluster *cluster, bool address,
                      int least)
{
    const struct dtn_host *host = cluster->hosts;
    int width = least;

    for (int i = 0; i < cluster->nhosts; i++, host++) {
        int n = (int)strlen(address ? host->address : host->name);

        width = n > width ? n : width;
    }
    return width;
}

/* The widest "mlx5_0:1+mlx5_1:1". */
static int show_hca_width(const struct dtensor_cluster *cluster, int least)
{
    int width = least;

    for (int i = 0; i < cluster->nnodes; i++) {
        const struct dtn_nodes *nodes = &cluster->nodes[i];

        for (int local = 0; nodes->hca && local < nodes->nranks; local++) {
            int n = (int)strlen(nodes->hca[local]);

            width = n > width ? n : width;
        }
    }
    return width;
}

/* The device that the file gives the local rank, or "-". */
static const char *show_gpu(const struct dtn_nodes *nodes, int local,
                            char buf[], size_t size)
{
    if (nodes->ngpus <= 0)
        return "-";
    snprintf(buf, size, "%d", nodes->gpus[local % nodes->ngpus]);
    return buf;
}

static int show_ranks(const struct dtensor_cluster *cluster, int rank,
                      FILE *out, struct dtensor_error *err)
{
    const struct dtn_nodes *nodes;
    int width = show_width(cluster, false, 4);
    int hca_width = show_hca_width(cluster, 10);
    char gpu[16];

    fprintf(out, "%7s  %-*s  %5s  %4s  %-*s  %s\n", "rank", width, "host",
            "local", "gpu", hca_width, "hca", "cpus");
    for (int i = 0; i < cluster->nhosts; i++) {
        const struct dtn_host *host = &cluster->hosts[i];

        nodes = &cluster->nodes[host->nodes];
        for (int local = 0; local < host->nranks; local++) {
            if (rank >= 0 && rank != host->first_rank + local)
                continue;
            fprintf(out, "%7d  %-*s  %5d  %4s  %-*s  %s\n",
                    host->first_rank + local, width, host->name, local,
                    show_gpu(nodes, local, gpu, sizeof gpu), hca_width, nodes->hca ? nodes->hca[local] : "-",
                    nodes->cpus ? nodes->cpus[local] :
                    nodes->cpus_numa ? "numa" : "-");
        }
    }
    return 0;
}

static int show_hosts(const struct dtensor_cluster *cluster, int rank,
                      FILE *out, struct dtensor_error *err)
{
    int name = show_width(cluster, false, 4);
    int address = show_width(cluster, true, 7);

    fprintf(out, "%-*s  %-*s  ranks\n", name, "host", address, "address");
    for (int i = 0; i < cluster->nhosts; i++) {
        const struct dtn_host *host = &cluster->hosts[i];
        int last = host->first_rank + host->nranks - 1;

        if (rank >= 0 && (rank < host->first_rank || rank > last))
            continue;
        fprintf(out, "%-*s  %-*s  %d", name, host->name, address,
                host->address, host->first_rank);
        if (last > host->first_rank)
            fprintf(out, "-%d", last);
        fputc('\n', out);
    }
    return 0;
}

static int show_mesh(const struct dtensor_cluster *cluster, int rank,
                     FILE *out, struct dtensor_error *err)
{
    const struct dtn_mesh_def *mesh = cluster->meshes;

    for (int m = 0; m < cluster->nmeshes; m++, mesh++) {
        fputs("mesh ", out);
        show_dims(mesh, out);
        fputc('\n', out);
        for (int i = 0; i < mesh->ranks.n; i++) {
            if (rank >= 0 && rank != dtn_ranks_at(&mesh->ranks, i))
                continue;
            fprintf(out, "%7d  ", dtn_ranks_at(&mesh->ranks, i));
            show_coord(mesh, i, " ", out);
            fputc('\n', out);
        }
    }
    return 0;
}

static int show_seeds(const struct dtensor_cluster *cluster, int rank,
                      FILE *out, struct dtensor_error *err)
{
    if (!cluster->seed.given)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no seeds to show: it has no "
                        "[seed] section (write one with base = a whole "
                        "number)", cluster->path);
    fprintf(out, "%7s  seed\n", "rank");
    for (int r = 0; r < cluster->world_size; r++)
        if (rank < 0 || r == rank)
            fprintf(out, "%7d  %" PRIu64 "\n", r, dtn_seed_of(cluster, r));
    return 0;
}

static int show_plan(const struct dtensor_cluster *cluster, int rank,
                     FILE *out, struct dtensor_error *err)
{
    if (rank >= 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: plans are the same for every "
                        "rank (leave the rank out)", cluster->path);
    if (cluster->nplans == 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no plan to show: it has no "
                        "[plan] section (write one such as [plan \"mlp\"] with "
                        "layers.*.up = colwise)", cluster->path);
    dtn_plan_show(cluster, out);
    return 0;
}

static int show_digest(const struct dtensor_cluster *cluster, int rank,
                       FILE *out, struct dtensor_error *err)
{
    char *text;
    int rc;

    if (rank >= 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: the digest is the same for "
                        "every rank (leave the rank out)", cluster->path);
    rc = dtn_cluster_canonical(cluster, &text, err);
    if (rc < 0)
        return rc;
    fprintf(out, "%sdigest %016" PRIx64 "\n", text, dtn_digest(text));
    free(text);
    return 0;
}

int dtensor_cluster_show(const struct dtensor_cluster *cluster,
                         enum dtensor_show what, int rank, FILE *stream,
                         struct dtensor_error *err)
{
    static int (*const views[])(const struct dtensor_cluster *, int, FILE *,
                                struct dtensor_error *) = {
        [DTENSOR_SHOW_SUMMARY] = show_summary,
        [DTENSOR_SHOW_RANKS] = show_ranks,
        [DTENSOR_SHOW_HOSTS] = show_hosts,
        [DTENSOR_SHOW_MESH] = show_mesh,
        [DTENSOR_SHOW_SEEDS] = show_seeds,
        [DTENSOR_SHOW_DIGEST] = show_digest,
        [DTENSOR_SHOW_PLAN] = show_plan
    };

    if ((unsigned)what >= DTENSOR_NSHOWS)
        return dtn_fail(err, DTENSOR_EINVAL, "dtensor_cluster_show: no view "
                        "%d (see enum dtensor_show)", (int)what);
    if (cluster->world_size == 0 && (what != DTENSOR_SHOW_SUMMARY || rank >= 0))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: hosts = @step: ranks and hosts "
                        "are known under srun only (run it there)",
                        cluster->path);
    if (rank >= cluster->world_size)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no rank %d (there are 0 to "
                        "%d)", cluster->path, rank, cluster->world_size - 1);
    return views[what](cluster, rank, stream, err);
}
