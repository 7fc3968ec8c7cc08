/* infer.c - from a call to how its inputs and outputs lie
 *
 * The inputs are checked, the rule is found, and its engine decides: for most
 * operators the rows of its letters, combined over the mesh dimensions, and the
 * cheapest of them.
 */
#include "op/infer.h"
#include "op/collective.h"
#include "op/combine.h"
#include "op/result.h"
#include "op/row.h"
#include "op/signature.h"
#include "op/stack.h"
#include "op/types.h"
#include "op/view.h"
#include "op/words.h"
#include "base/error.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/predict.h"
#include "dtensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- inputs --- */

static int inputs_check(const struct dtensor_op_call *call,
                        struct dtensor_error *err)
{
    int rc = 0;

    if (!call->op || call->nin < 1 || !call->in)
        return dtn_fail(err, DTENSOR_EINVAL, "op: %s (give the name of an "
                        "operator and the specs of its inputs)",
                        !call->op ? "call.op is NULL" : !call->in
                        ? "call.in is NULL" : "there are no inputs");
    for (int i = 0; i < call->nin && rc == 0; i++)
        rc = dtensor_spec_check(&call->in[i], err);
    for (int i = 1; i < call->nin && rc == 0; i++)
        if (call->in[i].mesh != call->in[0].mesh) {
            char a[160], b[160];

            rc = dtn_op_fail(call, err, "input 0 is on %s, input %d on %s "
                             "(redistribute one to the mesh of the other)",
                             dtn_mesh_format(call->in[0].mesh, a, sizeof a), i,
                             dtn_mesh_format(call->in[i].mesh, b, sizeof b));
        }
    return rc;
}

/* Is something sharded? */
static bool inputs_sharded(const struct dtensor_op_call *call)
{
    for (int i = 0; i < call->nin; i++)
        for (int m = 0; m < call->in[i].mesh->ndim; m++)
            if (dtn_placement_class(&call->in[i].placement[m]) ==
                DTENSOR_SHARD)
                return true;
    return false;
}

/* -------------------------------------------------------------- outputs --- */

/* A block of nin + nout specs, the inputs copied. */
static int inferred_alloc(const struct dtensor_op_call *call, int nout,
                          struct dtn_inferred *inferred,
                          struct dtensor_error *err)
{
    const size_t n = (size_t)(call->nin + nout);
    struct dtensor_spec *spec = calloc(n, sizeof *spec);

    if (!spec)
        return dtn_fail_nomem(err, "op", n * sizeof *spec);
    memcpy(spec, call->in, (size_t)call->nin * sizeof *spec);
    inferred->nout = nout;
    inferred->want = spec;
    inferred->out = spec + call->nin;
    return 0;
}

static int output_make(const struct dtn_options *options,
                       const struct dtn_tuple *choice, int i,
                       struct dtensor_spec *out, struct dtensor_error *err)
{
    const struct dtn_signature *sig = options->sig;
    int64_t shape[DTENSOR_MAX_DIMS];

    dtn_result_shape(sig, i, shape);
    out->mesh = sig->call->in[0].mesh;
    out->dtype = dtn_types_out(sig->rule, sig->call, i);
    out->ndim = sig->out[i < sig->nout ? i : 0].ndim;
    memcpy(out->shape, shape, (size_t)out->ndim * sizeof shape[0]);
    dtn_choice_output(options, choice, i, out->placement);
    if (sig->rule->flags & DTN_RULE_INPLACE &&
        (out->ndim != sig->call->in[0].ndim ||
         memcmp(shape, sig->call->in[0].shape,
                (size_t)out->ndim * sizeof shape[0]) != 0))
        return dtn_op_fail(sig->call, err, "it works in place, but the result "
                           "has another shape than input 0");
    return dtn_shape_check(sig->call->op, out->dtype, out->ndim, out->shape,
                           err);
}

/* -------------------------------------------------------------- engines --- */

int dtn_infer_options(const struct dtensor_op_call *call,
                      const struct dtn_rule *rule,
                      const struct dtn_costs *costs,
                      struct dtn_signature *sig, struct dtn_rowset *rows,
                      struct dtn_options **optionsp, struct dtensor_error *err)
{
    int rc = dtn_signature_init(sig, rule, call, err);
    struct dtn_options *options;

    if (rc != 0)
        return rc;
    options = malloc(sizeof *options);
    if (!options)
        return dtn_fail_nomem(err, "op", sizeof *options);
    dtn_rows_make(sig, (inputs_sharded(call) ? DTN_ROWS_SHARDED : 0) |
                       (costs->allreduce ? DTN_ROWS_COLLECTIVE : 0) |
                       (costs->whole ? DTN_ROWS_WHOLE : 0), rows);
    dtn_options_make(sig, rows, options);
    *optionsp = options;
    return 0;
}

static int infer_letters(const struct dtensor_op_call *call,
                         const struct dtn_rule *rule,
                         const struct dtn_costs *costs,
                         struct dtn_inferred *inferred,
                         struct dtensor_error *err)
{
    struct dtn_signature sig;
    struct dtn_rowset rows;
    struct dtn_options *options;
    struct dtn_chosen chosen;
    int rc = dtn_infer_options(call, rule, costs, &sig, &rows, &options, err);

    if (rc != 0)
        return rc;
    rc = dtn_choose_options(options, costs, &chosen, err);
    if (rc == 0)
        rc = inferred_alloc(call, sig.nresults, inferred, err);
    if (rc == 0) {
        inferred->cost = chosen.cost;
        inferred->terms = chosen.terms;
        inferred->why = chosen.why;
        inferred->sums = rows.sums;
        inferred->collective = dtn_collective_dims(options, &chosen.choice);
        for (int i = 0; i < call->nin; i++)
            dtn_choice_input(options, &chosen.choice, i,
                             inferred->want[i].placement);
        for (int i = 0; i < sig.nresults && rc == 0; i++)
            rc = output_make(options, &chosen.choice, i, &inferred->out[i],
                             err);
        if (rc != 0)
            free(inferred->want);
    }
    free(options);
    return rc;
}

/* Views and stack: what the inputs should be follows from them. */
static int infer_whole(const struct dtensor_op_call *call,
                       const struct dtn_rule *rule,
                       const struct dtn_costs *costs,
                       struct dtn_inferred *inferred, struct dtensor_error *err)
{
    struct dtensor_spec want, out;
    int rc = rule->engine == DTN_BY_VIEW
           ? dtn_view_infer(call, &want, &out, err)
           : dtn_stack_infer(call, &want, &out, err);

    if (rc == 0)
        rc = dtn_shape_check(call->op, out.dtype, out.ndim, out.shape, err);
    if (rc == 0)
        rc = inferred_alloc(call, 1, inferred, err);
    if (rc != 0)
        return rc;
    inferred->cost = 0;
    for (int i = 0; i < call->nin; i++) {
        memcpy(inferred->want[i].placement, want.placement,
               sizeof want.placement);
        inferred->cost += costs->cost(costs->arg, &call->in[i],
                                      &inferred->want[i], HUGE_VAL);
    }
    inferred->out[0] = out;
    inferred->why = inferred->cost > 0 ? "it follows from the inputs"
                                       : "nothing has to be moved";
    return 0;
}

/* The cost of what is done only because there is no choice. */
static double moved_cost(const struct dtensor_op_call *call,
                         const struct dtn_inferred *made,
                         const struct dtn_cost *model)
{
    double ns = 0;

    for (int i = 0; i < call->nin; i++)
        ns += dtn_redist_predict(model, &call->in[i], &made->want[i]);
    return ns;
}

int dtn_infer(const struct dtensor_op_call *call,
              const struct dtn_costs *costs, struct dtn_inferred *inferred,
              struct dtensor_error *err)
{
    const struct dtn_rule *rule = NULL;
    struct dtn_inferred made = { .nout = 0 };
    struct dtn_costs_of *model = NULL;
    struct dtn_costs own;
    int rc = inputs_check(call, err);

    if (rc == 0)
        rc = dtn_rule_of(call, &rule, err);
    if (rc == 0)
        rc = dtn_types_check(rule, call, err);
    if (rc != 0)
        return rc;
    if (!costs) {
        model = malloc(sizeof *model);         /* 40 KiB: not for the stack   */
        if (!model)
            return dtn_fail_nomem(err, "op", sizeof *model);
        dtn_costs_model(call->in[0].mesh, model, &own);
        costs = &own;
    }
    rc = rule->engine == DTN_BY_VIEW || rule->engine == DTN_BY_STACK
       ? infer_whole(call, rule, costs, &made, err)
       : infer_letters(call, rule, costs, &made, err);
    if (rc == 0 && model && made.cost == HUGE_VAL)
        made.cost = moved_cost(call, &made, &model->cost);
    free(model);
    if (rc == 0)
        *inferred = made;
    return rc;
}
