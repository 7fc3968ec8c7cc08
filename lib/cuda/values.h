/* values.h - random words made values of a distribution, one block at a time
 *
 * The formulas are those of lib/random/values_lanes.h.  There, loops over
 * arrays are made for each vector width; here, a thread has four words.
 */
#ifndef DTN_CUDA_VALUES_H
#define DTN_CUDA_VALUES_H

#include "base/elementary.h"
#include "cuda/device.h"

struct dtn_words {
    uint32_t word[4];                  /* a block                             */
};

/* The upper 32 bits of a product.  nvcc makes one instruction of both halves,
 * but not of a product of 64 bits.
 */
DTN_INLINE uint32_t product_high(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
    return __umulhi(a, b);
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* Philox4x32-10: see lib/random/philox.c.  The keys of the rounds are arguments
 * of the kernel, which instructions read without a load.
 */
DTN_INLINE struct dtn_words philox(const uint32_t key[20], uint64_t counter,
                                   uint64_t stream)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);

    DTN_UNROLL
    for (int r = 0; r < 10; r++) {
        const uint32_t high0 = product_high(0xD2511F53u, c0);
        const uint32_t high1 = product_high(0xCD9E8D57u, c2);
        const uint32_t low0 = 0xD2511F53u * c0;
        const uint32_t low1 = 0xCD9E8D57u * c2;

        c0 = high1 ^ c1 ^ key[2 * r];
        c1 = low1;
        c2 = high0 ^ c3 ^ key[2 * r + 1];
        c3 = low0;
    }
    {
        const struct dtn_words words = { { c0, c1, c2, c3 } };

        return words;
    }
}

/* --------------------------------------------------- four values of f32 --- */

DTN_INLINE float unit_f32(uint32_t word)
{
    return __builtin_fmaf((float)word, 0x1p-32f, 0x1p-33f);
}

DTN_INLINE float scaled_f32(const struct dtn_fill_args *args, float x)
{
    return __builtin_fmaf(x, (float)args->mul, (float)args->add);
}

DTN_INLINE void uniform_f32(const struct dtn_fill_args *args,
                            const struct dtn_words *words, float x[4])
{
    const float to = (float)args->to, from = (float)args->add;
    const float range = (float)args->mul;

    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = unit_f32(words->word[k]);
    if (range == 1 && from == 0) {
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = x[k] >= 1 ? 0 : x[k];
        return;
    }
    DTN_UNROLL
    for (int k = 0; k < 4; k++) {
        const float value = __builtin_fmaf(x[k], range, from);

        x[k] = value >= to ? from : value;
    }
}

DTN_INLINE void normal_f32(const struct dtn_fill_args *args,
                           const struct dtn_words *words, float x[4])
{
    DTN_UNROLL
    for (int k = 0; k < 4; k += 2) {
        const float angle = __builtin_fmaf((float)words->word[k + 1],
                                           1.4629180793e-9f, 7.314590396e-10f);
        const struct dtn_two_f32 log = log_of_f32(unit_f32(words->word[k]));
        const struct dtn_two_f32 twice = { -2.0f * log.high, -2.0f * log.low };

        sin_cos_times(angle, sqrt_of_two(twice), &x[k], &x[k + 1]);
    }
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = scaled_f32(args, x[k]);
}

DTN_INLINE void log_normal_f32(const struct dtn_fill_args *args,
                               const struct dtn_words *words, float x[4])
{
    normal_f32(args, words, x);
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = (float)exp_of_f64((double)x[k]);
}

DTN_INLINE void exponential_f32(const struct dtn_fill_args *args,
                                const struct dtn_words *words, float x[4])
{
    DTN_UNROLL
    for (int k = 0; k < 4; k++) {
        const float y = log_of_f32(unit_f32(words->word[k])).high;

        x[k] = (float)args->mul * (y > -0x1p-24f ? -0x1p-24f : y);
    }
}

DTN_INLINE void bernoulli_f32(const struct dtn_fill_args *args,
                              const struct dtn_words *words, float x[4])
{
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = unit_f32(words->word[k]) < (float)args->mul ? 1.0f : 0.0f;
}

DTN_INLINE double cut_value(const struct dtn_fill_args *args, double u)
{
    const double p = args->p_low + u * args->p_range;
    const double z = normal_quantile(p <= 0.5 ? p : 1.0 - p);
    const double turned = (p <= 0.5) == (args->mirrored == 0) ? z : -z;
    const double x = args->add + args->mul * turned;

    return x < args->from ? args->from : x > args->to ? args->to : x;
}

DTN_INLINE void trunc_normal_f32(const struct dtn_fill_args *args,
                                 const struct dtn_words *words, float x[4])
{
    for (int k = 0; k < 4; k++)
        x[k] = (float)cut_value(args, (double)unit_f32(words->word[k]));
}

/* ---------------------------------------------------- two values of f64 --- */

/* The 53 bits of value k. */
DTN_INLINE double value_53(const struct dtn_words *words, int k)
{
    return (double)(int64_t)((uint64_t)words->word[2 * k]
                             ^ (uint64_t)words->word[2 * k + 1] << 21);
}

DTN_INLINE double unit_f64(const struct dtn_words *words, int k)
{
    return value_53(words, k) * 0x1p-53 + 0x1p-54;
}

DTN_INLINE double scaled_f64(const struct dtn_fill_args *args, double x)
{
    return args->mul == 1.0 ? x + args->add
                            : __builtin_fma(x, args->mul, args->add);
}

DTN_INLINE void uniform_f64(const struct dtn_fill_args *args,
                            const struct dtn_words *words, double x[2])
{
    DTN_UNROLL
    for (int k = 0; k < 2; k++) {
        const double u = unit_f64(words, k);
        const double value = __builtin_fma(u, args->mul, args->add);

        x[k] = args->mul == 1 && args->add == 0 ? (u >= 1 ? 0 : u)
             : value >= args->to ? args->add : value;
    }
}

DTN_INLINE void normal_f64(const struct dtn_fill_args *args,
                           const struct dtn_words *words, double x[2])
{
    const double u = unit_f64(words, 0);
    const double angle = value_53(words, 1) * 0x1p-52 + 0x1p-53;
    const double s = __builtin_sqrt(-2.0 * log_of_f64(u));
    double sine, cosine;

    sin_cos_pi_f64(angle, &sine, &cosine);
    x[0] = scaled_f64(args, s * sine);
    x[1] = scaled_f64(args, s * cosine);
}

DTN_INLINE void log_normal_f64(const struct dtn_fill_args *args,
                               const struct dtn_words *words, double x[2])
{
    normal_f64(args, words, x);
    DTN_UNROLL
    for (int k = 0; k < 2; k++)
        x[k] = exp_of_f64(x[k]);
}

DTN_INLINE void exponential_f64(const struct dtn_fill_args *args,
                                const struct dtn_words *words, double x[2])
{
    DTN_UNROLL
    for (int k = 0; k < 2; k++) {
        const double y = log_of_f64(unit_f64(words, k));

        x[k] = args->mul * (y > -0x1p-53 ? -0x1p-53 : y);
    }
}

DTN_INLINE void bernoulli_f64(const struct dtn_fill_args *args,
                              const struct dtn_words *words, double x[2])
{
    DTN_UNROLL
    for (int k = 0; k < 2; k++)
        x[k] = unit_f64(words, k) < args->mul ? 1.0 : 0.0;
}

DTN_INLINE void trunc_normal_f64(const struct dtn_fill_args *args,
                                 const struct dtn_words *words, double x[2])
{
    for (int k = 0; k < 2; k++)
        x[k] = cut_value(args, unit_f64(words, k));
}

/* ------------------------------------------------------------- integers --- */

/* Value k of 2, or of 4 if each has one word. */
DTN_INLINE int64_t integer_of(const struct dtn_fill_args *args,
                              const struct dtn_words *words, int k)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t range = args->range;
    const uint64_t one = words->word[k];
    const uint64_t low = words->word[2 * k % 4];
    const uint64_t high = words->word[(2 * k + 1) % 4];
    uint64_t x = args->words == 1 ? one
               : args->remainder ? low << 32 | high : high << 32 | low;

    if (range != 0)
        x = args->remainder ? x % range : (uint64_t)((wide)x * range >> 64);
    return (int64_t)((uint64_t)args->low + x);
}

#endif
