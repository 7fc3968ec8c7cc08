/* draw.c - the picture of a mesh
 *
 * The last two dimensions are the rows and columns of a table of ranks; the
 * table is repeated for every other dimension.  (dp=2,tp=2) is two rows of two
 * ranks.
 */
#include "mesh/mesh.h"
#include "dtensor.h"

/* "tp=3", or "3" if the dimension has no name. */
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
            fprintf(stream, " %8d",
                    dtensor_mesh_rank(mesh, first + r * columns + c));
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
    for (int first = 0; first < mesh->group.n && mesh->ndim > 0;
         first += slab) {
        dtn_mesh_coord_of(mesh, first, coord);
        for (int d = 0; d + 2 < mesh->ndim; d++)
            fprintf(stream, "%s%s%s", d ? "," : "",
                    mesh_label(mesh, d, coord[d], label),
                    d + 3 == mesh->ndim ? "\n" : "");
        mesh_draw_slab(mesh, first, stream);
    }
}
