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

#define DTN_FILL(name, T, COUNT, values, store)                               \
    DTN_KERNEL(name, fill_args)                                               \
    {                                                                         \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_fill_unit unit = fill_unit(args, u, COUNT);      \
            const struct dtn_words words = philox(args->seed, unit.counter,   \
                                                  unit.stream);               \
            T x[COUNT];                                                       \
                                                                              \
            values(args, &words, x);                                          \
            store(args, &unit, x);                                            \
        }                                                                     \
    }
DTN_FILL(fill_uniform_f32, float, 4, uniform_f32, store_uniform)
DTN_FILL(fill_normal_f32, float, 4, normal_f32, store_floats)
DTN_FILL(fill_log_normal_f32, float, 4, log_normal_f32, store_floats)
DTN_FILL(fill_exponential_f32, float, 4, exponential_f32, store_floats)
DTN_FILL(fill_bernoulli_f32, float, 4, bernoulli_f32, store_flags)
DTN_FILL(fill_trunc_normal_f32, float, 4, trunc_normal_f32, store_floats)
DTN_FILL(fill_cuda_normal_f32, float, 4, cuda_normal_f32, store_floats)
DTN_FILL(fill_cuda_log_normal_f32, float, 4, cuda_log_normal_f32, store_floats)
DTN_FILL(fill_cuda_exponential_f32, float, 4, cuda_exponential_f32,
         store_floats)
DTN_FILL(fill_uniform_f64, double, 2, uniform_f64, store_f64)
DTN_FILL(fill_normal_f64, double, 2, normal_f64, store_f64)
DTN_FILL(fill_log_normal_f64, double, 2, log_normal_f64, store_f64)
DTN_FILL(fill_exponential_f64, double, 2, exponential_f64, store_f64)
DTN_FILL(fill_bernoulli_f64, double, 2, bernoulli_f64, store_f64)
DTN_FILL(fill_trunc_normal_f64, double, 2, trunc_normal_f64, store_f64)

DTN_KERNEL(fill_integers, fill_args)
{
    const int each = args->words == 1 ? 4 : 2;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_fill_unit unit = fill_unit(args, u, each);
        const struct dtn_words words = philox(args->seed, unit.counter,
                                              unit.stream);
        int64_t x[4];

        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            x[k] = integer_of(args, &words, k);
        store_integers(args, &unit, x);
    }
}

#endif
