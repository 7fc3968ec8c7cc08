/* named.c - operators as functions
 *
 * Each function is dtensor_op() with the name of the operator, and with named
 * arguments.
 */
#include "dtensor.h"

#include <stddef.h>

/* The first output of an operator on up to three tensors, of which the last may
 * be NULL.
 */
static int call(const char *op, const struct dtensor *const in[3],
                const struct dtensor_op_args *args, struct dtensor **tp,
                struct dtensor_error *err)
{
    const int nin = in[2] ? 3 : in[1] ? 2 : 1;

    return dtensor_op(op, nin, in, args, 1, tp, err);
}

int dtensor_matmul(const struct dtensor *a, const struct dtensor *b,
                   struct dtensor **tp, struct dtensor_error *err)
{
    return dtensor_op("matmul", 2, (const struct dtensor *const[]){ a, b },
                      NULL, 1, tp, err);
}

int dtensor_linear(const struct dtensor *x, const struct dtensor *weight,
                   const struct dtensor *bias, struct dtensor **tp,
                   struct dtensor_error *err)
{
    return call("linear", (const struct dtensor *const[]){ x, weight, bias },
                NULL, tp, err);
}

int dtensor_add(const struct dtensor *a, const struct dtensor *b,
                struct dtensor **tp, struct dtensor_error *err)
{
    return dtensor_op("add", 2, (const struct dtensor *const[]){ a, b }, NULL,
                      1, tp, err);
}

int dtensor_mul(const struct dtensor *a, const struct dtensor *b,
                struct dtensor **tp, struct dtensor_error *err)
{
    return dtensor_op("mul", 2, (const struct dtensor *const[]){ a, b }, NULL,
                      1, tp, err);
}

int dtensor_scale(const struct dtensor *x, double factor, struct dtensor **tp,
                  struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .value = factor };

    return dtensor_op("scale", 1, &x, &args, 1, tp, err);
}

int dtensor_cast(const struct dtensor *x, enum dtensor_dtype dtype,
                 struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .dtype = dtype };

    return dtensor_op("cast", 1, &x, &args, 1, tp, err);
}

int dtensor_softmax(const struct dtensor *x, int dim, struct dtensor **tp,
                    struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .ndims = 1, .dim = { dim } };

    return dtensor_op("softmax", 1, &x, &args, 1, tp, err);
}

int dtensor_layer_norm(const struct dtensor *x, const struct dtensor *weight,
                       const struct dtensor *bias, double eps,
                       struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .eps = eps, .count = weight
                                          ? dtensor_spec_of(weight)->ndim : 1 };

    return call("layer_norm", (const struct dtensor *const[]){ x, weight,
                bias }, &args, tp, err);
}

int dtensor_rms_norm(const struct dtensor *x, const struct dtensor *weight,
                     double eps, struct dtensor **tp,
                     struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .eps = eps, .count = weight
                                          ? dtensor_spec_of(weight)->ndim : 1 };

    return call("rms_norm", (const struct dtensor *const[]){ x, weight, NULL },
                &args, tp, err);
}

int dtensor_embedding(const struct dtensor *table, const struct dtensor *index,
                      struct dtensor **tp, struct dtensor_error *err)
{
    return dtensor_op("embedding", 2, (const struct dtensor *const[]){ table,
                      index }, NULL, 1, tp, err);
}

int dtensor_cross_entropy(const struct dtensor *scores,
                          const struct dtensor *target,
                          enum dtensor_op_reduction reduction,
                          struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .reduction = reduction };

    return dtensor_op("cross_entropy", 2, (const struct dtensor *const[]){
                      scores, target }, &args, 1, tp, err);
}
