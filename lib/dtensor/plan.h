/* dtensor/plan.h - redistributes that are planned, explained, and run again
 *
 * What one redistribute moves can be worked out before it moves anything: in
 * which steps, who sends how many bytes to whom, how long it is predicted to
 * take, and what other ways there would be.  A plan is that answer, and can be
 * run as often as wanted; a batch is one plan for several tensors.
 */
#ifndef DTENSOR_PLAN_H
#define DTENSOR_PLAN_H

#include "collective.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- plans --- */

/* How a tensor gets from one spec to another, worked out once and run as often
 * as wanted.  dtensor_redistribute() and its kin make plans too and keep the
 * last 256 of a context.
 */
struct dtensor_plan;

/* The routes.  All give the same elements, and for a Partial target the same
 * term on each rank (dtensor_redistribute()).  Routes add terms in different
 * orders; one plan always adds in the same order.  Each step that adds rounds
 * floats of 16 and 8 bits, so AUTO takes no more such steps than DIRECT.
 * Averages of integers are rounded once by every route.
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

/* Plan from `src` to `dst`, of one shape and dtype.  Looks at placements, not
 * at ranks: 1,024 of them cost no more than 8.
 *
 * Collective: yes - the ranks of both meshes.   Blocks: no - but with `connect`
 *         until connected.  Neither in a context that only plans, see
 *         dtensor_init_plan().
 * Owns:   *planp is the caller's, for dtensor_plan_destroy().
 * Errors: EINVAL  the specs, or a route that does not exist: says why;  ENOMEM;
 *         with `connect` those of dtensor_allreduce()
 * Semantics: MPI_Alltoallw_init, of any placements and with a choice of ways.
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
 * Errors: EINVAL  a tensor has another spec;  and those of dtensor_allreduce()
 * Semantics: DTensor.redistribute.
 */
int dtensor_plan_run(struct dtensor_plan *plan, const struct dtensor *src,
                     struct dtensor *dst, struct dtensor_error *err);

/* Start the same and return at once: `src` and `dst` are the library's until
 * dtensor_wait().
 *
 * Collective: yes - in the same order.   Blocks: no, nor does the first call.
 * Owns:   *requestp is the caller's, for dtensor_wait().  The plan must outlive
 *         it.
 * Errors: as dtensor_plan_run()
 * Semantics: DTensor.redistribute(async_op=True), MPI_Ialltoallw.
 */
int dtensor_plan_start(struct dtensor_plan *plan, const struct dtensor *src,
                       struct dtensor *dst, struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* The placements that the gradient of a tensor of spec `src` is brought to,
 * when it arrives as `grad`: those of src; where src is a term, R, without
 * division, or the term that arrives.
 * Semantics: the backward of DTensor.redistribute.
 *
 * Collective: no.   Blocks: no.
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
 * Semantics: Redistribute.forward and backward.
 */
int dtensor_plan_pair(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtensor_spec *grad,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan *pair[2], struct dtensor_error *err);

/* What a plan says of itself.   Owns: texts are the plan's, while it exists. */
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
    const char *refused;       /* NULL, or why there is no such route         */
};

/* The plan that dtensor_plan_create() would make if options asked for that
 * route.
 *
 * Collective: no.   Blocks: no.   Semantics: its own.
 * Errors: EINVAL  no such route: AUTO is none
 */
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

/* Step `i` of info.nsteps.  Rounds and scratch are counted piece by piece on
 * every call.
 *
 * Collective: no.   Blocks: no.   Semantics: its own.
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
 * 0 if no bound is known: between two reductions, and for terms between two
 * meshes.
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
 * Errors: as dtensor_plan_create();  and those of dtensor_allreduce()
 * Semantics: its own.
 */
int dtensor_batch_create(int n, const struct dtensor_spec src[],
                         const struct dtensor_spec dst[],
                         struct dtensor_batch **batchp,
                         struct dtensor_error *err);
void dtensor_batch_destroy(struct dtensor_batch *batch);
                                               /* NULL is a no-op            */

/* Give the elements of src[i] to dst[i], n of each, which have those specs.
 *
 * Collective, blocks, errors, semantics: as dtensor_plan_run()
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

#ifdef __cplusplus
}
#endif
#endif
