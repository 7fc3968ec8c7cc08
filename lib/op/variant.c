/* variant.c - which rule of a family holds for a call
 *
 * Most operators have one rule whatever their arguments are.  Where an argument
 * changes what may be a term, this file says which of the family's rules holds:
 * a maximum passes a cast to an integer, a sum does not.
 */
#include "op/variant.h"
#include "base/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Can every value of an integer type be one of the other type? */
static bool holds(enum dtensor_dtype wide, enum dtensor_dtype narrow)
{
    const size_t more = dtn_dtype_size(wide), less = dtn_dtype_size(narrow);

    if (dtn_dtype_is_float(wide))
        return true;
    if (dtn_dtype_kind(wide) == dtn_dtype_kind(narrow))
        return more >= less;
    return dtn_dtype_kind(wide) == DTN_DTYPE_SIGNED && more > less;
}

/* A cast of floats rounds each term.  To an integer it does not change which is
 * largest, but changes a sum; averages of integers are rounded, those of floats
 * not; and the sum of bool is "or".  Complex numbers have no largest.
 */
const char *dtn_variant_cast(const struct dtensor_op_call *call)
{
    const enum dtensor_dtype to = call->args.dtype;
    const enum dtensor_dtype from = call->nin > 0 ? call->in[0].dtype : to;

    if (to == from)
        return NULL;
    if (to == DTENSOR_BOOL || from == DTENSOR_BOOL)
        return "none";
    if (dtn_dtype_is_float(from) && !dtn_dtype_is_float(to))
        return dtn_dtype_kind(from) == DTN_DTYPE_COMPLEX ? "none" : "order";
    if (!dtn_dtype_is_float(from))
        return holds(to, from) ? "exact" : "none";
    return dtn_dtype_kind(from) != dtn_dtype_kind(to) ? "linear" : NULL;
}

/* Sums of |x|, the number of x != 0, and extrema of |x| are reductions of what
 * the ranks find; roots of sums are not.
 */
const char *dtn_variant_norm(const struct dtensor_op_call *call)
{
    const double p = call->args.p;

    if (isinf(p))
        return p > 0 ? "max" : "min";
    return p == 1 || p == 0 ? "sum" : "whole";
}

const char *dtn_variant_loss(const struct dtensor_op_call *call)
{
    static const char *const words[] = {
        [DTENSOR_OP_SUM] = "sum", [DTENSOR_OP_MEAN] = "mean"
    };

    return (unsigned)call->args.reduction <= DTENSOR_OP_MEAN
           ? words[call->args.reduction] : NULL;
}

/* Numbers of the rows may be given, or are computed again. */
const char *dtn_variant_scores_backward(const struct dtensor_op_call *call)
{
    static const char *const words[] = {
        [DTENSOR_OP_NONE] = "known", [DTENSOR_OP_SUM] = "known_sum",
        [DTENSOR_OP_MEAN] = "known_mean"
    };

    return call->nin <= 3 || (unsigned)call->args.reduction > DTENSOR_OP_MEAN
           ? dtn_variant_loss(call) : words[call->args.reduction];
}

/* Mean and rstd may be given, or are computed again. */
const char *dtn_variant_norm_backward(const struct dtensor_op_call *call)
{
    return call->nin <= 3 ? "few" : NULL;
}

/* A slice of everything. */
const char *dtn_variant_slice(const struct dtensor_op_call *call)
{
    const struct dtensor_op_args *args = &call->args;
    const struct dtensor_spec *in = call->in;
    int dim;

    if (call->nin != 1 || args->ndims != 1)
        return NULL;
    dim = args->dim[0] < 0 ? args->dim[0] + in->ndim : args->dim[0];
    return dim >= 0 && dim < in->ndim && args->start == 0 && args->step >= 0 &&
           args->step <= 1 && args->end >= in->shape[dim] ? "full" : NULL;
}

/* Zeros may be added to each term of a sum, other values may not. */
const char *dtn_variant_pad(const struct dtensor_op_call *call)
{
    return call->args.value != 0 ? "value" : NULL;
}
