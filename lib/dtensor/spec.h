/* dtensor/spec.h - how a tensor is distributed over a mesh
 *
 * A placement for each mesh dimension says what its ranks hold of the tensor: a
 * shard, the whole, or a term of a sum.  A matrix of 8 x 6 on a mesh of 2 x 3
 * placed S(0),S(1) has six shards of 4 x 2; placed S(0),R it has two shards of
 * 4 x 6, each on three ranks.  A spec is plain data, and any rank can compute
 * what any other holds, without communication.
 */
#ifndef DTENSOR_SPEC_H
#define DTENSOR_SPEC_H

#include "mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------- placements, specs --- */

/* All in this section: Collective: no.   Blocks: no. */

enum dtensor_placement_kind {
    DTENSOR_REPLICATE,         /* R       the whole                           */
    DTENSOR_SHARD,             /* S(d)    one chunk of dimension d            */
    DTENSOR_PARTIAL,           /* P(op)   a term                              */
    DTENSOR_STRIDED,           /* SS(d,f) one chunk of each of f pieces       */
    DTENSOR_CYCLIC,            /* C(d,b)  blocks of b, dealt out in turn      */
    DTENSOR_HEADTAIL           /* HT(d)   a piece from each end of d          */
};

/* What the ranks along one mesh dimension hold.  Placements apply from left to
 * right, each to the result of those before: a dimension that is sharded twice
 * is a chunk of a chunk.  10 elements over 3 ranks are
 *
 *   S(0)        0-3  4-7  8-9      torch.chunk: ceil(N/n) each; trailing
 *                                  shards may be short or empty
 *   S(0:2,3,5)  0-1  2-4  5-9      the lengths that the user chose
 *   SS(0,2)     0 1 5 6  2 3 7 8  4 9   2 pieces, each in 3 chunks
 *   C(0,2)      0 1 6 7  2 3 8 9  4 5   blocks of 2 in turn
 *   HT(0)       0 1 8 9  2 3 6 7  4 5   the lengths of S(0), half from each end
 *
 * Lengths can be chosen if the mesh dimensions to the left leave parts of equal
 * length; the lengths must add up to it.  SS is PyTorch's _StridedShard.  HT is
 * the order of its context_parallel: under a causal mask each rank has as much
 * to compute.
 */
struct dtensor_placement {
    enum dtensor_placement_kind kind;          /* which of the fields apply   */
    int dim;                   /* SHARD, STRIDED, CYCLIC, HEADTAIL: tensor    */
                               /* dimension; negative counts from the end     */
    enum dtensor_redop op;     /* PARTIAL: the reduction still to be done     */
    int64_t block;             /* STRIDED: split factor;                      */
                               /* CYCLIC: elements of a block                 */
    const int64_t *sizes;      /* SHARD: NULL, or the length for each rank    */
                               /* along the mesh dimension                    */
};

/* How a tensor is distributed.  Plain data: copy it, compare its fields; only
 * lengths that the user chose are pointed to.  All Partial placements of one
 * tensor must have the same reduction, but sums and averages may be mixed.
 */
struct dtensor_spec {
    const struct dtensor_mesh *mesh;           /* the ranks that hold it      */
    enum dtensor_dtype dtype;                  /* type of an element          */
    int ndim;                                  /* tensor dimensions, 0..8     */
    int64_t shape[DTENSOR_MAX_DIMS];           /* global, in elements         */
    struct dtensor_placement placement[DTENSOR_MAX_DIMS]; /* per mesh dim     */
};

/* Read placements such as "S(0),R,P(sum)" - one for each dimension of `mesh`;
 * S(-1) is the last of `ndim` tensor dimensions.  P is P(sum).  The text
 * that PyTorch 2.15 prints is read too.  For a spec: S(0)[1]S(0)[0]R, in which
 * the second mesh dimension shards first, _S(0, 2) for SS(0,2), P(product) for
 * P(prod).  For a tensor: (Shard(dim=0), Replicate()).
 *
 * Owns:   lengths, as of S(0:2,3,5), belong to the context of the mesh.
 * Errors: EINVAL  a wrong word, or NULL: says which, and what was expected;
 *         ENOMEM
 * Semantics: its own; Shard, Replicate, Partial, _StridedShard as printed by
 * PyTorch.
 */
int dtensor_placements_parse(const struct dtensor_mesh *mesh, const char *text,
                             int ndim, struct dtensor_placement placement[],
                             struct dtensor_error *err);

/* Write them back, "S(0),R,P(sum)", at most `size` bytes with a final NUL;
 * return the length it would have had, as snprintf does.
 */
int dtensor_placements_format(const struct dtensor_mesh *mesh,
                              const struct dtensor_placement placement[],
                              char *text, size_t size);

/* Fill *spec on a mesh: one of the cluster file, or one that the program
 * created, sliced or flattened.
 *
 * Errors: EINVAL  no mesh; placements, dtype or shape: says which;  ENOMEM
 * Semantics: DTensorSpec(mesh, placements, tensor_meta).
 */
int dtensor_spec_on(struct dtensor_spec *spec, const struct dtensor_mesh *mesh,
                    const char *placements, enum dtensor_dtype dtype, int ndim,
                    const int64_t shape[], struct dtensor_error *err);

/* The same with a name for dtensor_mesh_find(), or NULL for the mesh entered
 * last.
 *
 * Errors: EINVAL  there is no such mesh;  and those of dtensor_spec_on()
 * Semantics: DTensorSpec(mesh, placements, tensor_meta).
 */
int dtensor_spec_init(struct dtensor_spec *spec, struct dtensor_ctx *ctx,
                      const char *mesh, const char *placements,
                      enum dtensor_dtype dtype, int ndim,
                      const int64_t shape[], struct dtensor_error *err);

/* Check a spec that was filled in by hand and bring it to the form that
 * queries expect: no negative dimensions, and lengths copied to the context's
 * memory, so that the caller may free its own.  Functions that make a tensor do
 * this themselves.
 *
 * Errors: EINVAL  a field is out of its range: says which;  ENOMEM
 * Semantics: its own.
 */
int dtensor_spec_normalize(struct dtensor_spec *spec,
                           struct dtensor_error *err);

/* Check that every field is in its range and no dimension is negative.
 *
 * Errors: EINVAL  a field is not: says which
 * Semantics: its own.
 */
int dtensor_spec_check(const struct dtensor_spec *spec,
                       struct dtensor_error *err);

/* The part of the global tensor that world rank `rank` holds: its shape and
 * the global index of its first element, ndim of each.  An empty shard has
 * size 0 and offset shape[d].  A rank outside the mesh holds nothing: all
 * sizes 0.  Semantics: compute_local_shape_and_global_offset.
 */
void dtensor_spec_local(const struct dtensor_spec *spec, int rank,
                        int64_t local_shape[], int64_t offset[]);

/* The global indices along tensor dimension `dim` that world rank `rank` holds,
 * as ascending runs of consecutive indices: S(0) is one run, SS, C and HT are
 * several.  The local part holds them in this order.  Write at most `max` runs
 * and return their total number; 0 for a rank outside the mesh.
 */
struct dtensor_run {
    int64_t start;             /* global index of the first element           */
    int64_t size;              /* number of elements                          */
};
int64_t dtensor_spec_runs(const struct dtensor_spec *spec, int rank, int dim,
                          struct dtensor_run run[], int64_t max);

/* For each tensor dimension the mesh dimension that shards it, -1 for none; and
 * the total number of its parts.   Semantics: DTensorSpec.dim_map,
 * num_shards_map.
 *
 * Errors: EINVAL  dim_map: two mesh dimensions shard one dimension, or a
 *                 dimension is out of range
 */
int dtensor_spec_dim_map(const struct dtensor_spec *spec, int map[],
                         struct dtensor_error *err);
void dtensor_spec_num_shards(const struct dtensor_spec *spec, int shards[]);

/* Write a spec as PyTorch 2.15 does, "f32[8, 8](S(0)[0]S(0)[1]R)", at most
 * `size` bytes with a final NUL; return the length it would have had, as
 * snprintf does.  Strided shards are written as such:
 * "f32[8, 8](_S(0, 2)S(0)R)".  C, HT and chosen lengths, which PyTorch does not
 * have, are written as dtensor_placements_format() writes them.
 * Semantics: DTensorSpec.__str__, the text inside Spec().
 */
int dtensor_spec_format(const struct dtensor_spec *spec, char *text,
                        size_t size);

/* Read the text that dtensor_spec_format() or PyTorch wrote for a spec on
 * `mesh`, with or without Spec() around it.
 *
 * Errors: EINVAL  the text has another form;  and those of dtensor_spec_on()
 * Semantics: its own, the reverse of DTensorSpec.__str__.
 */
int dtensor_spec_parse(struct dtensor_spec *spec,
                       const struct dtensor_mesh *mesh, const char *text,
                       struct dtensor_error *err);

/* Shape, strides in elements, and dtype of an array.
 * Semantics: TensorMeta.
 */
struct dtensor_meta {
    enum dtensor_dtype dtype;                  /* type of an element          */
    int ndim;                                  /* dimensions, 0..8            */
    int64_t shape[DTENSOR_MAX_DIMS];           /* in elements                 */
    int64_t stride[DTENSOR_MAX_DIMS];          /* in elements                 */
};

/* Describe the whole (rank -1) or the part of world rank `rank`: row-major,
 * like all tensors of this library.
 */
void dtensor_spec_meta(const struct dtensor_spec *spec, int rank,
                       struct dtensor_meta *meta);

/* Compute the whole from `local`, if all parts have the same shape; and the
 * parts of a whole.  The dimensions may have any order in memory: an S
 * multiplies or divides the size of its dimension, and the strides that step
 * over it.
 * Semantics: compute_global_tensor_info, compute_local_tensor_info.
 *
 * Errors: EINVAL  SS, C, HT or chosen lengths; a dimension out of range; a size
 *                 that is no multiple of the ranks (local); or sizes above
 *                 2^63 bytes
 */
int dtensor_meta_global(const struct dtensor_mesh *mesh,
                        const struct dtensor_placement placement[],
                        const struct dtensor_meta *local,
                        struct dtensor_meta *whole, struct dtensor_error *err);
int dtensor_meta_local(const struct dtensor_mesh *mesh,
                       const struct dtensor_placement placement[],
                       const struct dtensor_meta *whole,
                       struct dtensor_meta *local, struct dtensor_error *err);

/* Which mesh dimension shards first.  place[m] is the place of mesh dimension m
 * among those that shard the same dimension: { 1, 0 } of S(0),S(0) on a
 * 4 x 2 mesh is SS(0,2),S(0).  set_order() turns S into SS so that they
 * shard in this order; order() finds the places, -1 for a mesh dimension that
 * shards nothing.
 * Semantics: DTensorSpec.shard_order.
 *
 * Errors: EINVAL  not an order; a dimension out of range; or (order) a strided
 *                 shard that no order expresses
 */
int dtensor_spec_set_order(struct dtensor_spec *spec, const int place[],
                           struct dtensor_error *err);
int dtensor_spec_order(const struct dtensor_spec *spec, int place[],
                       struct dtensor_error *err);

/* Draw which rank holds which part: 1-D and 2-D as a grid of boxes, more
 * dimensions as a list.  Needs no communication: any rank can draw any spec.
 */
void dtensor_spec_draw(const struct dtensor_spec *spec, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
