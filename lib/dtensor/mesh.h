/* dtensor/mesh.h - ranks on a grid
 *
 * Eight ranks as a mesh of (dp=2, tp=4) are two rows of four: the ranks of a
 * row are one "tp" group, those of a column one "dp" group, and rank 6 is at
 * (1, 2).  A tensor has a placement for each dimension of its mesh: it is
 * sharded, replicated, or a term of a sum.  So the grid is the shape of the
 * program's parallelism.
 */
#ifndef DTENSOR_MESH_H
#define DTENSOR_MESH_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- meshes --- */

/* Ranks on an n-dimensional grid, last dimension fastest.  A mesh made from a
 * list of ranks is a *root*; slicing, flattening and similar functions give
 * patterns of its positions, take a microsecond and send no message.  Two
 * requests for the same mesh give the same pointer.  A mesh is also the group
 * of its ranks: the group along "tp" is the slice "tp".
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
 * Errors: EINVAL  no such mesh: lists the existing ones;  ENOMEM
 * Semantics: init_device_mesh, with a name instead of sizes.
 */
int dtensor_mesh_find(struct dtensor_ctx *ctx, const char *name,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err);

/* Lay ranks out on a grid of `ndim` (1..8) sizes: a root.  `names` are the
 * names of the dimensions, "dp,tp", or NULL.  `ranks` lists distinct
 * ranks, row-major, as many as the product of the sizes; NULL means 0, 1, 2,
 * ... Every member must make the same call before it uses the mesh.
 * Semantics: DeviceMesh(mesh=..., mesh_dim_names=...).
 *
 * Errors: EINVAL  sizes, names or ranks do not fit: says which;  ENOMEM
 */
int dtensor_mesh_create(struct dtensor_ctx *ctx, int ndim, const int sizes[],
                        const char *names, const int ranks[],
                        const struct dtensor_mesh **meshp,
                        struct dtensor_error *err);

/* The sub-mesh of the named dimensions, "tp" or "dp,tp", that contains the
 * calling rank; the order must be that of the mesh.  On a rank outside the mesh
 * it is the sub-mesh with the mesh's first rank.  For a root the names may
 * include those that dtensor_mesh_flatten() gave, if the flattened dimensions
 * are all to the left or all to the right of each other dimension named.
 * Semantics: DeviceMesh.__getitem__.
 *
 * Errors: EINVAL  a name is unknown, repeated, misordered or overlapping; no
 *                 names; or a mesh without names
 *         ENOMEM
 */
int dtensor_mesh_slice(const struct dtensor_mesh *mesh, const char *names,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err);

/* The same for one dimension by its number, with a name or without; -1 means
 * the only dimension.
 * Semantics: DeviceMesh.get_group.
 *
 * Errors: EINVAL  no such dimension, or -1 of several;  ENOMEM
 */
int dtensor_mesh_along(const struct dtensor_mesh *mesh, int dim,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err);

/* The copies of a mesh are the same pattern at all places of the root; each
 * rank of the root is in one of them.  The slice "tp" of (dp=2,tp=4) has two:
 * ranks 0-3 and 4-7.  Copy `i`, 0 <= i < dtensor_mesh_copies(), in the order of
 * their first positions.   Semantics: DeviceMesh._get_all_submeshes.
 *
 * Errors: EINVAL  no such copy: says how many there are;  ENOMEM
 */
int dtensor_mesh_copies(const struct dtensor_mesh *mesh);
int dtensor_mesh_copy(const struct dtensor_mesh *mesh, int i,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err);

/* Joins all dimensions to one, in their order.  With `name` NULL the name is
 * theirs joined by "_": "dp,cp" becomes "dp_cp".  The root can then be sliced
 * by that name.  A second request gives the same mesh.
 * Semantics: DeviceMesh._flatten.
 *
 * Errors: EINVAL  a mesh without names; the name of a dimension of the root,
 *                 or of another pattern flattened before; no name, or too long
 *         ENOMEM
 */
int dtensor_mesh_flatten(const struct dtensor_mesh *mesh, const char *name,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err);

/* Splits dimension `dim` into `n` dimensions with these sizes and names, "a,b",
 * or NULL in a mesh without names; the others do not change.  The result can be
 * sliced by the new names, the root cannot.   Semantics: DeviceMesh._unflatten.
 *
 * Errors: EINVAL  dimension, sizes or names do not fit: says which;  ENOMEM
 */
int dtensor_mesh_unflatten(const struct dtensor_mesh *mesh, int dim, int n,
                           const int sizes[], const char *names,
                           const struct dtensor_mesh **meshp,
                           struct dtensor_error *err);

/* Joins the dimensions of `n` meshes in the given order.  They must come from
 * the same root (or from roots with the same ranks) and share at least one
 * rank.  The slices "dp" and "tp" of (dp=2,tp=4) give that mesh back.
 * Semantics: DeviceMesh._concatenate.
 *
 * Errors: EINVAL  they overlap, share no root or no rank, or their names clash
 *         ENOMEM
 */
int dtensor_mesh_concatenate(int n, const struct dtensor_mesh *const meshes[],
                             const struct dtensor_mesh **meshp,
                             struct dtensor_error *err);

/* The root of a mesh, which for a root is itself; and the dimension of the root
 * along which a mesh of one dimension lies, -1 for none and for a root.
 */
const struct dtensor_mesh *dtensor_mesh_root(const struct dtensor_mesh *mesh);
int dtensor_mesh_root_dim(const struct dtensor_mesh *mesh);

/* 1 if they are equal: names, sizes, ranks, and the ranks of their roots.  Two
 * pointers can be equal meshes if their roots have the same ranks in different
 * layouts.   Semantics: DeviceMesh.__eq__.
 */
int dtensor_mesh_equal(const struct dtensor_mesh *a,
                       const struct dtensor_mesh *b);

/* The number of dimensions and of ranks; the size and name of dimension `dim`:
 * 0 and "" if there is no such dimension; "" too if it has no name.
 */
int dtensor_mesh_ndim(const struct dtensor_mesh *mesh);
int dtensor_mesh_size(const struct dtensor_mesh *mesh);          /* in ranks */
int dtensor_mesh_dim_size(const struct dtensor_mesh *mesh, int dim);
const char *dtensor_mesh_dim_name(const struct dtensor_mesh *mesh, int dim);

/* Where the tensors of a mesh are: [mesh "NAME"] memory.  Meshes made of others
 * have theirs, and those of dtensor_mesh_create() that of the mesh "world".
 * Semantics: DeviceMesh.device_type.
 */
enum dtensor_memory dtensor_mesh_memory(const struct dtensor_mesh *mesh);

/* Print which path buffers of a mesh with memory = cuda take from this rank to
 * its peers, and why not a better one: mapped, by dma-buf, by nvidia_peermem or
 * staged.  A few lines, each of which begins with "memory of GPUs: "; of host
 * memory there are none.  The driver and the RDMA devices of this machine are
 * asked: where it has no GPU, as a login node, the lines say why, and what the
 * wires of the cluster file could do.
 *
 * Collective: no.   Blocks: while the driver is asked.   Semantics: its own.
 */
void dtensor_mesh_path(const struct dtensor_mesh *mesh, FILE *stream);

/* The number of a named dimension.   Errors: EINVAL  there is none
 * Semantics: DeviceMesh._get_mesh_dim_by_name.
 */
int dtensor_mesh_dim(const struct dtensor_mesh *mesh, const char *name,
                     int *dimp, struct dtensor_error *err);

/* World rank at the mesh's i-th position, row-major; -1 if there is none. */
int dtensor_mesh_rank(const struct dtensor_mesh *mesh, int i);

/* Position of a world rank in the mesh, row-major, or -1 when outside. */
int dtensor_mesh_index(const struct dtensor_mesh *mesh, int rank);

/* Write the coordinate of world rank `rank` to coord[0..ndim-1] and return 1;
 * return 0, writing nothing, when it is outside the mesh.
 * Semantics: DeviceMesh.get_coordinate, for any rank.
 */
int dtensor_mesh_coord(const struct dtensor_mesh *mesh, int rank, int coord[]);

/* The calling rank's coordinate along `dim`, or -1 when it is outside the
 * mesh.  `dim` -1 means the only dimension.   Semantics:
 * DeviceMesh.get_local_rank.
 *
 * Errors: EINVAL  no such dimension, or -1 of several
 */
int dtensor_mesh_coord_along(const struct dtensor_mesh *mesh, int dim,
                             int *rankp, struct dtensor_error *err);

/* Write "world(dp=2,tp=4)", at most `size` bytes with a final NUL; return the
 * length it would have had, as snprintf does.  draw writes which rank is where.
 */
int dtensor_mesh_format(const struct dtensor_mesh *mesh, char *text,
                        size_t size);
void dtensor_mesh_draw(const struct dtensor_mesh *mesh, FILE *stream);

/* Until it is left, `mesh` is used wherever a mesh name is NULL.  The mesh
 * entered last is left first; each context has its own stack.
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
