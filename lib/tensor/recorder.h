/* recorder.h - how the active tape gets to know of calls on tensors */
#ifndef DTN_TENSOR_RECORDER_H
#define DTN_TENSOR_RECORDER_H

#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

struct dtn_decision;

/* A call that has computed its outputs. */
struct dtn_called {
    const char *op;               /* an operator's name, or "redistribute"    */
    const struct dtensor_op_args *args; /* its arguments; NULL: none          */
    int nin;                      /* entries of in                            */
    int nout;                     /* entries of out                           */
    const struct dtensor *const *in; /* what was read; content as then        */
    struct dtensor *const *out;   /* what was written                         */
    const struct dtn_decision *decision; /* of an operator: which inputs it   */
                                  /* has moved, and where they lie now; else  */
                                  /* NULL                                     */
};

/* ctx->recorder, while a tape is active. */
struct dtn_recorder {
    const char *where;            /* path of the module that is called; NULL: */
                                  /* none is, or it has none                  */
    /* Note the call, and renew the outputs.   Errors: ENOMEM */
    int (*record)(struct dtn_recorder *recorder,
                  const struct dtn_called *called, struct dtensor_error *err);
};

/* Every function that writes to tensors ends with this.   Errors: ENOMEM */
static inline int dtn_called(const struct dtn_called *called,
                             struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = called->out[0]->spec.mesh->ctx;

    if (ctx->recorder)
        return ctx->recorder->record(ctx->recorder, called, err);
    for (int i = 0; i < called->nout; i++)
        dtn_tensor_renew(called->out[i]);
    return 0;
}

/* The same for one input and one output. */
static inline int dtn_called_one(const char *op, const struct dtensor *in,
                                 struct dtensor *out, struct dtensor_error *err)
{
    return dtn_called(&(struct dtn_called){ .op = op, .nin = 1, .nout = 1,
                                            .in = &in, .out = &out }, err);
}

#endif
