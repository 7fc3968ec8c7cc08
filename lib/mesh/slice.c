/* slice.c - parts of a mesh: by names, by a dimension, and their copies
 *
 * A slice keeps some dimensions; the others have the coordinates of this rank.
 * In (dp=2,cp=2,tp=2) over ranks 0..7 the "dp,tp" slice of rank 6 has the
 * positions 2 3 6 7: position 6 without its digits of dp and tp is 2, the
 * origin of the slice.  The mesh has two copies of this pattern, with origins 0
 * and 2; together they are the mesh.
 *
 * A slice may also name flattened dimensions if they are completely before or
 * after the others: after dp and cp were flattened, "dp_cp,tp" is (4,2), and
 * "dp_tp,cp" is refused.
 */
#include "base/error.h"
#include "job/ctx.h"
#include "mesh/grid.h"
#include "mesh/intern.h"
#include "mesh/mesh.h"
#include "mesh/meshes.h"
#include "mesh/names.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* One dimension of a slice. */
struct slice_dim {
    const char *name;
    int size;
    struct dtn_grid axis;
};

/* A slice while its names are read. */
struct slice {
    const struct dtensor_mesh *mesh;
    struct dtensor_mesh proto;
    struct dtn_grid grid;              /* of all its dimensions               */
};

static int slice_fail_name(const struct dtensor_mesh *mesh, const char *name,
                           struct dtensor_error *err)
{
    const struct dtn_mesh_flat *flat = dtn_meshes_of(mesh->ctx)->flat;
    char own[128], made[160] = "";
    size_t used = 0;

    for (; mesh->root == mesh && flat; flat = flat->next)
        if (flat->root == mesh && used < sizeof made)
            used += (size_t)snprintf(made + used, sizeof made - used, "%s%s",
                                     used ? ", " : " (flattened: ", flat->name);
    if (used > 0 && used + 1 < sizeof made)
        strcat(made, ")");
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: no dimension \"%s\" to slice "
                    "in %s%s", name, dtn_mesh_format(mesh, own, sizeof own),
                    made);
}

/* Find a name among the dimensions and, if the mesh is a root, among the
 * flattened dimensions.
 */
static int slice_look(const struct dtensor_mesh *mesh, const char *name,
                      struct slice_dim *dim, struct dtensor_error *err)
{
    const struct dtn_mesh_flat *flat = dtn_meshes_of(mesh->ctx)->flat;
    int d = dtn_mesh_find_dim(mesh, name);

    if (d >= 0) {
        *dim = (struct slice_dim){ name, mesh->size[d], mesh->axis[d] };
        return 0;
    }
    while (flat && (flat->root != mesh || strcmp(flat->name, name) != 0))
        flat = flat->next;
    if (!flat)
        return slice_fail_name(mesh, name, err);
    *dim = (struct slice_dim){ name, dtn_grid_size(&flat->axis), flat->axis };
    return 0;
}

/* Dimensions must have the order of the mesh, with the largest stride first; a
 * dimension of size 1 may have any place.
 */
static bool slice_in_order(const struct dtn_grid *before,
                           const struct dtn_grid *axis)
{
    return dtn_grid_sorted(axis) &&
           (before->n == 0 || axis->n == 0 ||
            before->stride[before->n - 1] >= axis->stride[0]);
}

static int slice_add(struct slice *slice, const struct slice_dim *dim,
                     struct dtensor_error *err)
{
    char own[128];

    if (dtn_mesh_find_dim(&slice->proto, dim->name) >= 0)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension \"%s\" is named "
                        "twice in a slice", dim->name);
    dtn_mesh_format(slice->mesh, own, sizeof own);
    if (!slice_in_order(&slice->grid, &dim->axis))
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension \"%s\" is out "
                        "of order in a slice of %s (name them in the mesh's "
                        "order)", dim->name, own);
    if (!dtn_grid_extend(&slice->grid, &dim->axis, slice->mesh->root->group.n))
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension \"%s\" overlaps "
                        "those before it in a slice of %s", dim->name, own);
    dtn_mesh_add(&slice->proto, dim->name, dim->size, &dim->axis);
    return 0;
}

int dtensor_mesh_slice(const struct dtensor_mesh *mesh, const char *names,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err)
{
    struct slice slice = { .mesh = mesh };
    char word[DTN_MESH_WORD_MAX];
    struct slice_dim dim;
    int rc = 0;

    if (!names)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: a slice needs the names of "
                        "its dimensions, such as \"dp,tp\"");
    if (!mesh->dim_name[0][0])
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: cannot slice by \"%.80s\" "
                        "a mesh whose dimensions have no names", names);
    dtn_mesh_begin(&slice.proto, mesh);
    while (rc == 0 && dtn_mesh_next_name(&names, word)) {
        rc = slice_look(mesh, word, &dim, err);
        if (rc == 0)
            rc = slice_add(&slice, &dim, err);
    }
    if (rc != 0)
        return rc;
    return dtn_mesh_end(&slice.proto, dtn_mesh_position(mesh), meshp, err);
}

int dtn_mesh_sub(const struct dtensor_mesh *mesh, unsigned dims,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err)
{
    struct dtensor_mesh proto;

    dtn_mesh_begin(&proto, mesh);
    for (int d = 0; d < mesh->ndim; d++)
        if (dims >> d & 1)
            dtn_mesh_add(&proto, mesh->dim_name[d], mesh->size[d],
                         &mesh->axis[d]);
    return dtn_mesh_end(&proto, dtn_mesh_position(mesh), meshp, err);
}

int dtensor_mesh_along(const struct dtensor_mesh *mesh, int dim,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err)
{
    int rc = dtn_mesh_check_dim(mesh, &dim, err);

    return rc == 0 ? dtn_mesh_sub(mesh, 1u << dim, meshp, err) : rc;
}

/* --------------------------------------------------------------- copies --- */

int dtensor_mesh_copies(const struct dtensor_mesh *mesh)
{
    return mesh->root->group.n / mesh->group.n;
}

int dtensor_mesh_copy(const struct dtensor_mesh *mesh, int i,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err)
{
    struct dtn_grid grid = dtn_mesh_grid(mesh), rest = { 0 };
    int n = dtensor_mesh_copies(mesh);
    struct dtensor_mesh proto;
    char own[128];

    if (i < 0 || i >= n)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no copy %d of %s in its "
                        "root; expected 0 to %d", i,
                        dtn_mesh_format(mesh, own, sizeof own), n - 1);
    dtn_grid_complement(&grid, mesh->root->group.n, &rest);
    dtn_mesh_begin(&proto, mesh);
    for (int d = 0; d < mesh->ndim; d++)
        dtn_mesh_add(&proto, mesh->dim_name[d], mesh->size[d], &mesh->axis[d]);
    return dtn_mesh_end(&proto, dtn_grid_at(&rest, i), meshp, err);
}
