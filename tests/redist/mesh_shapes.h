/* mesh_shapes.h - every shape of a mesh of up to so many ranks
 *
 * Sizes of 1 are left out.  Of up to 4 ranks there are the meshes of 2, 3 and 4
 * ranks in one dimension, and 2 x 2.
 */
#ifndef TESTS_MESH_SHAPES_H
#define TESTS_MESH_SHAPES_H

#include "dtensor.h"

extern const struct dtensor_mesh *meshes[64];
extern int nmeshes;
void mesh_add(struct dtensor_ctx *ctx, int ndim, const int sizes[]);

/* All ways to write up to `left` ranks as a product of sizes over 1. */
void mesh_grow(struct dtensor_ctx *ctx, int ndim, int sizes[], int left);

#endif
