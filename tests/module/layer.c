/* layer.c - a transformer layer, written for whole tensors */
#include "tests/module/layer.h"
#include "tests/module/tree.h"

#include <math.h>

/* -------------------------------------------------------------- forward --- */

static int one(const char *op, const struct dtensor *x,
               const struct dtensor_op_args *args, struct dtensor **yp,
               struct dtensor_error *err)
{
    return dtensor_op(op, 1, &x, args, 1, yp, err);
}

/* The result of a step takes the place of what it was made of. */
static int step(const char *op, struct dtensor **tp,
                const struct dtensor_op_args *args, struct dtensor_error *err)
{
    struct dtensor *made = NULL;
    int rc = one(op, *tp, args, &made, err);

    if (rc != 0)
        return rc;
    dtensor_destroy(*tp);
    *tp = made;
    return 0;
}

/* x by the child `name`, as heads: batch, head, then length and width of a head
 * in the order of a and b.
 */
static int heads(const struct dtensor_forward *call, const char *name, int a,
                 int b, struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtensor_op_args split = { .ndim = 4,
        .shape = { BATCH, LENGTH, HEADS, WIDTH / HEADS } };
    const struct dtensor_op_args order = { .ndims = 4, .dim = { 0, 2, a, b } };
    int rc = dtensor_module_apply(call->module, name, call->in[0], tp, err);

    if (rc == 0)
        rc = step("view", tp, &split, err);
    return rc == 0 ? step("permute", tp, &order, err) : rc;
}

/* softmax(q k^T / 2) v, the heads side by side again. */
static int attention(const struct dtensor_forward *call,
                     struct dtensor_error *err)
{
    const struct dtensor_op_args back = { .ndims = 4, .dim = { 0, 2, 1, 3 } };
    const struct dtensor_op_args join = { .ndim = 3,
                                          .shape = { BATCH, LENGTH, WIDTH } };
    const struct dtensor_op_args half = { .value = 0.5 };
    const struct dtensor_op_args last = { .ndims = 1, .dim = { -1 } };
    struct dtensor *q = NULL, *k = NULL, *v = NULL, *s = NULL, *y = NULL;
    int rc = heads(call, "q", 1, 3, &q, err);

    if (rc == 0)
        rc = heads(call, "k", 3, 1, &k, err);
    if (rc == 0)
        rc = heads(call, "v", 1, 3, &v, err);
    if (rc == 0)
        rc = dtensor_matmul(q, k, &s, err);
    if (rc == 0)
        rc = step("scale", &s, &half, err);
    if (rc == 0)
        rc = step("softmax", &s, &last, err);
    if (rc == 0)
        rc = dtensor_matmul(s, v, &y, err);
    if (rc == 0)
        rc = step("permute", &y, &back, err);
    if (rc == 0)
        rc = step("view", &y, &join, err);
    if (rc == 0)
        rc = dtensor_module_apply(call->module, "out", y, &call->out[0], err);
    dtensor_destroy(q);
    dtensor_destroy(k);
    dtensor_destroy(v);
    dtensor_destroy(s);
    dtensor_destroy(y);
    return rc;
}

/* x + the child behind the norm, of x. */
static int residual(struct dtensor_module *m, const char *norm,
                    const char *name, const struct dtensor *x,
                    struct dtensor **yp, struct dtensor_error *err)
{
    struct dtensor *normed = NULL, *inner = NULL;
    int rc = dtensor_module_apply(m, norm, x, &normed, err);

    if (rc == 0)
        rc = dtensor_module_apply(m, name, normed, &inner, err);
    if (rc == 0)
        rc = dtensor_add(x, inner, yp, err);
    dtensor_destroy(normed);
    dtensor_destroy(inner);
    return rc;
}

static int layer_forward(const struct dtensor_forward *call,
                         struct dtensor_error *err)
{
    struct dtensor *x = NULL;
    int rc = residual(call->module, "norm1", "attn", call->in[0], &x, err);

    if (rc == 0)
        rc = residual(call->module, "norm2", "mlp", x, &call->out[0], err);
    dtensor_destroy(x);
    return rc;
}

/* ----------------------------------------------------- making the tree --- */

void small(struct dtensor_module *m, const char *name, int ndim,
           const int64_t shape[], int seed)
{
    struct dtensor *t = tensor(DTENSOR_F64, ndim, shape, seed), *made = NULL;

    good(dtensor_scale(t, 1.0 / 16, &made, &job->err));
    dtensor_destroy(t);
    good(dtensor_module_set(m, name, made, &job->err));
}

struct dtensor_module *small_linear(struct dtensor_module *parent,
                                    const char *name, int64_t to, int64_t from,
                                    bool bias, int seed)
{
    struct dtensor_module *m = module(parent, name, "linear");

    small(m, "weight", 2, (const int64_t[]){ to, from }, seed);
    if (bias)
        small(m, "bias", 1, (const int64_t[]){ to }, seed + 1);
    return m;
}

void small_norm(struct dtensor_module *parent, const char *name, int seed)
{
    struct dtensor_module *m = module(parent, name, "layer_norm");

    small(m, "weight", 1, (const int64_t[]){ WIDTH }, seed);
    small(m, "bias", 1, (const int64_t[]){ WIDTH }, seed + 2);
}

struct dtensor_module *own(struct dtensor_module *parent, const char *name,
                           dtensor_forward_f *forward)
{
    struct dtensor_module *m = NULL;

    good(dtensor_module_create(job->ctx, name, forward, NULL, &m, &job->err));
    if (parent)
        good(dtensor_module_add(parent, name, m, &job->err));
    return m;
}

struct dtensor_module *layer(struct dtensor_module *parent, const char *name,
                             bool attention_bias)
{
    static const char *const names[] = { "q", "k", "v", "out" };
    struct dtensor_module *top = own(parent, name, layer_forward);
    struct dtensor_module *attn = own(top, "attn", attention), *m;

    for (int i = 0; i < 4; i++)
        small_linear(attn, names[i], WIDTH, WIDTH, attention_bias, 2 * i);
    small_norm(top, "norm1", 0);
    small_norm(top, "norm2", 1);
    m = module(top, "mlp", "sequential");
    small_linear(m, "up", HIDDEN, WIDTH, true, 3);
    module(m, "act", "gelu");
    small_linear(m, "down", WIDTH, HIDDEN, true, 5);
    return top;
}

static int64_t elements(const struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    int64_t n = 1;

    for (int d = 0; d < spec->ndim; d++)
        n *= spec->shape[d];
    return n;
}

void near(const struct dtensor *a, const struct dtensor *b, const char *what)
{
    static double x[NUMBERS], y[NUMBERS];
    const int64_t n = elements(a);

    need(n <= NUMBERS && n == elements(b),
         "%s: %d numbers", what, (int)n);
    good(dtensor_full_tensor(a, x, (size_t)n * sizeof x[0],
                             &job->err));
    good(dtensor_full_tensor(b, y, (size_t)n * sizeof y[0],
                             &job->err));
    for (int64_t i = 0; i < n; i++)
        need(fabs(x[i] - y[i]) < 1e-12, "%s: element %d is %.17g, whole %.17g",
             what, (int)i, y[i], x[i]);
}
