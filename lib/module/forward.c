/* forward.c - computes a module that has no forward function of its own
 *
 * The type of the module is the name of an operator, which gets the inputs and
 * then the parameters: a module "linear" with the parameters weight and bias
 * computes linear(x, weight, bias).  There are two exceptions.  An embedding
 * passes its table before the inputs.  "sequential" is not an operator: it runs
 * the children one after another.
 */
#include "base/error.h"
#include "module/module.h"
#include "dtensor.h"

#include <string.h>

enum { INPUTS_MAX = 16 };

static bool is_norm(const char *type)
{
    return strcmp(type, "layer_norm") == 0 || strcmp(type, "rms_norm") == 0;
}

/* The arguments of the operator: `arg`, and for a norm its dimensions. */
static struct dtensor_op_args args_of(const struct dtensor_module *module)
{
    const struct dtensor_op_args *given = module->arg;
    struct dtensor_op_args args = { 0 };

    if (given)
        args = *given;
    if (is_norm(module->type) && args.count == 0)
        args.count = module->nparams > 0
                   ? dtensor_spec_of(module->params[0].tensor)->ndim : 1;
    return args;
}

static int forward_op(const struct dtensor_forward *call,
                      struct dtensor_error *err)
{
    const struct dtensor_module *module = call->module;
    const bool first = strcmp(module->type, "embedding") == 0;
    const struct dtensor_op_args args = args_of(module);
    const struct dtensor *all[INPUTS_MAX];
    int n = 0;

    if (call->nin + module->nparams > INPUTS_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %d inputs and %d parameters "
                        "(expected at most %d together)", module->type,
                        call->nin, module->nparams, INPUTS_MAX);
    for (int i = 0; !first && i < call->nin; i++)
        all[n++] = call->in[i];
    for (int i = 0; i < module->nparams; i++)
        all[n++] = module->params[i].tensor;
    for (int i = 0; first && i < call->nin; i++)
        all[n++] = call->in[i];
    return dtensor_op(module->type, n, all, &args, call->nout, call->out, err);
}

/* What the last child has computed is destroyed when the next one is done. */
static int forward_sequential(const struct dtensor_forward *call,
                              struct dtensor_error *err)
{
    const struct dtensor_module *module = call->module;
    struct dtensor *x = NULL, *y = NULL;
    int rc = 0;

    if (call->nin != 1 || call->nout != 1 || module->nchildren == 0)
        return dtn_fail(err, DTENSOR_EINVAL, "sequential: %d children with %d "
                        "inputs and %d outputs (expected 1 of each, or more "
                        "children)", module->nchildren, call->nin,
                        call->nout);
    for (int i = 0; rc == 0 && i < module->nchildren; i++) {
        rc = dtensor_module_apply(module->children[i], "", x ? x : call->in[0],
                                  &y, err);
        dtensor_destroy(x);
        x = rc == 0 ? y : NULL;
    }
    call->out[0] = x;
    return rc;
}

dtensor_forward_f *dtn_forward_of(const char *type)
{
    if (strcmp(type, "sequential") == 0)
        return forward_sequential;
    for (int i = 0; dtensor_op_name(i); i++)
        if (strcmp(dtensor_op_name(i), type) == 0)
            return forward_op;
    return NULL;
}
