/* shape.c - meshes flattened, unflattened, concatenated
 *
 * All three rearrange the axes of a root.  The 6 ranks of (a=2,b=3) have the
 * axes (2:3)(3:1); flattened they are (6:1); unflattened into 3 and 2 this is
 * (3:2)(2:1).  If a and c of (a=2,b=2,c=2) are flattened, the result is one
 * dimension of two pairs, (2:4)(2:1): ranks 0 1 4 5.  It can be unflattened
 * between the pairs, but not inside a pair.
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
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- flatten --- */

/* "dp_cp": the names of all dimensions. */
static int flat_default(const struct dtensor_mesh *mesh, char name[],
                        size_t size, struct dtensor_error *err)
{
    size_t used = 0;

    for (int d = 0; d < mesh->ndim; d++)
        used += (size_t)snprintf(name + used, size - used, "%s%s",
                                 d ? "_" : "", mesh->dim_name[d]);
    return used <= DTENSOR_NAME_MAX ? 0 :
        dtn_fail(err, DTENSOR_EINVAL, "mesh: \"%.80s\" is over %d characters "
                 "(give the flattened dimension a name)", name,
                 DTENSOR_NAME_MAX);
}

/* Store the name in the root, so that slices can use it. */
static int flat_keep(const struct dtensor_mesh *root, const char *name,
                     const struct dtn_grid *axis, struct dtensor_error *err)
{
    struct dtn_meshes *meshes = dtn_meshes_of(root->ctx);
    struct dtn_mesh_flat *flat = meshes->flat;

    while (flat && (flat->root != root || strcmp(flat->name, name) != 0))
        flat = flat->next;
    if (flat && dtn_grid_equal(&flat->axis, axis))
        return 0;
    if (flat)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: \"%s\" is the name of "
                        "other flattened dimensions already (give another)",
                        name);
    flat = calloc(1, sizeof *flat);
    if (!flat)
        return dtn_fail_nomem(err, "mesh", sizeof *flat);
    flat->root = root;
    strcpy(flat->name, name);
    flat->axis = *axis;
    flat->next = meshes->flat;
    meshes->flat = flat;
    return 0;
}

static int flat_check(const struct dtensor_mesh *mesh, const char *name,
                      struct dtensor_error *err)
{
    char own[128];
    int rc = dtn_mesh_check_name(name, err);

    if (rc != 0)
        return rc;
    if (dtn_mesh_find_dim(mesh->root, name) >= 0)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: \"%s\" is a dimension of "
                        "%s already (give the flattened one another name)",
                        name, dtn_mesh_format(mesh->root, own, sizeof own));
    return 0;
}

int dtensor_mesh_flatten(const struct dtensor_mesh *mesh, const char *name,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err)
{
    char joined[DTENSOR_MAX_DIMS * (DTENSOR_NAME_MAX + 1) + 1];
    struct dtn_grid axis = dtn_mesh_grid(mesh);
    struct dtensor_mesh proto;
    int rc = 0;

    if (!mesh->dim_name[0][0])
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: cannot flatten a mesh "
                        "whose dimensions have no names");
    if (!name)
        rc = flat_default(mesh, joined, sizeof joined, err);
    if (rc != 0)
        return rc;
    name = name ? name : joined;
    if (mesh->ndim == 1 && strcmp(mesh->dim_name[0], name) == 0) {
        *meshp = mesh;
        return 0;
    }
    rc = flat_check(mesh, name, err);
    if (rc == 0)
        rc = flat_keep(mesh->root, name, &axis, err);
    if (rc != 0)
        return rc;
    dtn_mesh_begin(&proto, mesh);
    dtn_mesh_add(&proto, name, mesh->group.n, &axis);
    return dtn_mesh_end(&proto, mesh->origin, meshp, err);
}

/* ------------------------------------------------------------ unflatten --- */

/* The dimensions that one dimension is unflattened into. */
struct unflat {
    int dim, n;
    const int *sizes;
    char names[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];
};

static int unflat_check(const struct dtensor_mesh *mesh,
                        const struct unflat *parts, struct dtensor_error *err)
{
    int64_t product = 1;

    if (parts->n < 1 || mesh->ndim - 1 + parts->n > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: unflatten into %d "
                        "dimensions; expected 1 to %d", parts->n,
                        DTENSOR_MAX_DIMS - mesh->ndim + 1);
    for (int k = 0; k < parts->n; k++) {
        if (parts->sizes[k] < 1)
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: unflatten into size "
                            "%d; expected 1 or more", parts->sizes[k]);
        product *= parts->sizes[k];
        if (product > mesh->size[parts->dim])
            break;
    }
    if (product == mesh->size[parts->dim])
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "mesh: unflatten dimension %d of size "
                    "%d into sizes whose product is %s", parts->dim,
                    mesh->size[parts->dim],
                    product > mesh->size[parts->dim] ? "larger" : "smaller");
}

/* Either all dimensions have names, or none. */
static int unflat_names(const struct dtensor_mesh *mesh, struct unflat *parts,
                        const char *names, struct dtensor_error *err)
{
    bool named = mesh->dim_name[0][0];
    int rc, d;

    if (named != (names != NULL))
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: unflatten %s names, but "
                        "the mesh has %s", names ? "with" : "without",
                        named ? "some" : "none");
    if (!named)
        return 0;
    rc = dtn_mesh_names(names, parts->n, parts->names, err);
    for (int k = 0; rc == 0 && k < parts->n; k++) {
        d = dtn_mesh_find_dim(mesh, parts->names[k]);
        if (d >= 0 && d != parts->dim)
            rc = dtn_fail(err, DTENSOR_EINVAL, "mesh: unflatten into \"%s\", "
                          "which is another dimension's name", parts->names[k]);
    }
    return rc;
}

static int unflat_add(const struct dtensor_mesh *mesh,
                      const struct unflat *parts, struct dtensor_mesh *proto,
                      struct dtensor_error *err)
{
    int stride = mesh->size[parts->dim];
    struct dtn_grid axis;
    char own[128];

    for (int k = 0; k < parts->n; k++) {
        stride /= parts->sizes[k];
        if (!dtn_grid_pick(&mesh->axis[parts->dim], parts->sizes[k], stride,
                           &axis))
            return dtn_fail(err, DTENSOR_EINVAL, "mesh: dimension %d of %s "
                            "cannot be cut into steps of %d: it was flattened "
                            "of parts that these sizes do not divide",
                            parts->dim, dtn_mesh_format(mesh, own, sizeof own),
                            stride);
        dtn_mesh_add(proto, parts->names[k], parts->sizes[k], &axis);
    }
    return 0;
}

int dtensor_mesh_unflatten(const struct dtensor_mesh *mesh, int dim, int n,
                           const int sizes[], const char *names,
                           const struct dtensor_mesh **meshp,
                           struct dtensor_error *err)
{
    struct unflat parts = { .n = n, .sizes = sizes };
    struct dtensor_mesh proto;
    int rc = dtn_mesh_check_dim(mesh, &dim, err);

    parts.dim = dim;
    if (rc == 0)
        rc = unflat_check(mesh, &parts, err);
    if (rc == 0)
        rc = unflat_names(mesh, &parts, names, err);
    if (rc != 0)
        return rc;
    dtn_mesh_begin(&proto, mesh);
    for (int d = 0; rc == 0 && d < mesh->ndim; d++)
        if (d == dim)
            rc = unflat_add(mesh, &parts, &proto, err);
        else
            dtn_mesh_add(&proto, mesh->dim_name[d], mesh->size[d],
                         &mesh->axis[d]);
    return rc == 0 ? dtn_mesh_end(&proto, mesh->origin, meshp, err) : rc;
}

/* ---------------------------------------------------------- concatenate --- */

/* The meshes that were concatenated so far. */
struct concat {
    struct dtensor_mesh proto;
    struct dtn_grid grid;
    int at;                            /* origin of the result: a position    */
                                       /* they share, without their digits    */
};

/* Do they have a position in common?  No digit belongs to both.  So they have
 * one if their origins agree in all digits that belong to neither.
 */
static bool concat_meet(struct concat *all, const struct dtensor_mesh *more)
{
    struct dtn_grid axes = dtn_mesh_grid(more);
    int at = all->at, other = more->origin;

    dtn_grid_take(&axes, &at);
    dtn_grid_take(&all->grid, &other);
    all->at = at;
    return at == other;
}

static int concat_fail(const struct dtensor_mesh *mesh, const char *why,
                       struct dtensor_error *err)
{
    char own[128];

    return dtn_fail(err, DTENSOR_EINVAL, "mesh: cannot concatenate %s with the "
                    "meshes before it: %s",
                    dtn_mesh_format(mesh, own, sizeof own), why);
}

static int concat_add(struct concat *all, const struct dtensor_mesh *mesh,
                      struct dtensor_error *err)
{
    struct dtn_grid axes = dtn_mesh_grid(mesh);
    struct dtensor_mesh *proto = &all->proto;

    if (mesh->root->group.ranks != proto->root->group.ranks)
        return concat_fail(mesh, "its root has other ranks", err);
    if (mesh->memory != proto->memory)
        return concat_fail(mesh, "its tensors are in other memory", err);
    if (proto->ndim + mesh->ndim > DTENSOR_MAX_DIMS)
        return concat_fail(mesh, "together they have over 8 dimensions", err);
    if (proto->ndim > 0 && !proto->dim_name[0][0] != !mesh->dim_name[0][0])
        return concat_fail(mesh, "some have names and some have none", err);
    for (int d = 0; d < mesh->ndim; d++)
        if (dtn_mesh_find_dim(proto, mesh->dim_name[d]) >= 0)
            return concat_fail(mesh, "a name of it is taken", err);
    if (!dtn_grid_extend(&all->grid, &axes, proto->root->group.n))
        return concat_fail(mesh, "they overlap", err);
    if (!concat_meet(all, mesh))
        return concat_fail(mesh, "they have no rank in common", err);
    for (int d = 0; d < mesh->ndim; d++)
        dtn_mesh_add(proto, mesh->dim_name[d], mesh->size[d], &mesh->axis[d]);
    return 0;
}

int dtensor_mesh_concatenate(int n, const struct dtensor_mesh *const meshes[],
                             const struct dtensor_mesh **meshp,
                             struct dtensor_error *err)
{
    struct concat all = { .grid = { 0 } };
    int rc = 0;

    if (n < 1)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: %d meshes to concatenate; "
                        "expected 1 or more", n);
    dtn_mesh_begin(&all.proto, meshes[0]);
    all.at = meshes[0]->origin;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = concat_add(&all, meshes[i], err);
    return rc == 0 ? dtn_mesh_end(&all.proto, all.at, meshp, err) : rc;
}
