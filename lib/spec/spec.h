/* spec.h - L4: meshes, placements, layouts, and how to change them
 *
 * grid.c        sizes and strides: the algebra of meshes
 * mesh.c        meshes: from the file, made; each only once
 * mesh_names.c mesh_slice.c mesh_shape.c mesh_ask.c   their names; parts of
 *               them; flattened and cut; questions and pictures
 * mesh_stack.c  the mesh that is meant when none is named
 * placement.c placement_text.c   S(0), R, P(sum) as text
 * placement_kind.c   what they do, comparing
 * lengths.c     shard lengths that users chose, kept by the context
 * spec.c        specs: checks, normal form, comparing
 * spec_text.c   specs as PyTorch prints them, read
 * order.c       which mesh dimension cuts first
 * layout.c      which part of the global tensor a rank holds
 * meta.c        shapes and strides of wholes and parts
 * runs.c        which elements of one part are which of another
 * pieces.c      which boxes go from whom to whom between two specs
 * phases.c      which collectives lead from one spec to another
 * cost.c        what a redistribution is thought to cost
 * route.c graph.c   ways from one spec to another, and which to take
 * cross.c       from one mesh to another
 * redist*.c     redistribute plans: made once per pair of specs, run
 * plan*.c       plans as objects, and what they move
 * request.c     redistributes that are started and waited for later
 * batch.c       several tensors redistributed together
 * grad.c        what a redistribution does to gradients
 * scatter.c     a large array from one rank to all parts
 * collective.c  dtensor_allreduce() and its kin
 * draw.c        the sharding picture
 */
#ifndef DTN_SPEC_H
#define DTN_SPEC_H

#include "coll/coll.h"
#include "spec/grid.h"

/* A mesh is a pattern of positions of its root: from `origin` on, axis[d] says
 * how far apart the coordinates of dimension d are.  The root is its own, with
 * origin 0; it was made from a list of ranks, and that list is what positions
 * mean.  Two meshes with the same root, pattern and names are one object.
 */
struct dtensor_mesh {
    struct dtensor_mesh *next;    /* all meshes of the context                 */
    struct dtensor_mesh *chain;   /* those of one hash                         */
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *root;
    char name[DTENSOR_NAME_MAX + 1];      /* "" unless from the file           */
    int ndim;
    int size[DTENSOR_MAX_DIMS];
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];
    int origin;                   /* position in the root of coordinate 0      */
    struct dtn_grid axis[DTENSOR_MAX_DIMS];
    struct dtn_group group;       /* all its ranks, row-major; same ranks,     */
                                  /* same group.ranks                          */
    const int *where;             /* of a root: [world] positions, -1: none    */
    unsigned distinct;            /* bit set of dimensions along which [seed]  */
                                  /* gives ranks different seeds               */
};

/* Make the meshes of the cluster file, and "world". */
int dtn_meshes_init(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_meshes_destroy(struct dtn_meshes *meshes);

/* The coordinate of position `index` (0..size-1) of the mesh. */
void dtn_mesh_coord_of(const struct dtensor_mesh *mesh, int index, int coord[]);

/* The sub-mesh of the dimensions in the bit set `dims` that contains this
 * rank, or outside the mesh its first rank.  None of them: one rank without
 * dimensions.   Errors: ENOMEM
 */
int dtn_mesh_sub(const struct dtensor_mesh *mesh, unsigned dims,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* "world(dp=2,tp=4)": for people.  Returns `buf`. */
char *dtn_mesh_format(const struct dtensor_mesh *mesh, char *buf, size_t size);

/* ------------------------------------------------- placement_kind.c --- */

/* What a placement does with the tensor, whatever the rule: REPLICATE, SHARD
 * (for all that cut it), or PARTIAL.
 */
enum dtensor_placement_kind
dtn_placement_class(const struct dtensor_placement *p);

/* Fields that mean nothing for a kind do not count.  `n` is the size of the
 * mesh dimension.
 */
bool dtn_placement_equal(const struct dtensor_placement *a,
                         const struct dtensor_placement *b, int n);

/* Does an exchange with this change of a mesh dimension use only data of the
 * same coordinate?  A term stays, a replica is sharded in place, and a shard
 * becomes a term on its own rank.  Not so for an average: each of its terms is
 * the value, so a shard is gathered.
 */
bool dtn_placement_stays(const struct dtensor_placement *from,
                         const struct dtensor_placement *to);

/* May one tensor have both: are they one reduction, or sums and averages? */
bool dtn_redops_mix(enum dtensor_redop a, enum dtensor_redop b);

/* ---------------------------------------------------------- lengths.c --- */

/* Keep a copy of n lengths as long as the context lives; equal ones are kept
 * once.   Errors: ENOMEM
 */
int dtn_lengths_keep(struct dtensor_ctx *ctx, const int64_t lengths[], int n,
                     const int64_t **keptp, struct dtensor_error *err);
void dtn_lengths_destroy(struct dtn_lengths *lengths);

/* ------------------------------------------------------------- spec.c --- */

/* The reduction its Partial placements wait for, or -1 when it has none; SUM
 * where some are sums and some averages.
 */
int dtn_spec_partial(const struct dtensor_spec *spec);

/* Does mesh dimension m, which shards both, leave the same parts in both?  It
 * does if all dimensions up to m that shard this tensor dimension are the same.
 */
bool dtn_spec_cuts_alike(const struct dtensor_spec *a,
                         const struct dtensor_spec *b, int m);

/* Do lengths that somebody chose add up, with what stands to their left? */
bool dtn_spec_lengths_fit(const struct dtensor_spec *spec);

/* "f32[10,5]  S(0),R  on world(dp=2,tp=2)": for people.  Returns `buf`. */
char *dtn_spec_format(const struct dtensor_spec *spec, char *buf, size_t size);

/* The beginning of that: "f32[8,6]". */
char *dtn_spec_shape(const struct dtensor_spec *spec, char *buf, size_t size);

/* Does placement m cut a dimension that there is, if any?   Errors: EINVAL */
int dtn_spec_check_dim(const struct dtensor_spec *spec, int m,
                       struct dtensor_error *err);

/* The shape of what `what` names, and that neither its bytes nor any stride
 * overflow: sizes of 0 count as 1.   Errors: EINVAL
 */
int dtn_shape_check(const char *what, enum dtensor_dtype dtype, int ndim,
                    const int64_t shape[], struct dtensor_error *err);

/* Same mesh, dtype, shape (placements may differ). */
bool dtn_spec_congruent(const struct dtensor_spec *a,
                        const struct dtensor_spec *b);
/* The same without the mesh, in one context. */
bool dtn_spec_alike(const struct dtensor_spec *a,
                    const struct dtensor_spec *b);

/* They must be alike for what `what` names.   Errors: EINVAL */
int dtn_spec_check_alike(const char *what, const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         struct dtensor_error *err);
bool dtn_spec_equal(const struct dtensor_spec *a,
                    const struct dtensor_spec *b);

/* ------------------------------------------------------------- grad.c --- */

/* The default placements of the gradient of a tensor: those of the tensor, with
 * R for Partial.
 */
struct dtensor_spec dtn_grad_usual(struct dtensor_spec spec);

/* ----------------------------------------------------------- layout.c --- */

/* The chunk rule: rank `r` of `n` holds [*start, *start + *size) of N. */
void dtn_chunk(int64_t N, int n, int r, int64_t *start, int64_t *size);

/* What one placement leaves a rank of a list of elements: `count` runs of `len`
 * that begin every `stride`, then perhaps one last run.
 */
struct dtn_cut {
    int64_t start;
    int64_t len;
    int64_t stride;
    int64_t count;
    int64_t last_start;
    int64_t last_len;
};

/* Coordinate `r` of the `n` along the mesh dimension of a placement that cuts,
 * of N elements.
 */
void dtn_cut_of(const struct dtensor_placement *p, int64_t N, int n, int r,
                struct dtn_cut *cut);
int64_t dtn_cut_count(const struct dtn_cut *cut);

/* Where the elements of the part of one position are in the whole. */
struct dtn_part {
    const struct dtensor_spec *spec;
    int64_t shape[DTENSOR_MAX_DIMS];           /* of the part                  */
    struct dtn_cut cut[DTENSOR_MAX_DIMS];      /* of placements that cut       */
};

void dtn_part_init(struct dtn_part *part, const struct dtensor_spec *spec,
                    int index);

/* The global index along `dim` of the i-th that the part holds, and (NULL: not
 * wanted) how many from there on are neighbours on both sides.
 */
int64_t dtn_part_at(const struct dtn_part *part, int dim, int64_t i,
                     int64_t *runp);

/* As dtensor_spec_local(), by position in the mesh. */
void dtn_layout(const struct dtensor_spec *spec, int index, int64_t shape[],
                int64_t offset[]);

/* Elements of a shape; of the local part of position `index`; of the whole.
 * Checked by dtensor_spec_check() not to overflow.
 */
int64_t dtn_numel(int ndim, const int64_t shape[]);
int64_t dtn_local_numel(const struct dtensor_spec *spec, int index);
int64_t dtn_most_numel(const struct dtensor_spec *spec);    /* of any part      */

/* Row-major strides of a shape, in elements. */
void dtn_strides(int ndim, const int64_t shape[], int64_t stride[]);

/* ------------------------------------------------------------- runs.c --- */

/* Elements of one list that are elements of another: `len` neighbours, `count`
 * times; at[0], every step[0] in list 0 are at[1], every step[1] in list 1.
 */
struct dtn_run {
    int64_t len;
    int64_t count;
    int64_t at[2];
    int64_t step[2];                           /* 0 when count is 1            */
};

/* A relation between two lists.  Few entries need no memory.  Running out of
 * memory is remembered in `failed`, as it is by schedules.
 */
struct dtn_runs {
    int n, capacity;
    bool failed;
    struct dtn_run *list;
    struct dtn_run few[3];
};

void dtn_runs_init(struct dtn_runs *runs);
void dtn_runs_fini(struct dtn_runs *runs);
void dtn_runs_add(struct dtn_runs *runs, struct dtn_run run);
void dtn_runs_flip(struct dtn_runs *runs);     /* list 0 becomes list 1        */
void dtn_runs_take(struct dtn_runs *runs, struct dtn_runs *from);   /* moves   */

void dtn_runs_span(const struct dtn_runs *runs, int64_t *startp, int64_t *endp);
                                       /* of list 0; start >= end: none       */

/* Cut list 0 of `runs`: in `out`, which was initialised, list 0 is what the cut
 * leaves of it.
 */
void dtn_runs_cut(const struct dtn_runs *runs, const struct dtn_cut *cut,
                  struct dtn_runs *out);

/* The relation between a rank's part along a dimension and the whole. */
void dtn_part_runs(const struct dtn_part *part, int dim,
                   struct dtn_runs *runs);

/* ----------------------------------------------------------- pieces.c --- */

struct dtn_pieces {               /* all 0: none yet                           */
    struct dtn_piece *list;
    int n, capacity;
};

void dtn_pieces_fini(struct dtn_pieces *pieces);

/* Append the pieces that go from position `source` of src's mesh to position
 * `receiver` of dst's.  Along each mesh dimension a receiver takes from
 *
 *   src is R              the own coordinate only (it is there already)
 *   dst is P              the own coordinate only, unless a shard becomes an
 *                         average (dtn_placement_stays())
 *   src is cut            all whose part meets the receiver's
 *   src is P, dst not     all, reduced in coordinate order
 *
 * The meshes may differ: then P of dst counts as R, and of replicas a receiver
 * takes from itself or from one of them.
 *
 * A piece accumulates unless it is of the first term.  Applied with ascending
 * source, terms are reduced in coordinate order; without terms any order will
 * do.   Errors: ENOMEM
 */
int dtn_pieces_between(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int source,
                       int receiver, struct dtn_pieces *pieces,
                       struct dtensor_error *err);

/* The same from all sources to a receiver, sources ascending; and from a source
 * to all receivers, receivers ascending.  Looks only where parts can meet.
 */
int dtn_pieces_received(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, int receiver,
                        struct dtn_pieces *pieces, struct dtensor_error *err);
int dtn_pieces_sent(const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, int source,
                    struct dtn_pieces *pieces, struct dtensor_error *err);

/* ----------------------------------------------------------- phases.c --- */

/* One collective on the way from a spec to another. */
enum dtn_phase_kind {
    DTN_PHASE_EXCHANGE,           /* the pieces from src to dst                */
    DTN_PHASE_REDUCE,             /* allreduce of the flat local part: src P,  */
                                  /* dst R, along the mesh dimensions `dims`   */
    DTN_PHASE_BROADCAST           /* of the flat local part, from coordinate 0 */
                                  /* of `dims`; in place                       */
};

struct dtn_phase {
    enum dtn_phase_kind kind;
    struct dtensor_spec src;
    struct dtensor_spec dst;
    unsigned dims;                /* bit set of mesh dimensions                */
    enum dtensor_redop redop;     /* folds terms and makes neutral elements;   */
                                  /* AVG where averages are among the terms    */
    bool neutral;                 /* EXCHANGE: `dst` starts neutral            */
    unsigned keepers;             /* EXCHANGE: along the dimensions in this    */
                                  /* set only coordinate 0 gets anything       */
    int divide;                   /* the result is divided by this before it   */
                                  /* is rounded; 1: not                        */
};
#define DTN_MAX_PHASES 3

/* The phase that is one exchange from src to dst, which have no two different
 * reductions between them.
 */
struct dtn_phase dtn_phase_exchange(const struct dtensor_spec *src,
                                    const struct dtensor_spec *dst);

/* The phases from src to dst, congruent and checked; returns how many: 0 when
 * every rank's part stays as it is.
 */
int dtn_phases(const struct dtensor_spec *src, const struct dtensor_spec *dst,
               struct dtn_phase phase[DTN_MAX_PHASES]);

/* The phases that bring a whole array from one position to dst; `src` of the
 * exchange is all R.  `apart`: not every pair of ranks maps, so that the array
 * should leave its rank once, not once for each replica.
 */
int dtn_scatter_phases(const struct dtensor_spec *dst, bool apart,
                       struct dtn_phase phase[DTN_MAX_PHASES]);

/* Must all terms be added in one step?  Averages of integers are rounded, so
 * two steps would give another number.
 */
bool dtn_phases_add_once(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst);

/* How many ranks, one of them among them, may exchange anything with it, on one
 * mesh.
 */
int dtn_phase_reach(const struct dtn_phase *phase);

/* Are terms folded in this phase? */
bool dtn_phase_folds(const struct dtn_phase *phase);

/* Does this position get nothing in the exchange, except neutral elements? */
bool dtn_phase_idle(const struct dtn_phase *phase, int index);

/* ----------------------------------------------------------- redist.c --- */

/* Bring `in`, this rank's part of `src`, to `out`, its part of `dst`.  Plans
 * are made at the first use of a pair of specs and kept.  Ranks outside the
 * mesh do nothing.
 */
int dtn_redistribute(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, const void *in, void *out,
                     struct dtensor_error *err);

/* Bring `full`, a whole row-major array on position `root`, to `out`; root -1:
 * on every rank.
 */
int dtn_scatter(const struct dtensor_spec *dst, int root, const void *full,
                void *out, struct dtensor_error *err);

/* The same for an array of over [redistribute] pipeline bytes, from a root
 * only: in slabs of that size, so that little memory is needed besides.
 */
int dtn_scatter_slabs(const struct dtensor_spec *dst, int root,
                      const void *full, void *out, struct dtensor_error *err);

/* The same by a plan that somebody made.   Errors: EINVAL  it has other specs */
int dtn_redistribute_by(struct dtensor_plan *plan,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, const void *in,
                        void *out, struct dtensor_error *err);

/* request.c: the same as dtn_redistribute_by(), started only. */
int dtn_request_redist(struct dtensor_plan *plan,
                      const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, const void *in,
                      void *out, struct dtensor_request **requestp,
                      struct dtensor_error *err);

/* batch.c: tensor `i` of the batch is this, with these parts on this rank, until
 * it is run.  Errors: EINVAL  it has other specs.  How many there are; run it.
 */
int dtn_batch_take(struct dtensor_batch *batch, int i,
                   const struct dtensor_spec *src, const void *in,
                   const struct dtensor_spec *dst, void *out,
                   struct dtensor_error *err);
int dtn_batch_count(const struct dtensor_batch *batch);
int dtn_batch_run(struct dtensor_batch *batch, struct dtensor_error *err);

void dtn_redists_destroy(struct dtn_redists *redists);

#endif
