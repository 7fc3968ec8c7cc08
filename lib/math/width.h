/* width.h - the vector width that loops are compiled for, chosen at run time
 *
 * A file of loops, NAME_lanes.h, is included once for each width, by
 * width_lanes.h.  Widths have numbers, narrowest first: 0 is what every CPU of
 * the architecture has.
 */
#ifndef DTN_MATH_WIDTH_H
#define DTN_MATH_WIDTH_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define DTN_WIDTHS 3
/* If the compiler cannot test the CPU for F16C, width 1 converts f16 by
 * arithmetic.  Every CPU with AVX-512 has it.
 */
#if !defined(__clang__) && __GNUC__ >= 11
#define DTN_HAS_F16C() __builtin_cpu_supports("f16c")
#define DTN_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#else
#define DTN_TARGET_AVX2 __attribute__((target("avx2,fma")))
#endif
#define DTN_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"
#ifdef __clang__
#define DTN_VECTORS(bits)
#else
#define DTN_VECTORS(bits) ",prefer-vector-width=" bits
#endif
#define DTN_TARGET_AVX512                                                     \
    __attribute__((target(DTN_AVX512 DTN_VECTORS("512"))))
#define DTN_TARGET_AVX512_SHORT                                               \
    __attribute__((target(DTN_AVX512 DTN_VECTORS("256"))))
#define DTN_TARGET_BF16 __attribute__((target(DTN_AVX512 ",avx512bf16")))
#endif

/* Iterations of the next loop are independent, even if the result is one of
 * the operands.  A sanitizer puts checks into the loop: then clang cannot
 * vectorise it, and warns that it did not.  Without optimization GCC warns that
 * it ignores this.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define DTN_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DTN_INDEPENDENT
#endif

/* The widest one of this CPU, or what dtn_width_force() asked for. */
int dtn_width(void);

/* Use width `width` from now on; -1: the widest again.  False: this CPU lacks
 * it.  For tests.
 */
bool dtn_width_force(int width);

#endif
