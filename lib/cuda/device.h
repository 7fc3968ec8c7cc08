/* device.h - a kernel is a C function of one thread's place
 *
 *   DTN_KERNEL(add_one, add_one_args)     the body sees `args` and `at`
 *   {
 *       for (uint64_t i = at.first; i < args->count; i += at.step)
 *           args->x[i] += 1;
 *   }
 *
 * nvcc makes of it the kernel dtn_add_one, which takes the struct by value.
 * The C compiler makes of it add_one_run(), which runs the threads of one block
 * one after the other.  So no body may wait for another thread.
 */
#ifndef DTN_CUDA_DEVICE_H
#define DTN_CUDA_DEVICE_H

#include "base/compiler.h"
#include "cuda/kernels.h"

#include <stdint.h>

struct dtn_thread {
    uint64_t first;                    /* this thread's first unit of work    */
    uint64_t step;                     /* from one to the next: all threads   */
};

/* 16 bytes, loaded or stored at once. */
struct __attribute__((aligned(16))) dtn_quad {
    uint32_t word[4];                  /* their bits                          */
};

/* Elements that a thread loads before it computes with the first of them: a
 * load takes some 600 ns.
 */
enum { DTN_BATCH = 4 };

#define DTN_INLINE                                                            \
    DTN_DEVICE static inline __attribute__((always_inline, unused))

/* Element k of a batch, or its first one again after the end. */
DTN_INLINE uint64_t in_batch(uint64_t count, uint64_t i, int k, uint64_t step)
{
    const uint64_t e = i + (uint64_t)k * step;

    return e < count ? e : i;
}

#ifdef __CUDACC__
#define DTN_UNROLL _Pragma("unroll")
#define DTN_ROLLED _Pragma("unroll 1")
#define DTN_KERNEL(name, tag)                                                 \
    DTN_INLINE void name(const struct dtn_##tag *args, struct dtn_thread at); \
    extern "C" __global__ void __launch_bounds__(DTN_KERNEL_THREADS, 2)       \
        dtn_##name(const __grid_constant__ struct dtn_##tag args)             \
    {                                                                         \
        const struct dtn_thread at = {                                        \
            (uint64_t)blockIdx.x * DTN_KERNEL_THREADS + threadIdx.x,          \
            (uint64_t)gridDim.x * DTN_KERNEL_THREADS                          \
        };                                                                    \
                                                                              \
        name(&args, at);                                                      \
    }                                                                         \
    DTN_INLINE void name(const struct dtn_##tag *args, struct dtn_thread at)
#else
#define DTN_UNROLL
#define DTN_ROLLED
#define DTN_KERNEL(name, tag)                                                 \
    DTN_INLINE void name(const struct dtn_##tag *args, struct dtn_thread at); \
    static void name##_run(const void *args, uint64_t block, uint64_t blocks) \
    {                                                                         \
        for (uint64_t t = 0; t < DTN_KERNEL_THREADS; t++) {                   \
            const struct dtn_thread at = { block * DTN_KERNEL_THREADS + t,    \
                                           blocks * DTN_KERNEL_THREADS };     \
                                                                              \
            name((const struct dtn_##tag *)args, at);                         \
        }                                                                     \
    }                                                                         \
    DTN_INLINE void name(const struct dtn_##tag *args, struct dtn_thread at)
#endif

#endif
