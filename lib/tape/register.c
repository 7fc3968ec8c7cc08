/* register.c - operators of the program, with their gradients
 *
 * All ranks exchange the result of their checks.  So a wrong definition on one
 * rank is an error on all ranks, and then no rank registers anything.
 */
#include "tape/express.h"
#include "tape/rules.h"
#include "base/error.h"
#include "op/cache.h"
#include "op/own.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

/* The expressions.  An operator that keeps the rule of the library may have as
 * many operands as an expression can name.
 */
static int grads_check(const struct dtensor_ctx *ctx,
                       const struct dtensor_op_def *def,
                       struct dtensor_error *err)
{
    const struct dtn_express_about about = {
        .ctx = ctx, .own = def->name,
        .nin = def->letters ? dtn_own_inputs(def) : DTENSOR_OP_GRADS,
        .nout = def->letters ? dtn_own_outputs(def) : 2 };

    for (int i = 0; i < DTENSOR_OP_GRADS; i++) {
        const char *at, *fault;

        if (!def->grad[i])
            continue;
        if (def->backward || i >= about.nin)
            return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s: grad[%d] is "
                            "given, but %s", def->name, i, def->backward
                            ? "so is backward (give one of them)"
                            : "there is no such input");
        fault = dtn_express_fault(&about, def->grad[i], &at);
        if (fault)
            return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s: grad[%d] "
                            "\"%.100s\": %s, at \"%.40s\"", def->name, i,
                            def->grad[i], fault, at);
    }
    return 0;
}

int dtensor_op_register(struct dtensor_ctx *ctx,
                        const struct dtensor_op_def *def,
                        struct dtensor_error *err)
{
    struct dtn_own *own = NULL;
    struct dtensor_error why;
    int rc;

    if (!ctx || !def)
        return dtn_fail(err, DTENSOR_EINVAL, "op_register: %s is NULL",
                        ctx ? "def" : "ctx");
    rc = dtn_own_check(def, &why);
    if (rc == 0)
        rc = grads_check(ctx, def, &why);
    if (rc == 0)
        rc = dtn_own_make(ctx, def, &own, &why);
    rc = dtn_own_agree(ctx, def, rc, &why, err);
    if (rc == 0)
        dtn_own_keep(ctx, own);
    else
        free(own);
    if (rc == 0)
        dtn_decisions_forget(ctx);
    return rc;
}
