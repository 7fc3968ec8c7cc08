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
 * result, and so with its rounding at most 2.5 x 2^-23 of the value.  Of the
 * reciprocal of f64 the manual says no bound, only that it is made of the upper
 * 32 bits and has no others.  Libdevice's step of third order makes of 2^-19
 * one of 2^-57.
 */
#define PTX_SIN_ERROR 7.0e-7           /* 2^-20.5, rounded up                 */
#define PTX_LG2_ERROR 0x1p-22
#define PTX_EX2_UNITS 2
#define PTX_EX2_ERROR 0x1.4p-22        /* relative                            */
#define PTX_RCP_ERROR 0x1p-19          /* relative                            */

enum ptx_wrong { PTX_EXACT, PTX_HIGH, PTX_LOW, PTX_MIXED, PTX_WRONGS };
extern enum ptx_wrong ptx_wrong;

float ptx_sin(float x);
float ptx_cos(float x);
float ptx_lg2(float x);
float ptx_ex2(float x);
double ptx_rcp(double x);

#endif
