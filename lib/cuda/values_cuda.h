/* values_cuda.h - values of `fill = cuda` by a GPU's own functions
 *
 * PyTorch's normals are cuRAND's: a logarithm in software, and __sincosf(),
 * which is two instructions of the GPU that no standard defines.  Its
 * exponentials and log-normals use __logf() and __expf().  Those of f64 are all
 * in software, with a reciprocal of the GPU in the logarithm.  A kernel that
 * calls the same functions has the bits of PyTorch on that GPU.  A CPU cannot
 * have them: its values, which the twins of these kernels make, are within the
 * error that the instructions and functions may have.
 *
 * In the logarithm of f64 nvcc fuses a product and a sum, if it may: q + q of
 * q, which is d r rounded, to d r + q.  The bits are the same: d r is at most
 * half a unit of q, a quarter of a unit of the sum, away from q.
 */
#ifndef DTN_CUDA_VALUES_CUDA_H
#define DTN_CUDA_VALUES_CUDA_H

#include "cuda/device.h"
#include "cuda/values.h"

#ifdef __CUDA_ARCH__
/* Two words, two normals, as curand_normal4() makes them. */
DTN_INLINE void two_normals(uint32_t radius, uint32_t turn, float x[2])
{
    const float angle = __builtin_fmaf((float)turn, 1.4629180793e-9f,
                                       7.314590396e-10f);
    const float s = sqrtf(-2.0f * logf(unit_f32(radius)));
    float sine, cosine;

    __sincosf(angle, &sine, &cosine);
    x[0] = sine * s;
    x[1] = cosine * s;
}

DTN_INLINE void cuda_normal_f32(const struct dtn_fill_args *args,
                                const struct dtn_words *words, float x[4])
{
    two_normals(words->word[0], words->word[1], x);
    two_normals(words->word[2], words->word[3], x + 2);
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = scaled_f32(args, x[k]);
}

DTN_INLINE void cuda_log_normal_f32(const struct dtn_fill_args *args,
                                    const struct dtn_words *words, float x[4])
{
    cuda_normal_f32(args, words, x);
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = __expf(x[k]);
}

/* Where the logarithm could be 0 or positive, PyTorch takes -epsilon/2. */
DTN_INLINE void cuda_exponential_f32(const struct dtn_fill_args *args,
                                     const struct dtn_words *words, float x[4])
{
    DTN_UNROLL
    for (int k = 0; k < 4; k++) {
        const float u = unit_f32(words->word[k]);

        x[k] = (float)args->mul
             * (u >= 1.0f - 0x1p-24f ? -0x1p-24f : __logf(u));
    }
}

/* As curand_normal2_double(). */
DTN_INLINE void cuda_normal_f64(const struct dtn_fill_args *args,
                                const struct dtn_words *words, double x[2])
{
    const double angle = value_53(words, 1) * 0x1p-52 + 0x1p-53;
    const double s = sqrt(-2.0 * log(unit_f64(words, 0)));
    double sine, cosine;

    sincospi(angle, &sine, &cosine);
    x[0] = scaled_f64(args, sine * s);
    x[1] = scaled_f64(args, cosine * s);
}

DTN_INLINE void cuda_log_normal_f64(const struct dtn_fill_args *args,
                                    const struct dtn_words *words, double x[2])
{
    cuda_normal_f64(args, words, x);
    DTN_UNROLL
    for (int k = 0; k < 2; k++)
        x[k] = exp(x[k]);
}

DTN_INLINE void cuda_exponential_f64(const struct dtn_fill_args *args,
                                     const struct dtn_words *words,
                                     double x[2])
{
    DTN_UNROLL
    for (int k = 0; k < 2; k++) {
        const double u = unit_f64(words, k);

        x[k] = args->mul * (u >= 1.0 - 0x1p-53 ? -0x1p-53 : log(u));
    }
}
#else
DTN_INLINE void cuda_normal_f32(const struct dtn_fill_args *args,
                                const struct dtn_words *words, float x[4])
{
    normal_f32(args, words, x);
}

DTN_INLINE void cuda_log_normal_f32(const struct dtn_fill_args *args,
                                    const struct dtn_words *words, float x[4])
{
    log_normal_f32(args, words, x);
}

DTN_INLINE void cuda_exponential_f32(const struct dtn_fill_args *args,
                                     const struct dtn_words *words, float x[4])
{
    exponential_f32(args, words, x);
}

DTN_INLINE void cuda_normal_f64(const struct dtn_fill_args *args,
                                const struct dtn_words *words, double x[2])
{
    normal_f64(args, words, x);
}

DTN_INLINE void cuda_log_normal_f64(const struct dtn_fill_args *args,
                                    const struct dtn_words *words, double x[2])
{
    log_normal_f64(args, words, x);
}

DTN_INLINE void cuda_exponential_f64(const struct dtn_fill_args *args,
                                     const struct dtn_words *words,
                                     double x[2])
{
    exponential_f64(args, words, x);
}
#endif

#endif
