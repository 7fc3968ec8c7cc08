/* mesh_shapes.c - every shape of a mesh of up to so many ranks */
#include "tests/redist/mesh_shapes.h"

#include <stdlib.h>

const struct dtensor_mesh *meshes[64];
int nmeshes;

void mesh_add(struct dtensor_ctx *ctx, int ndim, const int sizes[])
{
    if (dtensor_mesh_create(ctx, ndim, sizes, NULL, NULL, &meshes[nmeshes++],
                            NULL) != 0)
        abort();
}

void mesh_grow(struct dtensor_ctx *ctx, int ndim, int sizes[], int left)
{
    if (ndim > 0)
        mesh_add(ctx, ndim, sizes);
    for (int n = 2; n <= left; n++) {
        sizes[ndim] = n;
        mesh_grow(ctx, ndim + 1, sizes, left / n);
    }
}
