/* intern.h - meshes described, and then made or found; private to this room */
#ifndef DTN_MESH_INTERN_H
#define DTN_MESH_INTERN_H

#include "mesh/grid.h"
#include "dtensor.h"

/* Describe a mesh: begin() starts one without dimensions among the positions of
 * `of`'s root, add() appends a dimension, end() makes or finds the one that
 * contains position `at` of the root.   Errors: ENOMEM
 */
void dtn_mesh_begin(struct dtensor_mesh *proto, const struct dtensor_mesh *of);
void dtn_mesh_add(struct dtensor_mesh *proto, const char *name, int size,
                  const struct dtn_grid *axis);
int dtn_mesh_end(struct dtensor_mesh *proto, int at,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* Make or find the root of these ranks, whose sizes and names `proto` has; NULL
 * means ranks 0, 1, 2, ...   Errors: ENOMEM
 */
int dtn_mesh_root(struct dtensor_mesh *proto, const int ranks[],
                  const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* Where this rank is in the root of the mesh; outside, the mesh's origin. */
int dtn_mesh_position(const struct dtensor_mesh *mesh);

/* All axes of a mesh as one grid: its ranks, row-major. */
struct dtn_grid dtn_mesh_grid(const struct dtensor_mesh *mesh);

#endif
