/* own.c - backward functions of the program
 *
 * A program gives them with an operator that it registers (register.c), or with
 * a computation that it notes itself (call.c).  The function gets the gradients
 * of the outputs in the placements of the outputs, so their parts match the
 * parts that the program computed.  It makes the gradients of the inputs.
 */
#include "tape/express.h"
#include "tape/rules.h"
#include "tape/tape.h"
#include "base/error.h"
#include "layout/spec.h"
#include "op/own.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

/* What a function of the program is given. */
struct given {
    const struct dtensor *operand[DTN_OWN_OPERANDS];
    const struct dtensor *grad[DTN_OWN_OPERANDS];
    struct dtensor *made[DTN_OWN_OPERANDS];      /* of grad, to be destroyed  */
    int wanted[DTN_OWN_OPERANDS];
};

/* ---------------------------------------------------------------- given --- */

/* The gradient of output k, where that lies. */
static int grad_bring(const struct dtn_express *e, int k, struct given *given,
                      struct dtensor_error *err)
{
    const struct dtensor_spec spec =
        dtn_spec_reduced(e->note->operand[e->note->nin + k].spec);
    int rc = 0;

    given->grad[k] = e->grad[k];
    if (!e->grad[k] || dtn_spec_equal(&e->grad[k]->spec, &spec))
        return 0;
    rc = dtensor_redistribute_to(e->grad[k], &spec, &given->made[k], err);
    given->grad[k] = given->made[k];
    return rc;
}

static int given_fill(const struct dtn_express *e, struct given *given,
                      struct dtensor_error *err)
{
    const struct dtn_note *note = e->note;
    int rc = 0;

    if (note->nin + note->nout > DTN_OWN_OPERANDS)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: the backward of "
                        "%s is a function of the program, and takes at most %d "
                        "inputs and outputs", note->op, DTN_OWN_OPERANDS);
    for (int i = 0; i < note->nin + note->nout && rc == 0; i++)
        if (note->operand[i].kept)
            rc = dtn_express_operand(e, i, &given->operand[i], err);
    for (int i = 0; i < note->nin; i++)
        given->wanted[i] = note->operand[i].value >= 0;
    for (int k = 0; k < note->nout && rc == 0; k++)
        rc = grad_bring(e, k, given, err);
    return rc;
}

/* Is what the function made a gradient of input i? */
static int made_check(const struct dtn_note *note, int i,
                      const struct dtensor *grad, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &note->operand[i].spec;
    char one[300], other[300];

    if (!grad || (grad->spec.mesh == in->mesh &&
                  dtn_spec_same_tensor(&grad->spec, in)))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: the backward of %s "
                    "made %s for input %d, which is %s (dtype, shape and mesh "
                    "must be the same)", note->op,
                    dtn_spec_format(&grad->spec, one, sizeof one), i,
                    dtn_spec_format(in, other, sizeof other));
}

/* The dtn_backward_f of all functions of the program. */
static int own_run(const struct dtn_express *e, struct dtensor *grad[],
                   struct dtensor_error *err)
{
    const struct dtn_note *note = e->note;
    const struct dtn_own_backward *own = note->own;
    struct given given = { .grad = { NULL } };
    const struct dtensor_op_gradient gradient = {
        .op = note->op, .args = &note->args, .nin = note->nin,
        .nout = note->nout, .in = given.operand,
        .out = given.operand + note->nin, .grad = given.grad,
        .wanted = given.wanted, .arg = own->arg };
    struct dtensor_error none, *why = dtn_error_ready(err, &none);
    int rc = given_fill(e, &given, why);

    if (rc == 0)
        rc = dtn_fail_program(why, own->function(&gradient, grad, why),
                              "tape_backward: the backward of %s", note->op);
    for (int i = 0; i < note->nin && rc == 0; i++)
        rc = made_check(note, i, grad[i], err);
    for (int k = 0; k < note->nout; k++)
        dtensor_destroy(given.made[k]);
    return rc;
}

/* ----------------------------------------------------------------- made --- */

int dtn_own_backward_make(dtensor_backward_f *function, const char *keeps,
                          void *arg, struct dtn_own_backward **ownp,
                          struct dtensor_error *err)
{
    struct dtn_own_backward *own = calloc(1, sizeof *own);

    if (!own)
        return dtn_fail_nomem(err, "tape", sizeof *own);
    own->function = function;
    own->arg = arg;
    own->row.all = function ? own_run : NULL;
    own->row.keeps = keeps ? keeps : "*";
    *ownp = own;
    return 0;
}

int dtn_own_backward_of(const struct dtensor_ctx *ctx, const char *op,
                        struct dtn_own_backward **ownp,
                        struct dtensor_error *err)
{
    const struct dtn_own *own = dtn_own_find(ctx, op);
    bool some = own && own->def.backward;
    int rc;

    for (int i = 0; i < DTENSOR_OP_GRADS && own; i++)
        some = some || own->def.grad[i];
    if (!some)
        return 0;
    rc = dtn_own_backward_make(own->def.backward, own->def.keeps, own->def.arg,
                               ownp, err);
    if (rc == 0)
        memcpy((*ownp)->row.grad, own->def.grad, sizeof own->def.grad);
    return rc;
}
