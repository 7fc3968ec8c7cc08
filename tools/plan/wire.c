/* wire.c - which modules give a module its inputs
 *
 *   $ dtensor-plan module tp norm=layer_norm:64 up=linear:64x256 act=gelu \
 *         down=linear:256x64 sum=add@down,in ...
 *
 * By default the input of a module is the output of the previous module.  "@"
 * and names choose others: earlier modules with the same parent, or "in" for
 * the input of the parent.  So `sum` adds the output of `down` to the input of
 * the block.
 */
#include "tools/plan/model.h"

#include <stdlib.h>
#include <string.h>

static int child_index(const struct dtensor_module *parent, const char *name,
                       size_t n)
{
    struct dtensor_module *child;

    for (int i = 0; (child = dtensor_module_child(parent, i)); i++)
        if (strncmp(dtensor_module_name(child), name, n) == 0 &&
            dtensor_module_name(child)[n] == '\0')
            return i;
    return -1;
}

static int children(const struct dtensor_module *parent)
{
    int n = 0;

    while (dtensor_module_child(parent, n))
        n++;
    return n;
}

static int input_unknown(const struct dtensor_module *parent, const char *word,
                         const char *name, size_t n)
{
    const char *known[64] = { "in" };
    char wrong[PLAN_PATH], advice[200];

    for (int i = 0; i < 62 && dtensor_module_child(parent, i); i++)
        known[i + 1] = dtensor_module_name(dtensor_module_child(parent, i));
    snprintf(wrong, sizeof wrong, "%.*s", (int)n, name);
    return plan_usage("\"%s\": no module \"%s\" before it there (%s)", word,
                      wrong, dtensor_advise(wrong, known, NULL, advice,
                                            sizeof advice));
}

int plan_wire_read(const struct dtensor_module *parent, const char *word,
                   const char *names, struct plan_unit *unit)
{
    unit->nin = names ? 0 : 1;
    unit->in[0] = children(parent) - 1;          /* of none PLAN_IN           */
    while (names) {
        const size_t n = strcspn(names, ",");
        const bool in = n == 2 && strncmp(names, "in", 2) == 0;
        const int from = in ? PLAN_IN : child_index(parent, names, n);

        if (from < 0 && !in)
            return input_unknown(parent, word, names, n);
        if (unit->nin == PLAN_INPUTS)
            return plan_usage("\"%s\": expected at most %d inputs", word,
                              PLAN_INPUTS);
        unit->in[unit->nin++] = from;
        names = names[n] ? names + n + 1 : NULL;
    }
    return PLAN_GOOD;
}

/* ------------------------------------------------------------- forward --- */

/* Run a child on what others have made. */
static int child_run(struct dtensor_module *child,
                     const struct dtensor_forward *call,
                     struct dtensor *const made[], struct dtensor **outp,
                     struct dtensor_error *err)
{
    struct plan_unit *unit = dtensor_module_arg(child);
    const struct dtensor *in[PLAN_INPUTS];
    int rc;

    for (int i = 0; i < unit->nin; i++)
        in[i] = unit->in[i] < 0 ? call->in[0] : made[unit->in[i]];
    rc = dtensor_module_call(child, unit->nin, in, 1, outp, err);
    if (rc == 0)
        unit->out = *dtensor_spec_of(*outp);
    return rc;
}

int plan_forward_wired(const struct dtensor_forward *call,
                       struct dtensor_error *err)
{
    const int n = children(call->module);
    struct dtensor **made = calloc((size_t)n + 1, sizeof *made);
    int rc = 0;

    if (!made || n == 0) {
        snprintf(err->text, sizeof err->text, made ? "it has no parts"
                                                   : "out of memory");
        free(made);
        return made ? DTENSOR_EINVAL : DTENSOR_ENOMEM;
    }
    for (int i = 0; i < n && rc == 0; i++)
        rc = child_run(dtensor_module_child(call->module, i), call, made,
                       &made[i], err);
    if (rc == 0) {
        call->out[0] = made[n - 1];
        made[n - 1] = NULL;
    }
    for (int i = 0; i < n; i++)
        dtensor_destroy(made[i]);
    free(made);
    return rc;
}

/* *tp by an operator of it. */
static int then(const char *op, const struct dtensor_op_args *args,
                struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor *made = NULL;
    int rc = dtensor_op(op, 1, (const struct dtensor *const[]){ *tp }, args, 1,
                        &made, err);

    if (rc != 0)
        return rc;
    dtensor_destroy(*tp);
    *tp = made;
    return 0;
}

static const struct dtensor_op_args swap = { .ndims = 4,
                                             .dim = { 0, 2, 1, 3 } };

/* batch, position, width becomes batch, head, position, width of a head. */
static int heads_split(const struct dtensor *t, int heads, struct dtensor **tp,
                       struct dtensor_error *err)
{
    const struct dtensor_spec *x = dtensor_spec_of(t);
    const struct dtensor_op_args split = { .ndim = 4,
        .shape = { x->shape[0], x->shape[1], heads, x->shape[2] / heads } };
    int rc = dtensor_op("view", 1, &t, &split, 1, tp, err);

    return rc == 0 ? then("permute", &swap, tp, err) : rc;
}

/* Are they q, k and v, of which `heads` can be made? */
static int heads_check(const struct dtensor_forward *call, int heads,
                       struct dtensor_error *err)
{
    bool good = call->nin == 3;

    for (int i = 0; good && i < call->nin; i++) {
        const struct dtensor_spec *x = dtensor_spec_of(call->in[i]);

        good = x->ndim == 3 && x->shape[2] % heads == 0;
    }
    if (!good)
        snprintf(err->text, sizeof err->text, "heads: expected q, k and v, "
                 "such as @q,k,v, each of batch, position and a width that %d "
                 "divides", heads);
    return good ? 0 : DTENSOR_EINVAL;
}

int plan_forward_heads(const struct dtensor_forward *call,
                       struct dtensor_error *err)
{
    const struct plan_unit *unit = dtensor_module_arg(call->module);
    const struct dtensor_attention_options how = {
        .causal = unit->args.causal };
    const struct dtensor_spec *x = dtensor_spec_of(call->in[0]);
    const struct dtensor_op_args join = { .ndim = 3,
        .shape = { x->shape[0], x->shape[1], x->shape[2] } };
    struct dtensor *in[3] = { NULL, NULL, NULL };
    int rc = heads_check(call, unit->heads, err);

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = heads_split(call->in[i], unit->heads, &in[i], err);
    if (rc == 0)
        rc = dtensor_attention(in[0], in[1], in[2], &how, &call->out[0], err);
    if (rc == 0)
        rc = then("permute", &swap, &call->out[0], err);
    if (rc == 0)
        rc = then("view", &join, &call->out[0], err);
    for (int i = 0; i < 3; i++)
        dtensor_destroy(in[i]);
    return rc;
}
