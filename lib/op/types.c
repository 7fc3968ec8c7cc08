/* types.c - the element types of inputs and outputs; see rule.h */
#include "op/types.h"
#include "op/words.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stddef.h>
#include <string.h>

static const char *types_of(const struct dtn_rule *rule)
{
    return rule->types ? rule->types : "t>t";
}

/* The letter of entry i of n; the last one stands for all that follow. */
static char types_at(const char *types, size_t n, int i)
{
    return types[(size_t)i < n ? (size_t)i : n - 1];
}

static char types_in(const struct dtn_rule *rule, int i)
{
    const char *types = types_of(rule);

    return types_at(types, strcspn(types, ">"), i);
}

static const char common_types[] = "tnsrf";

/* The type in which floats are computed. */
static enum dtensor_dtype types_wide(enum dtensor_dtype dtype)
{
    return dtype == DTENSOR_F64 ? DTENSOR_F64 : DTENSOR_F32;
}

/* The first input of the common type; input 0 if there is none. */
static int types_common(const struct dtn_rule *rule,
                        const struct dtensor_op_call *call)
{
    for (int i = 0; i < call->nin; i++)
        if (strchr(common_types, types_in(rule, i)))
            return i;
    return 0;
}

/* What a letter asks for that a dtype is not; NULL: it is. */
static const char *types_lacks(char type, enum dtensor_dtype dtype)
{
    const enum dtn_dtype_kind kind = dtn_dtype_kind(dtype);

    switch (type) {
    case 'b':
        return dtype == DTENSOR_BOOL ? NULL : "bool";
    case 'i':
        return dtype == DTENSOR_I64 || dtype == DTENSOR_I32 ? NULL
             : "i64 or i32";
    case 'n':
        return kind == DTN_DTYPE_BOOL ? "a number" : NULL;
    case 's':
        return kind == DTN_DTYPE_BOOL || kind == DTN_DTYPE_UNSIGNED
             ? "a number with a sign" : NULL;
    case 'r':
        return kind == DTN_DTYPE_COMPLEX ? "no complex number" : NULL;
    case 'f':
        return dtn_dtype_is_float(dtype) ? NULL : "a float";
    default:
        return NULL;
    }
}

int dtn_types_check(const struct dtn_rule *rule,
                    const struct dtensor_op_call *call,
                    struct dtensor_error *err)
{
    const int common = types_common(rule, call);

    for (int i = 0; i < call->nin; i++) {
        const enum dtensor_dtype dtype = call->in[i].dtype;
        const char type = types_in(rule, i);
        const char *lacks = types_lacks(type, dtype);

        if (lacks)
            return dtn_op_fail(call, err, "input %d is %s (expected %s)", i,
                               dtensor_dtype_name(dtype), lacks);
        if (strchr(common_types, type) && dtype != call->in[common].dtype)
            return dtn_op_fail(call, err, "input %d is %s, input %d is %s "
                               "(cast one of them)", common,
                               dtensor_dtype_name(call->in[common].dtype), i,
                               dtensor_dtype_name(dtype));
        if (type == 'w' && dtype != types_wide(call->in[common].dtype))
            return dtn_op_fail(call, err, "input %d is %s (expected %s)", i,
                               dtensor_dtype_name(dtype), dtensor_dtype_name(
                                   types_wide(call->in[common].dtype)));
    }
    if (rule->reads & DTN_ARG_DTYPE && !dtn_dtype_ok(call->args.dtype))
        return dtn_op_fail(call, err, "args.dtype is %d, which is no dtype",
                           (int)call->args.dtype);
    return 0;
}

enum dtensor_dtype dtn_types_out(const struct dtn_rule *rule,
                                 const struct dtensor_op_call *call, int i)
{
    const char *types = strchr(types_of(rule), '>') + 1;

    switch (types_at(types, strlen(types), i)) {
    case 'b':
        return DTENSOR_BOOL;
    case 'i':
        return DTENSOR_I64;
    case 'c':
        return call->args.dtype;
    case 'w':
        return types_wide(call->in[types_common(rule, call)].dtype);
    default:
        return call->in[types_common(rule, call)].dtype;
    }
}
