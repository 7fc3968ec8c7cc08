/* cache.h - the decisions that a context keeps */
#ifndef DTN_OP_CACHE_H
#define DTN_OP_CACHE_H

#include "base/lru.h"
#include "op/infer.h"
#include "dtensor.h"

/* What was decided for a call. */
struct dtn_decision {
    struct dtn_lru_entry entry;   /* of the cache                             */
    struct dtensor_op_call call;  /* its own copy                             */
    unsigned reads;               /* DTN_ARG_ that the operator reads         */
    struct dtn_inferred inferred;                /* what was inferred; cost   */
                                  /* in ns                                    */
    char op[32];                  /* of call.op                               */
    struct dtensor_spec in[];     /* [call.nin] of call.in                    */
};

/* Find the decision for a call, or make it.  It is valid until the next call of
 * this function.
 * Errors: as dtensor_op_infer()
 */
int dtn_decide(const struct dtensor_op_call *call,
               const struct dtn_decision **decisionp,
               struct dtensor_error *err);

#endif
