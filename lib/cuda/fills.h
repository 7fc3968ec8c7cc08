/* fills.h - the kernels that fill with random numbers
 *
 * One for each distribution; f16, bf16 and f8 are values of f32, rounded.
 * Those of `fill = cuda` whose values are approximate on a GPU have a name of
 * their own, fill_cuda_*: tests compare them by a bound, all others bit by bit.
 */
#ifndef DTN_CUDA_FILLS_H
#define DTN_CUDA_FILLS_H

#include "cuda/fill_units.h"
#include "cuda/values.h"
#include "cuda/values_cuda.h"

#define DTN_FILL_UNITS(T, COUNT, values, store)                               \
    do {                                                                      \
        struct dtn_fill_walk walk = fill_walk(args, at);                      \
                                                                              \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_fill_unit unit = fill_unit(args, &walk, u,       \
                                                        COUNT);               \
            const struct dtn_words words = philox(args->key, unit.counter,    \
                                                  unit.stream);               \
            T x[COUNT];                                                       \
                                                                              \
            values(args, &words, x);                                          \
            store(args, &unit, x);                                            \
            fill_step(args, &walk);                                           \
        }                                                                     \
    } while (0)

#define DTN_FILL(name, T, COUNT, values, store)                               \
    DTN_KERNEL(name, fill_args)                                               \
    {                                                                         \
        DTN_FILL_UNITS(T, COUNT, values, store);                              \
    }

/* Plain f32: a block takes some 100 instructions, so others are seen in the
 * rate.  No type is asked for, and places are found by additions.
 */
#define DTN_FILL_F32(name, values, store)                                     \
    DTN_INLINE void name##_fours(const struct dtn_fill_args *args,            \
                                 struct dtn_thread at)                        \
    {                                                                         \
        uint64_t counter = args->block + args->unit + at.first;               \
        union {                                                               \
            struct dtn_quad quad;                                             \
            float x[4];                                                       \
        } both;                                                               \
                                                                              \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_words words = philox(args->key, counter, 0);     \
                                                                              \
            values(args, &words, both.x);                                     \
            ((struct dtn_quad *)args->dst)[u] = both.quad;                    \
            counter += at.step;                                               \
        }                                                                     \
    }                                                                         \
    DTN_INLINE void name##_grid(const struct dtn_fill_args *args,             \
                                struct dtn_thread at)                         \
    {                                                                         \
        struct dtn_fill_walk walk = fill_walk(args, at);                      \
        float *to = (float *)args->dst;                                       \
                                                                              \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_fill_unit unit = fill_grid(args, &walk, 4);      \
            const struct dtn_words words = philox(args->key, unit.counter,    \
                                                  unit.stream);               \
            float x[4];                                                       \
                                                                              \
            values(args, &words, x);                                          \
            DTN_UNROLL                                                        \
            for (uint64_t k = 0, place = unit.index - args->first; k < 4;     \
                 k++, place += args->grid.by)                                 \
                if (place < args->count)                                      \
                    to[place] = x[k];                                         \
            fill_step(args, &walk);                                           \
        }                                                                     \
    }                                                                         \
    DTN_KERNEL(name, fill_args)                                               \
    {                                                                         \
        if (args->plain && args->order == DTN_FILL_SEQUENTIAL)                \
            name##_fours(args, at);                                           \
        else if (args->plain)                                                 \
            name##_grid(args, at);                                            \
        else                                                                  \
            DTN_FILL_UNITS(float, 4, values, store);                          \
    }
DTN_FILL_F32(fill_uniform_f32, uniform_f32, store_uniform)
DTN_FILL_F32(fill_normal_f32, normal_f32, store_floats)
DTN_FILL(fill_log_normal_f32, float, 4, log_normal_f32, store_floats)
DTN_FILL(fill_exponential_f32, float, 4, exponential_f32, store_floats)
DTN_FILL(fill_bernoulli_f32, float, 4, bernoulli_f32, store_flags)
DTN_FILL(fill_trunc_normal_f32, float, 4, trunc_normal_f32, store_floats)
DTN_FILL_F32(fill_cuda_normal_f32, cuda_normal_f32, store_floats)
DTN_FILL(fill_cuda_log_normal_f32, float, 4, cuda_log_normal_f32, store_floats)
DTN_FILL(fill_cuda_exponential_f32, float, 4, cuda_exponential_f32,
         store_floats)
DTN_FILL(fill_cuda_normal_f64, double, 2, cuda_normal_f64, store_f64)
DTN_FILL(fill_cuda_log_normal_f64, double, 2, cuda_log_normal_f64, store_f64)
DTN_FILL(fill_cuda_exponential_f64, double, 2, cuda_exponential_f64, store_f64)
DTN_FILL(fill_uniform_f64, double, 2, uniform_f64, store_f64)
DTN_FILL(fill_normal_f64, double, 2, normal_f64, store_f64)
DTN_FILL(fill_log_normal_f64, double, 2, log_normal_f64, store_f64)
DTN_FILL(fill_exponential_f64, double, 2, exponential_f64, store_f64)
DTN_FILL(fill_bernoulli_f64, double, 2, bernoulli_f64, store_f64)
DTN_FILL(fill_trunc_normal_f64, double, 2, trunc_normal_f64, store_f64)

DTN_KERNEL(fill_integers, fill_args)
{
    const int each = args->words == 1 ? 4 : 2;
    struct dtn_fill_walk walk = fill_walk(args, at);

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_fill_unit unit = fill_unit(args, &walk, u, each);
        const struct dtn_words words = philox(args->key, unit.counter,
                                              unit.stream);
        int64_t x[4];

        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = integer_of(args, &words, k);
        store_integers(args, &unit, x);
        fill_step(args, &walk);
    }
}

#endif
