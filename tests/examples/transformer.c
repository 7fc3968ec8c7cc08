/* transformer.c - attention and a transformer layer, of modules
 *
 * A forward function is written for whole tensors.  It does not know the plan,
 * which gives the placements.
 */
#include "transformer.h"
#include "example.h"

/* ------------------------------------------------------------ attention --- */

/* The result of an operator takes the place of its input. */
static int then(const char *op, const struct dtensor_op_args *args,
                struct dtensor **tp, struct dtensor_error *why)
{
    struct dtensor *made = NULL;
    int rc = dtensor_op(op, 1, (const struct dtensor *const[]){ *tp }, args, 1,
                        &made, why);

    if (rc == 0) {
        dtensor_destroy(*tp);
        *tp = made;
    }
    return rc;
}

static const struct dtensor_op_args swap = { .ndims = 4,
                                             .dim = { 0, 2, 1, 3 } };

/* x by the child `name`, as batch, head, position, number of a head. */
static int heads_of(const struct dtensor_forward *call, const char *name,
                    struct dtensor **tp, struct dtensor_error *why)
{
    const struct dtensor_spec *x = dtensor_spec_of(call->in[0]);
    const struct dtensor_op_args split = { .ndim = 4,
        .shape = { x->shape[0], x->shape[1], x->shape[2] / HEAD, HEAD } };
    int rc = dtensor_module_apply(call->module, name, call->in[0], tp, why);

    if (rc == 0)
        rc = then("view", &split, tp, why);
    return rc == 0 ? then("permute", &swap, tp, why) : rc;
}

static int attention_forward(const struct dtensor_forward *call,
                             struct dtensor_error *why)
{
    const struct dtensor_spec *x = dtensor_spec_of(call->in[0]);
    const struct dtensor_op_args causal = { .causal = 1 };
    const struct dtensor_op_args join = { .ndim = 3,
        .shape = { x->shape[0], x->shape[1], x->shape[2] } };
    struct dtensor *in[3] = { NULL, NULL, NULL }, *y = NULL;
    int rc = heads_of(call, "q", &in[0], why);

    if (rc == 0)
        rc = heads_of(call, "k", &in[1], why);
    if (rc == 0)
        rc = heads_of(call, "v", &in[2], why);
    if (rc == 0)
        rc = dtensor_op("attention", 3, (const struct dtensor *const[]){
                        in[0], in[1], in[2] }, &causal, 1, &y, why);
    if (rc == 0)
        rc = then("permute", &swap, &y, why);
    if (rc == 0)
        rc = then("view", &join, &y, why);
    if (rc == 0)
        rc = dtensor_module_apply(call->module, "out", y, &call->out[0], why);
    for (int i = 0; i < 3; i++)
        dtensor_destroy(in[i]);
    dtensor_destroy(y);
    return rc;
}

struct dtensor_module *attention(struct dtensor_ctx *ctx,
                                 struct dtensor_module *parent,
                                 const char *name, int64_t width)
{
    static const char *const names[] = { "q", "k", "v", "out" };
    struct dtensor_module *m = add(ctx, parent, name, "attention",
                                   attention_forward);

    for (int i = 0; i < 4; i++)
        linear(ctx, m, names[i], width, width);
    return m;
}

/* ---------------------------------------------------------------- layer --- */

/* x + the child behind the norm, of x. */
static int residual(struct dtensor_module *m, const char *norm_name,
                    const char *name, const struct dtensor *x,
                    struct dtensor **yp, struct dtensor_error *why)
{
    struct dtensor *normed = NULL, *inner = NULL;
    int rc = dtensor_module_apply(m, norm_name, x, &normed, why);

    if (rc == 0)
        rc = dtensor_module_apply(m, name, normed, &inner, why);
    if (rc == 0)
        rc = dtensor_add(x, inner, yp, why);
    dtensor_destroy(normed);
    dtensor_destroy(inner);
    return rc;
}

static int layer_forward(const struct dtensor_forward *call,
                         struct dtensor_error *why)
{
    struct dtensor *x = NULL;
    int rc = residual(call->module, "norm1", "attn", call->in[0], &x, why);

    if (rc == 0)
        rc = residual(call->module, "norm2", "mlp", x, &call->out[0], why);
    dtensor_destroy(x);
    return rc;
}

struct dtensor_module *layer(struct dtensor_ctx *ctx,
                             struct dtensor_module *parent, const char *name,
                             int64_t width)
{
    struct dtensor_module *m = add(ctx, parent, name, "layer", layer_forward);
    struct dtensor_module *mlp;

    norm(ctx, m, "norm1", width);
    attention(ctx, m, "attn", width);
    norm(ctx, m, "norm2", width);
    mlp = add(ctx, m, "mlp", "sequential", NULL);
    linear(ctx, mlp, "up", 4 * width, width);
    add(ctx, mlp, "act", "gelu", NULL);
    linear(ctx, mlp, "down", width, 4 * width);
    return m;
}

const struct dtensor_style by_heads[4] = {
    { "attn.[qkv]", "colwise" }, { "attn.out", "rowwise" },
    { "mlp.up", "colwise" }, { "mlp.down", "rowwise" } };

const struct dtensor_style by_sequence[7] = {
    { "", "prepare input=S(1) output=R" },
    { "norm?", "sequence" }, { "attn", "prepare input=R" },
    { "attn.[qkv]", "colwise" }, { "attn.out", "rowwise output=S(1)" },
    { "mlp.up", "colwise" }, { "mlp.down", "rowwise output=S(1)" } };
