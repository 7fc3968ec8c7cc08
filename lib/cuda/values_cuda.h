/* values_cuda.h - values of `fill = cuda` by a GPU's own functions
 *
 * PyTorch's normals are cuRAND's: a logarithm in software, and __sincosf(),
 * which is two instructions of the GPU that no standard defines.  Its
 * exponentials and log-normals use __logf() and __expf().  A kernel that calls
 * the same functions has the bits of PyTorch on that GPU.  A CPU cannot have
 * them: its values, which the twins of these kernels make, are within the
 * error that the instructions may have.
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
#endif

#endif
