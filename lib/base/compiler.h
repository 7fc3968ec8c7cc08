/* compiler.h - attributes and constants of the whole library */
#ifndef DTN_BASE_COMPILER_H
#define DTN_BASE_COMPILER_H

#define DTN_CACHE_LINE 64
#define DTN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define DTN_NOINLINE __attribute__((noinline))
#define DTN_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Before a function, and of a table, that kernels for a GPU use too: nvcc
 * compiles them for both sides.
 */
#ifdef __CUDACC__
#define DTN_DEVICE __host__ __device__
#define DTN_TABLE static __device__ const
#else
#define DTN_DEVICE
#define DTN_TABLE static const
#endif

#endif
