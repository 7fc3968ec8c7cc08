/* intern.c - each mesh, and each list of ranks, exists once
 *
 * A mesh is first described: its root, and the sizes, names and axes of its
 * dimensions.  If the context has this mesh already, it is returned.  So two
 * equal meshes are one object and are compared by pointer.  Meshes with the
 * same ranks share one list of ranks, and the caches use the address of the
 * list as a key.  If 65,536 ranks form rows of 8, each of the 8,192 row meshes
 * is made once.
 */
#include "mesh/intern.h"
#include "base/error.h"
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "job/group.h"
#include "mesh/grid.h"
#include "mesh/mesh.h"
#include "mesh/meshes.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ------------------------------------------------------- lists of ranks --- */

/* Does a mesh of the cluster, which lives as long, have the same list? */
static bool ranks_of_file(const struct dtensor_ctx *ctx,
                          struct dtn_ranks *ranks)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;

    for (int m = 0; m < cluster->nmeshes; m++)
        if (dtn_ranks_equal(&cluster->meshes[m].ranks, ranks)) {
            *ranks = cluster->meshes[m].ranks;
            return true;
        }
    return false;
}

static int mesh_ranks_add(struct dtensor_ctx *ctx, uint64_t hash,
                          struct dtn_ranks ranks,
                          struct dtn_mesh_ranks **listp,
                          struct dtensor_error *err)
{
    const size_t own = ranks.list && !ranks_of_file(ctx, &ranks)
                     ? (size_t)ranks.n * sizeof ranks.list[0] : 0;
    const size_t size = sizeof(struct dtn_mesh_ranks) + own;
    struct dtn_meshes *meshes = dtn_meshes_of(ctx);
    struct dtn_mesh_ranks **bucket = &meshes->ranks[hash % DTN_MESH_BUCKETS];
    struct dtn_mesh_ranks *list = malloc(size);

    if (!list)
        return dtn_fail_nomem(err, "mesh", size);
    *list = (struct dtn_mesh_ranks){ .next = *bucket, .hash = hash,
        .me = dtn_ranks_find(&ranks, ctx->world.rank), .ranks = ranks };
    if (own > 0)
        list->ranks.list = memcpy(list->own, ranks.list, own);
    *bucket = list;
    *listp = list;
    return 0;
}

static uint64_t ranks_hash(const struct dtn_ranks *ranks)
{
    const int even[] = { ranks->first, ranks->step };

    return ranks->list
         ? XXH3_64bits_withSeed(ranks->list, (size_t)ranks->n * sizeof(int),
                                (uint64_t)ranks->n)
         : XXH3_64bits_withSeed(even, sizeof even, (uint64_t)ranks->n);
}

/* Give the mesh its group: find the list of these ranks, or add it. */
static int mesh_group(struct dtensor_mesh *mesh, struct dtn_ranks ranks,
                      struct dtensor_error *err)
{
    const uint64_t hash = ranks_hash(&ranks);
    struct dtn_mesh_ranks *list;
    int rc = 0;

    list = dtn_meshes_of(mesh->ctx)->ranks[hash % DTN_MESH_BUCKETS];
    while (list && (list->hash != hash
                    || !dtn_ranks_equal(&list->ranks, &ranks)))
        list = list->next;
    if (!list)
        rc = mesh_ranks_add(mesh->ctx, hash, ranks, &list, err);
    if (rc == 0)
        mesh->group = (struct dtn_group){ mesh->ctx, ranks.n, list->me,
                                          &list->ranks, hash, &list->calls,
                                          mesh->memory == DTENSOR_CUDA };
    return rc;
}

/* ------------------------------------------------------------ interning --- */

/* Are they the same grid over the same ranks?  A mesh that a program makes may
 * be one of the cluster file.  Two meshes of the file with different names are
 * different meshes.
 */
static bool mesh_is(const struct dtensor_mesh *mesh,
                    const struct dtensor_mesh *proto)
{
    if (mesh->ndim != proto->ndim || mesh->origin != proto->origin ||
        mesh->memory != proto->memory ||
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

/* A root and the slice of all its dimensions are the same mesh, so they must
 * have the same hash: it covers the dimensions only.
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
        dtn_meshes_of(proto->ctx)->mesh[mesh_hash(proto) % DTN_MESH_BUCKETS];

    while (mesh && !mesh_is(mesh, proto))
        mesh = mesh->chain;
    return mesh;
}

/* Store in a new root the position of each rank of the world.  The array is
 * allocated together with the mesh, after it, if the ranks are a list.
 */
static void mesh_root_init(struct dtensor_mesh *mesh, size_t world)
{
    int *where = (int *)(mesh + 1);

    mesh->root = mesh;
    if (world == 0)
        return;
    mesh->where = where;
    memset(where, -1, world * sizeof *where);
    for (int i = 0; i < mesh->group.n; i++)
        where[dtn_ranks_at(mesh->group.ranks, i)] = i;
}

/* The dimensions along which the seeds of the cluster file differ: each rank is
 * compared with the rank whose coordinate in that dimension is 0.
 */
static unsigned mesh_distinct(const struct dtensor_mesh *mesh)
{
    const uint64_t *seeds = dtn_meshes_of(mesh->ctx)->seeds;
    const struct dtn_ranks *ranks = mesh->group.ranks;
    unsigned dims = 0;

    for (int i = 0; seeds && i < mesh->group.n; i++)
        for (int d = mesh->ndim - 1, stride = 1; d >= 0; d--) {
            int first = i - i / stride % mesh->size[d] * stride;

            if (seeds[dtn_ranks_at(ranks, i)]
                != seeds[dtn_ranks_at(ranks, first)])
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
        &meshes->mesh[mesh_hash(proto) % DTN_MESH_BUCKETS];
    size_t world = proto->root || !proto->group.ranks->list ? 0
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

/* ------------------------------------------------------ parts of a root --- */

void dtn_mesh_begin(struct dtensor_mesh *proto, const struct dtensor_mesh *of)
{
    memset(proto, 0, sizeof *proto);
    proto->ctx = of->ctx;
    proto->root = of->root;
    proto->memory = of->memory;
}

void dtn_mesh_add(struct dtensor_mesh *proto, const char *name, int size,
                  const struct dtn_grid *axis)
{
    strcpy(proto->dim_name[proto->ndim], name);
    proto->size[proto->ndim] = size;
    proto->axis[proto->ndim++] = *axis;
}

/* The ranks of a part that are not evenly spaced, or not in the root. */
static int part_group(struct dtensor_mesh *proto, const struct dtn_grid *grid,
                      struct dtensor_error *err)
{
    const int n = dtn_grid_size(grid);
    int *ranks = malloc((size_t)n * sizeof *ranks), rc;

    if (!ranks)
        return dtn_fail_nomem(err, "mesh", (size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++)
        ranks[i] = dtn_ranks_at(proto->root->group.ranks,
                                proto->origin + dtn_grid_at(grid, i));
    rc = mesh_group(proto, dtn_ranks_of(ranks, n), err);
    free(ranks);
    return rc;
}

/* The same for any part: every `stride`-th rank of evenly spaced ones is known
 * without a look at each.
 */
static int part_ranks(struct dtensor_mesh *proto, const struct dtn_grid *grid,
                      struct dtensor_error *err)
{
    const struct dtn_ranks *of = proto->root->group.ranks;

    if (of->list || grid->n != 1)
        return part_group(proto, grid, err);
    return mesh_group(proto, (struct dtn_ranks){ grid->size[0],
        dtn_ranks_at(of, proto->origin), of->step * grid->stride[0], NULL },
        err);
}

int dtn_mesh_end(struct dtensor_mesh *proto, int at,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err)
{
    struct dtn_grid grid = dtn_mesh_grid(proto);
    const struct dtensor_mesh *known;
    int rc;

    dtn_grid_take(&grid, &at);
    proto->origin = at;
    known = mesh_known(proto);
    if (known) {
        *meshp = known;
        return 0;
    }
    rc = part_ranks(proto, &grid, err);
    return rc == 0 ? mesh_keep(proto, meshp, err) : rc;
}

int dtn_mesh_position(const struct dtensor_mesh *mesh)
{
    return mesh->group.me < 0 ? mesh->origin
                              : dtn_mesh_where(mesh->root,
                                               mesh->ctx->world.rank);
}

struct dtn_grid dtn_mesh_grid(const struct dtensor_mesh *mesh)
{
    struct dtn_grid grid = { 0 };

    for (int d = 0; d < mesh->ndim; d++)
        dtn_grid_join(&grid, &mesh->axis[d]);
    return grid;
}

/* ---------------------------------------------------------------- roots --- */

int dtn_mesh_root(struct dtensor_mesh *proto, const struct dtn_ranks *ranks,
                  const struct dtensor_mesh **meshp, struct dtensor_error *err)
{
    const struct dtensor_mesh *known;
    int n = 1, rc;

    for (int d = proto->ndim - 1; d >= 0; d--) {
        dtn_grid_add(&proto->axis[d], proto->size[d], n);
        n *= proto->size[d];
    }
    rc = mesh_group(proto, *ranks, err);
    if (rc != 0)
        return rc;
    known = mesh_known(proto);
    if (!known)
        return mesh_keep(proto, meshp, err);
    *meshp = known;
    return 0;
}
