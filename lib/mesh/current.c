/* current.c - the current mesh, which a name of NULL means
 *
 * A program that works on one mesh for some time enters it; then a mesh name of
 * NULL means this mesh.  Example: a program enters (dp=2,tp=2) and then its
 * "tp" slice.  NULL is the slice.  When the program has left the slice, NULL is
 * (dp=2,tp=2) again.  Each context has its own stack.
 */
#include "base/array.h"
#include "base/error.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "mesh/meshes.h"
#include "dtensor.h"

#include <stdlib.h>

int dtensor_mesh_enter(const struct dtensor_mesh *mesh,
                       struct dtensor_error *err)
{
    struct dtn_meshes *meshes = dtn_meshes_of(mesh->ctx);

    if (!dtn_array_reserve(&meshes->entered, &meshes->entered_capacity,
                           meshes->nentered + 1, sizeof mesh))
        return dtn_fail_nomem(err, "mesh", sizeof mesh);
    meshes->entered[meshes->nentered++] = mesh;
    return 0;
}

int dtensor_mesh_leave(const struct dtensor_mesh *mesh,
                       struct dtensor_error *err)
{
    struct dtn_meshes *meshes = dtn_meshes_of(mesh->ctx);
    const struct dtensor_mesh *top = NULL;
    char own[128], other[128];
    int rc = dtensor_mesh_current(mesh->ctx, &top, err);

    if (rc != 0)
        return rc;
    if (top != mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: cannot leave %s: %s was "
                        "entered last", dtn_mesh_format(mesh, own, sizeof own),
                        dtn_mesh_format(top, other, sizeof other));
    meshes->nentered--;
    return 0;
}

int dtensor_mesh_current(struct dtensor_ctx *ctx,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err)
{
    const struct dtn_meshes *meshes = dtn_meshes_of(ctx);

    if (meshes->nentered == 0)
        return dtn_fail(err, DTENSOR_EINVAL, "mesh: no mesh was entered "
                        "(name one, or call dtensor_mesh_enter())");
    *meshp = meshes->entered[meshes->nentered - 1];
    return 0;
}
