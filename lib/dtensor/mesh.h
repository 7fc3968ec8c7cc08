/* dtensor/mesh.h - ranks on a grid
 *
 * Eight ranks as a mesh of (dp=2, tp=4) are two rows of four: the ranks of a
 * row are one "tp" group, those of a column one "dp" group, and rank 6 is at
 * (1, 2).  What a tensor does along each dimension of its mesh - it is cut,
 * copied, or a term of a sum - is said dimension by dimension, so the grid is
 * the shape of the program's parallelism.
 */
#ifndef DTENSOR_MESH_H
#define DTENSOR_MESH_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- meshes --- */

/* Ranks on an n-dimensional grid, last dimension fastest.  A mesh made of a
 * list of ranks is a *root*; slicing, flattening and the like give patterns of
 * its positions, and cost a microsecond and no message.  Asking twice for the
 * same mesh gives the same pointer.  A mesh is also the group of its ranks: the
 * group along "tp" is the mesh sliced so.
 * Semantics: torch.distributed.device_mesh.DeviceMesh.
 *
 * All in this section:
 * Collective: no.   Blocks: no.
 * Owns:   meshes and names are the context's, until dtensor_fini(), or until
 *         the last object made with the context is destroyed.
 */
struct dtensor_mesh;

/* The mesh [mesh "NAME"] of the cluster file.  "world" always exists: without
 * such a section it is one dimension named "world" over all ranks.  NULL: the
 * mesh entered last, as dtensor_mesh_current().
 *
 * Errors: EINVAL  no such mesh: lists those there are;  ENOMEM
 * Semantics: init_device_mesh, of names instead of sizes.
 */
int dtensor_mesh_find(struct dtensor_ctx *ctx, const char *name,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err);

/* Lay ranks out on a grid of `ndim` (1..8) sizes: a root.  `names` are the
 * names of the dimensions, "dp,tp", or NULL.  `ranks` lists the product of the
 * sizes many distinct ranks, row-major; NULL means 0, 1, 2, ...  Every member
 * must make the same call before using it.
 * Semantics: DeviceMesh(mesh=..., mesh_dim_names=...).
 *
 * Errors: EINVAL  sizes, names or ranks do not fit: says which;  ENOMEM
 */
int dtensor_mesh_create(struct dtensor_ctx *ctx, int ndim, const int sizes[],
                        const char *names, const int ranks[],
                        const struct dtensor_mesh **meshp,
                        struct dtensor_error *err);

/* The sub-mesh of the named dimensions, "tp" or "dp,tp", that contains the
 * calling rank; the order must be the mesh's own.  On a rank outside the mesh
 * it is the one containing the mesh's first rank.  Of a root, names given by
 * dtensor_mesh_flatten() may be among them, where what they stand for is
 * wholly above or below the rest.   Semantics: DeviceMesh.__getitem__.
 *
 * Errors: EINVAL  unknown, repeated, misordered or overlapping name, none at
 *                 all, or a mesh without names
 *         ENOMEM
 */
int dtensor_mesh_slice(const struct dtensor_mesh *mesh, const char *names,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err);

/* The same by the number of one dimension, named or not; -1 is the only one.
 * Semantics: DeviceMesh.get_group.
 *
 * Errors: EINVAL  no such dimension, or -1 of several;  ENOMEM
 */
int dtensor_mesh_along(const struct dtensor_mesh *mesh, int dim,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err);

/* A mesh and its copies are the same pattern at every place of the root; each
 * rank of the root is in one of them.  Of (dp=2,tp=4) sliced as "tp" there are
 * two: 0-3 and 4-7.  Copy `i`, 0 <= i < dtensor_mesh_copies(), in the order of
 * their first positions.   Semantics: DeviceMesh._get_all_submeshes.
 *
 * Errors: EINVAL  no such copy: says how many there are;  ENOMEM
 */
int dtensor_mesh_copies(const struct dtensor_mesh *mesh);
int dtensor_mesh_copy(const struct dtensor_mesh *mesh, int i,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err);

/* All dimensions as one, in their order.  `name` NULL joins theirs by "_", so
 * "dp,cp" flattened is "dp_cp".  The name can then be sliced by at the root;
 * asked for again it gives the same mesh.   Semantics: DeviceMesh._flatten.
 *
 * Errors: EINVAL  a mesh without names; the name of a dimension of the root,
 *                 or of another pattern flattened before; no name, or too long
 *         ENOMEM
 */
int dtensor_mesh_flatten(const struct dtensor_mesh *mesh, const char *name,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err);

/* Dimension `dim` as `n` of these sizes and names, "a,b", or NULL in a mesh
 * without names; the others stay.  The root is not sliced by such names, the
 * result is.   Semantics: DeviceMesh._unflatten.
 *
 * Errors: EINVAL  dimension, sizes or names do not fit: says which;  ENOMEM
 */
int dtensor_mesh_unflatten(const struct dtensor_mesh *mesh, int dim, int n,
                           const int sizes[], const char *names,
                           const struct dtensor_mesh **meshp,
                           struct dtensor_error *err);

/* The mesh of the dimensions of all of `n` meshes, in that order, that have a
 * root, or at least its ranks, and a rank in common.  "dp" and "tp" slices of
 * (dp=2,tp=4) give it back.   Semantics: DeviceMesh._concatenate.
 *
 * Errors: EINVAL  they overlap, have nothing in common, or names clash
 *         ENOMEM
 */
int dtensor_mesh_concatenate(int n, const struct dtensor_mesh *const meshes[],
                             const struct dtensor_mesh **meshp,
                             struct dtensor_error *err);

/* The mesh it is a part of, or itself; and which dimension of that a mesh of
 * one dimension lies along: -1 for none, and for a root.
 */
const struct dtensor_mesh *dtensor_mesh_root(const struct dtensor_mesh *mesh);
int dtensor_mesh_root_dim(const struct dtensor_mesh *mesh);

/* 1 when they are alike: names, sizes, ranks, and the ranks of their roots.
 * The same pointer always is; other pointers can be when roots of the same
 * ranks were laid out differently.   Semantics: DeviceMesh.__eq__.
 */
int dtensor_mesh_equal(const struct dtensor_mesh *a,
                       const struct dtensor_mesh *b);

/* How many dimensions and ranks; the size and name of dimension `dim`: 0 and ""
 * where there is no such dimension, "" too where it has no name.
 */
int dtensor_mesh_ndim(const struct dtensor_mesh *mesh);
int dtensor_mesh_size(const struct dtensor_mesh *mesh);          /* in ranks */
int dtensor_mesh_dim_size(const struct dtensor_mesh *mesh, int dim);
const char *dtensor_mesh_dim_name(const struct dtensor_mesh *mesh, int dim);

/* The number of a named dimension.   Errors: EINVAL  there is none
 * Semantics: DeviceMesh._get_mesh_dim_by_name.
 */
int dtensor_mesh_dim(const struct dtensor_mesh *mesh, const char *name,
                     int *dimp, struct dtensor_error *err);

/* World rank of the mesh's i-th position, row-major; -1 where there is none. */
int dtensor_mesh_rank(const struct dtensor_mesh *mesh, int i);

/* Position of a world rank in the mesh, row-major, or -1 when outside. */
int dtensor_mesh_index(const struct dtensor_mesh *mesh, int rank);

/* Write the coordinate of world rank `rank` to coord[0..ndim-1] and return 1;
 * return 0, writing nothing, when it is outside the mesh.
 * Semantics: DeviceMesh.get_coordinate, of any rank.
 */
int dtensor_mesh_coord(const struct dtensor_mesh *mesh, int rank, int coord[]);

/* The calling rank's coordinate along `dim`, or -1 when it is outside the
 * mesh.  `dim` -1 is the only one.   Semantics: DeviceMesh.get_local_rank.
 *
 * Errors: EINVAL  no such dimension, or -1 of several
 */
int dtensor_mesh_local_rank(const struct dtensor_mesh *mesh, int dim,
                            int *rankp, struct dtensor_error *err);

/* Write "world(dp=2,tp=4)", cut to `size` bytes with a final NUL; return the
 * length it would have had, as snprintf does.  draw writes which rank is where.
 */
int dtensor_mesh_format(const struct dtensor_mesh *mesh, char *text,
                        size_t size);
void dtensor_mesh_draw(const struct dtensor_mesh *mesh, FILE *stream);

/* Until it is left, `mesh` is the one meant where a mesh name is NULL.  What
 * was entered last is left first; there is one such stack for each context.
 * Semantics: `with mesh:`, DeviceMesh.__enter__ and __exit__.
 *
 * Errors: enter: ENOMEM.
 *         leave: EINVAL  another mesh was entered last, or none
 */
int dtensor_mesh_enter(const struct dtensor_mesh *mesh,
                       struct dtensor_error *err);
int dtensor_mesh_leave(const struct dtensor_mesh *mesh,
                       struct dtensor_error *err);

/* The mesh entered last.   Semantics: get_current_mesh.
 *
 * Errors: EINVAL  none was entered
 */
int dtensor_mesh_current(struct dtensor_ctx *ctx,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif
