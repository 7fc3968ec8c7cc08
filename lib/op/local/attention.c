/* attention.c - attention of the sequences and heads of one rank
 *
 * Queries and keys are never sharded between ranks.
 */
#include "op/local/rows.h"
#include "job/ctx.h"
#include "math/attention.h"
#include "math/matmul.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <math.h>

/* `first` is the input that has the queries. */
static struct dtn_attention attention_of(const struct dtn_parts *parts,
                                         int first)
{
    const struct dtensor_ctx *ctx = parts->want->mesh->ctx;
    const double scale = parts->args->value;
    const double width = (double)parts->in[first].shape[3];

    return (struct dtn_attention){
        .q = &parts->in[first], .k = &parts->in[first + 1],
        .v = &parts->in[first + 2], .causal = parts->args->causal,
        .scale = scale != 0 ? scale : width > 0 ? 1 / sqrt(width) : 1,
        .flags = ctx->world.cluster->repro ? DTN_MATMUL_REPRO : 0 };
}

size_t dtn_work_attention(const struct dtn_local *local,
                          const struct dtn_parts *parts)
{
    const struct dtn_attention a = attention_of(parts, local->which);

    return dtn_attention_workspace(&a, local->which);
}

int dtn_local_attention(const struct dtn_local *local,
                        const struct dtn_parts *parts,
                        struct dtensor_error *err)
{
    const struct dtn_attention a = attention_of(parts, 0);

    dtn_attention(&a, &parts->out[0], parts->nout > 1 ? &parts->out[1] : NULL,
                  parts->work);
    return 0;
}

int dtn_local_attention_backward(const struct dtn_local *local,
                                 const struct dtn_parts *parts,
                                 struct dtensor_error *err)
{
    const struct dtn_attention a = attention_of(parts, 1);
    const struct dtn_attention_grads grads = {
        .grad = &parts->in[0], .out = &parts->in[4], .lse = &parts->in[5],
        .q = &parts->out[0], .k = parts->nout > 1 ? &parts->out[1] : NULL,
        .v = parts->nout > 2 ? &parts->out[2] : NULL };

    dtn_attention_backward(&a, &grads, parts->work);
    return 0;
}
