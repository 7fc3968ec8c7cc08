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

/* ----------------------------------------------------------------- f64 --- */

DTN_INLINE double2 normals_f64(curandStatePhilox4_32_10_t *state,
                               const struct dtn_fill_args *args)
{
    double2 x = curand_normal2_double(state);

    x.x = x.x * args->mul + args->add;
    x.y = x.y * args->mul + args->add;
    return x;
}

DTN_INLINE double2 log_normals_f64(curandStatePhilox4_32_10_t *state,
                                   const struct dtn_fill_args *args)
{
    double2 x = normals_f64(state, args);

    x.x = exp(x.x);
    x.y = exp(x.y);
    return x;
}

DTN_INLINE double exponential_of(double u, double factor)
{
    const double half = 2.2204460492503131e-16 / 2;   /* of double's epsilon */

    return factor * (u >= 1.0 - half ? -half : log(u));
}

DTN_INLINE double2 exponentials_f64(curandStatePhilox4_32_10_t *state,
                                    const struct dtn_fill_args *args)
{
    double2 x = curand_uniform2_double(state);

    x.x = exponential_of(x.x, args->mul);
    x.y = exponential_of(x.y, args->mul);
    return x;
}

/* ------------------------------------------------------------- kernels --- */

DTN_INLINE void store_four(const struct dtn_fill_args *args,
                           const struct dtn_fill_unit *unit, float4 made)
{
    const float x[4] = { made.x, made.y, made.z, made.w };

    store_floats(args, unit, x);
}

DTN_INLINE void store_two(const struct dtn_fill_args *args,
                          const struct dtn_fill_unit *unit, double2 made)
{
    const double x[2] = { made.x, made.y };

    store_f64(args, unit, x);
}

#define FILL(name, each, values, store)                                       \
    DTN_KERNEL(name, fill_args)                                               \
    {                                                                         \
        struct dtn_fill_walk walk = fill_walk(args, at);                      \
                                                                              \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_fill_unit unit = fill_unit(args, &walk, u, each);\
            curandStatePhilox4_32_10_t state;                                 \
                                                                              \
            curand_init(args->seed, unit.stream, 4 * unit.counter, &state);   \
            store(args, &unit, values(&state, args));                         \
            fill_step(args, &walk);                                           \
        }                                                                     \
    }
FILL(fill_cuda_normal_f32, 4, normals, store_four)
FILL(fill_cuda_log_normal_f32, 4, log_normals, store_four)
FILL(fill_cuda_exponential_f32, 4, exponentials, store_four)
FILL(fill_cuda_normal_f64, 2, normals_f64, store_two)
FILL(fill_cuda_log_normal_f64, 2, log_normals_f64, store_two)
FILL(fill_cuda_exponential_f64, 2, exponentials_f64, store_two)
