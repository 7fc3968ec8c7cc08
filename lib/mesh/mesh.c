/* mesh.c - meshes: ranks on a grid, each grid only once
 *
 * A mesh that is made of a list of ranks is a root: with dp=2,tp=4 over ranks
 * 0..7, position 6 is rank 6, coordinate (1, 2).  Every other mesh is a pattern
 * of positions of a root: its "tp" slice at rank 6 starts at position 4 and
 * goes on by 1, ranks 4 5 6 7; its "dp" slice starts at 2 and goes on by 4,
 * ranks 2 6.  So a slice costs a few integers and a look into a table, and
 * nobody is asked.  Two meshes alike are one object, and lists of ranks are
 * shared too: a pointer compares meshes, and plans can be kept by it.
 */
#include "mesh/mesh.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/seed.h"
#include "job/ctx.h"
#include "job/group.h"
#include "mesh/grid.h"
#include "mesh/meshes.h"
#include "dtensor.h"

#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------- lists of ranks --- */

static int mesh_ranks_add(struct dtensor_ctx *ctx, uint64_t hash,
                          const int ranks[], int n,
                          struct mesh_ranks **listp,
                          struct dtensor_error *err)
{
    size_t size = sizeof(struct mesh_ranks) + (size_t)n * sizeof(int);
    struct dtn_meshes *meshes = dtn_meshes_of(ctx);
    struct mesh_ranks **bucket = &meshes->ranks[hash % MESH_BUCKETS];
    struct mesh_ranks *list = malloc(size);

    if (!list)
        return dtn_fail_nomem(err, "mesh", size);
    *list = (struct mesh_ranks){ *bucket, hash, n, -1, 0 };
    memcpy(list->rank, ranks, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++)
        if (ranks[i] == ctx->world.rank)
            list->me = i;
    *bucket = list;
    *listp = list;
    return 0;
}

/* Give the mesh its group: the list of these ranks there is, or a new one. */
static int mesh_group(struct dtensor_mesh *mesh, const int ranks[], int n,
                      struct dtensor_error *err)
{
    size_t bytes = (size_t)n * sizeof ranks[0];
    uint64_t hash = XXH3_64bits_withSeed(ranks, bytes, (uint64_t)n);
    struct mesh_ranks *list;
    int rc = 0;

    list = dtn_meshes_of(mesh->ctx)->ranks[hash % MESH_BUCKETS];
    while (list && (list->hash != hash || list->n != n ||
                    memcmp(list->rank, ranks, bytes) != 0))
        list = list->next;
    if (!list)
        rc = mesh_ranks_add(mesh->ctx, hash, ranks, n, &list, err);
    if (rc == 0)
        mesh->group = (struct dtn_group){ mesh->ctx, n, list->me, list->rank,
                                          hash, &list->calls };
    return rc;
}

/* ------------------------------------------------------------ interning --- */

/* The same grid of the same ranks, whatever it is called.  One made by a
 * program may be one of the file's; one of the file's must have its own name.
 */
static bool mesh_is(const struct dtensor_mesh *mesh,
                    const struct dtensor_mesh *proto)
{
    if (mesh->ndim != proto->ndim || mesh->origin != proto->origin ||
        mesh->root != (proto->root ? proto->root : mesh) ||
        mesh->group.ranks != (proto->root ? mesh->group.ranks
                                          : proto->group.ranks) ||
        (proto->name[0] && strcmp(mesh->name, proto->name) != 0))
        return false;
    for (int d = 0; d < mesh->ndim; d++)
        if (mesh->size[d] != proto->size[d] ||
            strcmp(mesh->dim_name[d], proto->dim_name[d]) != 0 ||
            !dtn_grid_equal(&mesh->axis[d], &proto->axis[d]))
            return false;
    return true;
}

/* A root and its own dimensions in order are the same mesh, so they must have
 * the same hash: of the dimensions only.
 */
static uint32_t mesh_hash(const struct dtensor_mesh *proto)
{
    size_t n = (size_t)proto->ndim;

    return XXH32(proto->dim_name, n * sizeof proto->dim_name[0],
                 XXH32(proto->size, n * sizeof proto->size[0],
                       (uint32_t)proto->origin));
}

static const struct dtensor_mesh *mesh_known(const struct dtensor_mesh *proto)
{
    const struct dtensor_mesh *mesh =
        dtn_meshes_of(proto->ctx)->mesh[mesh_hash(proto) % MESH_BUCKETS];

    while (mesh && !mesh_is(mesh, proto))
        mesh = mesh->chain;
    return mesh;
}

/* Note in a new root where each rank of the world is; the room is behind it. */
static void mesh_root_init(struct dtensor_mesh *mesh, size_t world)
{
    int *where = (int *)(mesh + 1);

    memset(where, -1, world * sizeof *where);
    for (int i = 0; i < mesh->group.n; i++)
        where[mesh->group.ranks[i]] = i;
    mesh->where = where;
    mesh->root = mesh;
}

/* The dimensions along which the seeds of the cluster file differ.  Each rank
 * is compared with the one whose coordinate there is 0.
 */
static unsigned mesh_distinct(const struct dtensor_mesh *mesh)
{
    const uint64_t *seeds = dtn_meshes_of(mesh->ctx)->seeds;
    const int *ranks = mesh->group.ranks;
    unsigned dims = 0;

    for (int i = 0; seeds && i < mesh->group.n; i++)
        for (int d = mesh->ndim - 1, stride = 1; d >= 0; d--) {
            int first = i - i / stride % mesh->size[d] * stride;

            if (seeds[ranks[i]] != seeds[ranks[first]])
                dims |= 1u << d;
            stride *= mesh->size[d];
        }
    return dims;
}

/* Keep a copy of a described mesh that has its group. */
static int mesh_keep(const struct dtensor_mesh *proto,
                     const struct dtensor_mesh **meshp,
                     struct dtensor_error *err)
{
    struct dtn_meshes *meshes = dtn_meshes_of(proto->ctx);
    struct dtensor_mesh **bucket =
        &meshes->mesh[mesh_hash(proto) % MESH_BUCKETS];
    size_t world = proto->root ? 0
                               : (size_t)proto->ctx->world.cluster->world_size;
    size_t size = sizeof *proto + world * sizeof proto->where[0];
    struct dtensor_mesh *mesh = malloc(size);

    if (!mesh)
        return dtn_fail_nomem(err, "mesh", size);
    *mesh = *proto;
    if (!proto->root)
        mesh_root_init(mesh, world);
    mesh->distinct = mesh_distinct(mesh);
    mesh->next = NULL;
    *meshes->end = mesh;
    meshes->end = &mesh->next;
    mesh->chain = *bucket;
    *bucket = mesh;
    *meshp = mesh;
    return 0;
}

/* ------------------------------------------------------- parts of a root --- */

void dtn_mesh_begin(struct dtensor_mesh *proto, const struct dtensor_mesh *of)
{
    memset(proto, 0, sizeof *proto);
    proto->ctx = of->ctx;
    proto->root = of->root;
}

void dtn_mesh_add(struct dtensor_mesh *proto, const char *name, int size,
                  const struct dtn_grid *axis)
{
    strcpy(proto->dim_name[proto->ndim], name);
    proto->size[proto->ndim] = size;
    proto->axis[proto->ndim++] = *axis;
}

int dtn_mesh_end(struct dtensor_mesh *proto, int at,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err)
{
    struct dtn_grid grid = dtn_mesh_grid(proto);
    int n = dtn_grid_size(&grid), rc;
    const struct dtensor_mesh *known;
    int *ranks;

    dtn_grid_take(&grid, &at);
    proto->origin = at;
    known = mesh_known(proto);
    if (known) {
        *meshp = known;
        return 0;
    }
    ranks = malloc((size_t)n * sizeof *ranks);
    if (!ranks)
        return dtn_fail_nomem(err, "mesh", (size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++)
        ranks[i] = proto->root->group.ranks[at + dtn_grid_at(&grid, i)];
    rc = mesh_group(proto, ranks, n, err);
    if (rc == 0)
        rc = mesh_keep(proto, meshp, err);
    free(ranks);
    return rc;
}

int dtn_mesh_here(const struct dtensor_mesh *mesh)
{
    return mesh->group.me < 0 ? mesh->origin
                              : mesh->root->where[mesh->ctx->world.rank];
}

struct dtn_grid dtn_mesh_grid(const struct dtensor_mesh *mesh)
{
    struct dtn_grid grid = { 0 };

    for (int d = 0; d < mesh->ndim; d++)
        dtn_grid_join(&grid, &mesh->axis[d]);
    return grid;
}

/* ----------------------------------------------------------------- roots --- */

/* Find or make the root of these ranks; NULL means 0, 1, 2, ... */
static int mesh_root(struct dtensor_mesh *proto, const int ranks[],
                     const struct dtensor_mesh **meshp,
                     struct dtensor_error *err)
{
    const struct dtensor_mesh *known;
    int n = 1, rc, *count = NULL;

    for (int d = proto->ndim - 1; d >= 0; d--) {
        dtn_grid_add(&proto->axis[d], proto->size[d], n);
        n *= proto->size[d];
    }
    if (!ranks) {
        count = malloc((size_t)n * sizeof *count);
        if (!count)
            return dtn_fail_nomem(err, "mesh", (size_t)n * sizeof *count);
        for (int i = 0; i < n; i++)
            count[i] = i;
    }
    rc = mesh_group(proto, ranks ? ranks : count, n, err);
    free(count);
    if (rc != 0)
        return rc;
    known = mesh_known(proto);
    if (!known)
        return mesh_keep(proto, meshp, err);
    *meshp = known;
    return 0;
}

/* Fill in the sizes: their product is at most the world's size. */
static int mesh_count(struct dtensor_mesh *proto, const int sizes[],
                      struct dtensor_error *err)
{
    int world = proto->ctx->world.cluster->world_size;
    int64_t n = 1;

    for (int d = 0; d < proto->ndim; d++) {
        if (sizes[d] < 1)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: size %d of dimension "
                            "%d; expected 1 or more", sizes[d], d);
        proto->size[d] = sizes[d];
        n *= sizes[d];                    /* below 2^31 * 2^31, checked next */
        if (n > world)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: sizes up to "
                            "dimension %d need %lld ranks, but the world has "
                            "%d", d, (long long)n, world);
    }
    return 0;
}

/* Every rank must be one of the world, and appear once. */
static int mesh_check_ranks(const struct dtensor_mesh *proto,
                            const int ranks[], struct dtensor_error *err)
{
    int world = proto->ctx->world.cluster->world_size, n = 1, bad = -1;
    bool *seen;

    if (!ranks)
        return 0;
    seen = calloc((size_t)world, sizeof *seen);
    if (!seen)
        return dtn_fail_nomem(err, "mesh", (size_t)world);
    for (int d = 0; d < proto->ndim; d++)
        n *= proto->size[d];
    for (int i = 0; bad < 0 && i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= world || seen[ranks[i]])
            bad = i;
        else
            seen[ranks[i]] = true;
    }
    free(seen);
    if (bad < 0)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: rank %d at position %d is %s",
                    ranks[bad], bad, ranks[bad] < 0 || ranks[bad] >= world ?
                    "not in the world" : "listed twice");
}

int dtensor_mesh_create(struct dtensor_ctx *ctx, int ndim, const int sizes[],
                        const char *names, const int ranks[],
                        const struct dtensor_mesh **meshp,
                        struct dtensor_error *err)
{
    struct dtensor_mesh proto = { .ctx = ctx, .ndim = ndim };
    int rc;

    if (ndim < 1 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: %d dimensions; expected 1 "
                        "to %d", ndim, DTENSOR_MAX_DIMS);
    rc = mesh_count(&proto, sizes, err);
    if (rc == 0 && names)
        rc = dtn_mesh_names(names, ndim, proto.dim_name, err);
    if (rc == 0)
        rc = mesh_check_ranks(&proto, ranks, err);
    return rc == 0 ? mesh_root(&proto, ranks, meshp, err) : rc;
}

/* ------------------------------------------------------- from the file --- */

static int mesh_from_def(struct dtensor_ctx *ctx,
                         const struct dtn_mesh_def *def,
                         struct dtensor_error *err)
{
    struct dtensor_mesh proto = { .ctx = ctx, .ndim = def->ndim };
    const struct dtensor_mesh *mesh;

    memcpy(proto.name, def->name, sizeof proto.name);
    memcpy(proto.size, def->size, sizeof proto.size);
    memcpy(proto.dim_name, def->dim_name, sizeof proto.dim_name);
    return mesh_root(&proto, def->ranks, &mesh, err);
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
        .dim_name = { "world" }
    };
    int rc = 0;

    for (int i = 0; rc == 0 && i < cluster->nmeshes; i++)
        rc = mesh_from_def(ctx, &cluster->meshes[i], err);
    if (rc == 0 && !mesh_named(ctx, "world"))
        rc = mesh_from_def(ctx, &world, err);
    return rc;
}

/* If seeds differ, store them all: meshes are compared with them. */
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
    struct mesh_ranks *list;
    struct mesh_flat *flat;

    while ((mesh = meshes->first)) {
        meshes->first = mesh->next;
        free(mesh);
    }
    for (int b = 0; b < MESH_BUCKETS; b++)
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
