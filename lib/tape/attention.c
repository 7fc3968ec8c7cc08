/* attention.c - the backward of attention whose sequence is sharded */
#include "attention/attention.h"
#include "layout/spec.h"
#include "tape/express.h"
#include "tape/rules.h"
#include "tensor/tensor.h"
#include "dtensor.h"

int dtn_back_sharded_attention(const struct dtn_express *e,
                               struct dtensor *grad[],
                               struct dtensor_error *err)
{
    const struct dtensor_spec *out = &e->note->operand[3].spec;
    const struct dtensor *in[5] = { NULL };
    struct dtensor *here = NULL;
    int rc = 0;

    for (int i = 0; i < 5 && rc == 0; i++)
        rc = dtn_express_operand(e, i, &in[i], err);
    if (rc != 0)
        return rc;
    if (dtn_spec_equal(&e->grad[0]->spec, out))
        here = dtn_tensor_hold(e->grad[0]);
    else
        rc = dtensor_redistribute_to(e->grad[0], out, &here, err);
    if (rc == 0)
        rc = dtn_attention_gradients(in, &e->note->args, here, grad, err);
    dtensor_destroy(here);
    return rc;
}
