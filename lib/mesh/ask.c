/* mesh_ask.c - questions to a mesh, and its picture
 *
 * Where a rank stands is read off its position in the root, digit by digit:
 * rank 6 of (dp=2,tp=4) is position 6, dp = 6 / 4 % 2 = 1, tp = 6 / 1 % 4 = 2.
 * It costs the same for 8 ranks and for 8000.
 */
#include "job/ctx.h"
#include "mesh/grid.h"
#include "mesh/mesh.h"
#include "mesh/meshes.h"
#include "dtensor.h"

#include <string.h>

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
    return i >= 0 && i < mesh->group.n ? mesh->group.ranks[i] : -1;
}

/* ----------------------------------------------------------- who is where --- */

int dtensor_mesh_index(const struct dtensor_mesh *mesh, int rank)
{
    int world = mesh->ctx->world.cluster->world_size, index = 0, at;

    if (rank < 0 || rank >= world || mesh->root->where[rank] < 0)
        return -1;
    at = mesh->root->where[rank];
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

int dtensor_mesh_coord(const struct dtensor_mesh *mesh, int rank, int coord[])
{
    int index = dtensor_mesh_index(mesh, rank);

    if (index < 0)
        return 0;
    dtn_mesh_coord_of(mesh, index, coord);
    return 1;
}

int dtensor_mesh_local_rank(const struct dtensor_mesh *mesh, int dim,
                            int *rankp, struct dtensor_error *err)
{
    int coord[DTENSOR_MAX_DIMS], rc = dtn_mesh_check_dim(mesh, &dim, err);

    if (rc != 0)
        return rc;
    *rankp = dtensor_mesh_coord(mesh, mesh->ctx->world.rank, coord) ? coord[dim]
                                                                   : -1;
    return 0;
}

/* ---------------------------------------------------------- root, equality --- */

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
        a->origin != b->origin)
        return 0;
    for (int d = 0; d < a->ndim; d++)
        if (a->size[d] != b->size[d] ||
            strcmp(a->dim_name[d], b->dim_name[d]) != 0 ||
            !dtn_grid_equal(&a->axis[d], &b->axis[d]))
            return 0;
    return 1;
}

/* -------------------------------------------------------------- in words --- */

/* "tp=3", or "3" where the dimension has no name. */
static char *mesh_label(const struct dtensor_mesh *mesh, int d, int coord,
                        char label[DTENSOR_NAME_MAX + 16])
{
    snprintf(label, DTENSOR_NAME_MAX + 16, "%s%s%d", mesh->dim_name[d],
             mesh->dim_name[d][0] ? "=" : "", coord);
    return label;
}

/* One slab: rows of the last dimension but one, columns of the last. */
static void mesh_draw_slab(const struct dtensor_mesh *mesh, int first,
                           FILE *stream)
{
    int columns = mesh->size[mesh->ndim - 1];
    int rows = mesh->ndim > 1 ? mesh->size[mesh->ndim - 2] : 1;
    char label[DTENSOR_NAME_MAX + 16];

    fprintf(stream, "%8s", "");
    for (int c = 0; c < columns; c++)
        fprintf(stream, " %8s", mesh_label(mesh, mesh->ndim - 1, c, label));
    for (int r = 0; r < rows; r++) {
        fprintf(stream, "\n%8s", mesh->ndim > 1 ?
                mesh_label(mesh, mesh->ndim - 2, r, label) : "");
        for (int c = 0; c < columns; c++)
            fprintf(stream, " %8d", mesh->group.ranks[first + r * columns + c]);
    }
    fprintf(stream, "\n");
}

void dtensor_mesh_draw(const struct dtensor_mesh *mesh, FILE *stream)
{
    int coord[DTENSOR_MAX_DIMS], slab = 1;
    char text[DTENSOR_MAX_DIMS * (DTENSOR_NAME_MAX + 16)];
    char label[DTENSOR_NAME_MAX + 16];

    for (int d = mesh->ndim > 2 ? mesh->ndim - 2 : 0; d < mesh->ndim; d++)
        slab *= mesh->size[d];
    fprintf(stream, "%s: %d rank%s\n", dtn_mesh_format(mesh, text, sizeof text),
            mesh->group.n, mesh->group.n == 1 ? "" : "s");
    for (int first = 0; first < mesh->group.n && mesh->ndim > 0; first += slab) {
        dtn_mesh_coord_of(mesh, first, coord);
        for (int d = 0; d + 2 < mesh->ndim; d++)
            fprintf(stream, "%s%s%s", d ? "," : "",
                    mesh_label(mesh, d, coord[d], label),
                    d + 3 == mesh->ndim ? "\n" : "");
        mesh_draw_slab(mesh, first, stream);
    }
}
