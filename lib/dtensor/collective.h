/* dtensor/collective.h - what a group of ranks computes together
 *
 * The arrays of all ranks of a mesh go in, and every rank gets its result: the
 * sum of all (allreduce), all of them one after another (allgather), block r of
 * each to rank r (all-to-all).  A call can be made directly; it can be
 * described by a struct, and started or prepared for many starts; or it can be
 * one of a group that shares messages.  A program can define reductions.
 */
#ifndef DTENSOR_COLLECTIVE_H
#define DTENSOR_COLLECTIVE_H

#include "mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------- collectives --- */

/* The arguments are those of MPI and NCCL.  All ranks of `mesh`, whatever its
 * dimensions, form the group, in row-major order; a rank outside must not
 * call.  `in` and `out` are the same pointer (in place) or do not overlap.
 * Memory from dtensor_alloc() is used in place; other memory is staged in a
 * bounce buffer of the context, which grows to the largest size used.
 * Every element of a result is reduced in one fixed order that does not
 * depend on timing: the same call on the same ranks gives the same bits, and
 * all ranks get the same bits.
 *
 * All in this section:
 * Collective: yes - every rank of the mesh, same order.
 * Blocks: until this rank's part is done and its buffers may be used again.
 * Owns:   nothing is kept.  On failure `out` may be partly written, except
 *         that EINVAL leaves it untouched.  No data of a peer are accepted
 *         before its call is known to be the same.
 * Errors: EINVAL     rank outside the mesh, bad dtype, op, root or overlap
 *         EMISMATCH  a peer called something else: says what
 *         EPEER      a rank died
 *         ETIME      a rank did not answer within [transport] op_timeout
 *         EABORT     another rank gave up
 *         ENODEV, ESYS, ENOMEM  no transport reaches a peer; a device or
 *                    system call failed; memory is exhausted
 * Semantics: MPI; for reductions NCCL; the functions of the same names.
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

/* The root's `count` elements of `buf` are copied to every rank's `buf`. */
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
 * same on every rank.  Blocks are stored one after another, without gaps, and
 * need no more messages or time than equal ones.
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

/* in_counts[r]: elements that this rank sends to position r; out_counts[r]:
 * elements that it receives from there, which must be the number that position
 * r sends (else EMISMATCH).  A rank needs no other counts.  An algorithm for
 * small blocks is used; for large ones set `count` of a struct dtensor_call to
 * their approximate size.
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

/* A collective call.  Set the fields that it does not need to zero. */
struct dtensor_call {
    enum dtensor_collective coll;              /* which collective            */
    int root;                  /* position in the mesh                        */
    enum dtensor_dtype dtype;  /* type of an element                          */
    enum dtensor_redop op;     /* reduction                                   */
    size_t count;              /* elements, of one block if there are blocks; */
                               /* ALL_TO_ALL with counts: approximate block   */
                               /* size, the same on all ranks, to choose the  */
                               /* algorithm; 0: unknown                       */
    const size_t *counts;      /* NULL: each block has `count` elements; else */
                               /* elements of the block of each position, the */
                               /* same on all ranks.  ALL_TO_ALL: elements    */
                               /* that this rank sends to each position       */
    const size_t *recv_counts; /* ALL_TO_ALL with counts: elements that this  */
                               /* rank receives from each position            */
};

/* The parts of a call's cost, with the unit of each amount. */
enum dtensor_cost {
    DTENSOR_COST_INTRA_HOPS,       /* inside hosts: signals one after another */
    DTENSOR_COST_INTRA_MESSAGES,   /* puts and signals posted                 */
    DTENSOR_COST_INTRA_BYTES,      /* bytes loaded or put                     */
    DTENSOR_COST_INTER_HOPS,       /* the same between hosts                  */
    DTENSOR_COST_INTER_MESSAGES,
    DTENSOR_COST_INTER_BYTES,
    DTENSOR_COST_FOLDED,           /* bytes of terms that reductions read     */
    DTENSOR_COST_COPIED,           /* bytes copied within the rank            */
    DTENSOR_NCOSTS
};

/* One algorithm for a call, and its predicted time. */
struct dtensor_way {
    const char *name;              /* "ring"; static storage                  */
    int taken;                     /* 1: the call uses this one               */
    int tuned;                     /* 1: because [tuning] names it            */
    double ns;                     /* predicted time: the sum of part_ns      */
    double amount[DTENSOR_NCOSTS]; /* on the rank that has most to do         */
    double part_ns[DTENSOR_NCOSTS];    /* time for each amount                */
    double stretch;                /* cache-miss factor, 1 or more, of bytes  */
                                   /* inside hosts, reduced and copied        */
};

/* Predict the time of a call over the mesh for every algorithm that can run it,
 * least time first.  The first `max` are written; *np (may be NULL) is their
 * total number.  The constants are those of [tuning] in the cluster file, or
 * built in; every rank gets the same answer.  For an ALL_TO_ALL with counts
 * each rank knows only its own counts, so the times are for the data that it
 * sends and receives; the choice is the same on every rank.
 *
 * Collective: no.   Blocks: no, and needs no peers: see dtensor_init_offline().
 * Errors: EINVAL  the call is not valid, or max is less than 1;  ENOMEM
 * Semantics: its own.
 */
int dtensor_call_ways(const struct dtensor_mesh *mesh,
                      const struct dtensor_call *call,
                      struct dtensor_way ways[], int max, int *np,
                      struct dtensor_error *err);

/* What a step of a schedule does. */
enum dtensor_step_kind {
    DTENSOR_STEP_PUT,              /* write into the peer's memory            */
    DTENSOR_STEP_SIGNAL,           /* signal to the peer, with small data     */
    DTENSOR_STEP_WAIT,             /* for the next signal of the peer         */
    DTENSOR_STEP_LOAD,             /* copy or reduce from the peer's memory   */
    DTENSOR_STEP_LOCAL,            /* copy or reduce in own memory            */
    DTENSOR_NSTEP_KINDS
};

struct dtensor_call_step {
    enum dtensor_step_kind kind;   /* what it does                            */
    int peer;                      /* position in the mesh; -1: LOCAL         */
    int reduces;                   /* 1: LOAD or LOCAL combines terms         */
    size_t bytes;                  /* moved, or with a signal; 0: none        */
};

/* Called for each step in order. */
typedef void dtensor_step_f(const struct dtensor_call_step *step, void *arg);

/* The schedule of a call: `visit` is called for each step that the rank at
 * `position` of the mesh executes by that algorithm, or by the one that the
 * call takes if `algorithm` is NULL.  A reduction of terms of several peers is
 * a LOAD of each.  The n-th WAIT for a peer takes the n-th SIGNAL from it.
 *
 * Collective: no.   Blocks: no, and needs no peers: see dtensor_init_offline().
 * Errors: EINVAL  the call is not valid, no such position, no algorithm of that
 *                 name runs the call, or it is an ALL_TO_ALL with counts, which
 *                 other ranks know;  ENOMEM
 * Semantics: its own.
 */
int dtensor_call_steps(const struct dtensor_mesh *mesh,
                       const struct dtensor_call *call, const char *algorithm,
                       int position, dtensor_step_f *visit, void *arg,
                       struct dtensor_error *err);

/* Run it.  The buffer of a broadcast is `in` at the root and `out` elsewhere,
 * so usually both are the same.
 *
 * Collective, blocks, owns, errors, semantics: those of the function of that
 *         name, as dtensor_allreduce(); EINVAL also: no such collective
 */
int dtensor_call_run(const struct dtensor_mesh *mesh,
                     const struct dtensor_call *call, const void *in,
                     void *out, struct dtensor_error *err);

/* An operation in progress: a collective, a group, or a redistribute by a plan.
 * dtensor_test() and dtensor_wait() of any request make progress on all.  They
 * begin in the order of their starts; those that share a peer run one after the
 * other, others at the same time.  A blocking collective call finishes all of
 * them first.  Starting one makes progress on all, like dtensor_test().
 */
struct dtensor_request;

/* Start it and return at once; the library owns the buffers until
 * dtensor_wait().  Any number of calls may be started; see struct
 * dtensor_request for their order.   Semantics: MPI_Iallreduce & co.
 *
 * Collective: yes - in the same order.   Blocks: no, not even the first call.
 * Owns:   *requestp is the caller's, for dtensor_wait(); `call` is not kept.
 * Errors: as dtensor_call_run();  EINVAL  also: a group of calls is open
 */
int dtensor_call_start(const struct dtensor_mesh *mesh,
                       const struct dtensor_call *call, const void *in,
                       void *out, struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* A call with its buffers, prepared once and started many times; a start
 * allocates nothing.   Semantics: MPI_Allreduce_init & co.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until earlier requests
 *         are complete and the peers are connected.
 * Owns:   *persistentp is the caller's, for dtensor_persistent_destroy().  The
 *         buffers must live as long; `call` need not.
 * Errors: as dtensor_call_start()
 */
struct dtensor_persistent;
int dtensor_persistent_create(const struct dtensor_mesh *mesh,
                              const struct dtensor_call *call, const void *in,
                              void *out,
                              struct dtensor_persistent **persistentp,
                              struct dtensor_error *err);

/* Start it.  *requestp is for dtensor_test() and dtensor_wait(), like any other
 * request.   Semantics: MPI_Start.
 *
 * Collective: yes - in the same order.   Blocks: no.
 * Owns:   *requestp belongs to the persistent call.
 * Errors: EINVAL  the last start was not waited for, even if it is complete:
 *                 the same on all ranks
 *         the code of an earlier failure: those of dtensor_allreduce()
 */
int dtensor_persistent_start(struct dtensor_persistent *persistent,
                             struct dtensor_request **requestp,
                             struct dtensor_error *err);

/* NULL is a no-op.
 * Collective: no.   Blocks: until it is complete, if it is in progress.
 * Semantics: MPI_Request_free, of a persistent request.
 */
void dtensor_persistent_destroy(struct dtensor_persistent *persistent);

/* ------------------------------------------------ two ranks, and groups --- */

/* Send to, or receive from, a position of the mesh; only the two ranks take
 * part.  Messages between two ranks are matched in the order of the calls.
 * Messages of up to 4 KiB, over tcp 64, are eager: no wait for the receiver.
 *
 * Collective: no - the peer must make the other call, with the same number of
 *         elements and dtype.   Blocks: until this rank's buffer may be used
 *         again: two ranks that both send first wait for each other until
 *         ETIME; in a group they do not.
 * Owns:   nothing is kept.
 * Errors: EINVAL     rank outside the mesh; peer, dtype, size or buffer
 *         EMISMATCH  the peer called something else
 *         those of dtensor_allreduce()
 * Semantics: ncclSend, ncclRecv.
 */
int dtensor_send(const struct dtensor_mesh *mesh, int to, const void *buf,
                 size_t count, enum dtensor_dtype dtype,
                 struct dtensor_error *err);
int dtensor_recv(const struct dtensor_mesh *mesh, int from, void *buf,
                 size_t count, enum dtensor_dtype dtype,
                 struct dtensor_error *err);

/* Between begin and end, blocking collectives, sends and receives on meshes of
 * the context are only recorded; end makes them all, as if at the same time.
 * All sends from one rank to another are one message.  Collectives that differ
 * only in count and buffers become one, of at most 64 KiB, if that costs less.
 * Buffers and counts must stay valid until end.  An empty group sends nothing.
 *
 * Collective: no; but all ranks of a collective in a group make the same
 *         collectives in the same order in their groups.   Blocks: end, until
 *         all of them are done.
 * Errors: begin: EINVAL  one is open.   end: EINVAL  none is; and those of
 *         dtensor_allreduce() and dtensor_send()
 * Semantics: ncclGroupStart, ncclGroupEnd.
 */
int dtensor_group_begin(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtensor_group_end(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Instead of end: start them all and return at once, to compute while the
 * messages are on their way.  Until dtensor_wait() buffers and counts must stay
 * valid, and the library owns the buffers.  Other groups, and other requests,
 * may be started before that; see struct dtensor_request for their order.
 *
 * Collective: as begin and end.   Blocks: no.
 * Owns:   *requestp is the caller's, for dtensor_wait().
 * Errors: EINVAL  none was begun;  and those of dtensor_group_end().  The group
 *         is over after any
 * Semantics: batch_isend_irecv, MPI_Isend, MPI_Irecv.
 */
int dtensor_group_start(struct dtensor_ctx *ctx,
                        struct dtensor_request **requestp,
                        struct dtensor_error *err);

/* ------------------------------------------------------------ requests --- */

/* Do what can be done now; *donep is 1 if the request is complete, else 0.  In
 * both cases the caller still owns the request.
 *
 * Collective: no.   Blocks: no.
 * Semantics: MPI_Test, but the request is not freed.
 * Errors: those of dtensor_allreduce(); call dtensor_wait() after an error too
 */
int dtensor_test(struct dtensor_request *request, int *donep,
                 struct dtensor_error *err);

/* Wait until it is complete, and free the request, also on failure; the request
 * of a persistent call stays.  NULL is a no-op.
 *
 * Collective: no.   Blocks: until done.   Semantics: MPI_Wait.
 * Errors: those of dtensor_allreduce()
 */
int dtensor_wait(struct dtensor_request *request, struct dtensor_error *err);

/* ------------------------------------------ reductions, reproducibility --- */

/* A reduction that a program makes can be used wherever an enum dtensor_redop
 * is expected, except in Partial placements.
 *
 * How reductions round.  Sums, averages, products and functions of f16, bf16,
 * f8e4m3 and f8e5m2 are computed in f32 over all ranks and rounded once, after
 * an average was divided: 256 + 1 + 1 of bf16 is 258, in every algorithm.  f32
 * is added as f32, f64 as f64: for more precise sums convert f32 to f64 first.
 * Averages of integers are added in 64 bits, those of 64-bit integers in 128
 * bits, and are divided once, toward zero: three i8 of 100 have the average
 * 100.
 */

/* dst[i] = left[i] op right[i] for 0 <= i < count.  dst may be the same array
 * as left or right.  `dtype` is that of the call; but for f16, bf16 and the
 * 8-bit floats it is F32, and the arrays hold f32.  Must not fail or call the
 * library.
 * Semantics: MPI_User_function, with both operands kept.
 */
typedef void dtensor_reduce_f(void *dst, const void *left, const void *right,
                              size_t count, enum dtensor_dtype dtype,
                              void *arg);

/* What the library may assume: (a op b) op c equals a op (b op c), up to the
 * precision that the caller accepts; and a op b equals b op a.  Without both
 * flags, terms are reduced from the left in the order of the ranks.
 */
enum dtensor_redop_flags {
    DTENSOR_ASSOCIATIVE = 1,
    DTENSOR_COMMUTATIVE = 2
};

/* Make a reduction: a function, which gets `arg`, for every dtype; or the sum
 * of factor times each rank's term, for floats and complex numbers only, with
 * the factor rounded to the accumulator type.  All ranks make the same
 * functions in the same order; the calls that use them compare how many were
 * made, their flags, and the bits of a factor.
 *
 * Collective: no.   Blocks: no.
 * Owns:   the context keeps it until dtensor_redop_destroy(), which the
 *         program must call.
 * Errors: EINVAL  no function, unknown flags, or 2^29 were made already
 *         ENOMEM
 * Semantics: MPI_Op_create, ncclRedOpCreatePreMulSum.
 */
int dtensor_redop_create(struct dtensor_ctx *ctx, dtensor_reduce_f *fn,
                         void *arg, unsigned flags, enum dtensor_redop *opp,
                         struct dtensor_error *err);
int dtensor_redop_premul(struct dtensor_ctx *ctx, double factor,
                         enum dtensor_redop *opp, struct dtensor_error *err);

/* Calls in progress continue; new calls with it fail with EINVAL.  A no-op for
 * a built-in reduction, and for one that was destroyed before.   Semantics:
 * MPI_Op_free, ncclRedOpDestroy.
 */
void dtensor_redop_destroy(struct dtensor_ctx *ctx, enum dtensor_redop op);

/* With `on` 1, from now on reduce all terms in the order of the ranks, as
 * [cluster] repro = yes does from the start; with 0 no longer.  The bits of a
 * reduction then depend only on the terms and their order, not on algorithm,
 * size of the message, hosts, transports or [tuning].  See dtensor-repro(7).
 *
 * Collective: all ranks must call it between the same calls, which compare it.
 * Blocks: no.   Semantics: torch.use_deterministic_algorithms.
 */
void dtensor_set_repro(struct dtensor_ctx *ctx, int on);

#ifdef __cplusplus
}
#endif
#endif
