/* rules.c - the table of backwards
 *
 * There is a row for each operator; rules.h explains the letters.  An operator
 * without a row has no backward.  An operator whose row has no expression makes
 * constants.
 */
#include "tape/rules.h"
#include "attention/attention.h"
#include "base/compiler.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------- variants --- */

/* By a matrix, or by several. */
static const char *by_factor(const struct dtn_note *note)
{
    return note->operand[1].spec.ndim == 2 ? NULL : "several";
}

static const char *by_rows(const struct dtn_note *note)
{
    return note->operand[0].spec.ndim > 1 ? NULL : "vector";
}

static const char *by_exponent(const struct dtn_note *note)
{
    return note->args.p == 0 ? "zero" : NULL;
}

/* Was the place of the extreme asked for? */
static const char *by_place(const struct dtn_note *note)
{
    return note->nout > 1 ? NULL : "value";
}

static const char *by_power(const struct dtn_note *note)
{
    return isinf(note->args.p) ? "extreme" : note->args.p == 0 ? "count"
         : note->args.p == 1 ? "one" : note->args.p == 2 ? "two" : NULL;
}

/* ----------------------------------------------------------------- rows --- */

#define EXTREME "div(mul(spread(g),cast(eq(a,spread(y))))," \
                "spread(sum(cast(eq(a,spread(y))))))"

/* Zeros among the elements: 1 where there is one.  The product of all but one
 * element is that of all by the element, or 0 if there is a zero among the
 * others (it is not ALONE); no element is divided by 0, and none is gathered.
 * The product is divided: the reciprocal of a tiny element is infinite.
 */
#define ZEROS "cast(eq(a,0a))"
#define FILLED "add(a," ZEROS ")"
#define ALONE "cast(eq(sub(spread(sum(" ZEROS "))," ZEROS "),0a))"

/* The gradient over a norm or deviation; 0 where that is 0. */
#define OVER(x) "where(gt(y,zeros_like(y)),div(g," x "),zeros_like(y))"

/* sign(a) |a|^(p-1), which is 0 at 0 for any p. */
#define POWER "mul(sign(a),pow(add(abs(a)," ZEROS "),Q))"

/* Of running products: sums of what comes after.  Where the first zero is, the
 * products are taken without it; behind it they are all 0.
 */
#define AFTER(x) "flip(cumsum(flip(" x ")))"
#define FIRST "mul(" ZEROS ",cast(eq(cumsum(" ZEROS "),ones_like(0a))))"
#define BEFORE "cast(eq(cumsum(" ZEROS "),0a))"

#define EACH(op_, ...) { .op = op_, .grad = { __VA_ARGS__ } }
#define SOME(op_, variant_, ...)                                              \
    { .op = op_, .grad = { __VA_ARGS__ }, .variant = variant_ }
#define ALL(op_, f, keeps_) { .op = op_, .all = dtn_back_##f, .keeps = keeps_ }
#define NONE(op_) { .op = op_ }

static const struct dtn_backward rows[] = {
    /* ------------------------------------------------ of one operand --- */
    EACH("relu", "mul(g,sign(y))"),
    EACH("exp", "mul(g,y)"),
    EACH("exp2", "scale(mul(g,y),0.69314718055994530942)"),
    EACH("expm1", "mul(g,shift(y,1))"),
    EACH("sigmoid", "mul(g,sub(y,square(y)))"),
    EACH("tanh", "mul(g,shift(neg(square(y)),1))"),
    EACH("sinh", "mul(g,sqrt(shift(square(y),1)))"),
    EACH("asinh", "div(g,sqrt(shift(square(a),1)))"),
    EACH("atan", "div(g,shift(square(a),1))"),
    EACH("erf", "scale(mul(g,exp(neg(square(a)))),1.12837916709551257390)"),
    EACH("erfc", "scale(mul(g,exp(neg(square(a)))),-1.12837916709551257390)"),
    EACH("neg", "neg(g)"),
    EACH("abs", "mul(g,sign(a))"),
    EACH("square", "scale(mul(g,a),2)"),
    EACH("clamp", "mul(g,cast(eq(a,y)))"),
    EACH("shift", "g"),
    EACH("log", "div(g,a)"),
    EACH("log2", "scale(div(g,a),1.44269504088896340736)"),
    EACH("log10", "scale(div(g,a),0.43429448190325182765)"),
    EACH("log1p", "div(g,shift(a,1))"),
    EACH("sqrt", "scale(div(g,y),0.5)"),
    EACH("rsqrt", "scale(mul(g,pow(y,3)),-0.5)"),
    EACH("reciprocal", "neg(mul(g,square(y)))"),
    EACH("sin", "mul(g,cos(a))"),
    EACH("cos", "neg(mul(g,sin(a)))"),
    SOME("pow", by_exponent, "scale(mul(g,pow(a,Q)),P)"),
    EACH("pow/zero", "0a"),
    EACH("gelu", "mul(g,add(scale(erfc(scale(a,-0.70710678118654752440)),0.5),"
                 "mul(a,scale(exp(scale(square(a),-0.5)),"
                 "0.39894228040143267794))))"),
    EACH("silu", "mul(g,mul(sigmoid(a),shift(sub(a,y),1)))"),
    EACH("softplus", "mul(g,sigmoid(a))"),
    EACH("scale", "scale(g,V)"),
    EACH("scale_", "scale(g,V)"),
    EACH("cast", "cast(g)"),
    EACH("clone", "g"),
    EACH("dropout", "scale(mul(g,cast(z)),D)"),

    /* --------------------------------------- of two and three operands --- */
    EACH("add", "g", "g"),
    EACH("add_", "g", "g"),
    EACH("sub", "g", "neg(g)"),
    EACH("sub_", "g", "neg(g)"),
    EACH("mul", "mul(g,b)", "mul(g,a)"),
    EACH("mul_", "mul(g,b)", "mul(g,a)"),
    EACH("div", "div(g,b)", "neg(div(mul(g,y),b))"),
    EACH("maximum", "scale(mul(g,add(cast(gt(a,b)),cast(ge(a,b)))),0.5)",
                    "scale(mul(g,add(cast(lt(a,b)),cast(le(a,b)))),0.5)"),
    EACH("minimum", "scale(mul(g,add(cast(lt(a,b)),cast(le(a,b)))),0.5)",
                    "scale(mul(g,add(cast(gt(a,b)),cast(ge(a,b)))),0.5)"),
    EACH("where", NULL, "where(a,g,zeros_like(g))", "where(a,zeros_like(g),g)"),
    EACH("addcmul", "g", "scale(mul(g,c),V)", "scale(mul(g,b),V)"),
    EACH("addcdiv", "g", "scale(div(g,c),V)",
                    "neg(scale(div(div(mul(g,b),c),c),V))"),
    EACH("lerp", "sub(g,mul(g,c))", "mul(g,c)", "mul(g,sub(b,a))"),
    EACH("copy_", NULL, "g"),

    /* ------------------------------------------------------- reductions --- */
    EACH("sum", "spread(g)"),
    EACH("mean", "scale(spread(g),M)"),
    EACH("amax", EXTREME),
    EACH("amin", EXTREME),
    SOME("max_dim", by_place, "scatter_add(0a,along(z),along(g))"),
    EACH("max_dim/value", EXTREME),
    SOME("min_dim", by_place, "scatter_add(0a,along(z),along(g))"),
    EACH("min_dim/value", EXTREME),
    EACH("var", "scale(mul(spread(g),sub(a,spread(mean(a)))),U)"),
    EACH("std", "scale(mul(spread(" OVER("y") "),sub(a,spread(mean(a)))),W)"),
    EACH("logsumexp", "mul(spread(g),exp(sub(a,spread(y))))"),
    SOME("powsum", by_power,
         "scale(mul(spread(g)," POWER "),P)"),
    NONE("powsum/count"),
    EACH("powsum/one", "mul(spread(g),sign(a))"),
    EACH("powsum/two", "scale(mul(spread(g),a),2)"),
    SOME("norm", by_power, "mul(spread(" OVER("pow(y,Q)") ")," POWER ")"),
    NONE("norm/count"),
    EACH("norm/one", "mul(spread(g),sign(a))"),
    EACH("norm/two", "mul(spread(" OVER("y") "),a)"),
    EACH("norm/extreme", "mul(sign(a),div(mul(spread(g),"
                         "cast(eq(abs(a),spread(y)))),"
                         "spread(sum(cast(eq(abs(a),spread(y)))))))"),
    EACH("prod", "div(mul(spread(mul(g,prod(" FILLED ")))," ALONE ")," FILLED
                 ")"),
    EACH("cumsum", AFTER("g")),
    EACH("cumprod",
         "add(div(mul(" BEFORE "," AFTER("mul(g,y)") ")," FILLED "),"
         "mul(" FIRST "," AFTER("mul(g,cumprod(add(a," FIRST ")))") "))"),

    /* ----------------------------------------------------------- orders --- */
    SOME("sort", by_place, "scatter_add(0a,z,g)"),
    ALL("sort/value", order, "a"),
    SOME("topk", by_place, "scatter_add(0a,z,g)"),
    ALL("topk/value", order, "a"),
    SOME("median_dim", by_place, "scatter_add(0a,along(z),along(g))"),
    ALL("median_dim/value", order, "a"),
    SOME("mode", by_place, "scatter_add(0a,along(z),along(g))"),
    ALL("mode/value", order, "a"),
    SOME("kthvalue", by_place, "scatter_add(0a,along(z),along(g))"),
    ALL("kthvalue/value", order, "a"),

    /* --------------------------------------------------------- products --- */
    SOME("matmul", by_factor, "linear(g,b)", "linear_weight(a,g)"),
    EACH("matmul/several", "matmul_nt(g,b)", "matmul_tn(a,g)"),
    SOME("linear", by_rows, "matmul(g,b)", "linear_weight(g,a)", "g"),
    EACH("linear/vector", "linear(g,turn(b))", "linear_weight(g,a)", "g"),
    EACH("linear_weight", "linear(b,g)", "linear(a,turn(g))"),
    EACH("matmul_nt", "matmul(g,b)", "matmul_tn(g,a)"),
    EACH("matmul_tn", "matmul_nt(b,g)", "matmul(a,g)"),
    EACH("dot", "mul(b,g)", "mul(a,g)"),
    EACH("mv", "linear_weight(g,b)", "linear(g,turn(a))"),
    EACH("addmm", "g", "matmul_nt(g,c)", "matmul_tn(b,g)"),

    /* ----------------------------------------- softmax, norms, networks --- */
    EACH("softmax", "softmax_backward(g,y)"),
    EACH("log_softmax", "log_softmax_backward(g,y)"),
    ALL("layer_norm", norm, "a b"),
    ALL("rms_norm", norm, "a b"),
    ALL("cross_entropy", cross_entropy, "*"),
    EACH("nll_loss", "nll_loss_backward(g,a,b)"),
    ALL("attention", attention, "a b c y z"),
    ALL(DTN_SHARDED_ATTENTION, sharded_attention, "a b c y z"),

    /* --------------------------------------------------------- by index --- */
    ALL("embedding", embedding, "b"),
    EACH("gather", "scatter_add(0a,b,g)"),
    ALL("index_select", index_select, "b"),
    ALL("index", index, "1"),
    ALL("index_put", index_put, "2"),
    ALL("index_put_add", index_put_add, "2"),
    EACH("scatter", "scatter(g,b,zeros_like(gather(g,b)))", NULL,
                    "gather(g,b)"),
    EACH("scatter_add", "g", NULL, "gather(g,b)"),
    EACH("tril", "tril(g)"),
    EACH("triu", "triu(g)"),

    /* ---------------------------------------- parts, views, placements --- */
    ALL("cat", cat, NULL),
    ALL("stack", stack, NULL),
    ALL("split", split, NULL),
    ALL("unbind", unbind, NULL),
    ALL("select", select, NULL),
    ALL("slice", slice, NULL),
    ALL("pad", pad, NULL),
    EACH("flip", "flip(g)"),
    ALL("view", view, NULL),
    ALL("reshape", view, NULL),
    ALL("squeeze", view, NULL),
    ALL("unsqueeze", view, NULL),
    EACH("expand", "g"),
    ALL("repeat", repeat, NULL),
    ALL("permute", permute, NULL),
    EACH("transpose", "transpose(g)"),
    ALL("redistribute", redistribute, NULL),

    /* -------------------------------------------------------- constants --- */
    NONE("sign"), NONE("ceil"), NONE("floor"),
    NONE("round"), NONE("trunc"), NONE("fill_"),
    NONE("zero_"), NONE("zeros_like"),
    NONE("rand_like"), NONE("randn_like"),
    NONE("ones_like"), NONE("full_like"),
    NONE("new_zeros"), NONE("new_ones"),
    NONE("new_full"),
};

static const struct dtn_backward *row_of(const char *op)
{
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (*rows[i].op == *op && strcmp(rows[i].op, op) == 0)
            return &rows[i];
    return NULL;
}

const struct dtn_backward *dtn_backward_of(const struct dtn_note *note)
{
    const struct dtn_backward *row = row_of(note->op);
    const char *word = row && row->variant ? row->variant(note) : NULL;
    char name[64];

    if (!word)
        return row;
    snprintf(name, sizeof name, "%s/%s", note->op, word);
    return row_of(name);
}

bool dtn_backward_stops(const struct dtn_backward *backward)
{
    for (int i = 0; i < DTN_BACKWARD_IN; i++)
        if (backward->grad[i])
            return false;
    return !backward->all;
}
