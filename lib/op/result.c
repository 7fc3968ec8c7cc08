/* result.c - how many results an operator has, and their shapes */
#include "op/result.h"
#include "op/signature.h"
#include "dtensor.h"

#include <string.h>

static int64_t size_sum(const struct dtn_signature *sig, int d)
{
    int64_t sum = 0;

    for (int i = 0; i < sig->call->nin; i++)
        sum += sig->call->in[i].shape[d];
    return sum;
}

static int64_t size_range(const struct dtensor_op_args *args, int64_t size)
{
    const int64_t step = args->step > 1 ? args->step : 1;
    const int64_t end = args->end < size ? args->end : size;

    return end > args->start ? (end - args->start + step - 1) / step : 0;
}

static int64_t size_piece(const struct dtensor_op_args *args, int64_t size,
                          int i)
{
    const int64_t left = size - i * args->count;

    return left < args->count ? left : args->count;
}

/* Of output i along dimension d, which args.dim names. */
static int64_t size_of(const struct dtn_signature *sig, int i, int d)
{
    const struct dtensor_op_args *args = &sig->call->args;
    const int64_t size = sig->in[0].shape[d];

    switch (sig->rule->size) {
    case DTN_SIZE_SUM:
        return size_sum(sig, d);
    case DTN_SIZE_COUNT:
        return args->count;
    case DTN_SIZE_PIECE:
        return size_piece(args, size, i);
    case DTN_SIZE_RANGE:
        return size_range(args, size);
    case DTN_SIZE_PAD:
        return size + args->start + args->end;
    case DTN_SIZE_INDEX:
    case DTN_SIZE_COUNTED:
    case DTN_SIZE_SAME:
    default:
        return size;
    }
}

void dtn_result_shape(const struct dtn_signature *sig, int i,
                      int64_t shape[DTENSOR_MAX_DIMS])
{
    const struct dtn_operand *out = &sig->out[i < sig->nout ? i : 0];

    memcpy(shape, out->shape, sizeof out->shape);
    if (sig->rule->size == DTN_SIZE_SAME ||
        sig->rule->size == DTN_SIZE_COUNTED)
        return;
    if (sig->rule->size == DTN_SIZE_INDEX) {
        memcpy(shape, sig->in[1].shape, sizeof sig->in[1].shape);
        return;
    }
    for (int d = 0; d < out->ndim; d++)
        if (dtn_signature_names(sig, d))
            shape[d] = size_of(sig, i, d);
}

const char *dtn_result_refused(const struct dtn_signature *sig, int64_t size)
{
    const struct dtensor_op_args *args = &sig->call->args;

    switch (sig->rule->size) {
    case DTN_SIZE_COUNT:
    case DTN_SIZE_COUNTED:
        return args->count < 1 || args->count > size
             ? "args.count is outside 1 to the size of that dimension" : NULL;
    case DTN_SIZE_PIECE:
        return args->count < 1 ? "args.count is below 1" : NULL;
    case DTN_SIZE_PAD:
        return args->start < 0 || args->end < 0
             ? "args.start or args.end is below 0" : NULL;
    case DTN_SIZE_RANGE:
        return args->start < 0 || args->end < args->start || args->step < 0
             ? "args.start, args.end and args.step are no range" : NULL;
    default:
        return sig->rule->reads & DTN_ARG_RANGE &&
               (args->start < 0 || args->start >= size)
             ? "args.start is no index of that dimension" : NULL;
    }
}

int dtn_result_count(const struct dtn_signature *sig)
{
    const int64_t size = sig->ndims > 0 ? sig->in[0].shape[sig->dim[0]] : 0;
    const int64_t count = sig->call->args.count;

    if (sig->rule->size == DTN_SIZE_PIECE)
        return (int)((size + count - 1) / count);
    if (sig->rule->flags & DTN_RULE_STAYS)
        return (int)size;
    return sig->nout;
}
