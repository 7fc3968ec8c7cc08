/* functions.h - functions of one number that C lacks or that have two types
 *
 * The names end with _f32 or _f64, so that one macro can write both loops.
 */
#ifndef DTN_MATH_FUNCTIONS_H
#define DTN_MATH_FUNCTIONS_H

#include <math.h>

#define DTN_FUNCTION static inline __attribute__((always_inline))
#define DTN_FUNCTIONS(kind, T, f)                                             \
    DTN_FUNCTION T dtn_exp_##kind(T x) { return exp##f(x); }                  \
    DTN_FUNCTION T dtn_exp2_##kind(T x) { return exp2##f(x); }                \
    DTN_FUNCTION T dtn_expm1_##kind(T x) { return expm1##f(x); }              \
    DTN_FUNCTION T dtn_tanh_##kind(T x) { return tanh##f(x); }                \
    DTN_FUNCTION T dtn_sinh_##kind(T x) { return sinh##f(x); }                \
    DTN_FUNCTION T dtn_asinh_##kind(T x) { return asinh##f(x); }              \
    DTN_FUNCTION T dtn_atan_##kind(T x) { return atan##f(x); }                \
    DTN_FUNCTION T dtn_erf_##kind(T x) { return erf##f(x); }                  \
    DTN_FUNCTION T dtn_erfc_##kind(T x) { return erfc##f(x); }                \
    DTN_FUNCTION T dtn_log_##kind(T x) { return log##f(x); }                  \
    DTN_FUNCTION T dtn_log2_##kind(T x) { return log2##f(x); }                \
    DTN_FUNCTION T dtn_log10_##kind(T x) { return log10##f(x); }              \
    DTN_FUNCTION T dtn_log1p_##kind(T x) { return log1p##f(x); }              \
    DTN_FUNCTION T dtn_sin_##kind(T x) { return sin##f(x); }                  \
    DTN_FUNCTION T dtn_cos_##kind(T x) { return cos##f(x); }                  \
    DTN_FUNCTION T dtn_pow_##kind(T x, T y) { return pow##f(x, y); }          \
    DTN_FUNCTION T dtn_abs_##kind(T x) { return fabs##f(x); }                 \
    DTN_FUNCTION T dtn_sqrt_##kind(T x) { return sqrt##f(x); }                \
    DTN_FUNCTION T dtn_ceil_##kind(T x) { return ceil##f(x); }                \
    DTN_FUNCTION T dtn_floor_##kind(T x) { return floor##f(x); }              \
    DTN_FUNCTION T dtn_round_##kind(T x) { return rint##f(x); }               \
    DTN_FUNCTION T dtn_trunc_##kind(T x) { return trunc##f(x); }              \
    DTN_FUNCTION T dtn_sigmoid_##kind(T x)                                    \
    {                                                                         \
        return 1 / (1 + dtn_exp_##kind(-x));                                  \
    }                                                                         \
    DTN_FUNCTION T dtn_gelu_##kind(T x)                                       \
    {                                                                         \
        return x * (T)0.5 * dtn_erfc_##kind(-x * (T)0.70710678118654752440);  \
    }                                                                         \
    DTN_FUNCTION T dtn_softplus_##kind(T x)                                   \
    {                                                                         \
        return (x > 0 || x != x ? x : 0) +                                    \
               dtn_log1p_##kind(dtn_exp_##kind(-dtn_abs_##kind(x)));          \
    }

DTN_FUNCTIONS(f32, float, f)
DTN_FUNCTIONS(f64, double, )

#endif
