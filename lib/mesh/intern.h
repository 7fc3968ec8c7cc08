/* intern.h - meshes described, and then made or found; private to this room */
#ifndef DTN_MESH_INTERN_H
#define DTN_MESH_INTERN_H

#include "base/ranks.h"
#include "mesh/grid.h"
#include "dtensor.h"

/* Describe a mesh.  begin() starts one without dimensions, on the root of `of`;
 * add() appends a dimension; end() makes or finds the mesh that contains
 * position `at` of the root.   Errors: ENOMEM
 */
void dtn_mesh_begin(struct dtensor_mesh *proto, const struct dtensor_mesh *of);
void dtn_mesh_add(struct dtensor_mesh *proto, const char *name, int size,
                  const struct dtn_grid *axis);
int dtn_mesh_end(struct dtensor_mesh *proto, int at,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* Make or find the root mesh of these ranks; `proto` has its sizes and names.
 * Errors: ENOMEM
 */
int dtn_mesh_root(struct dtensor_mesh *proto, const struct dtn_ranks *ranks,
                  const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* The position of this rank in the root of the mesh.  If it is not in the mesh:
 * the origin of the mesh.
 */
int dtn_mesh_position(const struct dtensor_mesh *mesh);

/* All axes of a mesh as one grid: its ranks, row-major. */
struct dtn_grid dtn_mesh_grid(const struct dtensor_mesh *mesh);

#endif
