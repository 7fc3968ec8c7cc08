/* pointwise_list.h - what each function of pointwise.h does with one element
 *
 * Both the loops of the CPU (pointwise_lanes.h) and the kernels of a GPU
 * (cuda/pointwise.h) are made of these rows, so they have the same bits.  A row
 * is X(OP, name, kind, T, TO, expression): DTN_OP makes of the operands'
 * elements x, y and z of type T, and the arguments p and q of that type, an
 * element of type TO.  The functions are those of functions.h.
 */
#ifndef DTN_MATH_POINTWISE_LIST_H
#define DTN_MATH_POINTWISE_LIST_H

#define DTN_POINTWISE_COMPARED(X, kind, T)                                    \
    X(LT, lt, kind, T, uint8_t, x < y)                                        \
    X(LE, le, kind, T, uint8_t, x <= y)                                       \
    X(GT, gt, kind, T, uint8_t, x > y)                                        \
    X(GE, ge, kind, T, uint8_t, x >= y)                                       \
    X(EQ, eq, kind, T, uint8_t, x == y)                                       \
    X(NE, ne, kind, T, uint8_t, x != y)

/* Of f32, of f64 and, with fewer digits, of bf16, as f32. */
#define DTN_POINTWISE_GELU(X, kind, T)                                        \
    X(GELU, gelu, kind, T, T, dtn_gelu_##kind(x))

/* Of f32 and of f64: few instructions, so that a loop waits for memory. */
#define DTN_POINTWISE_SHORT(X, kind, T)                                       \
    X(RELU, relu, kind, T, T, x <= 0 ? 0 : x)                                 \
    X(CEIL, ceil, kind, T, T, dtn_ceil_##kind(x))                             \
    X(FLOOR, floor, kind, T, T, dtn_floor_##kind(x))                          \
    X(ROUND, round, kind, T, T, dtn_round_##kind(x))                          \
    X(TRUNC, trunc, kind, T, T, dtn_trunc_##kind(x))                          \
    X(NEG, neg, kind, T, T, -x)                                               \
    X(ABS, abs, kind, T, T, dtn_abs_##kind(x))                                \
    X(SQUARE, square, kind, T, T, x * x)                                      \
    X(CLAMP, clamp, kind, T, T, dtn_clamp_##kind(x, p, q))                    \
    X(SHIFT, shift, kind, T, T, x + p)                                        \
    X(SCALE, scale, kind, T, T, p * x)                                        \
    X(ADD, add, kind, T, T, x + y)                                            \
    X(SUB, sub, kind, T, T, x - y)                                            \
    X(MUL, mul, kind, T, T, x * y)                                            \
    X(DIV, div, kind, T, T, x / y)                                            \
    X(MAXIMUM, maximum, kind, T, T, dtn_maximum_##kind(x, y))                 \
    X(MINIMUM, minimum, kind, T, T, dtn_minimum_##kind(x, y))                 \
    X(AXPY, axpy, kind, T, T, x + p * y)                                      \
    X(ADDCMUL, addcmul, kind, T, T, x + p * y * z)                            \
    X(ADDCDIV, addcdiv, kind, T, T, x + p * y / z)                            \
    X(LERP, lerp, kind, T, T, x + z * (y - x))

/* Of f32 and of f64, the others but GELU, sine, cosine and what is of libm. */
#define DTN_POINTWISE_LONG(X, kind, T)                                        \
    X(SIGN, sign, kind, T, T, x != x ? x : (T)((x > 0) - (x < 0)))            \
    X(EXP, exp, kind, T, T, dtn_exp_##kind(x))                                \
    X(EXP2, exp2, kind, T, T, dtn_exp2_##kind(x))                             \
    X(EXPM1, expm1, kind, T, T, dtn_expm1_##kind(x))                          \
    X(SIGMOID, sigmoid, kind, T, T, dtn_sigmoid_##kind(x))                    \
    X(TANH, tanh, kind, T, T, dtn_tanh_##kind(x))                             \
    X(SINH, sinh, kind, T, T, dtn_sinh_##kind(x))                             \
    X(ERF, erf, kind, T, T, dtn_erf_##kind(x))                                \
    X(ERFC, erfc, kind, T, T, dtn_erfc_##kind(x))                             \
    X(LOG, log, kind, T, T, dtn_log_##kind(x))                                \
    X(LOG2, log2, kind, T, T, dtn_log2_##kind(x))                             \
    X(LOG10, log10, kind, T, T, dtn_log10_##kind(x))                          \
    X(LOG1P, log1p, kind, T, T, dtn_log1p_##kind(x))                          \
    X(POW, pow, kind, T, T, dtn_pow_##kind(x, p))                             \
    X(SQRT, sqrt, kind, T, T, dtn_sqrt_##kind(x))                             \
    X(RSQRT, rsqrt, kind, T, T, 1 / dtn_sqrt_##kind(x))                       \
    X(RECIPROCAL, reciprocal, kind, T, T, 1 / x)                              \
    X(SILU, silu, kind, T, T, dtn_silu_##kind(x))                             \
    X(SOFTPLUS, softplus, kind, T, T, dtn_softplus_##kind(x))                 \
    DTN_POINTWISE_COMPARED(X, kind, T)

#define DTN_POINTWISE_FLOAT(X, kind, T)                                       \
    DTN_POINTWISE_SHORT(X, kind, T)                                           \
    DTN_POINTWISE_LONG(X, kind, T)

/* Functions of libm, which a GPU has not with the same bits. */
#define DTN_POINTWISE_LIBM(X, kind, T)                                        \
    X(ASINH, asinh, kind, T, T, dtn_asinh_##kind(x))                          \
    X(ATAN, atan, kind, T, T, dtn_atan_##kind(x))

/* Sums and products wrap, so they are those of the unsigned type. */
#define DTN_POINTWISE_INTEGER(X, kind, T)                                     \
    X(RELU, relu, kind, T, T, x > 0 ? x : 0)                                  \
    X(CEIL, ceil, kind, T, T, x)                                              \
    X(FLOOR, floor, kind, T, T, x)                                            \
    X(ROUND, round, kind, T, T, x)                                            \
    X(TRUNC, trunc, kind, T, T, x)                                            \
    X(SIGN, sign, kind, T, T, dtn_sign_##kind(x))                             \
    X(NEG, neg, kind, T, T, 0 - (uint64_t)x)                                  \
    X(ABS, abs, kind, T, T, dtn_sign_##kind(x) < 0 ? 0 - (uint64_t)x          \
                                               : (uint64_t)x)                 \
    X(SQUARE, square, kind, T, T, (uint64_t)x * (uint64_t)x)                  \
    X(CLAMP, clamp, kind, T, T, dtn_clamp_##kind(x, p, q))                    \
    X(SHIFT, shift, kind, T, T, (uint64_t)x + (uint64_t)p)                    \
    X(SCALE, scale, kind, T, T, (uint64_t)x * (uint64_t)p)                    \
    X(ADD, add, kind, T, T, (uint64_t)x + (uint64_t)y)                        \
    X(SUB, sub, kind, T, T, (uint64_t)x - (uint64_t)y)                        \
    X(MUL, mul, kind, T, T, (uint64_t)x * (uint64_t)y)                        \
    X(DIV, div, kind, T, T, dtn_over_##kind(x, y))                            \
    X(MAXIMUM, maximum, kind, T, T, y > x ? y : x)                            \
    X(MINIMUM, minimum, kind, T, T, y < x ? y : x)                            \
    X(AXPY, axpy, kind, T, T, (uint64_t)x + (uint64_t)p * (uint64_t)y)        \
    X(ADDCMUL, addcmul, kind, T, T,                                           \
      (uint64_t)x + (uint64_t)p * (uint64_t)y * (uint64_t)z)                  \
    X(ADDCDIV, addcdiv, kind, T, T, (uint64_t)x + (uint64_t)dtn_over_##kind(  \
                                 (T)((uint64_t)p * (uint64_t)y), z))          \
    X(LERP, lerp, kind, T, T,                                                 \
      (uint64_t)x + (uint64_t)z * ((uint64_t)y - (uint64_t)x))                \
    DTN_POINTWISE_COMPARED(X, kind, T)

#endif
