/* dtensor/plan.h - redistributes that are planned, explained, and run again
 *
 * A redistribute can be computed before it moves anything: its steps, how many
 * bytes each rank sends to each other, the predicted time, and the
 * alternatives.  A plan is the result, and can be run many times; a batch is
 * one plan for several tensors.
 */
#ifndef DTENSOR_PLAN_H
#define DTENSOR_PLAN_H

#include "collective.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- plans --- */

/* How a tensor gets from one spec to another, computed once and run many times.
 * dtensor_redistribute() and related functions make plans too; the context
 * keeps the last 256 of them.
 */
struct dtensor_plan;

/* The routes.  All give the same elements, and for a Partial target the same
 * term on each rank (dtensor_redistribute()).  Routes add terms in different
 * orders; one plan always adds in the same order.  Each step that adds rounds
 * floats of 16 and 8 bits, so AUTO takes no more such steps than DIRECT.
 * Averages of integers are rounded once by every route.
 */
enum dtensor_route {
    DTENSOR_ROUTE_AUTO,        /* the one with the least predicted time       */
    DTENSOR_ROUTE_DIRECT,      /* one exchange: each element is sent once     */
    DTENSOR_ROUTE_MERGED,      /* greedy, neighbouring steps of a kind merged */
    DTENSOR_ROUTE_MIN_COST,    /* the cheapest that changes one mesh          */
                               /* dimension at a time                         */
    DTENSOR_ROUTE_GREEDY,      /* PyTorch's order, one dimension at a time    */
    DTENSOR_NROUTES
};

/* NULL, or zero in a field, is what [redistribute] of the cluster file says. */
struct dtensor_plan_options {
    enum dtensor_route route;  /* AUTO: the fastest by prediction             */
    uint64_t max_scratch;      /* bytes on a rank for results between steps,  */
                               /* and for packing and unpacking               */
    int connect;               /* 1: connect to the peers now, not at the     */
                               /* first run                                   */
};

/* Plan from `src` to `dst`, of one shape and dtype.  Uses placements, not
 * ranks: 1,024 ranks cost no more than 8.
 *
 * Collective: yes - the ranks of both meshes.   Blocks: no - but with `connect`
 *         until connected.  Neither applies to a context of
 *         dtensor_init_offline().
 * Owns:   *planp is the caller's, for dtensor_plan_destroy().
 * Errors: EINVAL  the specs, or a route that does not exist: says why;  ENOMEM;
 *         with `connect` those of dtensor_allreduce()
 * Semantics: MPI_Alltoallw_init, for any placements and with a choice of
 * routes.
 */
int dtensor_plan_create(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        const struct dtensor_plan_options *options,
                        struct dtensor_plan **planp,
                        struct dtensor_error *err);

/* NULL is a no-op.   Collective: no - but not while the plan runs. */
void dtensor_plan_destroy(struct dtensor_plan *plan);

/* Copy the elements of `src` to `dst`; both must have the plan's specs.  The
 * first run finds which rank sends what to which, and connects; later runs
 * allocate nothing.
 *
 * Collective: yes - the ranks of both meshes.   Blocks: until this rank has its
 *         part and no peer needs `src` any more.
 * Errors: EINVAL  a tensor has another spec;  and those of dtensor_allreduce()
 * Semantics: DTensor.redistribute.
 */
int dtensor_plan_run(struct dtensor_plan *plan, const struct dtensor *src,
                     struct dtensor *dst, struct dtensor_error *err);

/* Start the same and return at once; the library owns `src` and `dst` until
 * dtensor_wait().
 *
 * Collective: yes - in the same order.   Blocks: no, not even the first call.
 * Owns:   *requestp is the caller's, for dtensor_wait().  The plan must outlive
 *         it.
 * Errors: as dtensor_plan_run()
 * Semantics: DTensor.redistribute(async_op=True), MPI_Ialltoallw.
 */
int dtensor_plan_start(struct dtensor_plan *plan, const struct dtensor *src,
                       struct dtensor *dst, struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* The placements of the gradient of a tensor of spec `src`, when it arrives as
 * `grad`: those of src; where src is P they are R, without division, or P if
 * the gradient arrives as P.
 * Semantics: the backward of DTensor.redistribute.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  the specs, or another mesh;  ENOMEM
 */
int dtensor_grad_spec(const struct dtensor_spec *src,
                      const struct dtensor_spec *grad,
                      struct dtensor_spec *spec, struct dtensor_error *err);

/* pair[0]: the plan from src to dst.  pair[1]: the plan for the gradient of
 * dst, from `grad` (NULL: dst with R in place of P) to the spec that
 * dtensor_grad_spec() gives.
 *
 * Collective, blocks, owns, errors: as dtensor_plan_create(), twice
 * Semantics: Redistribute.forward and backward.
 */
int dtensor_plan_pair(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtensor_spec *grad,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan *pair[2], struct dtensor_error *err);

/* Facts about a plan.   Owns: the texts belong to the plan, while it exists. */
struct dtensor_plan_info {
    enum dtensor_route route;  /* the chosen route                            */
    int nsteps;                /* number of steps                             */
    double predicted_us;       /* time of the slowest rank                    */
    uint64_t scratch_bytes;    /* this rank's results between steps           */
    const char *text;          /* one line: the steps; after a run also bytes */
    const char *why;           /* why this route                              */
};
void dtensor_plan_info(const struct dtensor_plan *plan,
                       struct dtensor_plan_info *info);

/* A candidate, chosen or not. */
struct dtensor_plan_choice {
    int nsteps;                /* number of steps                             */
    double predicted_us;       /* time of the slowest rank                    */
    uint64_t scratch_bytes;    /* results between steps, for even shards      */
    const char *refused;       /* NULL, or why there is no such route         */
};

/* The plan that dtensor_plan_create() would make if options asked for that
 * route.
 *
 * Collective: no.   Blocks: no.   Semantics: its own.
 * Errors: EINVAL  no such route; AUTO is not one
 */
int dtensor_plan_choice(const struct dtensor_plan *plan,
                        enum dtensor_route route,
                        struct dtensor_plan_choice *choice,
                        struct dtensor_error *err);

/* One step. */
struct dtensor_plan_step {
    const char *what;          /* "all-gather", "allreduce", "all-to-all",    */
                               /* "reduce-scatter", "exchange", "local"       */
    struct dtensor_spec src;   /* spec before the step                        */
    struct dtensor_spec dst;   /* spec after the step                         */
    int ranks;                 /* ranks in the group of one rank              */
    double predicted_us;       /* time of the slowest rank                    */
    int rounds;                /* rounds in which this rank packs and unpacks,*/
                               /* to stay within max_scratch                  */
    uint64_t scratch_bytes;    /* memory of this rank for packing             */
};

/* Step `i` of info.nsteps.  Rounds and scratch are counted piece by piece in
 * every call.
 *
 * Collective: no.   Blocks: no.   Semantics: its own.
 * Errors: EINVAL  no step `i`;  ENOMEM
 */
int dtensor_plan_step(const struct dtensor_plan *plan, int i,
                      struct dtensor_plan_step *step,
                      struct dtensor_error *err);

/* Bytes that world rank `from` sends to rank `to` in step `i`; -1 for any of
 * the three means all of them.  The plan promises that no more is moved between
 * ranks.  Counted piece by piece in every call.
 */
uint64_t dtensor_plan_bytes(const struct dtensor_plan *plan, int i, int from,
                            int to);

/* Lower bound of the bytes that rank `rank` (-1: all ranks together) must
 * receive in any plan: what it needs and does not have.  Partial sources count
 * as one reduced copy.  0 if no bound is known: between two reductions, and for
 * terms between two meshes.
 */
uint64_t dtensor_plan_bound(const struct dtensor_plan *plan, int rank);

/* Print all of this: steps, bytes, the reason, and the alternatives. */
void dtensor_plan_print(const struct dtensor_plan *plan, FILE *stream);

/* Several tensors redistributed together.  Tensors of one dtype that need a
 * single exchange share its messages, if two local copies cost less than the
 * messages.
 */
struct dtensor_batch;

/* Plan to bring tensor i from src[i] to dst[i], 0 <= i < n.
 *
 * Collective: yes - the ranks of all meshes named.   Blocks: until connected.
 * Owns:   *batchp is the caller's, for dtensor_batch_destroy().
 * Errors: as dtensor_plan_create();  and those of dtensor_allreduce()
 * Semantics: its own.
 */
int dtensor_batch_create(int n, const struct dtensor_spec src[],
                         const struct dtensor_spec dst[],
                         struct dtensor_batch **batchp,
                         struct dtensor_error *err);
void dtensor_batch_destroy(struct dtensor_batch *batch);
                                               /* NULL is a no-op            */

/* Copy the elements of src[i] to dst[i], n of each; they must have those specs.
 *
 * Collective, blocks, errors, semantics: as dtensor_plan_run()
 */
int dtensor_batch_run(struct dtensor_batch *batch,
                      const struct dtensor *const src[],
                      struct dtensor *const dst[], struct dtensor_error *err);

/* Statistics of the LRU cache of plans that redistributes use. */
struct dtensor_plan_cache {
    uint64_t hits;             /* calls that found their plan                 */
    uint64_t misses;           /* plans made                                  */
    uint64_t dropped;          /* plans dropped to keep within the limit, the */
                               /* least recently used first                   */
    int entries;               /* plans in the cache                          */
    int limit;                 /* most plans that it keeps                    */
};
void dtensor_plan_cache(const struct dtensor_ctx *ctx,
                        struct dtensor_plan_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
