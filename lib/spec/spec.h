/* spec.h - L4: meshes, placements, layouts, and how to change them
 *
 * mesh.c        grids of ranks: from the file, made, sliced
 * placement.c   S(0), R, P(sum): text and checks
 * layout.c      which box of the global tensor a rank holds
 * pieces.c      which boxes go from whom to whom between two specs
 * redist.c      redistribute plans: phases, made once per pair of specs, run
 * collective.c  dtensor_allreduce() and its kin
 * draw.c        the sharding picture
 * init.c        dtensor_init(), dtensor_fini()
 */
#ifndef DTN_SPEC_H
#define DTN_SPEC_H

#include "coll/coll.h"

struct dtensor_mesh {
    struct dtensor_mesh *next;    /* all meshes of the context                 */
    struct dtensor_ctx *ctx;
    char name[DTENSOR_NAME_MAX + 1];      /* "" unless from the file           */
    int ndim;
    int size[DTENSOR_MAX_DIMS];
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];
    struct dtn_group group;       /* all its ranks, row-major                  */
    int ranks[];                  /* storage of group.ranks                    */
};

/* Make the meshes of the cluster file, and "world". */
int dtn_meshes_init(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_meshes_destroy(struct dtn_meshes *meshes);

/* The coordinate of position `index` (0..size-1) of the mesh. */
void dtn_mesh_coord_of(const struct dtensor_mesh *mesh, int index, int coord[]);

/* ----------------------------------------------------------- layout.c --- */

/* The chunk rule: rank `r` of `n` holds [*start, *start + *size) of N. */
void dtn_chunk(int64_t N, int n, int r, int64_t *start, int64_t *size);

/* As dtensor_spec_local(), by position in the mesh. */
void dtn_layout(const struct dtensor_spec *spec, int index, int64_t shape[],
                int64_t offset[]);

/* Elements of a shape; of the local part of position `index`; of the whole.
 * Checked by dtensor_spec_check() not to overflow.
 */
int64_t dtn_numel(int ndim, const int64_t shape[]);
int64_t dtn_local_numel(const struct dtensor_spec *spec, int index);

/* Same mesh, dtype, shape (placements may differ). */
bool dtn_spec_congruent(const struct dtensor_spec *a,
                        const struct dtensor_spec *b);
bool dtn_spec_equal(const struct dtensor_spec *a,
                    const struct dtensor_spec *b);

/* ----------------------------------------------------------- pieces.c --- */

/* The pieces position `receiver` needs to turn its part of `src` into its
 * part of `dst`, in the order of application; appended to *piecesp, a growing
 * array the caller frees.  For each mesh dimension, which coordinates to take
 * from:
 *   dst is P              only the own one (a term stays where it is)
 *   src is R              only the own one (it is there already)
 *   src is S              all whose box meets the receiver's
 *   src is P, dst not     all, reduced in coordinate order
 */
int dtn_pieces(const struct dtensor_spec *src, const struct dtensor_spec *dst,
               int receiver, struct dtn_piece **piecesp, int *np,
               struct dtensor_error *err);

/* ----------------------------------------------------------- redist.c --- */

/* Bring `in`, this rank's part of `src`, to `out`, its part of `dst`.  Plans
 * are made at the first use of a pair of specs and kept.
 */
int dtn_redistribute(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, const void *in, void *out,
                     struct dtensor_error *err);

/* Bring `full`, a whole row-major array on position `root`, to `out`. */
int dtn_scatter(const struct dtensor_spec *dst, int root, const void *full,
                void *out, struct dtensor_error *err);

void dtn_redists_destroy(struct dtn_redists *redists);

#endif
