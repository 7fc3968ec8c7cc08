/* ptx_approximate.h - instructions that give a GPU's own value
 *
 * NVIDIA's manual of PTX says how wrong they may be, and no more.  Here they
 * are as wrong as a test asks for: not at all, by all of it in either
 * direction, or by a part of it that depends on the argument.  sin.approx(1) is
 * 0.84147098, or anything within 7e-7 of that.
 */
#ifndef TESTS_CUDA_PTX_APPROXIMATE_H
#define TESTS_CUDA_PTX_APPROXIMATE_H

/* What the manual allows (PTX ISA, 9.7.3.18 to 9.7.3.21).  Sine and cosine:
 * absolute, from -2 pi to 2 pi.  Logarithm: absolute from 1/2 to 2, elsewhere
 * relative.  Power of two: units in the last place of the correctly rounded
 * result, and so with its rounding at most 2.5 x 2^-23 of the value.
 */
#define PTX_SIN_ERROR 7.0e-7           /* 2^-20.5, rounded up                 */
#define PTX_LG2_ERROR 0x1p-22
#define PTX_EX2_UNITS 2
#define PTX_EX2_ERROR 0x1.4p-22        /* relative                            */

enum ptx_wrong { PTX_EXACT, PTX_HIGH, PTX_LOW, PTX_MIXED, PTX_WRONGS };
extern enum ptx_wrong ptx_wrong;

float ptx_sin(float x);
float ptx_cos(float x);
float ptx_lg2(float x);
float ptx_ex2(float x);

#endif
