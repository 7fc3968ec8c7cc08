/* values.c - from random words to values of a distribution
 *
 * A word x becomes the middle of its interval, (x + 1/2) 2^-32: with seed 0 the
 * first word is 0x6627e8d5, which is 0.399.  Two words give two normal values:
 * one word is the radius, the other the angle.  The formulas and their
 * roundings are those of PyTorch's CUDA kernels, so uniform values have the
 * same bits.  Only the logarithm, sine and cosine are our own.
 *
 * Loops are compiled for each vector width; all give the same bits.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "random/values.h"
#include "random/dist.h"
#include "base/elementary.h"
#include "random/quantile.h"

#include <string.h>

#if defined(__clang__)
#define VALUES_INDEPENDENT
#elif defined(__GNUC__)
#define VALUES_INDEPENDENT _Pragma("GCC ivdep")
#else
#define VALUES_INDEPENDENT
#endif

typedef void values_f(const struct dtn_dist *dist, const uint32_t *words,
                      size_t n, void *out);

struct values {
    values_f *f32[DTN_NDISTS];         /* n values from n words               */
    values_f *f64[DTN_NDISTS];         /* n values from 2 n words             */
};

/* The 53 bits that two words make. */
static inline double value_53(const uint32_t word[2])
{
    return (double)(int64_t)((uint64_t)word[0] ^ (uint64_t)word[1] << 21);
}

/* In (0, 1]: the middle of the interval of 2^-53. */
static inline double unit_53(const uint32_t word[2])
{
    return value_53(word) * 0x1p-53 + 0x1p-54;
}

static double value_cut(const struct dtn_dist *dist, double u)
{
    const double p = dist->p_low + u * dist->p_range;
    const double z = p <= 0.5 ? dtn_normal_quantile(p)
                              : -dtn_normal_quantile(1.0 - p);
    const double x = dist->add + dist->mul * (dist->mirrored ? -z : z);

    return x < dist->from ? dist->from : x > dist->to ? dist->to : x;
}

/* --------------------------------------------------------------- widths --- */

#define LANES_TARGET
#define LANES_NAME(name) name##_plain
#define LANES_FMA32 __builtin_fmaf
#define LANES_FMA64 __builtin_fma
/* Without an instruction for fused multiplication.  The products are exact;
 * that of the angle is a double, and its second rounding changes no result (a
 * test tries every float).
 */
#define LANES_UNIT(x) ((float)(x) * 0x1p-32f + 0x1p-33f)
#define LANES_ANGLE(x)                                                        \
    ((float)((double)(x) * (double)VALUES_TURN + (double)VALUES_HALF_TURN))
#define VALUES_TURN 1.4629180793e-9f                 /* 2^-32 2 pi            */
#define VALUES_HALF_TURN 7.314590396e-10f            /* 2^-33 2 pi            */
#include "random/values_lanes.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_WIDER 1
#define LANES_TARGET __attribute__((target("avx2,fma")))
#define LANES_NAME(name) name##_avx2
#define LANES_FMA32 __builtin_fmaf
#define LANES_FMA64 __builtin_fma
#define LANES_UNIT(x) __builtin_fmaf((float)(x), 0x1p-32f, 0x1p-33f)
#define LANES_ANGLE(x) __builtin_fmaf(x, VALUES_TURN, VALUES_HALF_TURN)
#include "random/values_lanes.h"

#define TARGET_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,fma"
#ifdef __clang__
#define LANES_TARGET __attribute__((target(TARGET_AVX512)))
#else
#define LANES_TARGET                                                          \
    __attribute__((target(TARGET_AVX512 ",prefer-vector-width=512")))
#endif
#define LANES_NAME(name) name##_avx512
#define LANES_FMA32 __builtin_fmaf
#define LANES_FMA64 __builtin_fma
#define LANES_UNIT(x) __builtin_fmaf((float)(x), 0x1p-32f, 0x1p-33f)
#define LANES_ANGLE(x) __builtin_fmaf(x, VALUES_TURN, VALUES_HALF_TURN)
#include "random/values_lanes.h"
#endif

static const struct values *const widths[] = {
    &values_plain,
#ifdef HAVE_WIDER
    &values_avx2,
    &values_avx512,
#endif
};

void dtn_values_f32(int width, const struct dtn_dist *dist,
                    const uint32_t *words, size_t n, float *out)
{
    widths[width]->f32[dist->kind](dist, words, n, out);
}

void dtn_values_f64(int width, const struct dtn_dist *dist,
                    const uint32_t *words, size_t n, double *out)
{
    widths[width]->f64[dist->kind](dist, words, n, out);
}

/* ------------------------------------------------------------- integers --- */

/* low + a number in [0, range); range 0 stands for 2^64. */
void dtn_values_int(const struct dtn_dist *dist, const uint32_t *words,
                    size_t n, int64_t *out)
{
    const uint64_t range = dist->range, low = (uint64_t)dist->low;

    for (size_t i = 0; i < n; i++) {
        uint64_t x;

        if (dist->words == 1)
            x = words[i];
        else if (dist->remainder)
            x = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
        else
            x = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        if (range != 0 && dist->remainder)
            x %= range;
        else if (range != 0)
            x = (uint64_t)((unsigned __int128)x * range >> 64);
        out[i] = (int64_t)(low + x);
    }
}
