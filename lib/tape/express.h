/* express.h - expressions of operators, evaluated */
#ifndef DTN_TAPE_EXPRESS_H
#define DTN_TAPE_EXPRESS_H

#include "tape/tape.h"
#include "dtensor.h"

#include <stdbool.h>

/* What an expression is about. */
struct dtn_express {
    const struct dtn_note *note;  /* the call                                 */
    struct dtensor *const *grad;  /* [note->nout] of its outputs; or NULL     */
    int input;                    /* whose gradient is computed               */
};

/* Which operands an expression names: a bit for each of note->operand. */
unsigned dtn_express_names(const char *text, const struct dtn_note *note);

/* Evaluate.  *tp is the caller's, for dtensor_destroy().
 * Errors: EINVAL  what it names was changed since; and of dtensor_op()
 */
int dtn_express(const struct dtn_express *e, const char *text,
                struct dtensor **tp, struct dtensor_error *err);

/* What the expression of a program may be about. */
struct dtn_express_about {
    const struct dtensor_ctx *ctx; /* whose operators are known               */
    const char *own;              /* and this one                             */
    int nin, nout;                /* operands                                 */
};

/* Is the text an expression about that?  NULL, or what is wrong, at *atp. */
const char *dtn_express_fault(const struct dtn_express_about *about,
                              const char *text, const char **atp);

/* What is called in an expression and is no operator, such as spread. */
bool dtn_express_is_step(const char *name);

/* Operand i as it was then, not held.   Errors: EINVAL  it was changed */
int dtn_express_operand(const struct dtn_express *e, int i,
                        const struct dtensor **tp, struct dtensor_error *err);

/* The gradient of output k, zeros if there is none; *tp is the caller's. */
int dtn_express_grad(const struct dtn_express *e, int k, struct dtensor **tp,
                     struct dtensor_error *err);

/* Operator `op` of *tp, in its place. */
int dtn_express_step(const char *op, const struct dtensor_op_args *args,
                     struct dtensor **tp, struct dtensor_error *err);

/* *tp as another shape; its elements are those, in this order. */
int dtn_express_reshape(struct dtensor **tp, int ndim, const int64_t shape[],
                        struct dtensor_error *err);

#endif
