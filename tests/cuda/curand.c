/* curand.c - the kernels of `fill = cuda` by cuRAND's functions, for nvcc
 *
 * What PyTorch's own kernels do with an element: cuRAND's generator of the
 * element's thread, its normal or uniform numbers, and PyTorch's formula of the
 * distribution.  Compiled as PyTorch is, so that products and sums become one
 * operation; the names and arguments are those of the library's kernels.
 */
#include <curand_kernel.h>

#include "cuda/fill_units.h"

DTN_INLINE float4 normals(curandStatePhilox4_32_10_t *state,
                          const struct dtn_fill_args *args)
{
    const float mean = (float)args->add, std = (float)args->mul;
    float4 x = curand_normal4(state);

    x.x = x.x * std + mean;
    x.y = x.y * std + mean;
    x.z = x.z * std + mean;
    x.w = x.w * std + mean;
    return x;
}

DTN_INLINE float4 log_normals(curandStatePhilox4_32_10_t *state,
                              const struct dtn_fill_args *args)
{
    float4 x = normals(state, args);

    x.x = __expf(x.x);
    x.y = __expf(x.y);
    x.z = __expf(x.z);
    x.w = __expf(x.w);
    return x;
}

DTN_INLINE float exponential(float u, float factor)
{
    const float half = 1.1920929e-7f / 2;             /* of float's epsilon  */

    return factor * (u >= 1.0f - half ? -half : __logf(u));
}

DTN_INLINE float4 exponentials(curandStatePhilox4_32_10_t *state,
                               const struct dtn_fill_args *args)
{
    const float factor = (float)args->mul;
    float4 x = curand_uniform4(state);

    x.x = exponential(x.x, factor);
    x.y = exponential(x.y, factor);
    x.z = exponential(x.z, factor);
    x.w = exponential(x.w, factor);
    return x;
}

#define FILL(name, values)                                                    \
    DTN_KERNEL(name, fill_args)                                               \
    {                                                                         \
        struct dtn_fill_walk walk = fill_walk(args, at);                      \
                                                                              \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_fill_unit unit = fill_unit(args, &walk, u, 4);   \
            curandStatePhilox4_32_10_t state;                                 \
            float4 made;                                                      \
                                                                              \
            curand_init(args->seed, unit.stream, 4 * unit.counter, &state);   \
            made = values(&state, args);                                      \
            {                                                                 \
                const float x[4] = { made.x, made.y, made.z, made.w };        \
                                                                              \
                store_floats(args, &unit, x);                                 \
            }                                                                 \
            fill_step(args, &walk);                                           \
        }                                                                     \
    }
FILL(fill_cuda_normal_f32, normals)
FILL(fill_cuda_log_normal_f32, log_normals)
FILL(fill_cuda_exponential_f32, exponentials)
