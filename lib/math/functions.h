/* functions.h - functions of one number or more, for f32 and for f64
 *
 * The names end with _f32 or _f64, so that one macro can write both loops.  Own
 * ones are in functions_f32.h, functions_f64.h and functions_pow.h, those of
 * libm here.
 */
#ifndef DTN_MATH_FUNCTIONS_H
#define DTN_MATH_FUNCTIONS_H

#include "math/functions_f32.h"
#include "math/functions_f64.h"
#include "math/functions_pow.h"

#include <math.h>

/* --------------------------------------------------------------- libm's --- */

#define DTN_FUNCTIONS(kind, T, f)                                             \
    DTN_FUNCTION T dtn_asinh_##kind(T x) { return asinh##f(x); }              \
    DTN_FUNCTION T dtn_atan_##kind(T x) { return atan##f(x); }                \
    DTN_FUNCTION T dtn_abs_##kind(T x) { return fabs##f(x); }                 \
    DTN_FUNCTION T dtn_sqrt_##kind(T x) { return sqrt##f(x); }                \
    DTN_FUNCTION T dtn_ceil_##kind(T x) { return ceil##f(x); }                \
    DTN_FUNCTION T dtn_floor_##kind(T x) { return floor##f(x); }              \
    DTN_FUNCTION T dtn_round_##kind(T x) { return rint##f(x); }               \
    DTN_FUNCTION T dtn_trunc_##kind(T x) { return trunc##f(x); }

DTN_FUNCTIONS(f32, float, f)
DTN_FUNCTIONS(f64, double, )

/* ---------------------------------------------------------- comparisons --- */

/* In steps of which each is one instruction of a CPU.  The larger and the
 * smaller are a NaN if one is, and of two zeros the first.
 */
#define DTN_COMPARISONS(kind, T)                                              \
    DTN_FUNCTION T dtn_maximum_##kind(T x, T y)                               \
    {                                                                         \
        const T most = y > x ? y : x;                                         \
                                                                              \
        return y != y ? y : most;                                             \
    }                                                                         \
    DTN_FUNCTION T dtn_minimum_##kind(T x, T y)                               \
    {                                                                         \
        const T least = y < x ? y : x;                                        \
                                                                              \
        return y != y ? y : least;                                            \
    }                                                                         \
    DTN_FUNCTION T dtn_clamp_##kind(T x, T low, T high)                       \
    {                                                                         \
        const T raised = x < low ? low : x;                                   \
                                                                              \
        return raised > high ? high : raised;                                 \
    }

DTN_COMPARISONS(f32, float)
DTN_COMPARISONS(f64, double)

#endif
