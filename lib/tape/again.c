/* again.c - gradients that need an output for which the program did not ask
 *
 * The gradient of attention reads both results of attention.  If the program
 * asked for only one of them, the other is computed again.  The same holds for
 * the indices of sorted elements.
 */
#include "layout/spec.h"
#include "tape/express.h"
#include "tape/rules.h"
#include "base/error.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUTS = 2 };             /* of an operator that is run again         */

/* Of operators whose other outputs are not for the program to compute with. */
static int only_first(const struct dtn_express *e, struct dtensor_error *err)
{
    for (int k = 1; k < e->note->nout; k++)
        if (e->grad[k])
            return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: output %d of "
                            "%s has no gradient (only output 0 has)", k,
                            e->note->op);
    return 0;
}

/* The first inputs, as they were. */
static int operands(const struct dtn_express *e, int n,
                    const struct dtensor *in[], struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = dtn_express_operand(e, i, &in[i], err);
    return rc;
}

/* ---------------------------------------------------------------- norms --- */

/* Of the input, the weight and the bias, from one operator. */
int dtn_back_norm(const struct dtn_express *e, struct dtensor *grad[],
                  struct dtensor_error *err)
{
    const int n = e->note->nin, known = n > 1 ? 3 : 2;
    const struct dtensor *in[3] = { e->grad[0], NULL, NULL };
    char op[64];
    int rc = only_first(e, err);

    if (rc == 0)
        rc = operands(e, known - 1, &in[1], err);
    snprintf(op, sizeof op, "%s_backward", e->note->op);
    return rc == 0 ? dtensor_op(op, known, in, &e->note->args, n, grad, err)
                   : rc;
}

/* --------------------------------------------------------------- losses --- */

/* With the numbers of the rows, which an active tape has made the call keep,
 * no rank has to reduce them again.
 */
int dtn_back_cross_entropy(const struct dtn_express *e, struct dtensor *grad[],
                           struct dtensor_error *err)
{
    const int known = e->note->nout == 3 ? 2 : 0;
    const struct dtensor *in[5] = { e->grad[0] };
    int rc = only_first(e, err);

    if (rc == 0)
        rc = operands(e, 2, &in[1], err);
    for (int k = 0; k < known && rc == 0; k++)
        rc = dtn_express_operand(e, e->note->nin + 1 + k, &in[3 + k], err);
    return rc == 0 ? dtensor_op("cross_entropy_backward", 3 + known, in,
                                &e->note->args, 1, grad, err)
                   : rc;
}

/* ------------------------------------------------------------ attention --- */

/* Both results, held: those that were kept, or computed again. */
static int results(const struct dtn_express *e, int nin,
                   const struct dtensor *const in[],
                   struct dtensor *out[OUTPUTS], struct dtensor_error *err)
{
    const struct dtensor *kept[OUTPUTS];
    int rc = 0;

    if (e->note->nout < OUTPUTS)
        return dtensor_op(e->note->op, nin, in, &e->note->args, OUTPUTS, out,
                          err);
    for (int k = 0; k < OUTPUTS && rc == 0; k++)
        rc = dtn_express_operand(e, e->note->nin + k, &kept[k], err);
    for (int k = 0; k < OUTPUTS && rc == 0; k++)
        out[k] = dtn_tensor_hold(kept[k]);
    return rc;
}

int dtn_back_attention(const struct dtn_express *e, struct dtensor *grad[],
                       struct dtensor_error *err)
{
    const struct dtensor *in[6] = { e->grad[0] };
    struct dtensor *out[OUTPUTS] = { NULL };
    int rc = only_first(e, err);

    if (rc == 0)
        rc = operands(e, 3, &in[1], err);
    if (rc == 0)
        rc = results(e, 3, &in[1], out, err);
    memcpy(&in[4], out, sizeof out);
    if (rc == 0)
        rc = dtensor_op("attention_backward", 6, in, &e->note->args, 3, grad,
                        err);
    for (int k = 0; k < OUTPUTS; k++)
        dtensor_destroy(out[k]);
    return rc;
}

/* --------------------------------------------------------------- orders --- */

/* A reduced dimension, which may be gone, as one of size 1. */
static int with_dim(const struct dtn_express *e, struct dtensor **tp,
                    struct dtensor_error *err)
{
    const struct dtensor_spec *in = &e->note->operand[0].spec;
    const int dim = e->note->args.dim[0];
    int64_t shape[DTENSOR_MAX_DIMS];

    if ((*tp)->spec.ndim == in->ndim)
        return 0;
    memcpy(shape, in->shape, sizeof shape);
    shape[dim < 0 ? dim + in->ndim : dim] = 1;
    return dtn_express_reshape(tp, in->ndim, shape, err);
}

/* To the places of the values that were taken, which were not asked for. */
int dtn_back_order(const struct dtn_express *e, struct dtensor *grad[],
                   struct dtensor_error *err)
{
    const struct dtensor_spec spec =
        dtn_spec_reduced(e->note->operand[0].spec);
    struct dtensor *out[OUTPUTS] = { NULL }, *zeros = NULL;
    struct dtensor *of = dtn_tensor_hold(e->grad[0]);
    const struct dtensor *in[3];
    int rc = operands(e, 1, in, err);

    if (rc == 0)
        rc = dtensor_op(e->note->op, 1, in, &e->note->args, OUTPUTS, out, err);
    if (rc == 0)
        rc = with_dim(e, &out[1], err);
    if (rc == 0)
        rc = with_dim(e, &of, err);
    if (rc == 0)
        rc = dtensor_zeros(&spec, &zeros, err);
    if (rc == 0)
        rc = dtensor_op("scatter_add", 3, (const struct dtensor *const[]){
                        zeros, out[1], of }, &e->note->args, 1, grad, err);
    dtensor_destroy(zeros);
    dtensor_destroy(of);
    dtensor_destroy(out[0]);
    dtensor_destroy(out[1]);
    return rc;
}
