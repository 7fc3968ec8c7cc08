/* result.c - how many results an operator has, and their shapes */
#include "op/result.h"
#include "op/signature.h"
#include "op/words.h"
#include "dtensor.h"

#include <inttypes.h>
#include <string.h>

enum { RESULTS_MAX = 1 << 20 };   /* of one call                              */

/* -1: it is 2^63 or more. */
static int64_t size_sum(const struct dtn_signature *sig, int d)
{
    int64_t sum = 0;

    for (int i = 0; i < sig->call->nin; i++)
        if (__builtin_add_overflow(sum, sig->call->in[i].shape[d], &sum))
            return -1;
    return sum;
}

static int64_t size_range(const struct dtensor_op_args *args, int64_t size)
{
    const int64_t step = args->step > 1 ? args->step : 1;
    const int64_t end = args->end < size ? args->end : size;

    return end > args->start ? (end - args->start - 1) / step + 1 : 0;
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

/* One for each piece of a dimension, or for each index of it. */
static int64_t result_count(const struct dtn_signature *sig, int64_t size)
{
    if (sig->rule->size == DTN_SIZE_PIECE)
        return size > 0 ? (size - 1) / sig->call->args.count + 1 : 0;
    return sig->rule->flags & DTN_RULE_STAYS ? size : sig->nout;
}

static int results_check(const struct dtn_signature *sig, int64_t size,
                         struct dtensor_error *err)
{
    const int64_t n = result_count(sig, size);

    return n <= RESULTS_MAX ? 0
         : dtn_op_fail(sig->call, err, "there would be %" PRId64 " outputs, "
                       "more than 2^20", n);
}

static int count_check(const struct dtn_signature *sig, int64_t most,
                       struct dtensor_error *err)
{
    const int64_t count = sig->call->args.count;

    if (count >= 1 && count <= most)
        return 0;
    return dtn_op_fail(sig->call, err, most < INT64_MAX
                       ? "args.count is %" PRId64 " (expected 1 to the size of "
                       "dimension %d, %" PRId64 ")"
                       : "args.count is %" PRId64 " (expected 1 or more)",
                       count, sig->dim[0], most);
}

/* Elements that are added before and after `size` others. */
static int pad_check(const struct dtn_signature *sig, int64_t size,
                     struct dtensor_error *err)
{
    const struct dtensor_op_args *args = &sig->call->args;

    if (args->start >= 0 && args->end >= 0 &&
        args->start <= INT64_MAX - size - args->end)
        return 0;
    return dtn_op_fail(sig->call, err, "args.start is %" PRId64 ", args.end %"
                       PRId64 " (expected 0 or more, and less than 2^63 "
                       "elements)", args->start, args->end);
}

static int range_check(const struct dtn_signature *sig,
                       struct dtensor_error *err)
{
    const struct dtensor_op_args *args = &sig->call->args;

    if (args->start >= 0 && args->end >= args->start && args->step >= 0)
        return 0;
    return dtn_op_fail(sig->call, err, "args.start is %" PRId64 ", args.end %"
                       PRId64 ", args.step %" PRId64 " (expected 0 <= start <= "
                       "end, and a step of 0 or more)", args->start, args->end,
                       args->step);
}

int dtn_result_check(const struct dtn_signature *sig, struct dtensor_error *err)
{
    const int64_t size = sig->in[0].shape[sig->dim[0]];
    const int64_t start = sig->call->args.start;
    int rc;

    switch (sig->rule->size) {
    case DTN_SIZE_COUNT:
    case DTN_SIZE_COUNTED:
        return count_check(sig, size, err);
    case DTN_SIZE_SUM:
        return size_sum(sig, sig->dim[0]) >= 0 ? 0
             : dtn_op_fail(sig->call, err, "the inputs together have 2^63 "
                           "elements or more along dimension %d", sig->dim[0]);
    case DTN_SIZE_PIECE:
        rc = count_check(sig, INT64_MAX, err);
        return rc == 0 ? results_check(sig, size, err) : rc;
    case DTN_SIZE_PAD:
        return pad_check(sig, size, err);
    case DTN_SIZE_RANGE:
        return range_check(sig, err);
    default:
        if (!(sig->rule->reads & DTN_ARG_RANGE) || (start >= 0 && start < size))
            return results_check(sig, size, err);
        return dtn_op_fail(sig->call, err, "args.start is %" PRId64 " (expected "
                           "an index of dimension %d, which has %" PRId64
                           " elements)", start, sig->dim[0], size);
    }
}

int dtn_result_count(const struct dtn_signature *sig)
{
    return (int)result_count(sig, sig->ndims > 0
                                  ? sig->in[0].shape[sig->dim[0]] : 0);
}
