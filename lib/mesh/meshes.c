/* meshes.c - the meshes of a context
 *
 * Every rank makes the meshes of the cluster file at the start, and "world".
 * They can be found by name.  Meshes that a program makes have no name.
 */
#include "mesh/meshes.h"
#include "base/error.h"
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "cluster/seed.h"
#include "job/ctx.h"
#include "mesh/intern.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

static int mesh_from_def(struct dtensor_ctx *ctx,
                         const struct dtn_mesh_def *def,
                         struct dtensor_error *err)
{
    struct dtensor_mesh proto = { .ctx = ctx, .ndim = def->ndim,
        .memory = (enum dtensor_memory)def->memory };
    const struct dtensor_mesh *mesh;

    memcpy(proto.name, def->name, sizeof proto.name);
    memcpy(proto.size, def->size, sizeof proto.size);
    memcpy(proto.dim_name, def->dim_name, sizeof proto.dim_name);
    return dtn_mesh_root(&proto, &def->ranks, &mesh, err);
}

static const struct dtensor_mesh *mesh_named(const struct dtensor_ctx *ctx,
                                             const char *name)
{
    for (const struct dtensor_mesh *m = dtn_meshes_of(ctx)->first; m;
         m = m->next)
        if (m->name[0] && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

static int meshes_fill(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    const struct dtn_mesh_def world = {
        .name = "world", .ndim = 1, .size = { cluster->world_size },
        .dim_name = { "world" }, .ranks = dtn_ranks_all(cluster->world_size)
    };
    int rc = 0;

    for (int i = 0; rc == 0 && i < cluster->nmeshes; i++)
        rc = mesh_from_def(ctx, &cluster->meshes[i], err);
    if (rc == 0 && !mesh_named(ctx, "world"))
        rc = mesh_from_def(ctx, &world, err);
    return rc;
}

/* Store the seeds of all ranks if they differ.  Each new mesh is compared with
 * them.
 */
static int meshes_seeds(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    size_t world = (size_t)cluster->world_size;
    uint64_t *seeds;

    if (cluster->seed.ndistinct == 0 || ctx->planning)
        return 0;
    seeds = malloc(world * sizeof *seeds);
    if (!seeds)
        return dtn_fail_nomem(err, "seeds", world * sizeof *seeds);
    dtn_seeds_of(cluster, seeds);
    dtn_meshes_of(ctx)->seeds = seeds;
    return 0;
}

static void meshes_destroy(void *state)
{
    struct dtn_meshes *meshes = state;
    struct dtensor_mesh *mesh;
    struct dtn_mesh_ranks *list;
    struct dtn_mesh_flat *flat;

    while ((mesh = meshes->first)) {
        meshes->first = mesh->next;
        free(mesh);
    }
    for (int b = 0; b < DTN_MESH_BUCKETS; b++)
        while ((list = meshes->ranks[b])) {
            meshes->ranks[b] = list->next;
            free(list);
        }
    while ((flat = meshes->flat)) {
        meshes->flat = flat->next;
        free(flat);
    }
    free(meshes->seeds);
    free(meshes->entered);
    free(meshes);
}

int dtn_meshes_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_meshes *meshes = calloc(1, sizeof *meshes);
    int rc;

    if (!meshes)
        return dtn_fail_nomem(err, "mesh", sizeof *meshes);
    meshes->end = &meshes->first;
    ctx->slots[DTN_ROOM_MESH] = (struct dtn_slot){ .state = meshes,
                                                   .destroy = meshes_destroy };
    rc = meshes_seeds(ctx, err);
    return rc == 0 ? meshes_fill(ctx, err) : rc;
}

/* "world, stage0": the file's meshes, for messages. */
static char *mesh_list(const struct dtensor_ctx *ctx, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (const struct dtensor_mesh *m = dtn_meshes_of(ctx)->first; m;
         m = m->next)
        if (m->name[0] && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                     used ? ", " : "", m->name);
    return buf;
}

int dtensor_mesh_find(struct dtensor_ctx *ctx, const char *name,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh;
    char list[256];

    if (!name)
        return dtensor_mesh_current(ctx, meshp, err);
    mesh = mesh_named(ctx, name);
    if (!mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no mesh \"%s\" (there "
                        "are: %s)", name, mesh_list(ctx, list, sizeof list));
    *meshp = mesh;
    return 0;
}
