/* dtensor.h - distributed tensors on a fixed cluster, in C
 *
 * A program starts on every rank of a cluster, calls dtensor_init(), and then
 * works on tensors that are spread over a mesh of ranks.  Nothing else runs:
 * no MPI, no NCCL, no daemon.  Link with `pkg-config --libs dtensor`.
 *
 * Words.  A *rank* is one process, 0..world_size-1.  A *mesh* lays ranks out
 * on an n-dimensional grid.  A *placement* says, for one mesh dimension, what
 * its ranks hold: S(d) a shard of tensor dimension d, R a replica, P(op) a
 * term of a sum (or other reduction) not yet carried out.  A *spec* is a mesh,
 * one placement for each of its dimensions, and the global shape and dtype.
 *
 * Rules that hold everywhere
 *   - A function that can fail returns 0 or a negative enum dtensor_errcode.
 *     Its last parameter explains: NULL if the code alone is enough.  Out
 *     parameters are written on success only.
 *   - *Collective* calls must be made by every rank named, in the same order.
 *     A rank that differs is caught (EMISMATCH) before its data is taken.
 *   - A call that *Blocks* waits for peers, at most [transport] op_timeout.
 *   - After EPEER, ETIME, EMISMATCH or EABORT the context is poisoned: every
 *     collective call on it fails the same way; only destroying is legal.
 *   - A context and what belongs to it is used by one thread at a time.
 *     Meshes and specs never change once made and may be shared.
 *   - The library does not print, exit, or install signal handlers.  With
 *     DTN_LOG=warn|info|debug in the environment it explains itself on stderr.
 */
#ifndef DTENSOR_H
#define DTENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DTENSOR_MAX_DIMS 8     /* of a tensor, and of a mesh                */
#define DTENSOR_NAME_MAX 32    /* longest name of a mesh or mesh dimension  */

/* ------------------------------------------------------------- errors --- */

enum dtensor_errcode {
    DTENSOR_EINVAL    = -1,    /* an argument is outside its documented range */
    DTENSOR_ENOMEM    = -2,    /* memory exhausted                            */
    DTENSOR_ESYS      = -3,    /* a system call failed: see sys_errno         */
    DTENSOR_ECONF     = -4,    /* the cluster file or environment is wrong    */
    DTENSOR_ENODEV    = -5,    /* a device or transport is not to be had      */
    DTENSOR_EPEER     = -6,    /* a peer died: `rank` says which              */
    DTENSOR_ETIME     = -7,    /* a deadline passed: `rank` says waiting for  */
    DTENSOR_EAGAIN    = -8,    /* not yet; ask again                          */
    DTENSOR_EMISMATCH = -9,    /* ranks disagree: `rank` is the odd one       */
    DTENSOR_EABORT    = -10    /* another rank failed: `rank` says which      */
};

/* The explanation of an error.  Owned by the caller, normally on its stack;
 * written on failure only.
 */
struct dtensor_error {
    int code;                  /* enum dtensor_errcode                        */
    int sys_errno;             /* errno of the failing call, or 0             */
    int rank;                  /* culprit, or -1                              */
    char text[500];            /* one line, no newline, ends "..." if cut     */
};

/* The name of an error code, such as "EPEER"; "0" for 0.  Static storage. */
const char *dtensor_errname(int code);

/* "MAJOR.MINOR.PATCH" of the library in use.  Static storage. */
const char *dtensor_version(void);

/* What this build can do, one line: "verbs yes, cuda no".  Static storage. */
const char *dtensor_build(void);

/* ------------------------------------------------- dtypes, reductions --- */

enum dtensor_dtype {
    DTENSOR_F32,               /* IEEE binary32                               */
    DTENSOR_F64,               /* IEEE binary64                               */
    DTENSOR_F16,               /* IEEE binary16                               */
    DTENSOR_BF16,              /* upper half of a binary32                    */
    DTENSOR_I8,
    DTENSOR_U8,
    DTENSOR_I32,
    DTENSOR_I64,
    DTENSOR_I16,
    DTENSOR_U16,
    DTENSOR_U32,
    DTENSOR_U64,
    DTENSOR_BOOL,              /* a byte, 0 or 1                              */
    DTENSOR_C64,               /* two F32: real, imaginary                    */
    DTENSOR_C128,              /* two F64                                     */
    DTENSOR_F8E4M3,            /* no infinity: 448 is the largest, 0x7f a NaN */
    DTENSOR_F8E5M2,            /* upper half of a binary16                    */
    DTENSOR_NDTYPES
};

enum dtensor_redop {
    DTENSOR_SUM,               /* of bool: or                                 */
    DTENSOR_AVG,               /* sum, then divided by the number of ranks;   */
                               /* integers round toward zero; not of bool     */
    DTENSOR_PROD,              /* of bool: and                                */
    DTENSOR_MIN,               /* a NaN anywhere gives NaN, as in PyTorch;    */
    DTENSOR_MAX,               /* neither of complex numbers                  */
    DTENSOR_BAND,              /* bit operations: integers and bool only      */
    DTENSOR_BOR,
    DTENSOR_BXOR,
    DTENSOR_NREDOPS,
    DTENSOR_REDOP_LAST = 0x3fffffff    /* dtensor_redop_create() ends here    */
};

size_t dtensor_dtype_size(enum dtensor_dtype dtype);          /* in bytes     */
const char *dtensor_dtype_name(enum dtensor_dtype dtype);     /* "f32", ...   */
const char *dtensor_redop_name(enum dtensor_redop op);        /* "sum", ...   */

/* The dtype or reduction of that name.   Errors: EINVAL  no such name */
int dtensor_dtype_parse(const char *name, enum dtensor_dtype *dtypep,
                        struct dtensor_error *err);
int dtensor_redop_parse(const char *name, enum dtensor_redop *opp,
                        struct dtensor_error *err);

/* ------------------------------------------------------------ context --- */

/* One rank's membership of one job. */
struct dtensor_ctx;

/* Join the job.  `path` names the cluster file; NULL means the file named by
 * DTN_CLUSTER, or with none a built-in cluster: the ranks dtensor-run or the
 * Slurm step started, or this process alone.  See dtensor(7).
 *
 * Collective: yes - every rank of the world.   Blocks: until all have joined,
 *         at most [transport] connect_timeout (60 s).
 * Owns:   *ctxp is the caller's, for dtensor_fini().
 * Errors: ECONF      the file, or the environment: says which and what to do
 *         ETIME      ranks are missing: says which
 *         EMISMATCH  a rank has another file, world or version: names the key
 *         EPEER      a rank died while joining
 *         ENODEV     no transport reaches some peer
 *         ENOMEM, ESYS
 */
int dtensor_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* Leave the job and free everything that belongs to the context: its meshes,
 * and memory from dtensor_alloc().  Tensors must have been destroyed.
 * Peers may still be at work: nothing of theirs is touched.  NULL is a no-op.
 *
 * Collective: no.   Blocks: no.
 */
void dtensor_fini(struct dtensor_ctx *ctx);

int dtensor_rank(const struct dtensor_ctx *ctx);          /* 0..world_size-1 */
int dtensor_world_size(const struct dtensor_ctx *ctx);    /* 1 or more       */
int dtensor_local_rank(const struct dtensor_ctx *ctx);    /* on this host    */
int dtensor_local_size(const struct dtensor_ctx *ctx);    /* on this host    */

/* This rank's host as the cluster names it; the cluster's name, or "local";
 * how the rank was found, such as "dtensor-run" or "Slurm step 12.0".
 * Valid until dtensor_fini().
 */
const char *dtensor_host(const struct dtensor_ctx *ctx);
const char *dtensor_cluster_name(const struct dtensor_ctx *ctx);
const char *dtensor_launcher(const struct dtensor_ctx *ctx);

/* What the last collective or redistribute did, such as
 * "allreduce direct shm 2 ranks".  Valid until the next one; "" before any.
 */
const char *dtensor_last_plan(const struct dtensor_ctx *ctx);

/* Bytes that this rank's CPU has copied, ever, on their way from the caller's
 * memory to a peer or from one: packed, unpacked, or staged where peers or the
 * device reach.  0 is zero copy.  The transfer itself does not count (a load
 * or store through shared memory, a write to a socket), nor does the part of a
 * result that is the rank's own.
 */
uint64_t dtensor_copied_bytes(const struct dtensor_ctx *ctx);

/* Take `size` bytes of zeroed memory, 64-byte aligned, that peers reach
 * without a copy.  Collectives work on any memory; on this they are faster.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *memp is the caller's, for dtensor_free() before dtensor_fini().
 * Errors: ENOMEM
 */
int dtensor_alloc(struct dtensor_ctx *ctx, size_t size, void **memp,
                  struct dtensor_error *err);
void dtensor_free(struct dtensor_ctx *ctx, void *mem);   /* NULL is a no-op */

/* Let the transports use `size` bytes of the caller's own memory where they
 * stand: over rc the network card then reads and writes them directly, which
 * locks them; over tcp nothing is ever staged, and over shm what is not of
 * dtensor_alloc() is fetched or staged, so there it changes nothing.  It pays for memory
 * used in many calls: once costs 16 us and more.  Each rank may register what
 * it likes.  All in all at most [transport] register_limit.
 *
 * Collective: no.   Blocks: no.
 * Owns:   the memory stays the caller's, and must stay mapped until
 *         dtensor_unregister() of the same address, or dtensor_fini().
 * Errors: EINVAL  no memory, of dtensor_alloc(), or registered in part already
 *         ENOMEM  over register_limit, or more than may be locked: how much is
 *         ESYS    the device refused
 * Semantics: ncclCommRegister.
 */
int dtensor_register(struct dtensor_ctx *ctx, void *mem, size_t size,
                     struct dtensor_error *err);
void dtensor_unregister(struct dtensor_ctx *ctx, void *mem);
                                               /* no-op on other memory      */

/* ------------------------------------------------------------- meshes --- */

/* Ranks on an n-dimensional grid, last dimension fastest: with sizes (2, 4)
 * over ranks 0..7, rank 6 is at (1, 2).  A mesh made of a list of ranks is a
 * *root*; slicing, flattening and the like give patterns of its positions, and
 * cost a microsecond and no message.  Meshes belong to their context and live
 * as long; asking twice for the same one gives the same pointer.  A mesh is
 * also the group of its ranks: the group along "tp" is the mesh sliced so.
 * Semantics: torch.distributed.device_mesh.DeviceMesh.
 *
 * All in this section: Collective: no.   Blocks: no.   ENOMEM may be had.
 */
struct dtensor_mesh;

/* The mesh [mesh "NAME"] of the cluster file.  "world" always exists: without
 * such a section it is one dimension named "world" over all ranks.  NULL: the
 * mesh entered last, as dtensor_mesh_current().
 *
 * Errors: EINVAL  no such mesh: lists those there are
 */
int dtensor_mesh_find(struct dtensor_ctx *ctx, const char *name,
                      const struct dtensor_mesh **meshp,
                      struct dtensor_error *err);

/* Lay ranks out on a grid of `ndim` (1..8) sizes: a root.  `names` are the
 * names of the dimensions, "dp,tp", or NULL.  `ranks` lists the product of the
 * sizes many distinct ranks, row-major; NULL means 0, 1, 2, ...  Every member
 * must make the same call before using it.
 *
 * Errors: EINVAL  sizes, names or ranks do not fit: says which
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
 */
int dtensor_mesh_slice(const struct dtensor_mesh *mesh, const char *names,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err);

/* The same by the number of one dimension, named or not; -1 is the only one.
 * Semantics: DeviceMesh.get_group.
 *
 * Errors: EINVAL  no such dimension, or -1 of several
 */
int dtensor_mesh_along(const struct dtensor_mesh *mesh, int dim,
                       const struct dtensor_mesh **meshp,
                       struct dtensor_error *err);

/* A mesh and its copies are the same pattern at every place of the root; each
 * rank of the root is in one of them.  Of (dp=2,tp=4) sliced as "tp" there are
 * two: 0-3 and 4-7.  Copy `i`, 0 <= i < dtensor_mesh_copies(), in the order of
 * their first positions.   Semantics: DeviceMesh._get_all_submeshes.
 *
 * Errors: EINVAL  no such copy
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
 */
int dtensor_mesh_flatten(const struct dtensor_mesh *mesh, const char *name,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err);

/* Dimension `dim` as `n` of these sizes and names, "a,b", or NULL in a mesh
 * without names; the others stay.  The root is not sliced by such names, the
 * result is.   Semantics: DeviceMesh._unflatten.
 *
 * Errors: EINVAL  dimension, sizes or names do not fit: says which
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

int dtensor_mesh_ndim(const struct dtensor_mesh *mesh);
int dtensor_mesh_size(const struct dtensor_mesh *mesh);          /* in ranks */
int dtensor_mesh_dim_size(const struct dtensor_mesh *mesh, int dim);
const char *dtensor_mesh_dim_name(const struct dtensor_mesh *mesh, int dim);
                                               /* "" when it has no name     */

/* The number of a named dimension.   Errors: EINVAL  there is none */
int dtensor_mesh_dim(const struct dtensor_mesh *mesh, const char *name,
                     int *dimp, struct dtensor_error *err);

/* World rank of the mesh's i-th position, row-major. */
int dtensor_mesh_rank(const struct dtensor_mesh *mesh, int i);

/* Position of a world rank in the mesh, row-major, or -1 when outside. */
int dtensor_mesh_index(const struct dtensor_mesh *mesh, int rank);

/* Write the coordinate of world rank `rank` to coord[0..ndim-1] and return 1;
 * return 0, writing nothing, when it is outside the mesh.
 */
int dtensor_mesh_coord(const struct dtensor_mesh *mesh, int rank, int coord[]);

/* The calling rank's coordinate along `dim`, or -1 when it is outside the
 * mesh.  `dim` -1 is the only one.
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
 *
 * Errors: EINVAL  another mesh was entered last, or none
 */
int dtensor_mesh_enter(const struct dtensor_mesh *mesh,
                       struct dtensor_error *err);
int dtensor_mesh_leave(const struct dtensor_mesh *mesh,
                       struct dtensor_error *err);
int dtensor_mesh_current(struct dtensor_ctx *ctx,
                         const struct dtensor_mesh **meshp,
                         struct dtensor_error *err);

/* --------------------------------------------------------- collectives --- */

/* The arguments are those of MPI and NCCL.  All ranks of `mesh`, whatever its
 * dimensions, form the group, in row-major order; a rank outside must not
 * call.  `in` and `out` are the same pointer (in place) or do not overlap.
 * Memory from dtensor_alloc() is used where it stands; other memory is copied
 * through a buffer of the context that grows to the largest size used.
 * Every element of a result is reduced in one fixed order that does not
 * depend on timing: the same call on the same ranks gives the same bits, and
 * all ranks get the same bits.
 *
 * Collective: yes - every rank of the mesh, same order.
 * Blocks: until this rank's part is done and its buffers are its own again.
 * Owns:   nothing is kept.  On failure `out` may be partly written, except
 *         that EINVAL leaves it untouched; no peer's bytes are taken before
 *         its call was found to be the same as this one.
 * Errors: EINVAL     rank outside the mesh, bad dtype, op, root or overlap
 *         EMISMATCH  a peer called something else: says what
 *         EPEER, ETIME, EABORT, ENOMEM
 */

/* out[i] = op over the group of in[i], 0 <= i < count, on every rank. */
int dtensor_allreduce(const struct dtensor_mesh *mesh, const void *in,
                      void *out, size_t count, enum dtensor_dtype dtype,
                      enum dtensor_redop op, struct dtensor_error *err);

/* As allreduce, but only the root (a position in the group) gets `out`; it
 * may be NULL elsewhere.
 */
int dtensor_reduce(const struct dtensor_mesh *mesh, int root, const void *in,
                   void *out, size_t count, enum dtensor_dtype dtype,
                   enum dtensor_redop op, struct dtensor_error *err);

/* The root's `count` elements of `buf` appear in everyone's `buf`. */
int dtensor_broadcast(const struct dtensor_mesh *mesh, int root, void *buf,
                      size_t count, enum dtensor_dtype dtype,
                      struct dtensor_error *err);

/* `in`: count elements; `out`: group size x count, block r from position r.
 * In place: in == out + own position x count.
 */
int dtensor_allgather(const struct dtensor_mesh *mesh, const void *in,
                      void *out, size_t count, enum dtensor_dtype dtype,
                      struct dtensor_error *err);

/* `in`: group size x count; `out`: count elements, the reduction of block r on
 * position r.  In place: out == in + own position x count.
 */
int dtensor_reduce_scatter(const struct dtensor_mesh *mesh, const void *in,
                           void *out, size_t count, enum dtensor_dtype dtype,
                           enum dtensor_redop op, struct dtensor_error *err);

/* `in` and `out`: group size x count; block r of `out` comes from block
 * (own position) of position r's `in`.  Not in place.
 */
int dtensor_all_to_all(const struct dtensor_mesh *mesh, const void *in,
                       void *out, size_t count, enum dtensor_dtype dtype,
                       struct dtensor_error *err);

/* The root's `out` gets block r from position r's `in`; elsewhere `out` is not
 * touched and may be NULL.  In place at the root: in == out + its block.
 */
int dtensor_gather(const struct dtensor_mesh *mesh, int root, const void *in,
                   void *out, size_t count, enum dtensor_dtype dtype,
                   struct dtensor_error *err);

/* Position r's `out` gets block r of the root's `in`, which elsewhere may be
 * NULL.  In place at the root: out == in + its block.
 */
int dtensor_scatter(const struct dtensor_mesh *mesh, int root, const void *in,
                    void *out, size_t count, enum dtensor_dtype dtype,
                    struct dtensor_error *err);

/* Return when every rank of the mesh has called. */
int dtensor_barrier(const struct dtensor_mesh *mesh, struct dtensor_error *err);

/* The same where block r has counts[r] elements, any of them 0; counts[] is the
 * same on every rank.  Blocks lie one after another, without gaps, and take no
 * more messages or time than equal ones.
 */
int dtensor_allgatherv(const struct dtensor_mesh *mesh, const void *in,
                       void *out, const size_t counts[],
                       enum dtensor_dtype dtype, struct dtensor_error *err);
int dtensor_reduce_scatterv(const struct dtensor_mesh *mesh, const void *in,
                            void *out, const size_t counts[],
                            enum dtensor_dtype dtype, enum dtensor_redop op,
                            struct dtensor_error *err);
int dtensor_gatherv(const struct dtensor_mesh *mesh, int root, const void *in,
                    void *out, const size_t counts[],
                    enum dtensor_dtype dtype, struct dtensor_error *err);
int dtensor_scatterv(const struct dtensor_mesh *mesh, int root, const void *in,
                     void *out, const size_t counts[],
                     enum dtensor_dtype dtype, struct dtensor_error *err);

/* in_counts[r]: what this rank sends to position r; out_counts[r]: what it gets
 * from there, which must be what that rank says it sends (else EMISMATCH).  No
 * rank need know more.
 */
int dtensor_all_to_allv(const struct dtensor_mesh *mesh, const void *in,
                        const size_t in_counts[], void *out,
                        const size_t out_counts[], enum dtensor_dtype dtype,
                        struct dtensor_error *err);

/* ------------------------------------------------- collectives as data --- */

enum dtensor_collective {
    DTENSOR_ALLREDUCE,
    DTENSOR_REDUCE,
    DTENSOR_BROADCAST,
    DTENSOR_ALLGATHER,
    DTENSOR_REDUCE_SCATTER,
    DTENSOR_ALL_TO_ALL,
    DTENSOR_GATHER,
    DTENSOR_SCATTER,
    DTENSOR_BARRIER,
    DTENSOR_NCOLLECTIVES
};

/* A collective call.  Zero what it does not need. */
struct dtensor_call {
    enum dtensor_collective coll;
    int root;                  /* a position in the mesh                      */
    enum dtensor_dtype dtype;
    enum dtensor_redop op;
    size_t count;              /* elements, of a block where there are such   */
    const size_t *counts;      /* NULL: every block is `count`; else of each  */
                               /* position its block, the same on all ranks.  */
                               /* ALL_TO_ALL: what this rank sends to each    */
    const size_t *recv_counts; /* ALL_TO_ALL with counts: what it gets of each*/
};

/* What a call costs, by how much of what: the unit of each amount. */
enum dtensor_cost {
    DTENSOR_COST_INTRA_HOPS,       /* signals that wait for the last one,       */
    DTENSOR_COST_INTRA_MESSAGES,   /* puts and signals handed over,             */
    DTENSOR_COST_INTRA_BYTES,      /* bytes loaded or put: inside hosts,        */
    DTENSOR_COST_INTER_HOPS,       /* and between them                          */
    DTENSOR_COST_INTER_MESSAGES,
    DTENSOR_COST_INTER_BYTES,
    DTENSOR_COST_FOLDED,           /* bytes of terms that reductions read       */
    DTENSOR_COST_COPIED,           /* bytes copied within the rank              */
    DTENSOR_NCOSTS
};

/* One way to carry out a call. */
struct dtensor_way {
    const char *name;              /* "ring": static                            */
    int taken;                     /* this is the one                           */
    int tuned;                     /* since [tuning] says so                    */
    double ns;                     /* predicted: the sum of part_ns             */
    double amount[DTENSOR_NCOSTS]; /* of the rank that has most to do           */
    double part_ns[DTENSOR_NCOSTS];
    double stretch;                /* a byte inside hosts, folded or copied is  */
                                   /* taken for so many: not all are in a cache */
};

/* Predict a call over the mesh by every algorithm that can run it, least time
 * first, of which the first `max` are told; *np (NULL: not wanted) is how many
 * there are.  The constants are those of [tuning] in the cluster file, or built
 * in; every rank gets the same answer.
 *
 * Collective: no.   Blocks: no, and needs no peers: see dtensor_init_plan().
 * Errors: EINVAL  the call could not be made, or max is less than 1
 */
int dtensor_call_ways(const struct dtensor_mesh *mesh,
                      const struct dtensor_call *call,
                      struct dtensor_way ways[], int max, int *np,
                      struct dtensor_error *err);

/* Carry it out; a broadcast's buffer is `in` at the root and `out` elsewhere,
 * so usually both.   All else: as the function of that name.
 */
int dtensor_call_run(const struct dtensor_mesh *mesh,
                     const struct dtensor_call *call, const void *in,
                     void *out, struct dtensor_error *err);

/* Start it and return at once: the buffers are the library's until
 * dtensor_wait().  Any number may be started; see struct dtensor_request for
 * the order in which they are worked on.   Semantics: MPI_Iallreduce & co.
 *
 * Collective: yes - in the same order.   Blocks: no - but on the first call of
 *         its kind until connected.
 * Owns:   *requestp is the caller's, for dtensor_wait(); `call` is not kept.
 * Errors: EINVAL  as dtensor_call_run(), or a group of calls is open
 */
struct dtensor_request;
int dtensor_call_start(const struct dtensor_mesh *mesh,
                       const struct dtensor_call *call, const void *in,
                       void *out, struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* A call with its buffers, made ready once and started as often as wanted:
 * after it is made nothing is allocated.   Semantics: MPI_Allreduce_init & co.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until connected.
 * Owns:   *persistentp is the caller's, for dtensor_persistent_destroy()
 *         before dtensor_fini().  The buffers must live as long; `call` need
 *         not.
 * Errors: as dtensor_call_start(), ENOMEM
 */
struct dtensor_persistent;
int dtensor_call_create(const struct dtensor_mesh *mesh,
                        const struct dtensor_call *call, const void *in,
                        void *out, struct dtensor_persistent **persistentp,
                        struct dtensor_error *err);

/* Start it.  *requestp is good for dtensor_test() and dtensor_wait(), as any
 * other, and stays the persistent call's own.
 *
 * Collective: yes - in the same order.   Blocks: no.
 * Errors: EINVAL  the last start of it was not waited for
 */
int dtensor_persistent_start(struct dtensor_persistent *persistent,
                             struct dtensor_request **requestp,
                             struct dtensor_error *err);

/* Waits for it if it is under way.   NULL is a no-op.   Collective: no. */
void dtensor_persistent_destroy(struct dtensor_persistent *persistent);

/* Send to, or receive from, a position of the mesh, by the two ranks only.
 * Messages between two ranks are matched in the order of the calls.  Up to
 * 4 KiB are sent without waiting for the receiver.
 *
 * Collective: no - the peer must make the other call, with as many elements
 *         of the same dtype.   Blocks: until this rank's buffer is its own
 *         again: two ranks that both send first wait for each other until
 *         ETIME; in a group they do not.
 * Owns:   nothing is kept.
 * Errors: EINVAL     rank outside the mesh; peer, dtype, size or buffer
 *         EMISMATCH  the peer called something else
 *         EPEER, ETIME, EABORT, ENOMEM
 * Semantics: ncclSend, ncclRecv.
 */
int dtensor_send(const struct dtensor_mesh *mesh, int to, const void *buf,
                 size_t count, enum dtensor_dtype dtype,
                 struct dtensor_error *err);
int dtensor_recv(const struct dtensor_mesh *mesh, int from, void *buf,
                 size_t count, enum dtensor_dtype dtype,
                 struct dtensor_error *err);

/* Between begin and end, blocking collectives, sends and receives on meshes of
 * the context are only written down; end makes them all, as if at the same
 * time.  All that goes from one rank to another by sends is one message;
 * collectives that differ in count and buffers only become one, as long as it
 * has 64 KiB at most.  Buffers and counts must stay until end.  An empty group
 * sends nothing.
 *
 * Collective: no by itself: each call needs the ranks it needs, which make the
 *         same collectives in the same order in theirs.   Blocks: end, until
 *         all of them are done.
 * Errors: begin: EINVAL  one is open.   end: EINVAL  none is; and those of the
 *         calls
 * Semantics: ncclGroupStart, ncclGroupEnd.
 */
int dtensor_group_begin(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtensor_group_end(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* ------------------------------------------ reductions, reproducibility --- */

/* Whatever takes an enum dtensor_redop takes reductions that a program makes,
 * but for Partial placements.
 *
 * How reductions round.  Sums, averages, products and functions of f16, bf16,
 * f8e4m3 and f8e5m2 are carried out in f32 over all ranks and rounded once,
 * after an average was divided: 256 + 1 + 1 of bf16 is 258, in every algorithm.
 * f32 is added as f32, f64 as f64: convert first where f32 sums want more bits.
 */

/* dst[i] = left[i] op right[i] for 0 <= i < count.  dst may be the very array
 * left or right.  `dtype` is the call's; but F32, and so are the arrays, for f16,
 * bf16 and the floats of 8 bits.  Must not fail or call the library.
 */
typedef void dtensor_reduce_f(void *dst, const void *left, const void *right,
                              size_t count, enum dtensor_dtype dtype,
                              void *arg);

/* What may be assumed of it: that (a op b) op c is a op (b op c) down to what
 * the caller calls equal, and that a op b is b op a.  Of a function without
 * both, terms are folded from the left in the order of the ranks.
 */
enum dtensor_redop_flags {
    DTENSOR_ASSOCIATIVE = 1,
    DTENSOR_COMMUTATIVE = 2
};

/* Make a reduction: by a function, which is given `arg`, for every dtype; or
 * the sum of factor times each rank's term, floats and complex numbers only,
 * the factor rounded to what is computed in.  All ranks make the same functions
 * in the same order; how many were made, their flags, and a factor's bits are
 * compared by the calls that use them.
 *
 * Collective: no.   Blocks: no.
 * Owns:   the context keeps it until dtensor_redop_destroy() or dtensor_fini().
 * Errors: EINVAL  no function, unknown flags, or 2^29 were made already
 *         ENOMEM
 * Semantics: MPI_Op_create, ncclRedOpCreatePreMulSum.
 */
int dtensor_redop_create(struct dtensor_ctx *ctx, dtensor_reduce_f *fn,
                         void *arg, unsigned flags, enum dtensor_redop *opp,
                         struct dtensor_error *err);
int dtensor_redop_premul(struct dtensor_ctx *ctx, double factor,
                         enum dtensor_redop *opp, struct dtensor_error *err);

/* What was started goes on; new calls with it are EINVAL.  A built-in one, or
 * one that is gone: no-op.
 */
void dtensor_redop_destroy(struct dtensor_ctx *ctx, enum dtensor_redop op);

/* From now on, or no longer, fold all terms in the order of the ranks, as
 * [cluster] repro = yes does from the start: then the bits of a reduction depend
 * on the terms and their order only, not on algorithm, size of the message,
 * hosts, transports or [tuning].  See dtensor-repro(7).
 *
 * Collective: all ranks must do so between the same calls, which compare it.
 * Blocks: no.   Semantics: torch.use_deterministic_algorithms.
 */
void dtensor_set_repro(struct dtensor_ctx *ctx, int on);

/* -------------------------------------------------- placements, specs --- */

enum dtensor_placement_kind {
    DTENSOR_REPLICATE,         /* R       the whole                           */
    DTENSOR_SHARD,             /* S(d)    one chunk of dimension d            */
    DTENSOR_PARTIAL,           /* P(op)   a term                              */
    DTENSOR_STRIDED,           /* SS(d,f) one chunk of each of f pieces       */
    DTENSOR_CYCLIC             /* C(d,b)  blocks of b, dealt out in turn      */
};

/* What the ranks along one mesh dimension hold.  Placements apply left to
 * right, each to what the ones before left: a dimension sharded twice is a
 * chunk of a chunk.  10 elements over 3 ranks are
 *
 *   S(0)        0-3  4-7  8-9      torch.chunk: cut every ceil(N/n), trailing
 *                                  shards may be short or empty
 *   S(0:2,3,5)  0-1  2-4  5-9      the lengths that the user chose
 *   SS(0,2)     0 1 5 6  2 3 7 8  4 9   cut in 2, then each piece in 3
 *   C(0,2)      0 1 6 7  2 3 8 9  4 5   blocks of 2 in turn
 *
 * Lengths can be chosen where the dimensions to the left leave parts of one
 * length, to which they add up.  SS is PyTorch's _StridedShard.
 */
struct dtensor_placement {
    enum dtensor_placement_kind kind;
    int dim;                   /* SHARD, STRIDED, CYCLIC: tensor dimension;   */
                               /* negative counts from the end                */
    enum dtensor_redop op;     /* PARTIAL: the reduction still to be done     */
    int64_t block;             /* STRIDED: split factor; CYCLIC: elements     */
    const int64_t *sizes;      /* SHARD: NULL, or the length for each rank    */
                               /* along the mesh dimension                    */
};

/* How a tensor lies on a mesh.  Plain data: copy it, compare its fields; only
 * lengths that the user chose are pointed to.  All Partial placements of one
 * tensor wait for the same reduction, or for sums and averages.
 */
struct dtensor_spec {
    const struct dtensor_mesh *mesh;
    enum dtensor_dtype dtype;
    int ndim;                                  /* 0..8                        */
    int64_t shape[DTENSOR_MAX_DIMS];           /* global, row-major           */
    struct dtensor_placement placement[DTENSOR_MAX_DIMS]; /* per mesh dim     */
};

/* Read placements such as "S(0),R,P(sum)" - one for each dimension of `mesh`;
 * S(-1) is the last of `ndim` tensor dimensions.  P is P(sum).  PyTorch's form
 * is read too: S(0)[1]S(0)[0]R, in which the second mesh dimension cuts first,
 * and _S(0, 2) for SS(0,2).
 *
 * Owns:   lengths, as of S(0:2,3,5), belong to the context of the mesh.
 * Errors: EINVAL  says which word, and what was expected, also of no text;
 *         ENOMEM
 */
int dtensor_placements_parse(const struct dtensor_mesh *mesh, const char *text,
                             int ndim, struct dtensor_placement placement[],
                             struct dtensor_error *err);

/* Write them back, "S(0),R,P(sum)", cut to `size` bytes with a final NUL;
 * return the length it would have had, as snprintf does.
 */
int dtensor_placements_format(const struct dtensor_mesh *mesh,
                              const struct dtensor_placement placement[],
                              char *text, size_t size);

/* Fill *spec: `mesh` is a name for dtensor_mesh_find(), or NULL for the mesh
 * entered last; the rest as above.
 *
 * Errors: EINVAL  mesh, placements, dtype or shape: says which;  ENOMEM
 */
int dtensor_spec_init(struct dtensor_spec *spec, struct dtensor_ctx *ctx,
                      const char *mesh, const char *placements,
                      enum dtensor_dtype dtype, int ndim,
                      const int64_t shape[], struct dtensor_error *err);

/* Check a spec that was filled in by hand and bring it to the form that
 * queries expect: no negative dimensions, and lengths in the context's memory,
 * so that the caller's may go.  Making a tensor does this by itself.
 *
 * Errors: EINVAL  a field is out of its range: says which;  ENOMEM
 */
int dtensor_spec_normalize(struct dtensor_spec *spec,
                           struct dtensor_error *err);

/* Is every field in its range, and no dimension negative?
 *
 * Errors: EINVAL  says which is not
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
 * as runs of neighbours, ascending: S(0) is one run, SS and C are several.  The
 * local part holds them in this order.  Write at most `max` of them and return
 * how many there are; 0 for a rank outside the mesh.
 */
struct dtensor_run {
    int64_t start;             /* global index of the first                   */
    int64_t size;              /* how many                                    */
};
int64_t dtensor_spec_runs(const struct dtensor_spec *spec, int rank, int dim,
                          struct dtensor_run run[], int64_t max);

/* For each tensor dimension the mesh dimension that cuts it, -1 for none; and
 * in how many parts it is cut in all.   Semantics: DTensorSpec.dim_map,
 * num_shards_map.
 *
 * Errors: EINVAL  two mesh dimensions cut one, or one out of range (dim_map)
 */
int dtensor_spec_dim_map(const struct dtensor_spec *spec, int map[],
                         struct dtensor_error *err);
void dtensor_spec_num_shards(const struct dtensor_spec *spec, int shards[]);

/* Write a spec as PyTorch does, "f32[8, 8](S(0)[1]S(0)[0]R)", cut to `size` bytes
 * with a final NUL; return the length it would have had, as snprintf does.
 * Semantics: DTensorSpec.__str__, what stands in Spec().
 */
int dtensor_spec_format(const struct dtensor_spec *spec, char *text,
                        size_t size);

/* Shape, strides in elements, and dtype of an array.
 * Semantics: TensorMeta.
 */
struct dtensor_meta {
    enum dtensor_dtype dtype;
    int ndim;                                  /* 0..8                        */
    int64_t shape[DTENSOR_MAX_DIMS];
    int64_t stride[DTENSOR_MAX_DIMS];
};

/* Of the whole, rank -1, or of the part of world rank `rank`: row-major, as all
 * tensors here lie.
 */
void dtensor_spec_meta(const struct dtensor_spec *spec, int rank,
                       struct dtensor_meta *meta);

/* Of a whole whose parts, all alike, are `local`; and of the parts of a whole.
 * The strides may be of any order of the dimensions: an S multiplies or divides
 * the size of its dimension, and the strides that step over it.
 * Semantics: compute_global_tensor_info, compute_local_tensor_info.
 *
 * Errors: EINVAL  SS, C or chosen lengths; a dimension out of range; a size that
 *                 does not divide (local), or sizes of over 2^63 bytes
 */
int dtensor_meta_global(const struct dtensor_mesh *mesh,
                        const struct dtensor_placement placement[],
                        const struct dtensor_meta *local,
                        struct dtensor_meta *whole, struct dtensor_error *err);
int dtensor_meta_local(const struct dtensor_mesh *mesh,
                       const struct dtensor_placement placement[],
                       const struct dtensor_meta *whole,
                       struct dtensor_meta *local, struct dtensor_error *err);

/* Which mesh dimension cuts first.  place[m] is the place of mesh dimension m
 * among those that cut the same tensor dimension: { 1, 0 } of S(0),S(0) on a
 * 4 x 2 mesh is SS(0,2),S(0).  set_order() turns S into SS to that effect;
 * order() finds the places, -1 where nothing is cut.
 * Semantics: DTensorSpec.shard_order.
 *
 * Errors: EINVAL  not an order, a dimension out of range, or (order) a strided
 *                 shard that is in none
 */
int dtensor_spec_set_order(struct dtensor_spec *spec, const int place[],
                           struct dtensor_error *err);
int dtensor_spec_order(const struct dtensor_spec *spec, int place[],
                       struct dtensor_error *err);

/* Draw which ranks hold what, 1-D and 2-D as a grid of boxes, more dimensions
 * as a list.  Needs no communication: any rank can draw any spec.
 */
void dtensor_spec_draw(const struct dtensor_spec *spec, FILE *stream);

/* ------------------------------------------------------------- tensors --- */

/* A tensor spread over a mesh.  The local part is row-major and contiguous,
 * in memory peers reach.  Ranks outside the mesh hold an empty part and may
 * make every call below; it returns 0 at once.
 * Semantics: torch.distributed.tensor.DTensor.
 */
struct dtensor;

/* Make a tensor: with any content; zeroed; every element one, or `value` (of a
 * Partial tensor, the value its reduction gives); or element i, row-major,
 * equal to i.  arange refuses Partial placements.  One like another is made of
 * its spec: dtensor_zeros(dtensor_spec_of(t), ...).
 *
 * Collective: no - but all ranks of the mesh must make the same ones.
 * Owns:   *tp is the caller's, for dtensor_destroy().
 * Errors: EINVAL  the spec; ENOMEM
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

/* Make a copy: same spec, same elements.   Collective: no.   Errors: ENOMEM */
int dtensor_clone(const struct dtensor *t, struct dtensor **tp,
                  struct dtensor_error *err);

/* Make a tensor of the row-major global array `full` that position `root` of
 * the mesh holds (NULL elsewhere); root -1: every rank holds it, and no
 * message is sent.  A Partial tensor holds terms that reduce to `full`.
 * Memory: each rank its part, the root also `full`, and on top at most twice
 * [redistribute] pipeline bytes (4M), wherever `full` is.
 * Semantics: distribute_tensor(src_data_rank=root), where the source is the
 * position of coordinate (root, root, ...).
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until the own part is in.
 * Owns:   *tp is the caller's; `full` is not kept.
 * Errors: EINVAL, ENOMEM, and those of the collectives
 */
int dtensor_distribute(const struct dtensor_spec *spec, const void *full,
                       int root, struct dtensor **tp,
                       struct dtensor_error *err);

/* Make a tensor whose local part is a copy of `local`, `size` bytes, which
 * must be exactly what dtensor_spec_local() says this rank holds.
 * Semantics: DTensor.from_local with shape given; no other rank is asked.
 *
 * Collective: no.
 * Errors: EINVAL  wrong size, or no array: says what it should be;  ENOMEM
 */
int dtensor_from_local(const struct dtensor_spec *spec, const void *local,
                       size_t size, struct dtensor **tp,
                       struct dtensor_error *err);

/* The same when all ranks have told each other their specs and the shapes of
 * their parts: one that does not fit is refused everywhere, in the same words,
 * and err->rank names it.   Semantics: DTensor.from_local(run_check=True), of
 * shapes; replicas are not compared.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until all have called.
 * Errors: EINVAL  a rank has another part, spec or none; and those of the
 *                 collectives
 */
int dtensor_from_local_checked(const struct dtensor_spec *spec,
                               const void *local, const int64_t local_shape[],
                               struct dtensor **tp, struct dtensor_error *err);

/* The same when nobody knows the whole: parts->shape is that of this rank's
 * part, and the global shape is found from all of them.  Parts that S(d) would
 * cut otherwise become S(d:their lengths).  A rank outside the mesh, which
 * hears nothing, gets a tensor of sizes 0.
 * Semantics: DTensor.from_local without shape, of uneven parts too.
 *
 * Collective, blocks: as above.
 * Errors: EINVAL  the parts do not fit together: names a rank; and as above
 */
int dtensor_from_parts(const struct dtensor_spec *parts, const void *local,
                       struct dtensor **tp, struct dtensor_error *err);

/* The local part: borrowed, valid until dtensor_destroy(); yours to read and
 * write between collective calls.  Its size in bytes may be 0.
 * Semantics: DTensor.to_local.
 */
void *dtensor_to_local(const struct dtensor *t);
size_t dtensor_local_bytes(const struct dtensor *t);

/* Its spec: borrowed, valid until dtensor_destroy(). */
const struct dtensor_spec *dtensor_spec_of(const struct dtensor *t);

/* Write the whole tensor, reduced if Partial, row-major, to `full` on every
 * rank of the mesh; `size` is its size in bytes.
 * Semantics: DTensor.full_tensor.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until done.
 * Errors: EINVAL  wrong size, or no array; and those of the collectives
 */
int dtensor_full_tensor(const struct dtensor *t, void *full, size_t size,
                        struct dtensor_error *err);

/* Have both the same global shape?  1 or 0; nobody is asked. */
int dtensor_is_same_size(const struct dtensor *a, const struct dtensor *b);

/* *equalp = 1 when the global shapes and all elements are the same numbers, of
 * Partial tensors the reduced ones, else 0: on every rank of the mesh.  Empty
 * parts agree with any.  A rank outside the mesh, which hears nothing, gets 1.
 * A NaN equals nothing.   Semantics: torch.equal.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until all have called.
 * Errors: EINVAL  meshes, dtypes or placements differ; and those of the
 *                 collectives
 */
int dtensor_equal(const struct dtensor *a, const struct dtensor *b,
                  int *equalp, struct dtensor_error *err);

/* Make a tensor with the same elements that lies otherwise: by text on the same
 * mesh, or by a whole spec, whose mesh may be another of the context: of other
 * shape, order, size and ranks.  Any placement may become any other.  R -> P
 * follows PyTorch: terms x/n for a sum of floating type, x each for avg, min,
 * max, band and bor; for other sums and reductions coordinate 0 keeps x and the
 * rest hold the neutral element.  S -> P moves nothing: each rank's shard
 * becomes its term, neutral elsewhere.
 * Semantics: DTensor.redistribute, without padding.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until the own part is in
 *         and no peer needs `t` any more.
 * Owns:   *tp is the caller's; `t` is unchanged.
 * Errors: EINVAL, ENOMEM, and those of the collectives
 */
int dtensor_redistribute(const struct dtensor *t, const char *placements,
                         struct dtensor **tp, struct dtensor_error *err);
int dtensor_redistribute_to(const struct dtensor *t,
                            const struct dtensor_spec *spec,
                            struct dtensor **tp, struct dtensor_error *err);

/* The same into a tensor that exists: `dst` gets the elements of `src` in its
 * own placements.  After the first call for a pair of specs nothing is
 * allocated.   Errors: EINVAL  meshes, shapes or dtypes differ
 */
int dtensor_redistribute_into(const struct dtensor *src, struct dtensor *dst,
                              struct dtensor_error *err);

/* ----------------------------------------------------------- plans --- */

/* How a tensor gets from one spec to another, worked out once and run as often
 * as wanted.  dtensor_redistribute() and its kin make plans too and keep the
 * last 256 of a context.
 */
struct dtensor_plan;

/* The ways there may be.  All give the same elements; terms are added in
 * another order, the same for the same plan.  Steps that add round: floats of 16
 * and 8 bits, and averages of integers, so AUTO takes no more of these than DIRECT.
 */
enum dtensor_route {
    DTENSOR_ROUTE_AUTO,        /* what is predicted to be fastest             */
    DTENSOR_ROUTE_DIRECT,      /* one exchange: each element is sent once     */
    DTENSOR_ROUTE_MERGED,      /* greedy, steps of one kind taken together    */
    DTENSOR_ROUTE_MIN_COST,    /* the cheapest that changes one mesh          */
                               /* dimension at a time                         */
    DTENSOR_ROUTE_GREEDY,      /* PyTorch's order, one dimension at a time    */
    DTENSOR_NROUTES
};

/* NULL, or zero in a field, is what [redistribute] of the cluster file says. */
struct dtensor_plan_options {
    enum dtensor_route route;
    uint64_t max_scratch;      /* bytes of a rank for results between steps,  */
                               /* and for packing and unpacking               */
    int connect;               /* 1: connect to the peers now, not when it is */
                               /* first run                                   */
};

/* Plan from `src` to `dst`, of one shape and dtype.  Looks at placements, not at
 * ranks: 1,024 of them cost no more than 8.
 *
 * Collective: yes - the ranks of both meshes.   Blocks: no - but with `connect`
 *         until connected.  Neither in a context that only plans, see
 *         dtensor_init_plan().
 * Owns:   *planp is the caller's, for dtensor_plan_destroy() before
 *         dtensor_fini().
 * Errors: EINVAL  the specs, or a route that does not exist: says why
 *         EPEER, ETIME, ENOMEM
 */
int dtensor_plan_create(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        const struct dtensor_plan_options *options,
                        struct dtensor_plan **planp,
                        struct dtensor_error *err);

/* NULL is a no-op.   Collective: no - but not while the plan runs. */
void dtensor_plan_destroy(struct dtensor_plan *plan);

/* Give the elements of `src` to `dst`, which have the plan's specs.  The first
 * run finds what goes to whom and connects; those that follow allocate nothing.
 *
 * Collective: yes - the ranks of both meshes.   Blocks: until the own part is
 *         in and no peer needs `src` any more.
 * Errors: EINVAL  a tensor has another spec; and those of the collectives
 */
int dtensor_plan_run(struct dtensor_plan *plan, const struct dtensor *src,
                     struct dtensor *dst, struct dtensor_error *err);

/* Something that was started, this or a collective.  All are worked on by
 * dtensor_test() and dtensor_wait() of any of them: they begin in the order they
 * were started, those that have a peer in common one after the other, the rest
 * at the same time.  Blocking collective calls finish all of them first.
 */
struct dtensor_request;

/* Start the same and return at once: `src` and `dst` are the library's until
 * dtensor_wait().
 *
 * Collective: yes - in the same order.   Blocks: no - but on the first start of
 *         a plan until connected.
 * Owns:   *requestp is the caller's, for dtensor_wait().  The plan must outlive
 *         it.
 * Errors: as dtensor_plan_run()
 */
int dtensor_plan_start(struct dtensor_plan *plan, const struct dtensor *src,
                       struct dtensor *dst, struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* Do what can be done now; *donep: 1 when it is over, else 0.  Either way the
 * request stays the caller's.
 *
 * Collective: no.   Blocks: no.
 * Errors: those of the run: dtensor_wait() is due
 */
int dtensor_test(struct dtensor_request *request, int *donep,
                 struct dtensor_error *err);

/* Wait until it is over, and free the request, also on failure; that of a
 * persistent call stays.  NULL is a no-op.
 *
 * Collective: no.   Blocks: until done.   Errors: those of the run
 */
int dtensor_wait(struct dtensor_request *request, struct dtensor_error *err);

/* The placements that the gradient of a tensor of spec `src` is brought to,
 * when it arrives as `grad`: those of src; where src is a term, R, without
 * division, or the term that arrives.
 * Semantics: the backward of DTensor.redistribute.
 *
 * Errors: EINVAL  the specs, or another mesh;  ENOMEM
 */
int dtensor_grad_spec(const struct dtensor_spec *src,
                      const struct dtensor_spec *grad,
                      struct dtensor_spec *spec, struct dtensor_error *err);

/* pair[0]: the plan from src to dst.  pair[1]: that for the gradient of dst,
 * which arrives as `grad` - NULL: as dst, R where that is a term - to where
 * dtensor_grad_spec() says.
 *
 * Collective, blocks, owns, errors: as dtensor_plan_create(), twice
 */
int dtensor_plan_pair(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtensor_spec *grad,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan *pair[2], struct dtensor_error *err);

/* What a plan says of itself.  Texts are valid until it is destroyed. */
struct dtensor_plan_info {
    enum dtensor_route route;
    int nsteps;
    double predicted_us;       /* of the slowest rank                         */
    uint64_t scratch_bytes;    /* this rank's results between steps           */
    const char *text;          /* one line: what is done; how much, once run  */
    const char *why;           /* why this route                              */
};
void dtensor_plan_info(const struct dtensor_plan *plan,
                       struct dtensor_plan_info *info);

/* A candidate, taken or not. */
struct dtensor_plan_choice {
    int nsteps;
    double predicted_us;
    uint64_t scratch_bytes;    /* by an even division                         */
    const char *refused;       /* NULL, or why it was out of the question     */
};

/* Errors: EINVAL  no such route: AUTO is none */
int dtensor_plan_choice(const struct dtensor_plan *plan,
                        enum dtensor_route route,
                        struct dtensor_plan_choice *choice,
                        struct dtensor_error *err);

/* One step. */
struct dtensor_plan_step {
    const char *what;          /* "all-gather", "allreduce", "all-to-all",    */
                               /* "reduce-scatter", "exchange", "local",      */
                               /* "cross-mesh"                                */
    struct dtensor_spec src;
    struct dtensor_spec dst;
    int ranks;                 /* in the group of one rank                    */
    double predicted_us;
    int rounds;                /* of this rank: what is packed, or unpacked,  */
                               /* goes in so many, to keep to max_scratch     */
    uint64_t scratch_bytes;    /* that it takes for that                      */
};

/* Rounds and scratch are counted piece by piece on every call.
 * Errors: EINVAL  no step `i`;  ENOMEM
 */
int dtensor_plan_step(const struct dtensor_plan *plan, int i,
                      struct dtensor_plan_step *step,
                      struct dtensor_error *err);

/* Bytes that world rank `from` sends to rank `to` in step `i`; -1 in place of
 * any of the three: all of them.  This is what the plan promises: no more is
 * moved between ranks.  Counted piece by piece on every call.
 */
uint64_t dtensor_plan_bytes(const struct dtensor_plan *plan, int i, int from,
                            int to);

/* The least that any plan brings rank `rank` from others, -1 all ranks
 * together: what it is to hold and does not hold; of terms, at least one sum.
 * 0 for one rank where terms could as well lie on others.
 */
uint64_t dtensor_plan_bound(const struct dtensor_plan *plan, int rank);

/* All of this for people: steps, bytes, why, and what else there was. */
void dtensor_plan_print(const struct dtensor_plan *plan, FILE *stream);

/* Several tensors redistributed together: those that one exchange brings home
 * share its messages, dtype by dtype, at the price of two local copies.
 */
struct dtensor_batch;

/* Plan to bring tensor i from src[i] to dst[i], 0 <= i < n.
 *
 * Collective: yes - the ranks of all meshes named.   Blocks: until connected.
 * Owns:   *batchp is the caller's, for dtensor_batch_destroy().
 * Errors: as dtensor_plan_create()
 */
int dtensor_batch_create(int n, const struct dtensor_spec src[],
                         const struct dtensor_spec dst[],
                         struct dtensor_batch **batchp,
                         struct dtensor_error *err);
void dtensor_batch_destroy(struct dtensor_batch *batch);  /* NULL is a no-op */

/* Give the elements of src[i] to dst[i], n of each, which have those specs.
 *
 * Collective, blocks, errors: as dtensor_plan_run()
 */
int dtensor_batch_run(struct dtensor_batch *batch,
                      const struct dtensor *const src[],
                      struct dtensor *const dst[], struct dtensor_error *err);

/* Plans that the context has kept for redistributions by spec. */
struct dtensor_plan_cache {
    uint64_t hits;             /* calls that found their plan                 */
    uint64_t misses;           /* plans made                                  */
    uint64_t dropped;          /* to keep within the limit, least used first  */
    int entries;
    int limit;
};
void dtensor_plan_cache(const struct dtensor_ctx *ctx,
                        struct dtensor_plan_cache *cache);

/* A context that plans and cannot communicate: rank 0 of the cluster in the
 * file `path`; NULL: of `nranks` ranks, `per_host` (0: all) on each host.
 * Meshes, specs and plans are made and asked as usual; calls that would
 * communicate or hold elements fail with EINVAL.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *ctxp is the caller's, for dtensor_fini().
 * Errors: ECONF, ESYS  the file;  EINVAL  the numbers;  ENOMEM
 */
int dtensor_init_plan(const char *path, int nranks, int per_host,
                      struct dtensor_ctx **ctxp, struct dtensor_error *err);

/* dtensor_spec_draw() of its spec, by the mesh's first rank only. */
void dtensor_draw(const struct dtensor *t, FILE *stream);

void dtensor_destroy(struct dtensor *t);                 /* NULL is a no-op */

/* ------------------------------------------------------ random numbers --- */

/* A generator: a seed, and an offset that counts the numbers used.  A call
 * takes `gen`, or with NULL the context's own, and advances its offset, by the
 * same on every rank.  Ranks whose generators are in the same state make
 * tensors that agree: no call here but dtensor_generator_sync() communicates.
 * dtensor(7) and dtensor-random(7) tell more.
 */
struct dtensor_generator;

/* Which numbers the parts of a tensor get. */
enum dtensor_tracker {
    DTENSOR_TRACKER_GLOBAL,    /* each element those of its place in the      */
                               /* whole: the same tensor on any mesh          */
    DTENSOR_TRACKER_OFFSET,    /* each shard its own, replicas the same       */
    DTENSOR_TRACKER_MEGATRON,  /* by seed + 2718 + coordinate                 */
    DTENSOR_TRACKER_LOCAL      /* each rank its generator's next ones         */
};

/* Which of the stream's numbers an element gets. */
enum dtensor_fill {
    DTENSOR_FILL_SEQUENTIAL,   /* element after element                       */
    DTENSOR_FILL_CUDA          /* as the threads of a CUDA grid take them     */
};

struct dtensor_random_rule {
    enum dtensor_tracker tracker;      /* GLOBAL                              */
    enum dtensor_fill fill;            /* SEQUENTIAL                          */
    int pytorch;                       /* OFFSET: 1 keeps PyTorch's offsets   */
                                       /* even where shards share numbers     */
    int sms;                           /* CUDA: multiprocessors, 132, and     */
    int threads_per_sm;                /* threads of each, 2048               */
    char parallel_dims[100];           /* MEGATRON: mesh dimensions, "tp"     */
};

/* Make a generator with that seed at offset 0 and the default rule, given
 * above.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *genp is the caller's, for dtensor_generator_destroy().
 * Errors: ENOMEM
 */
int dtensor_generator_create(uint64_t seed, struct dtensor_generator **genp,
                             struct dtensor_error *err);
void dtensor_generator_destroy(struct dtensor_generator *gen);  /* NULL: none */

/* The context's own: seeded with what [seed] of the cluster file says for this
 * rank, else 0.  Valid until dtensor_fini().
 */
struct dtensor_generator *dtensor_generator_default(struct dtensor_ctx *ctx);

uint64_t dtensor_generator_seed(const struct dtensor_generator *gen);
int64_t dtensor_generator_offset(const struct dtensor_generator *gen);

/* The state: seed and offset, 8 bytes each, lowest first.
 * Semantics: torch.cuda.get_rng_state(), and set_rng_state().
 *
 * Errors: EINVAL  size is not 16, or the offset negative or no multiple of 4
 */
#define DTENSOR_STATE_BYTES 16
void dtensor_generator_get_state(const struct dtensor_generator *gen,
                                 unsigned char state[DTENSOR_STATE_BYTES]);
int dtensor_generator_set_state(struct dtensor_generator *gen,
                                const unsigned char *state, size_t size,
                                struct dtensor_error *err);

/* Errors: EINVAL  a number out of range: says which */
void dtensor_generator_get_rule(const struct dtensor_generator *gen,
                                struct dtensor_random_rule *rule);
int dtensor_generator_set_rule(struct dtensor_generator *gen,
                               const struct dtensor_random_rule *rule,
                               struct dtensor_error *err);

/* Seed the generator and set its offset to 0.
 * Semantics: torch.distributed.tensor.manual_seed: nothing is compared.
 *
 * Collective: no, but the ranks of a mesh that share tensors must seed alike.
 * Blocks: no.
 * Errors: EINVAL  this rank is outside the mesh
 */
int dtensor_manual_seed(const struct dtensor_mesh *mesh, uint64_t seed,
                        struct dtensor_generator *gen,
                        struct dtensor_error *err);

/* Give every rank of the mesh the state of its first one.
 * Semantics: what DTensor did when its tracker was made, before 2025.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until done.
 * Errors: those of dtensor_broadcast(); then the state is as it was
 */
int dtensor_generator_sync(const struct dtensor_mesh *mesh,
                           struct dtensor_generator *gen,
                           struct dtensor_error *err);

/* Fill a tensor: uniform in [from, to); normal; exp of normal; exponential of
 * that rate; normal between two bounds; 1 with probability p, else 0; whole
 * numbers in [from, to); integers of any bits.  Real floating types, but
 * bernoulli and integers also integer types and bool, and bits only those.
 * Semantics: Tensor.uniform_, normal_, log_normal_, exponential_,
 * nn.init.trunc_normal_, bernoulli_, random_.
 *
 * Collective: no, but all ranks of the mesh must make the same call; outside
 *         the mesh it advances the generator only.   Blocks: no.
 * Errors: EINVAL  a parameter, the dtype, or a Partial placement: says which;
 *         or the offset would pass 2^63.  Tensor and generator are untouched
 */
int dtensor_uniform(struct dtensor *t, double from, double to,
                    struct dtensor_generator *gen, struct dtensor_error *err);
int dtensor_normal(struct dtensor *t, double mean, double std,
                   struct dtensor_generator *gen, struct dtensor_error *err);
int dtensor_log_normal(struct dtensor *t, double mean, double std,
                       struct dtensor_generator *gen,
                       struct dtensor_error *err);
int dtensor_exponential(struct dtensor *t, double lambda,
                        struct dtensor_generator *gen,
                        struct dtensor_error *err);
int dtensor_trunc_normal(struct dtensor *t, double mean, double std,
                         double from, double to, struct dtensor_generator *gen,
                         struct dtensor_error *err);
int dtensor_bernoulli(struct dtensor *t, double p,
                      struct dtensor_generator *gen, struct dtensor_error *err);
int dtensor_integers(struct dtensor *t, int64_t from, int64_t to,
                     struct dtensor_generator *gen, struct dtensor_error *err);
int dtensor_bits(struct dtensor *t, struct dtensor_generator *gen,
                 struct dtensor_error *err);

/* Make a tensor of a spec, or of that of another tensor: uniform in [0, 1);
 * normal with mean 0 and deviation 1; whole numbers in [from, to); the numbers
 * 0 .. shape[0] - 1 in random order, one dimension, the same order whatever
 * tracker and fill.
 * Semantics: torch.rand, randn, randint, randperm and torch.rand_like ...
 *
 * As above, and:
 * Owns:   *tp is the caller's, for dtensor_destroy().
 * Errors: EINVAL, ENOMEM
 */
int dtensor_rand(const struct dtensor_spec *spec,
                 struct dtensor_generator *gen, struct dtensor **tp,
                 struct dtensor_error *err);
int dtensor_randn(const struct dtensor_spec *spec,
                  struct dtensor_generator *gen, struct dtensor **tp,
                  struct dtensor_error *err);
int dtensor_randint(const struct dtensor_spec *spec, int64_t from, int64_t to,
                    struct dtensor_generator *gen, struct dtensor **tp,
                    struct dtensor_error *err);
int dtensor_randperm(const struct dtensor_spec *spec,
                     struct dtensor_generator *gen, struct dtensor **tp,
                     struct dtensor_error *err);
int dtensor_rand_like(const struct dtensor *t, struct dtensor_generator *gen,
                      struct dtensor **tp, struct dtensor_error *err);
int dtensor_randn_like(const struct dtensor *t, struct dtensor_generator *gen,
                       struct dtensor **tp, struct dtensor_error *err);
int dtensor_randint_like(const struct dtensor *t, int64_t from, int64_t to,
                         struct dtensor_generator *gen, struct dtensor **tp,
                         struct dtensor_error *err);

/* Make a tensor whose elements are those of `t` divided by 1 - p, or 0 with
 * probability p; and, unless maskp is NULL, a bool tensor of which were kept.
 * Semantics: torch.native_dropout in training.
 *
 * As above.   Owns: *tp and *maskp are the caller's.   Errors: EINVAL, ENOMEM
 */
int dtensor_dropout(const struct dtensor *t, double p,
                    struct dtensor_generator *gen, struct dtensor **tp,
                    struct dtensor **maskp, struct dtensor_error *err);

/* ------------------------------------------------------- cluster files --- */

/* A checked cluster file, for tools: nothing is started. */
struct dtensor_cluster;

/* Called once for each finding, `text` a full line without newline such as
 * "pair.ini:6: error: unknown key ...".
 */
typedef void dtensor_report_f(const char *text, void *arg);

/* Read and check a cluster file.  Every finding goes to `report` (may be
 * NULL); the first is also in *err.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *clusterp is the caller's, for dtensor_cluster_destroy().
 * Errors: ECONF  the file is wrong;  ESYS  it cannot be read;  ENOMEM
 */
int dtensor_cluster_read(const char *path, dtensor_report_f *report, void *arg,
                         struct dtensor_cluster **clusterp,
                         struct dtensor_error *err);

/* What to show of a cluster. */
enum dtensor_show {
    DTENSOR_SHOW_SUMMARY,      /* one line: ranks, nodes, meshes              */
    DTENSOR_SHOW_RANKS,        /* rank, host, local rank, gpu, hca            */
    DTENSOR_SHOW_HOSTS,        /* host, address, ranks                        */
    DTENSOR_SHOW_MESH,         /* every mesh: dimensions, rank -> coordinate  */
    DTENSOR_SHOW_SEEDS,        /* rank -> seed                                */
    DTENSOR_SHOW_DIGEST,       /* canonical text and digest ranks compare     */
    DTENSOR_NSHOWS
};

/* Write that view to `stream`; with rank >= 0 only that rank's part.
 *
 * Errors: EINVAL  no such rank, or nothing to show: says why
 */
int dtensor_cluster_show(const struct dtensor_cluster *cluster,
                         enum dtensor_show what, int rank, FILE *stream,
                         struct dtensor_error *err);

void dtensor_cluster_destroy(struct dtensor_cluster *cluster);

/* ------------------------------------------------------------- devices --- */

/* Write the RDMA devices of this machine to `stream`: ports, state, rate, MTU,
 * GIDs, and how much memory may be locked.  That there are none is written too,
 * and no error.
 *
 * Collective: no.   Blocks: no.   Errors: ESYS, ENOMEM
 */
int dtensor_devices_show(FILE *stream, struct dtensor_error *err);

/* The same of every rank of a job, and which device each would use and why:
 * rank 0 writes one table to its `stream`, with marks where a rank is unfit
 * for rc or differs from most, and a line for each mark.  Needs no RDMA to
 * work: ranks meet as in dtensor_init(), whose `path` this is, and part again.
 * *unfitp, the same on all ranks: how many cannot do the rc the file asks for;
 * 0 when it asks for none.
 *
 * Collective: yes - every rank of the world.   Blocks: as dtensor_init().
 * Errors: those of dtensor_init(), ENODEV excepted
 */
int dtensor_fabric_show(const char *path, FILE *stream, int *unfitp,
                        struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif
