/* call.c - computations of the program itself, noted on the tape
 *
 * Such a computation turns local parts or whole arrays into tensors.  The
 * library did not see it, so the program passes the backward function with the
 * call.
 */
#include "tape/rules.h"
#include "tape/tape.h"
#include "base/error.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/recorder.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <string.h>

/* NULL, or what is wrong with the call. */
static const char *call_fault(const struct dtensor_tape *tape,
                              const struct dtensor_tape_call *call)
{
    if (!call->name || !call->backward || !call->in || !call->out)
        return "name, in, out or backward is NULL";
    if (call->nin < 1 || call->nout < 1 ||
        call->nin + call->nout > DTN_OWN_OPERANDS)
        return "there are no inputs or outputs, or more than 32 of both";
    for (int i = 0; i < call->nin + call->nout; i++) {
        const struct dtensor *t = i < call->nin ? call->in[i]
                                                : call->out[i - call->nin];

        if (!t)
            return "an input or output is NULL";
        if (t->spec.mesh->ctx != tape->ctx)
            return "an input or output is of another context than the tape";
    }
    if (call->keeps && strspn(call->keeps, "abcdyz ") != strlen(call->keeps))
        return "keeps has other letters than a b c d y z";
    return tape->ctx->recorder == &tape->recorder ? NULL
         : "the tape is not active (begin it first)";
}

int dtensor_tape_note(struct dtensor_tape *tape,
                      const struct dtensor_tape_call *call,
                      struct dtensor_error *err)
{
    struct dtn_own_backward *own;
    struct dtn_called called;
    const char *fault;
    int rc;

    if (!tape || !call)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_note: %s is NULL",
                        tape ? "call" : "tape");
    fault = call_fault(tape, call);
    if (fault)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_note: %s", fault);
    called = (struct dtn_called){
        .op = call->name, .nin = call->nin, .nout = call->nout,
        .in = call->in, .out = call->out };
    if (!dtn_tape_depends(tape, &called))
        return 0;
    rc = dtn_own_backward_make(call->backward, call->keeps, call->arg, &own,
                               err);
    return rc == 0 ? dtn_tape_record_own(tape, &called, own, err) : rc;
}
