/* pointwise.h - one element of the result from one of each operand */
#ifndef DTN_MATH_POINTWISE_H
#define DTN_MATH_POINTWISE_H

#include "math/array.h"

#include <stdbool.h>

/* x, y, z are the operands' elements, p and q the two arguments.  A NaN gives a
 * NaN, except in comparisons.  Integers wrap around.  Their quotients are
 * rounded toward zero; a division by 0 gives 0.
 */
enum dtn_pointwise {
    /* one operand */
    DTN_RELU, DTN_CEIL, DTN_FLOOR,
    DTN_ROUND,                    /* to the nearest, of two the even one      */
    DTN_TRUNC,
    DTN_SIGN,                     /* -1, 0 or 1                               */
    DTN_EXP, DTN_EXP2, DTN_EXPM1,
    DTN_SIGMOID,                  /* 1 / (1 + exp(-x))                        */
    DTN_TANH, DTN_SINH, DTN_ASINH, DTN_ATAN, DTN_ERF, DTN_ERFC,
    DTN_NEG, DTN_ABS, DTN_SQUARE,
    DTN_LOG, DTN_LOG2, DTN_LOG10, DTN_LOG1P,
    DTN_SQRT,
    DTN_RSQRT,                    /* 1 / sqrt(x)                              */
    DTN_RECIPROCAL, DTN_SIN, DTN_COS,
    DTN_GELU,                     /* x (1 + erf(x / sqrt(2))) / 2             */
    DTN_SILU,                     /* x sigmoid(x)                             */
    DTN_SOFTPLUS,                 /* log(1 + exp(x))                          */
    DTN_CLAMP,                    /* not below p and not above q              */
    DTN_SHIFT,                    /* x + p                                    */
    DTN_SCALE,                    /* p x                                      */
    DTN_POW,                      /* x to the power of p                      */
    /* two operands */
    DTN_ADD, DTN_SUB, DTN_MUL, DTN_DIV, DTN_MAXIMUM, DTN_MINIMUM,
    DTN_AXPY,                     /* x + p y                                  */
    DTN_LT, DTN_LE, DTN_GT, DTN_GE, DTN_EQ, DTN_NE,   /* the result is bool   */
    /* three operands */
    DTN_ADDCMUL,                  /* x + p y z                                */
    DTN_ADDCDIV,                  /* x + p y / z                              */
    DTN_LERP,                     /* x + z (y - x)                            */
    DTN_POINTWISES
};

/* How many operands it has. */
int dtn_pointwise_operands(enum dtn_pointwise op);

/* Does the operation exist for operands of this type?  Complex numbers are not
 * rounded or ordered; bool has no sums and products; exp() and similar
 * functions are for floats only.
 */
bool dtn_pointwise_ok(enum dtn_pointwise op, enum dtensor_dtype dtype);

/* out[...] = op(in[0][...], in[1][...], ...).  The operands have one type, for
 * which dtn_pointwise_ok() is true; `out` has the same type, or bool for a
 * comparison.  Each operand is broadcast to the shape of `out`.  args has p and
 * q; NULL: both are zero.  Floats of 16 and 8 bits are computed as f32 and
 * rounded once.  `out` may be one of the operands; else it overlaps none.
 */
void dtn_pointwise(enum dtn_pointwise op, const struct dtn_array *out,
                   const struct dtn_array *const in[], const double args[2]);

/* out = in, elements of any two types; `in` is broadcast.  From float to
 * integer: rounded toward zero and clamped to the range; NaN becomes 0. From
 * integer to a shorter one: its lowest bits.  To bool: is it not 0? From
 * complex: its real part.
 */
void dtn_cast(const struct dtn_array *out, const struct dtn_array *in);

/* out = `yes` where `condition`, a bool, is true, else `no`.  All are
 * broadcast; `out`, `yes` and `no` have one type.
 */
void dtn_where(const struct dtn_array *out, const struct dtn_array *condition,
               const struct dtn_array *yes, const struct dtn_array *no);

/* Every element becomes `value`, rounded to the type. */
void dtn_array_fill(const struct dtn_array *out, double value);

#endif
