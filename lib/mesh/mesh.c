/* mesh.c - ranks on a grid
 *
 * A mesh that is made from a list of ranks is a root: with dp=2,tp=4 over ranks
 * 0..7, position 6 is rank 6 with coordinate (1, 2).  Every other mesh is a
 * pattern of positions in a root.  For rank 6 the "tp" slice begins at position
 * 4 with stride 1: ranks 4 5 6 7.  The "dp" slice begins at 2 with stride 4:
 * ranks 2 6.  So a slice needs a few integers and one look-up in a table, and
 * no communication.
 *
 * The coordinates of a rank are digits of its position in the root: in
 * (dp=2,tp=4) position 6 is dp = 6 / 4 % 2 = 1, tp = 6 / 1 % 4 = 2.  The cost
 * is the same for 8 ranks and for 8000.
 */
#include "mesh/mesh.h"
#include "base/error.h"
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "fabric/path.h"
#include "job/ctx.h"
#include "mesh/grid.h"
#include "mesh/intern.h"
#include "mesh/names.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- making --- */

/* "mesh: shape 2x4 needs at least 8 ranks, but the world has 6 (...)" */
static int mesh_too_large(int ndim, const int sizes[], int64_t n, int world,
                          struct dtensor_error *err)
{
    char text[DTENSOR_MAX_DIMS * 12] = "";
    int at = 0;

    for (int d = 0; d < ndim; d++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d",
                       d > 0 ? "x" : "", sizes[d]);
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: shape %s needs at least %lld "
                    "ranks, but the world has %d (start more ranks, or give "
                    "smaller sizes)", text, (long long)n, world);
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
            return mesh_too_large(proto->ndim, sizes, n, world, err);
    }
    return 0;
}

/* Every rank must be a rank of the world and occur once. */
static int mesh_check_ranks(const struct dtensor_ctx *ctx, const int ranks[],
                            int n, struct dtensor_error *err)
{
    int world = ctx->world.cluster->world_size, bad = -1;
    bool *seen;

    if (!ranks)
        return 0;
    seen = calloc((size_t)world, sizeof *seen);
    if (!seen)
        return dtn_fail_nomem(err, "mesh", (size_t)world);
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
    const struct dtensor_mesh *world;
    struct dtn_ranks list;
    int n = 1, rc;

    if (ndim < 1 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: %d dimensions; expected 1 "
                        "to %d", ndim, DTENSOR_MAX_DIMS);
    rc = mesh_count(&proto, sizes, err);
    if (rc == 0)
        rc = dtensor_mesh_find(ctx, "world", &world, err);
    if (rc == 0)
        proto.memory = world->memory;
    if (rc == 0 && names)
        rc = dtn_mesh_names(names, ndim, proto.dim_name, err);
    for (int d = 0; rc == 0 && d < ndim; d++)
        n *= sizes[d];
    if (rc == 0)
        rc = mesh_check_ranks(ctx, ranks, n, err);
    if (rc != 0)
        return rc;
    list = ranks ? dtn_ranks_of(ranks, n) : dtn_ranks_all(n);
    return dtn_mesh_root(&proto, &list, meshp, err);
}

/* --------------------------------------------------------------- asking --- */

int dtensor_mesh_ndim(const struct dtensor_mesh *mesh)
{
    return mesh->ndim;
}

int dtensor_mesh_size(const struct dtensor_mesh *mesh)
{
    return mesh->group.n;
}

int dtensor_mesh_dim_size(const struct dtensor_mesh *mesh, int dim)
{
    return dim >= 0 && dim < mesh->ndim ? mesh->size[dim] : 0;
}

const char *dtensor_mesh_dim_name(const struct dtensor_mesh *mesh, int dim)
{
    return dim >= 0 && dim < mesh->ndim ? mesh->dim_name[dim] : "";
}

int dtensor_mesh_rank(const struct dtensor_mesh *mesh, int i)
{
    return i >= 0 && i < mesh->group.n ? dtn_ranks_at(mesh->group.ranks, i)
                                       : -1;
}

enum dtensor_memory dtensor_mesh_memory(const struct dtensor_mesh *mesh)
{
    return mesh->memory;
}

void dtensor_mesh_path(const struct dtensor_mesh *mesh, FILE *stream)
{
    if (dtensor_mesh_memory(mesh) == DTENSOR_CUDA)
        dtn_gpu_path_write(mesh->ctx, stream);
}

/* --------------------------------------------------------- who is where --- */

int dtensor_mesh_index(const struct dtensor_mesh *mesh, int rank)
{
    int world = mesh->ctx->world.cluster->world_size, index = 0, at;

    if (rank < 0 || rank >= world)
        return -1;
    at = dtn_mesh_where(mesh->root, rank);
    if (at < 0)
        return -1;
    for (int d = 0; d < mesh->ndim; d++)
        index = index * mesh->size[d] + dtn_grid_take(&mesh->axis[d], &at);
    return at == mesh->origin ? index : -1;
}

void dtn_mesh_coord_of(const struct dtensor_mesh *mesh, int index, int coord[])
{
    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coord[d] = index % mesh->size[d];
        index /= mesh->size[d];
    }
}

int dtn_mesh_along(const struct dtensor_mesh *mesh, unsigned dims, int index,
                   int position[])
{
    int coord[DTENSOR_MAX_DIMS], stride = mesh->group.n, n = 1;

    dtn_mesh_coord_of(mesh, index, coord);
    position[0] = 0;
    for (int d = 0; d < mesh->ndim; d++) {
        const bool along = dims >> d & 1;
        const int size = along ? mesh->size[d] : 1;

        stride /= mesh->size[d];
        for (int i = n - 1; i >= 0; i--)
            for (int c = size - 1, at = position[i]; c >= 0; c--)
                position[i * size + c] = at + (along ? c : coord[d]) * stride;
        n *= size;
    }
    return n;
}

int dtensor_mesh_coord(const struct dtensor_mesh *mesh, int rank, int coord[])
{
    int index = dtensor_mesh_index(mesh, rank);

    if (index < 0)
        return 0;
    dtn_mesh_coord_of(mesh, index, coord);
    return 1;
}

int dtensor_mesh_coord_along(const struct dtensor_mesh *mesh, int dim,
                             int *rankp, struct dtensor_error *err)
{
    int coord[DTENSOR_MAX_DIMS], rc = dtn_mesh_check_dim(mesh, &dim, err);

    if (rc != 0)
        return rc;
    *rankp = dtensor_mesh_coord(mesh, mesh->ctx->world.rank, coord) ? coord[dim]
                                                                   : -1;
    return 0;
}

/* ------------------------------------------------------- root, equality --- */

const struct dtensor_mesh *dtensor_mesh_root(const struct dtensor_mesh *mesh)
{
    return mesh->root;
}

int dtensor_mesh_root_dim(const struct dtensor_mesh *mesh)
{
    const struct dtensor_mesh *root = mesh->root;

    if (root == mesh || mesh->ndim != 1)
        return -1;
    for (int d = 0; d < root->ndim; d++)
        if (strcmp(root->dim_name[d], mesh->dim_name[0]) == 0 &&
            dtn_grid_equal(&root->axis[d], &mesh->axis[0]))
            return d;
    return -1;
}

int dtensor_mesh_equal(const struct dtensor_mesh *a,
                       const struct dtensor_mesh *b)
{
    if (a == b)
        return 1;
    if (a->root->group.ranks != b->root->group.ranks || a->ndim != b->ndim ||
        a->origin != b->origin || a->memory != b->memory)
        return 0;
    for (int d = 0; d < a->ndim; d++)
        if (a->size[d] != b->size[d] ||
            strcmp(a->dim_name[d], b->dim_name[d]) != 0 ||
            !dtn_grid_equal(&a->axis[d], &b->axis[d]))
            return 0;
    return 1;
}
