/* cache.h - the decisions that a context keeps */
#ifndef DTN_OP_CACHE_H
#define DTN_OP_CACHE_H

#include "base/lru.h"
#include "op/infer.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_op_bound;

/* A call, as it is looked up: of specs, or of tensors. */
struct dtn_op_key {
    const char *op;               /* its name                                 */
    int nin;                      /* number of inputs                         */
    const struct dtensor_spec *in;               /* [nin] how they lie ...    */
    const struct dtensor *const *tensor;         /* [nin] ... if this is NULL */
    const struct dtensor_op_args *args;          /* what else it is told      */
};

/* What was decided for a call. */
struct dtn_decision {
    struct dtn_lru_entry entry;   /* of the cache                             */
    struct dtensor_op_call call;  /* its own copy                             */
    unsigned reads;               /* DTN_ARG_ that the operator reads         */
    unsigned flags;               /* DTN_RULE_ of its rule                    */
    bool collective;              /* it has rows that `repro` leaves out ...  */
    bool repro;                   /* ... and it was made under `repro`        */
    struct dtn_inferred inferred;                /* what was inferred; cost   */
                                  /* in ns                                    */
    signed char kernels;          /* 1: those of a GPU compute it; -1: the    */
                                  /* CPU does; 0: not asked yet               */
    struct dtn_op_bound *bound;   /* to run it, for free(); NULL: not yet     */
    uint64_t *last;               /* [call.nin] dtensor.first of the tensors  */
                                  /* that it was found for last; 0: none      */
    char op[32];                  /* of call.op                               */
    struct dtensor_spec in[];     /* [call.nin] of call.in                    */
};

/* Find the decision for a call, or make it.  It is valid until the next call of
 * this function.
 * Errors: as dtensor_op_infer()
 */
int dtn_decide(const struct dtn_op_key *key, struct dtn_decision **decisionp,
               struct dtensor_error *err);

/* `size` bytes of such memory, for the inputs of one run that are moved: the
 * same memory for all runs of a context, which has decided something.
 * Errors: ENOMEM
 */
int dtn_op_scratch(const struct dtensor_mesh *mesh, size_t size, void **memp,
                   struct dtensor_error *err);

/* The same in memory of the host, for local functions; peers do not reach it.
 * Errors: ENOMEM
 */
int dtn_op_workspace(const struct dtensor_mesh *mesh, size_t size, void **memp,
                     struct dtensor_error *err);

/* The room of math/room.h, the same for all runs.  NULL: there is no memory. */
void *dtn_op_math_room(struct dtensor_ctx *ctx);

/* Drop all decisions: operators mean something else now. */
void dtn_decisions_forget(struct dtensor_ctx *ctx);

/* What the context does about redistributes that nobody asked for. */
enum dtensor_implied dtn_op_implied(const struct dtensor_ctx *ctx);

#endif
