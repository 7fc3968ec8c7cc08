/* complex.c - loops over complex numbers
 *
 * One element at a time, as C99 defines their arithmetic: (inf + i NaN) times 1
 * is an infinity.  abs() is a complex number whose imaginary part is 0.
 */
#include "math/complex.h"

#include <complex.h>
#include <stddef.h>

typedef double complex number;

#define LOOP(name, OPERANDS, TO, expression)                                  \
    static void name(void *to, const void *const in[], int64_t n,             \
                     const void *args)                                        \
    {                                                                         \
        TO *dst = to;                                                         \
        const number *a = in[0];                                              \
        const number *b = in[OPERANDS > 1];                                   \
        const number *c = in[OPERANDS > 2 ? 2 : 0];                           \
        const number p = *(const number *)args;                               \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const number x = a[i], y = b[i], z = c[i];                        \
                                                                              \
            (void)x, (void)y, (void)z, (void)p;                               \
            dst[i] = expression;                                              \
        }                                                                     \
    }

LOOP(complex_exp, 1, number, cexp(x))
LOOP(complex_tanh, 1, number, ctanh(x))
LOOP(complex_sinh, 1, number, csinh(x))
LOOP(complex_asinh, 1, number, casinh(x))
LOOP(complex_atan, 1, number, catan(x))
LOOP(complex_neg, 1, number, -x)
LOOP(complex_abs, 1, number, cabs(x))
LOOP(complex_square, 1, number, x * x)
LOOP(complex_log, 1, number, clog(x))
LOOP(complex_sqrt, 1, number, csqrt(x))
LOOP(complex_rsqrt, 1, number, 1 / csqrt(x))
LOOP(complex_reciprocal, 1, number, 1 / x)
LOOP(complex_sin, 1, number, csin(x))
LOOP(complex_cos, 1, number, ccos(x))
LOOP(complex_shift, 1, number, x + p)
LOOP(complex_scale, 1, number, p * x)
LOOP(complex_pow, 1, number, cpow(x, p))
LOOP(complex_add, 2, number, x + y)
LOOP(complex_sub, 2, number, x - y)
LOOP(complex_mul, 2, number, x * y)
LOOP(complex_div, 2, number, x / y)
LOOP(complex_axpy, 2, number, x + p * y)
LOOP(complex_eq, 2, uint8_t, x == y)
LOOP(complex_ne, 2, uint8_t, x != y)
LOOP(complex_addcmul, 3, number, x + p * y * z)
LOOP(complex_addcdiv, 3, number, x + p * y / z)
LOOP(complex_lerp, 3, number, x + z * (y - x))

dtn_complex_f *dtn_complex_loop(enum dtn_pointwise op)
{
    static dtn_complex_f *const loops[DTN_POINTWISES] = {
        [DTN_EXP] = complex_exp,         [DTN_TANH] = complex_tanh,
        [DTN_SINH] = complex_sinh,       [DTN_ASINH] = complex_asinh,
        [DTN_ATAN] = complex_atan,       [DTN_NEG] = complex_neg,
        [DTN_ABS] = complex_abs,         [DTN_SQUARE] = complex_square,
        [DTN_LOG] = complex_log,         [DTN_SQRT] = complex_sqrt,
        [DTN_RSQRT] = complex_rsqrt,     [DTN_RECIPROCAL] = complex_reciprocal,
        [DTN_SIN] = complex_sin,         [DTN_COS] = complex_cos,
        [DTN_SHIFT] = complex_shift,     [DTN_SCALE] = complex_scale,
        [DTN_POW] = complex_pow,         [DTN_ADD] = complex_add,
        [DTN_SUB] = complex_sub,         [DTN_MUL] = complex_mul,
        [DTN_DIV] = complex_div,         [DTN_AXPY] = complex_axpy,
        [DTN_EQ] = complex_eq,           [DTN_NE] = complex_ne,
        [DTN_ADDCMUL] = complex_addcmul, [DTN_ADDCDIV] = complex_addcdiv,
        [DTN_LERP] = complex_lerp,
    };

    return loops[op];
}
