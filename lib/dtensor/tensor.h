/* dtensor/tensor.h - tensors, made and moved
 *
 * A tensor is a spec and, on each rank, the part of the elements that the spec
 * gives it.  It is made from a value, from a whole array on one rank, or from
 * the parts of all ranks.  Redistributing makes a tensor with the same elements
 * and other placements, as when rows become columns.
 */
#ifndef DTENSOR_TENSOR_H
#define DTENSOR_TENSOR_H

#include "spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- tensors --- */

/* A tensor spread over a mesh.  The local part is row-major and contiguous,
 * in memory that peers can access.  Ranks outside the mesh hold an empty part
 * and may make every call below, which returns 0 at once.
 * Semantics: torch.distributed.tensor.DTensor.
 */
struct dtensor;

/* Make a tensor: with any content; zeroed; every element one, or `value` (of a
 * Partial tensor, the value its reduction gives); or element i, row-major,
 * equal to i, rounded to a float type, or the lowest bits of i in an integer
 * type.  arange refuses Partial placements.  To make a tensor
 * like another, use its spec: dtensor_zeros(dtensor_spec_of(t), ...).
 *
 * Collective: no - but all ranks of the mesh must make the same ones.
 * Blocks: no.
 * Owns:   *tp is the caller's, for dtensor_destroy().
 * Errors: EINVAL  the spec: says what is wrong with it;  ENOMEM
 * Semantics: torch.distributed.tensor.empty, zeros, ones, full; of arange,
 *         distribute_tensor(torch.arange(n).reshape(shape)).
 */
int dtensor_empty(const struct dtensor_spec *spec, struct dtensor **tp,
                  struct dtensor_error *err);
int dtensor_zeros(const struct dtensor_spec *spec, struct dtensor **tp,
                  struct dtensor_error *err);
int dtensor_ones(const struct dtensor_spec *spec, struct dtensor **tp,
                 struct dtensor_error *err);
int dtensor_full(const struct dtensor_spec *spec, double value,
                 struct dtensor **tp, struct dtensor_error *err);
int dtensor_arange(const struct dtensor_spec *spec, struct dtensor **tp,
                   struct dtensor_error *err);

/* Set every element of an existing tensor to `value`.  Of a Partial tensor the
 * reduction gives the value, as with dtensor_full().
 *
 * Collective: no - but all ranks of the mesh must make the same call.
 * Blocks: no.   Semantics: Tensor.fill_.
 * Errors: ESYS    the device failed
 */
int dtensor_fill_value(struct dtensor *t, double value,
                       struct dtensor_error *err);

/* Make a copy: same spec, same elements.
 *
 * Collective: no.   Blocks: no.   Semantics: DTensor.clone.
 * Owns:   *tp is the caller's, for dtensor_destroy().
 * Errors: ENOMEM
 */
int dtensor_clone(const struct dtensor *t, struct dtensor **tp,
                  struct dtensor_error *err);

/* Make a tensor from the row-major global array `full` on position `root` of
 * the mesh (NULL elsewhere); root -1: every rank has it, and no message is
 * sent.  A Partial tensor holds terms that reduce to `full`.  `full` may be any
 * memory.  Needed in addition: on each rank its part and at most twice
 * [redistribute] pipeline bytes (4M).
 * Semantics: distribute_tensor(src_data_rank=root), where the source is the
 * position of coordinate (root, root, ...).
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until this rank has its
 *         part.
 * Owns:   *tp is the caller's; `full` is not kept.
 * Errors: EINVAL  the spec, the root, or no array;  and those of
 *         dtensor_allreduce()
 */
int dtensor_distribute(const struct dtensor_spec *spec, const void *full,
                       int root, struct dtensor **tp,
                       struct dtensor_error *err);

/* Make a tensor whose local part is a copy of `local`, `size` bytes, which
 * must be exactly what dtensor_spec_local() says this rank holds.
 * Semantics: DTensor.from_local with shape given; no other rank is asked.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *tp is the caller's; `local` is not kept.
 * Errors: EINVAL  wrong size, or no array: says what it should be;  ENOMEM
 */
int dtensor_from_local(const struct dtensor_spec *spec, const void *local,
                       size_t size, struct dtensor **tp,
                       struct dtensor_error *err);

/* The same, but all ranks exchange their specs and the shapes of their parts.
 * If one does not fit, every rank returns the same error, and err->rank names
 * it.  The contents of replicas are not compared.
 * Semantics: the first half of DTensor.from_local(run_check=True).
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until all have called.
 * Owns:   *tp is the caller's; `local` is not kept.
 * Errors: EINVAL  a rank has another part or spec, or none;  and those of
 *         dtensor_allreduce()
 */
int dtensor_from_local_checked(const struct dtensor_spec *spec,
                               const void *local, const int64_t local_shape[],
                               struct dtensor **tp, struct dtensor_error *err);

/* The same, and replicas are made equal: along mesh dimensions that are R each
 * rank gets the part of coordinate 0; only the shape of its own part is used.
 * Semantics: DTensor.from_local(run_check=True).
 *
 * Collective, blocks, owns, errors: as dtensor_from_local_checked();  ENOMEM
 */
int dtensor_from_local_broadcast(const struct dtensor_spec *spec,
                                 const void *local,
                                 const int64_t local_shape[],
                                 struct dtensor **tp,
                                 struct dtensor_error *err);

/* Make the tensor whose local part is the gradient of the `local` that this
 * rank passed to dtensor_from_local() or one of its variants with `spec`.
 * `grad` is the gradient of the tensor made there; it is redistributed to the
 * placements of `spec`, and to R where these are Partial, since the gradient
 * of each term is the whole gradient.  It is never divided; a Partial gradient
 * is reduced.
 * Semantics: the backward of DTensor.from_local.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until this rank has its
 *         part and no peer needs `grad` any more.
 * Owns:   *tp is the caller's; `grad` is unchanged.
 * Errors: EINVAL  the spec, or `grad` has another mesh or shape;  and those of
 *         dtensor_redistribute_to()
 */
int dtensor_from_local_grad(const struct dtensor_spec *spec,
                            const struct dtensor *grad, struct dtensor **tp,
                            struct dtensor_error *err);

/* The same as dtensor_from_local_checked() when no rank knows the global
 * shape: parts->shape is that of this rank's part, and the global shape is
 * computed from all parts.  If S(d) would give other lengths, the placement
 * becomes S(d:their lengths).  A rank outside the mesh, which receives nothing,
 * gets a tensor of sizes 0.
 * Semantics: DTensor.from_local without shape, also for uneven parts.
 *
 * Collective, blocks, owns: as dtensor_from_local_checked().
 * Errors: EINVAL  the parts do not fit together: names a rank;  and as
 *         dtensor_from_local_checked()
 */
int dtensor_from_parts(const struct dtensor_spec *parts, const void *local,
                       struct dtensor **tp, struct dtensor_error *err);

/* The local part, which the caller may read and write between collective calls;
 * and its size in bytes, which may be 0.   Semantics: DTensor.to_local.
 *
 * Owns:   the tensor, until dtensor_destroy().
 */
void *dtensor_to_local(const struct dtensor *t);
size_t dtensor_local_bytes(const struct dtensor *t);

/* Its spec.   Owns: the tensor, until dtensor_destroy(). */
const struct dtensor_spec *dtensor_spec_of(const struct dtensor *t);

/* Write the whole tensor, reduced if Partial, row-major, to `full` on every
 * rank of the mesh; `size` is its size in bytes.
 * Semantics: DTensor.full_tensor.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until done.
 * Errors: EINVAL  wrong size, or no array;  and those of dtensor_allreduce()
 */
int dtensor_full_tensor(const struct dtensor *t, void *full, size_t size,
                        struct dtensor_error *err);

/* The same to `full` on position `root` of the mesh only; the other ranks pass
 * NULL and 0.  `full` may be any memory.  It reverses dtensor_distribute().
 * Semantics: its own.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until done on the root,
 *         elsewhere until no peer needs `t` any more.
 * Errors: EINVAL  root, size or array;  and those of dtensor_allreduce()
 */
int dtensor_full_tensor_at(const struct dtensor *t, int root, void *full,
                           size_t size, struct dtensor_error *err);

/* 1 if both have the same global shape, else 0; no rank is asked.
 * Semantics: Tensor.is_same_size.
 */
int dtensor_is_same_size(const struct dtensor *a, const struct dtensor *b);

/* *equalp = 1 if the global shapes and all elements are the same, else 0; on
 * every rank of the mesh.  Partial tensors are reduced first.  The
 * placements may differ; then one tensor is redistributed, which for R and S
 * moves no data.  A rank with an empty part gets the
 * result of the others.  A rank outside the mesh,
 * which receives nothing, gets 1.  A NaN equals nothing.
 * Semantics: torch.equal.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until all have called.
 * Errors: EINVAL  meshes or dtypes differ;  ENOMEM;  and those of
 *         dtensor_allreduce()
 */
int dtensor_equal(const struct dtensor *a, const struct dtensor *b,
                  int *equalp, struct dtensor_error *err);

/* *equalp = 1 if all replicas, along the mesh dimensions that are R, hold the
 * same bytes, else 0; on every rank of the mesh.  Bytes are compared by a hash
 * of 128 bits, so NaNs with the same bits are equal, and 0 and -0 are not.  A
 * rank outside the mesh, which receives nothing, gets 1.
 * Semantics: its own.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until all have called.
 * Errors: ENOMEM;  and those of dtensor_allreduce()
 */
int dtensor_replicas_equal(const struct dtensor *t, int *equalp,
                           struct dtensor_error *err);

/* Make a tensor with the same elements and other placements, given as text on
 * the same mesh, or as a spec.  The mesh of the spec may be another mesh of the
 * context, with other dimensions, order, size and ranks.  Every placement can
 * become every other.  Along a mesh dimension of n ranks every route leaves the
 * same terms:
 *
 *   P -> P                        the term it has
 *   R -> P(sum), floats           x/n
 *   R -> P(avg,min,max,band,bor)  x
 *   R -> other P                  x at coordinate 0, elsewhere neutral elements
 *   S -> P(avg)                   x, gathered
 *   S -> other P                  its shard of x, elsewhere neutral elements;
 *                                 nothing moves
 *
 * P of another reduction is reduced first and then counts as R; so does every
 * source on another mesh.
 * Semantics: DTensor.redistribute, without padding.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until this rank has its
 *         part and no peer needs `t` any more.
 * Owns:   *tp is the caller's; `t` is unchanged.
 * Errors: EINVAL  the placements; or context, dtype or shape differ;  and those
 *         of dtensor_allreduce()
 */
int dtensor_redistribute(const struct dtensor *t, const char *placements,
                         struct dtensor **tp, struct dtensor_error *err);
int dtensor_redistribute_to(const struct dtensor *t,
                            const struct dtensor_spec *spec,
                            struct dtensor **tp, struct dtensor_error *err);

/* The same into the existing tensor `dst`, which keeps its placements.  After
 * the first call for a pair of specs nothing is allocated.
 *
 * Collective, blocks, errors: as dtensor_redistribute_to()
 * Semantics: Tensor.copy_, between any two meshes.
 */
int dtensor_redistribute_into(const struct dtensor *src, struct dtensor *dst,
                              struct dtensor_error *err);

/* dtensor_spec_draw() of its spec, on the mesh's first rank only.
 * Semantics: visualize_sharding.
 */
void dtensor_draw(const struct dtensor *t, FILE *stream);

/* Print its spec and its elements, on the mesh's first rank only.  Of more than
 * 1000 elements, only the first and last three along each dimension longer than
 * 6 are printed, and only these are sent.  Partial tensors are reduced.
 * Semantics: print(DTensor.full_tensor()), with the layout of NumPy's text.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until done.
 * Errors: ENOMEM;  and those of dtensor_allreduce().  Errors of the stream are
 *         the stream's, see ferror().
 */
int dtensor_print(const struct dtensor *t, FILE *stream,
                  struct dtensor_error *err);

/* Free it and its part.   Collective: no.   NULL is a no-op. */
void dtensor_destroy(struct dtensor *t);

#ifdef __cplusplus
}
#endif
#endif
