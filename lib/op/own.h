/* own.h - operators of the program: dtensor_op_register() */
#ifndef DTN_OP_OWN_H
#define DTN_OP_OWN_H

#include "op/local/local.h"
#include "op/rule.h"
#include "dtensor.h"

/* An operator that was registered.  It stays until the context ends, also if
 * another one takes its name, since decisions and tapes point to it.
 */
struct dtn_own {
    struct dtn_local local;       /* first, so that it leads here; op NULL:   */
                                  /* the library computes it                  */
    struct dtn_rule rule;         /* letters NULL: that of the library holds  */
    struct dtensor_op_def def;    /* with copies of the texts                 */
    struct dtn_own *next;         /* registered before; NULL: none            */
    const char *names[2];         /* of rule                                  */
};

/* The operator of that name that was registered last; NULL: none. */
const struct dtn_own *dtn_own_find(const struct dtensor_ctx *ctx,
                                   const char *op);

/* Are the rule and the functions of a definition right?   Errors: EINVAL */
int dtn_own_check(const struct dtensor_op_def *def, struct dtensor_error *err);

/* How many inputs and outputs it has at most; 0: as the library's. */
int dtn_own_inputs(const struct dtensor_op_def *def);
int dtn_own_outputs(const struct dtensor_op_def *def);

/* Compare it with those of all ranks.  `rc` and `why` are what this rank found
 * wrong with it before; the call returns that, or an error that names a rank.
 *   Errors: EINVAL;  and those of dtensor_allreduce()
 */
int dtn_own_agree(struct dtensor_ctx *ctx, const struct dtensor_op_def *def,
                  int rc, const struct dtensor_error *why,
                  struct dtensor_error *err);

/* Copy a definition that is right, for free() or keep, which cannot fail; and
 * let it hold from now on.   Errors: ENOMEM
 */
int dtn_own_make(struct dtensor_ctx *ctx, const struct dtensor_op_def *def,
                 struct dtn_own **ownp, struct dtensor_error *err);
void dtn_own_keep(struct dtensor_ctx *ctx, struct dtn_own *own);

#endif
