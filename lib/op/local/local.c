/* local.c - which function computes an operator on the parts of one rank
 *
 * An operator that has a rule but no row here can be inferred, not run.
 */
#include "op/local/local.h"
#include "op/local/backward.h"
#include "op/local/copy.h"
#include "op/local/math.h"
#include "op/local/random.h"
#include "op/local/rows.h"
#include "base/compiler.h"
#include "math/pointwise.h"
#include "math/reduction.h"

#include <stddef.h>
#include <string.h>

enum { BOTH = DTN_LOCAL_BROADCAST | DTN_LOCAL_ALIAS };

#define LOCAL(op, f, which, flags)                                            \
    { op, dtn_local_##f, which, flags, NULL, NULL, NULL }
#define POINTWISE(op, which)                                                  \
    { op, dtn_local_pointwise, which, BOTH, dtn_takes_pointwise, NULL, NULL }
#define REDUCE(op, which)                                                     \
    { op, dtn_local_reduce, which, 0, dtn_takes_reduction, dtn_work_reduce,    \
      NULL }
#define PRODUCT(op, which)                                                    \
    { op, dtn_local_product, which, 0, NULL, dtn_work_product, NULL }
#define ROWS(op, f, which, flags, work)                                       \
    { op, dtn_local_##f, which, flags, NULL, dtn_work_##work, NULL }
#define NORM_BACKWARD(op, which)                                              \
    { op, dtn_local_norm_backward, which, 0, NULL, dtn_work_norm_backward,     \
      NULL }
#define LOSS(op, which)                                                       \
    { op, dtn_local_loss, which, 0, NULL, dtn_work_loss, NULL }

#define RANDOM(op, which)                                                     \
    { op, NULL, which, 0, NULL, NULL, dtn_local_random }

static const struct dtn_local locals[] = {
    /* ----------------------------------------------- element by element --- */
    POINTWISE("relu", DTN_RELU),
    POINTWISE("ceil", DTN_CEIL),
    POINTWISE("floor", DTN_FLOOR),
    POINTWISE("round", DTN_ROUND),
    POINTWISE("trunc", DTN_TRUNC),
    POINTWISE("sign", DTN_SIGN),
    POINTWISE("exp", DTN_EXP),
    POINTWISE("exp2", DTN_EXP2),
    POINTWISE("expm1", DTN_EXPM1),
    POINTWISE("sigmoid", DTN_SIGMOID),
    POINTWISE("tanh", DTN_TANH),
    POINTWISE("sinh", DTN_SINH),
    POINTWISE("asinh", DTN_ASINH),
    POINTWISE("atan", DTN_ATAN),
    POINTWISE("erf", DTN_ERF),
    POINTWISE("erfc", DTN_ERFC),
    POINTWISE("neg", DTN_NEG),
    POINTWISE("abs", DTN_ABS),
    POINTWISE("square", DTN_SQUARE),
    POINTWISE("clamp", DTN_CLAMP),
    POINTWISE("shift", DTN_SHIFT),
    POINTWISE("log", DTN_LOG),
    POINTWISE("log2", DTN_LOG2),
    POINTWISE("log10", DTN_LOG10),
    POINTWISE("log1p", DTN_LOG1P),
    POINTWISE("sqrt", DTN_SQRT),
    POINTWISE("rsqrt", DTN_RSQRT),
    POINTWISE("reciprocal", DTN_RECIPROCAL),
    POINTWISE("sin", DTN_SIN),
    POINTWISE("cos", DTN_COS),
    POINTWISE("pow", DTN_POW),
    POINTWISE("gelu", DTN_GELU),
    POINTWISE("silu", DTN_SILU),
    POINTWISE("softplus", DTN_SOFTPLUS),
    POINTWISE("scale", DTN_SCALE),
    POINTWISE("scale_", DTN_SCALE),
    POINTWISE("add", DTN_ADD),
    POINTWISE("add_", DTN_ADD),
    POINTWISE("sub", DTN_SUB),
    POINTWISE("sub_", DTN_SUB),
    POINTWISE("mul", DTN_MUL),
    POINTWISE("mul_", DTN_MUL),
    POINTWISE("div", DTN_DIV),
    POINTWISE("maximum", DTN_MAXIMUM),
    POINTWISE("minimum", DTN_MINIMUM),
    POINTWISE("lt", DTN_LT),
    POINTWISE("le", DTN_LE),
    POINTWISE("gt", DTN_GT),
    POINTWISE("ge", DTN_GE),
    POINTWISE("eq", DTN_EQ),
    POINTWISE("ne", DTN_NE),
    POINTWISE("addcmul", DTN_ADDCMUL),
    POINTWISE("addcdiv", DTN_ADDCDIV),
    POINTWISE("lerp", DTN_LERP),
    LOCAL("where", where, 0, BOTH),
    LOCAL("cast", cast, 0, BOTH),

    /* ------------------------------------------------------- reductions --- */
    REDUCE("sum", DTN_REDUCE_SUM),
    REDUCE("prod", DTN_REDUCE_PROD),
    REDUCE("amax", DTN_REDUCE_MAX),
    REDUCE("amin", DTN_REDUCE_MIN),
    REDUCE("mean", DTN_REDUCE_MEAN),
    REDUCE("powsum", DTN_REDUCE_POWSUM),
    REDUCE("norm", DTN_REDUCE_NORM),
    REDUCE("all", DTN_REDUCE_ALL),
    REDUCE("any", DTN_REDUCE_ANY),
    REDUCE("var", DTN_REDUCE_VAR),
    REDUCE("std", DTN_REDUCE_STD),
    REDUCE("logsumexp", DTN_REDUCE_LOGSUMEXP),
    ROWS("max_dim", extreme, 1, 0, extreme),
    ROWS("min_dim", extreme, 0, 0, extreme),
    ROWS("argmax", place, 1, 0, extreme),
    ROWS("argmin", place, 0, 0, extreme),

    ROWS("sort", order, DTN_ORDER_SORT, 0, order),
    ROWS("topk", order, DTN_ORDER_TOP, 0, order),
    ROWS("median_dim", order, DTN_ORDER_MEDIAN, 0, order),
    ROWS("kthvalue", order, DTN_ORDER_KTH, 0, order),
    ROWS("mode", order, DTN_ORDER_MODE, 0, order),

    /* --------------------------------------------------------- products --- */
    PRODUCT("matmul", DTN_PRODUCT_MATMUL),
    PRODUCT("addmm", DTN_PRODUCT_ADDMM),
    PRODUCT("linear", DTN_PRODUCT_LINEAR),
    PRODUCT("linear_weight", DTN_PRODUCT_WEIGHT),
    PRODUCT("matmul_nt", DTN_PRODUCT_NT),
    PRODUCT("matmul_tn", DTN_PRODUCT_TN),
    PRODUCT("mv", DTN_PRODUCT_MV),
    PRODUCT("dot", DTN_PRODUCT_DOT),

    /* ---------------------------------------------- copies, new tensors --- */
    LOCAL("clone", same, 0, DTN_LOCAL_ALIAS),
    LOCAL("copy_", same, 0, BOTH),
    LOCAL("fill_", fill, DTN_FILL_VALUE, DTN_LOCAL_ALIAS),
    LOCAL("zero_", fill, DTN_FILL_ZEROS, DTN_LOCAL_ALIAS),
    LOCAL("zeros_like", fill, DTN_FILL_ZEROS, DTN_LOCAL_ALIAS),
    LOCAL("ones_like", fill, DTN_FILL_ONES, DTN_LOCAL_ALIAS),
    LOCAL("full_like", fill, DTN_FILL_VALUE, DTN_LOCAL_ALIAS),
    RANDOM("rand_like", DTN_RANDOM_UNIFORM),
    RANDOM("randn_like", DTN_RANDOM_NORMAL),
    { "dropout", NULL, 0, DTN_LOCAL_ALIAS, NULL, NULL, dtn_local_dropout },
    LOCAL("new_zeros", fill, DTN_FILL_ZEROS, 0),
    LOCAL("new_ones", fill, DTN_FILL_ONES, 0),
    LOCAL("new_full", fill, DTN_FILL_VALUE, 0),

    /* ----------------------------------------- softmax, norms, networks --- */
    ROWS("softmax", softmax, 0, DTN_LOCAL_ALIAS, softmax),
    ROWS("log_softmax", softmax, 1, DTN_LOCAL_ALIAS, softmax),
    ROWS("softmax_backward", softmax_backward, 0, 0, softmax),
    ROWS("log_softmax_backward", softmax_backward, 1, 0, softmax),
    ROWS("attention", attention, 0, 0, attention),
    ROWS("attention_backward", attention_backward, 1, 0, attention),
    ROWS("layer_norm", norm, 1, DTN_LOCAL_ALIAS, norm),
    ROWS("rms_norm", norm, 0, DTN_LOCAL_ALIAS, norm),
    NORM_BACKWARD("layer_norm_backward", 1),
    NORM_BACKWARD("rms_norm_backward", 0),
    ROWS("cross_entropy_backward", loss_backward, 1, 0, loss_backward),
    ROWS("nll_loss_backward", loss_backward, 0, 0, loss_backward),
    LOCAL("cumsum", cumulate, 0, DTN_LOCAL_ALIAS),
    LOCAL("cumprod", cumulate, 1, DTN_LOCAL_ALIAS),
    LOSS("nll_loss", 0),
    LOSS("cross_entropy", 1),

    /* --------------------------------------------------------- by index --- */
    LOCAL("embedding", embedding, 0, 0),
    LOCAL("embedding_backward", embedding_backward, 0, 0),
    LOCAL("gather", gather, 0, 0),
    LOCAL("index_select", index_select, 0, 0),
    ROWS("index", index, 0, 0, index),
    ROWS("index_put", index_put, 0, 0, index_put),
    ROWS("index_put_add", index_put, 1, 0, index_put),
    LOCAL("scatter", scatter, 0, 0),
    LOCAL("scatter_add", scatter, 1, 0),
    LOCAL("tril", triangle, 1, 0),
    LOCAL("triu", triangle, 0, 0),

    /* ------------------------------------------------ parts of a tensor --- */
    LOCAL("cat", cat, 0, 0),
    LOCAL("stack", stack, 0, 0),
    LOCAL("split", split, 0, 0),
    LOCAL("unbind", unbind, 0, 0),
    LOCAL("select", select, 0, 0),
    LOCAL("slice", slice, 0, 0),
    LOCAL("flip", flip, 0, 0),
    LOCAL("pad", pad, 0, 0),

    /* ------------------------------------------------------------ views --- */
    LOCAL("view", same, 0, 0),
    LOCAL("reshape", same, 0, 0),
    LOCAL("squeeze", same, 0, 0),
    LOCAL("unsqueeze", same, 0, 0),
    LOCAL("expand", same, 0, DTN_LOCAL_BROADCAST),
    LOCAL("repeat", repeat, 0, 0),
    LOCAL("permute", permute, 0, 0),
    LOCAL("transpose", permute, 1, 0),
};

const struct dtn_local *dtn_local_of(const char *op)
{
    for (size_t i = 0; i < DTN_COUNT(locals); i++)
        if (strcmp(locals[i].op, op) == 0)
            return &locals[i];
    return NULL;
}
