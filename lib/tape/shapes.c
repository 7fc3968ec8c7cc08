/* shapes.c - backwards of operators that select or join parts
 *
 * The gradient of a selected part is zeros with the part's gradient in its
 * place: for rows 2 to 4 of 9 it is padded with 2 rows before and 4 rows after.
 * If tensors were joined, their gradients are the parts of the gradient.
 */
#include "tape/express.h"
#include "tape/rules.h"
#include "base/error.h"
#include "layout/spec.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

static const struct dtensor_spec *input_of(const struct dtn_express *e, int i)
{
    return &e->note->operand[i].spec;
}

/* The dimension that the call names, of a tensor of ndim dimensions. */
static int dim_of(const struct dtn_express *e, int ndim)
{
    const int dim = e->note->args.dim[0];

    return dim < 0 ? dim + ndim : dim;
}

/* --------------------------------------------------------- put together --- */

/* Elements `start` to `end` along a dimension, or the one at `start`. */
static int part(const char *op, const struct dtensor *t, int dim,
                const int64_t range[2], struct dtensor **tp,
                struct dtensor_error *err)
{
    const struct dtensor_op_args args = {
        .ndims = 1, .dim = { dim }, .start = range[0], .end = range[1] };

    return dtensor_op(op, 1, &t, &args, 1, tp, err);
}

int dtn_back_cat(const struct dtn_express *e, struct dtensor *grad[],
                 struct dtensor_error *err)
{
    const int dim = dim_of(e, input_of(e, 0)->ndim);
    int64_t range[2] = { 0, 0 };
    int rc = 0;

    for (int i = 0; i < e->note->nin && rc == 0; i++) {
        range[0] = range[1];
        range[1] += input_of(e, i)->shape[dim];
        if (e->note->operand[i].value >= 0)
            rc = part("slice", e->grad[0], dim, range, &grad[i], err);
    }
    return rc;
}

int dtn_back_stack(const struct dtn_express *e, struct dtensor *grad[],
                   struct dtensor_error *err)
{
    const int dim = dim_of(e, input_of(e, 0)->ndim + 1);
    int rc = 0;

    for (int i = 0; i < e->note->nin && rc == 0; i++)
        if (e->note->operand[i].value >= 0)
            rc = part("select", e->grad[0], dim, (const int64_t[]){ i, 0 },
                      &grad[i], err);
    return rc;
}

int dtn_back_pad(const struct dtn_express *e, struct dtensor *grad[],
                 struct dtensor_error *err)
{
    const int dim = dim_of(e, input_of(e, 0)->ndim);
    const int64_t start = e->note->args.start;

    return part("slice", e->grad[0], dim, (const int64_t[]){ start,
                start + input_of(e, 0)->shape[dim] }, &grad[0], err);
}

/* ---------------------------------------------------------------- parts --- */

/* Zeros before and after along a dimension, which has `size` elements then. */
static int padded(struct dtensor **tp, int dim, int64_t before, int64_t size,
                  struct dtensor_error *err)
{
    const struct dtensor_op_args args = {
        .ndims = 1, .dim = { dim }, .start = before,
        .end = size - before - (*tp)->spec.shape[dim] };

    return args.start == 0 && args.end == 0 ? 0
         : dtn_express_step("pad", &args, tp, err);
}

/* The gradients of all outputs together, and zeros for those that were not
 * asked for.
 */
static int joined(const char *op, const struct dtn_express *e, int dim,
                  struct dtensor **gradp, struct dtensor_error *err)
{
    const int n = e->note->nout;
    const struct dtensor_op_args args = { .ndims = 1, .dim = { dim } };
    struct dtensor **part = calloc((size_t)n, sizeof *part);
    int rc = 0;

    if (!part)
        return dtn_fail_nomem(err, "tape", (size_t)n * sizeof *part);
    for (int k = 0; k < n && rc == 0; k++)
        rc = dtn_express_grad(e, k, &part[k], err);
    if (rc == 0)
        rc = dtensor_op(op, n, (const struct dtensor *const *)part, &args, 1,
                        gradp, err);
    for (int k = 0; k < n; k++)
        dtensor_destroy(part[k]);
    free(part);
    return rc == 0 ? padded(gradp, dim, 0, input_of(e, 0)->shape[dim], err)
                   : rc;
}

int dtn_back_split(const struct dtn_express *e, struct dtensor *grad[],
                   struct dtensor_error *err)
{
    return joined("cat", e, dim_of(e, input_of(e, 0)->ndim), &grad[0], err);
}

int dtn_back_unbind(const struct dtn_express *e, struct dtensor *grad[],
                    struct dtensor_error *err)
{
    return joined("stack", e, dim_of(e, input_of(e, 0)->ndim), &grad[0], err);
}

int dtn_back_select(const struct dtn_express *e, struct dtensor *grad[],
                    struct dtensor_error *err)
{
    const struct dtensor_spec *in = input_of(e, 0);
    const int dim = dim_of(e, in->ndim);
    int64_t shape[DTENSOR_MAX_DIMS];
    int rc;

    memcpy(shape, in->shape, sizeof shape);
    shape[dim] = 1;
    grad[0] = dtn_tensor_hold(e->grad[0]);
    rc = dtn_express_reshape(&grad[0], in->ndim, shape, err);
    return rc == 0 ? padded(&grad[0], dim, e->note->args.start, in->shape[dim],
                            err) : rc;
}

/* step - 1 zeros after each element along a dimension. */
static int stretched(struct dtensor **tp, int dim, int64_t step,
                     struct dtensor_error *err)
{
    const int ndim = (*tp)->spec.ndim;
    const int64_t count = (*tp)->spec.shape[dim];
    int64_t shape[DTENSOR_MAX_DIMS + 1];
    int rc;

    if (ndim == DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: slice with a step "
                        "has no backward for %d dimensions", ndim);
    memcpy(shape, (*tp)->spec.shape, (size_t)(dim + 1) * sizeof shape[0]);
    memcpy(shape + dim + 2, (*tp)->spec.shape + dim + 1,
           (size_t)(ndim - dim - 1) * sizeof shape[0]);
    shape[dim + 1] = 1;
    rc = dtn_express_reshape(tp, ndim + 1, shape, err);
    if (rc == 0)
        rc = padded(tp, dim + 1, 0, step, err);
    memmove(shape + dim + 1, shape + dim + 2,
            (size_t)(ndim - dim - 1) * sizeof shape[0]);
    shape[dim] = count * step;
    return rc == 0 ? dtn_express_reshape(tp, ndim, shape, err) : rc;
}

int dtn_back_slice(const struct dtn_express *e, struct dtensor *grad[],
                   struct dtensor_error *err)
{
    const int dim = dim_of(e, input_of(e, 0)->ndim);
    const int64_t size = input_of(e, 0)->shape[dim];
    const int64_t start = e->note->args.start, step = e->note->args.step;
    struct dtensor_op_args cut = { .ndims = 1, .dim = { dim } };
    int rc = 0;

    grad[0] = dtn_tensor_hold(e->grad[0]);
    if (step > 1 && grad[0]->spec.shape[dim] > 1)
        rc = stretched(&grad[0], dim, step, err);
    cut.end = size - start;
    if (rc == 0 && grad[0]->spec.shape[dim] > cut.end)
        rc = dtn_express_step("slice", &cut, &grad[0], err);
    return rc == 0 ? padded(&grad[0], dim, start, size, err) : rc;
}

/* ---------------------------------------------------------------- views --- */

int dtn_back_view(const struct dtn_express *e, struct dtensor *grad[],
                  struct dtensor_error *err)
{
    grad[0] = dtn_tensor_hold(e->grad[0]);
    return dtn_express_reshape(&grad[0], input_of(e, 0)->ndim,
                               input_of(e, 0)->shape, err);
}

int dtn_back_permute(const struct dtn_express *e, struct dtensor *grad[],
                     struct dtensor_error *err)
{
    const struct dtensor_op_args *args = &e->note->args;
    struct dtensor_op_args back = { .ndims = args->ndims };

    for (int i = 0; i < args->ndims; i++)
        back.dim[args->dim[i] < 0 ? args->dim[i] + args->ndims
                                  : args->dim[i]] = i;
    return dtensor_op("permute", 1, (const struct dtensor *const *)e->grad,
                      &back, 1, &grad[0], err);
}

/* Sum the copies, dimension by dimension: 12 of 3 copies is 3x4 first. */
int dtn_back_repeat(const struct dtn_express *e, struct dtensor *grad[],
                    struct dtensor_error *err)
{
    const int ndim = e->note->args.ndim;
    int rc = 0;

    grad[0] = dtn_tensor_hold(e->grad[0]);
    for (int d = 0; d < ndim && rc == 0; d++) {
        const int64_t *have = grad[0]->spec.shape;
        const int64_t times = e->note->args.shape[d];
        const struct dtensor_op_args sum = { .ndims = 1, .dim = { d } };
        int64_t shape[DTENSOR_MAX_DIMS + 1];

        if (times == 1)
            continue;
        if (ndim == DTENSOR_MAX_DIMS)
            return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: repeat has no "
                            "backward for %d dimensions", ndim);
        memcpy(shape, have, (size_t)d * sizeof shape[0]);
        shape[d] = times;
        shape[d + 1] = times > 0 ? have[d] / times : 0;
        memcpy(shape + d + 2, have + d + 1,
               (size_t)(ndim - d - 1) * sizeof shape[0]);
        rc = dtn_express_reshape(&grad[0], ndim + 1, shape, err);
        if (rc == 0)
            rc = dtn_express_step("sum", &sum, &grad[0], err);
    }
    return rc;
}

/* ----------------------------------------------------------- placements --- */

int dtn_back_redistribute(const struct dtn_express *e, struct dtensor *grad[],
                          struct dtensor_error *err)
{
    const struct dtensor_spec *in = input_of(e, 0);
    struct dtensor_spec to = dtn_spec_reduced(*in);
    int rc = 0;

    if (in->mesh == e->grad[0]->spec.mesh)
        rc = dtensor_grad_spec(in, &e->grad[0]->spec, &to, err);
    if (rc != 0)
        return rc;
    if (!dtn_spec_equal(&to, &e->grad[0]->spec))
        return dtensor_redistribute_to(e->grad[0], &to, &grad[0], err);
    grad[0] = dtn_tensor_hold(e->grad[0]);
    return 0;
}
