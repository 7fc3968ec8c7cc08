/* dtensor/collective.h - what a group of ranks computes together
 *
 * The arrays of all ranks of a mesh go in, and every rank gets its result: the
 * sum of all (allreduce), all of them one after another (allgather), block r of
 * each to rank r (all-to-all).  A call can be made at once, be described by a
 * struct and started or made ready for many starts, or be one of a group that
 * travels together.  Reductions may be the program's own.
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
 * Memory from dtensor_alloc() is used where it stands; other memory is copied
 * through a buffer of the context that grows to the largest size used.
 * Every element of a result is reduced in one fixed order that does not
 * depend on timing: the same call on the same ranks gives the same bits, and
 * all ranks get the same bits.
 *
 * All in this section:
 * Collective: yes - every rank of the mesh, same order.
 * Blocks: until this rank's part is done and its buffers are its own again.
 * Owns:   nothing is kept.  On failure `out` may be partly written, except
 *         that EINVAL leaves it untouched; no peer's bytes are taken before
 *         its call was found to be the same as this one.
 * Errors: EINVAL     rank outside the mesh, bad dtype, op, root or overlap
 *         EMISMATCH  a peer called something else: says what
 *         EPEER      a rank died
 *         ETIME      a rank did not answer within [transport] op_timeout
 *         EABORT     another rank gave up
 *         ENODEV, ESYS, ENOMEM  there is no way to a peer, a device or the
 *                    system failed, or memory is exhausted
 * Semantics: those of MPI and, of reductions, of NCCL, by the same names.
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
 * rank need know more.  The algorithm is one for small blocks, unless the
 * program sets `count` of a struct dtensor_call to their approximate size.
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
    size_t count;              /* elements, of one block if there are blocks; */
                               /* ALL_TO_ALL with counts: approximate block   */
                               /* size, the same on all ranks, to choose the  */
                               /* algorithm; 0: not known                     */
    const size_t *counts;      /* NULL: every block is `count`; else of each  */
                               /* position its block, the same on all ranks.  */
                               /* ALL_TO_ALL: what this rank sends to each    */
    const size_t *recv_counts; /* ALL_TO_ALL with counts: what it gets of each*/
};

/* What a call costs, by how much of what: the unit of each amount. */
enum dtensor_cost {
    DTENSOR_COST_INTRA_HOPS,       /* signals that wait for the last one,     */
    DTENSOR_COST_INTRA_MESSAGES,   /* puts and signals handed over,           */
    DTENSOR_COST_INTRA_BYTES,      /* bytes loaded or put: inside hosts,      */
    DTENSOR_COST_INTER_HOPS,       /* and between them                        */
    DTENSOR_COST_INTER_MESSAGES,
    DTENSOR_COST_INTER_BYTES,
    DTENSOR_COST_FOLDED,           /* bytes of terms that reductions read     */
    DTENSOR_COST_COPIED,           /* bytes copied within the rank            */
    DTENSOR_NCOSTS
};

/* One way to carry out a call. */
struct dtensor_way {
    const char *name;              /* "ring": static                          */
    int taken;                     /* this is the one                         */
    int tuned;                     /* since [tuning] says so                  */
    double ns;                     /* predicted: the sum of part_ns           */
    double amount[DTENSOR_NCOSTS]; /* of the rank that has most to do         */
    double part_ns[DTENSOR_NCOSTS];
    double stretch;                /* a byte inside hosts, folded or copied   */
                                   /* is taken for so many: not all in caches */
};

/* Predict a call over the mesh by every algorithm that can run it, least time
 * first, of which the first `max` are told; *np (NULL: not wanted) is how many
 * there are.  The constants are those of [tuning] in the cluster file, or built
 * in; every rank gets the same answer.  For an ALL_TO_ALL with counts each rank
 * knows only its own counts, so the times are those of what it sends and
 * receives; the chosen way is the same on every rank.
 *
 * Collective: no.   Blocks: no, and needs no peers: see dtensor_init_plan().
 * Errors: EINVAL  the call could not be made, or max is less than 1;  ENOMEM
 * Semantics: its own.
 */
int dtensor_call_ways(const struct dtensor_mesh *mesh,
                      const struct dtensor_call *call,
                      struct dtensor_way ways[], int max, int *np,
                      struct dtensor_error *err);

/* Carry it out; a broadcast's buffer is `in` at the root and `out` elsewhere,
 * so usually both.
 *
 * Collective, blocks, owns, errors, semantics: of the function of that name, as
 *         dtensor_allreduce(); EINVAL also: there is none
 */
int dtensor_call_run(const struct dtensor_mesh *mesh,
                     const struct dtensor_call *call, const void *in,
                     void *out, struct dtensor_error *err);

/* Something that was started: a collective, or a redistribute by a plan.  All
 * are worked on by dtensor_test() and dtensor_wait() of any of them: they begin
 * in the order they were started, those that have a peer in common one after
 * the other, the rest at the same time.  Blocking collective calls finish all
 * of them first.  To start one does what can be done of all, as dtensor_test().
 */
struct dtensor_request;

/* Start it and return at once: the buffers are the library's until
 * dtensor_wait().  Any number may be started; see struct dtensor_request for
 * the order in which they are worked on.   Semantics: MPI_Iallreduce & co.
 *
 * Collective: yes - in the same order.   Blocks: no, nor does the first call.
 * Owns:   *requestp is the caller's, for dtensor_wait(); `call` is not kept.
 * Errors: as dtensor_call_run();  EINVAL  also: a group of calls is open
 */
int dtensor_call_start(const struct dtensor_mesh *mesh,
                       const struct dtensor_call *call, const void *in,
                       void *out, struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* A call with its buffers, made ready once and started as often as wanted:
 * after it is made nothing is allocated.   Semantics: MPI_Allreduce_init & co.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until what was started
 *         before is over, and connected.
 * Owns:   *persistentp is the caller's, for dtensor_persistent_destroy().  The
 *         buffers must live as long; `call` need not.
 * Errors: as dtensor_call_start()
 */
struct dtensor_persistent;
int dtensor_call_create(const struct dtensor_mesh *mesh,
                        const struct dtensor_call *call, const void *in,
                        void *out, struct dtensor_persistent **persistentp,
                        struct dtensor_error *err);

/* Start it.  *requestp is good for dtensor_test() and dtensor_wait(), as any
 * other.   Semantics: MPI_Start.
 *
 * Collective: yes - in the same order.   Blocks: no.
 * Owns:   *requestp is the persistent call's own.
 * Errors: EINVAL  the last start was not waited for, completed or not: the same
 *         on all ranks
 *         the code of an earlier failure, of those of dtensor_allreduce()
 */
int dtensor_persistent_start(struct dtensor_persistent *persistent,
                             struct dtensor_request **requestp,
                             struct dtensor_error *err);

/* NULL is a no-op.
 *
 * Collective: no.   Blocks: until it is over, if it is under way.
 * Semantics: MPI_Request_free, of a persistent request.
 */
void dtensor_persistent_destroy(struct dtensor_persistent *persistent);

/* ------------------------------------------------ two ranks, and groups --- */

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
 * the context are only written down; end makes them all, as if at the same
 * time.  All that goes from one rank to another by sends is one message;
 * collectives that differ in count and buffers only become one, as long as it
 * has 64 KiB at most.  Buffers and counts must stay until end.  An empty group
 * sends nothing.
 *
 * Collective: no by itself: each call needs the ranks it needs, which make the
 *         same collectives in the same order in theirs.   Blocks: end, until
 *         all of them are done.
 * Errors: begin: EINVAL  one is open.   end: EINVAL  none is; and those of
 *         dtensor_allreduce() and dtensor_send()
 * Semantics: ncclGroupStart, ncclGroupEnd.
 */
int dtensor_group_begin(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtensor_group_end(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* ------------------------------------------------------------ requests --- */

/* Do what can be done now; *donep: 1 when it is over, else 0.  Either way the
 * request stays the caller's.
 *
 * Collective: no.   Blocks: no.
 * Semantics: MPI_Test, but for the request.
 * Errors: those of dtensor_allreduce(); dtensor_wait() is due
 */
int dtensor_test(struct dtensor_request *request, int *donep,
                 struct dtensor_error *err);

/* Wait until it is over, and free the request, also on failure; that of a
 * persistent call stays.  NULL is a no-op.
 *
 * Collective: no.   Blocks: until done.   Semantics: MPI_Wait.
 * Errors: those of dtensor_allreduce()
 */
int dtensor_wait(struct dtensor_request *request, struct dtensor_error *err);

/* ------------------------------------------ reductions, reproducibility --- */

/* Whatever takes an enum dtensor_redop takes reductions that a program makes,
 * but for Partial placements.
 *
 * How reductions round.  Sums, averages, products and functions of f16, bf16,
 * f8e4m3 and f8e5m2 are carried out in f32 over all ranks and rounded once,
 * after an average was divided: 256 + 1 + 1 of bf16 is 258, in every algorithm.
 * f32 is added as f32, f64 as f64: convert first where f32 sums want more bits.
 * Averages of integers are added in 64 bits, of 64-bit integers in 128, and are
 * divided once, toward zero: three i8 of 100 have the average 100.
 */

/* dst[i] = left[i] op right[i] for 0 <= i < count.  dst may be the very array
 * left or right.  `dtype` is the call's; but F32, and so are the arrays, for
 * f16, bf16 and the floats of 8 bits.  Must not fail or call the library.
 * Semantics: MPI_User_function, with both operands kept.
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

/* What was started goes on; new calls with it are EINVAL.  A built-in one, or
 * one that is gone: no-op.   Semantics: MPI_Op_free, ncclRedOpDestroy.
 */
void dtensor_redop_destroy(struct dtensor_ctx *ctx, enum dtensor_redop op);

/* From now on, or no longer, fold all terms in the order of the ranks, as
 * [cluster] repro = yes does from the start: then the bits of a reduction
 * depend on the terms and their order only, not on algorithm, size of the
 * message, hosts, transports or [tuning].  See dtensor-repro(7).
 *
 * Collective: all ranks must do so between the same calls, which compare it.
 * Blocks: no.   Semantics: torch.use_deterministic_algorithms.
 */
void dtensor_set_repro(struct dtensor_ctx *ctx, int on);

#ifdef __cplusplus
}
#endif
#endif
