/* mesh.c - the picture of a mesh: which rank is where
 *
 * The last two dimensions are rows and columns; the grid is repeated for each
 * coordinate along the others.  (dp=2,tp=4) is two rows of four ranks, and the
 * colour of a rank is that of its host.
 */
#include "tools/draw/mesh.h"

#include <stdio.h>
#include <string.h>

enum { MESH_CELL = 9, MESH_LINES_MAX = 16, MESH_SLICES_MAX = 8 };

struct mesh_drawing {
    struct picture *pic;
    const struct dtensor_mesh *mesh;
    const int *host;
    int rows, cols;               /* of a slice                               */
    int shown_rows, shown_cols;
    int ndim, y;
};

/* "tp=3", or "dim 1=3" if the dimension has no name. */
static char *mesh_label(const struct mesh_drawing *d, int dim, int coord,
                        char *buf, size_t size)
{
    const char *name = dtensor_mesh_dim_name(d->mesh, dim);

    if (name && name[0])
        snprintf(buf, size, "%s=%d", name, coord);
    else
        snprintf(buf, size, "dim %d=%d", dim, coord);
    return buf;
}

static int mesh_label_width(const struct mesh_drawing *d, int dim)
{
    char label[DTENSOR_NAME_MAX + 32];

    return dim < 0 ? 0 : (int)strlen(mesh_label(d, dim,
        dtensor_mesh_dim_size(d->mesh, dim) - 1, label, sizeof label)) + 1;
}

/* The ranks from position `first` on. */
static void mesh_slice(struct mesh_drawing *d, int first, int left, int width)
{
    char label[DTENSOR_NAME_MAX + 32];

    for (int c = 0; c < d->shown_cols; c++)
        picture_words(d->pic, left + (c + 0.5) * width, d->y,
                      DRAW_CENTRE, DRAW_FAINT, "%s",
                      mesh_label(d, d->ndim - 1, c, label, sizeof label));
    for (int r = 0; r < d->shown_rows; r++) {
        const int y = d->y + 1 + 2 * r;

        if (d->ndim > 1)
            picture_words(d->pic, 0, y + 1, DRAW_LEFT, DRAW_FAINT, "%s",
                          mesh_label(d, d->ndim - 2, r, label, sizeof label));
        for (int c = 0; c < d->shown_cols; c++) {
            const int p = first + r * d->cols + c, x = left + c * width;

            picture_box(d->pic, (struct draw_box){ x, y, width, 2, d->host[p],
                                                   false });
            picture_words(d->pic, x + width / 2.0, y + 1, DRAW_CENTRE,
                          DRAW_PLAIN, "%d", dtensor_mesh_rank(d->mesh, p));
        }
    }
    d->y += 2 * d->shown_rows + 2;
    if (d->shown_rows < d->rows || d->shown_cols < d->cols)
        picture_words(d->pic, left, d->y++, DRAW_LEFT, DRAW_FAINT, "... of %d "
                      "rows and %d columns", d->rows, d->cols);
}

/* "dp=0, pp=1" of the slice that begins at a position. */
static void mesh_slice_title(struct mesh_drawing *d, int first)
{
    char text[600] = "", label[DTENSOR_NAME_MAX + 32];
    int coord[DTENSOR_MAX_DIMS];

    dtensor_mesh_coord(d->mesh, dtensor_mesh_rank(d->mesh, first), coord);
    for (int k = 0; k < d->ndim - 2; k++) {
        strcat(text, k ? ", " : "");
        strcat(text, mesh_label(d, k, coord[k], label, sizeof label));
    }
    picture_words(d->pic, 0, d->y++, DRAW_LEFT, DRAW_STRONG, "%s", text);
}

static void mesh_hosts(struct mesh_drawing *d)
{
    int hosts = 0;

    for (int p = 0; p < dtensor_mesh_size(d->mesh); p++)
        if (d->host[p] + 1 > hosts)
            hosts = d->host[p] + 1;
    picture_words(d->pic, 0, d->y++, DRAW_LEFT, DRAW_FAINT, hosts == 1
                  ? "all on %d host" : "a colour for each of %d hosts", hosts);
}

void draw_mesh(struct picture *pic, const struct dtensor_mesh *mesh,
               const int host[], struct draw_room room)
{
    const int n = dtensor_mesh_size(mesh), ndim = dtensor_mesh_ndim(mesh);
    struct mesh_drawing d = { .pic = pic, .mesh = mesh, .host = host,
                              .rows = 1, .cols = 1, .ndim = ndim };
    int width = MESH_CELL, left, most, slices = 0;
    char text[600];

    dtensor_mesh_format(mesh, text, sizeof text);
    snprintf(text + strlen(text), sizeof text - strlen(text), ": %d rank%s", n,
             n == 1 ? "" : "s");
    d.y = picture_wrapped(pic, 0, 0, room.columns, DRAW_STRONG, text) + 1;
    if (ndim > 0)
        d.cols = dtensor_mesh_dim_size(mesh, ndim - 1);
    if (ndim > 1)
        d.rows = dtensor_mesh_dim_size(mesh, ndim - 2);
    if (ndim > 0 && mesh_label_width(&d, ndim - 1) + 2 > width)
        width = mesh_label_width(&d, ndim - 1) + 2;
    left = ndim > 1 ? mesh_label_width(&d, ndim - 2) : 0;
    most = (room.columns - left - 1) / width;
    d.shown_cols = d.cols < most ? d.cols : most < 1 ? 1 : most;
    d.shown_rows = d.rows < MESH_LINES_MAX ? d.rows : MESH_LINES_MAX;
    for (int first = 0; ndim > 0 && first < n; first += d.rows * d.cols) {
        if (slices++ == MESH_SLICES_MAX) {
            picture_words(pic, 0, d.y++, DRAW_LEFT, DRAW_FAINT,
                          "... and %d more slices", n / (d.rows * d.cols)
                          - MESH_SLICES_MAX);
            break;
        }
        if (ndim > 2)
            mesh_slice_title(&d, first);
        mesh_slice(&d, first, left, width);
    }
    mesh_hosts(&d);
}
