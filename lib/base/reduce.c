/* reduce.c - dst[i] = a[i] op b[i] op c[i] ...
 *
 * Two sources are one pass: two reads and a write for each element, nothing to
 * do but keep out of the way of the memory.  k sources in k - 1 passes over
 * everything would write the running result k - 1 times; so the array is cut
 * into blocks of 1024 f32 and the running result of a block, 4 KiB, stays in
 * the first cache: k reads and one write of memory, and dst, written last, may
 * be any of the sources.  The floats of 16 and 8 bits take the same way, widened
 * to f32 block by block and rounded once at its end.
 *
 * Every NaN that an operation makes is the same one: which of two NaNs an
 * addition keeps depends on the order in which the compiler hands them to the
 * CPU, and an x86 makes a negative one of inf - inf, an ARM a positive one.
 *
 * The loops are in reduce_loops.h, compiled for each vector width; which is
 * used is asked of the CPU.  In the second cache a sum of two runs at the
 * speed of memcpy: 42 against 44-50 GB/s of result, 64 to 256 KiB, AVX2.
 */
/* Packages are built with -O2, at which gcc leaves these loops scalar: 3.6
 * instead of 42 GB/s for i8.  A build without optimisation stays as asked.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "base/base.h"
#include "base/narrow.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BLOCK_BYTES = 4096, BLOCK_FLOATS = BLOCK_BYTES / sizeof(float) };

typedef void fold_f(void *dst, const void *a, const void *b, size_t count);
typedef void widen_f(float *dst, const void *src, size_t count);
typedef void narrow_f(void *dst, const float *src, size_t count);

/* The loops of one vector width.  A narrow float's fold is that of f32. */
struct loops {
    fold_f *fold[DTENSOR_NDTYPES][DTENSOR_NREDOPS];
    widen_f *widen[DTENSOR_NDTYPES];
    narrow_f *narrow[DTENSOR_NDTYPES];
};

static inline float f32_one_nan(float value)
{
    return value != value ? NAN : value;
}

static inline double f64_one_nan(double value)
{
    return value != value ? (double)NAN : value;
}

/* With checks of each operation in the loop clang cannot keep this promise,
 * and would warn that it did not.
 */
#if defined(__clang__)
#if __has_feature(undefined_behavior_sanitizer)
#define LOOPS_INDEPENDENT
#else
#define LOOPS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#endif
#elif defined(__GNUC__)
#define LOOPS_INDEPENDENT _Pragma("GCC ivdep")
#else
#define LOOPS_INDEPENDENT
#endif

#define LOOPS_TARGET
#define LOOPS_NAME(name) name##_plain
#include "base/reduce_loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_WIDER 1

/* Where the compiler cannot ask the CPU for F16C, f16 is done by arithmetic. */
#if !defined(__clang__) && __GNUC__ >= 11
#define TARGET_AVX2 "avx2,f16c"
#define HAVE_AVX2()                                                           \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
#define F16_LANES 8
#define F16_WIDEN(dst, src)                                                   \
    _mm256_storeu_ps(dst, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(src))))
#define F16_NARROW(dst, src)                                                  \
    _mm_storeu_si128((void *)(dst), _mm256_cvtps_ph(_mm256_loadu_ps(src), 0))
#else
#define TARGET_AVX2 "avx2"
#define HAVE_AVX2() __builtin_cpu_supports("avx2")
#endif

#define LOOPS_TARGET __attribute__((target(TARGET_AVX2)))
#define LOOPS_NAME(name) name##_avx2
#include "base/reduce_loops.h"

#define F16_LANES 16
#define F16_WIDEN(dst, src)                                                   \
    _mm512_storeu_ps(dst, _mm512_cvtph_ps(                                    \
                              _mm256_loadu_si256((const void *)(src))))
#define F16_NARROW(dst, src)                                                  \
    _mm256_storeu_si256((void *)(dst), _mm512_cvtps_ph(_mm512_loadu_ps(src), 0))
#define LOOPS_TARGET                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define LOOPS_NAME(name) name##_avx512
/* AVX-512 brings fused multiply-add, and gcc 12 makes one of re * re - im * im
 * even where it may not: other bits than at other widths.
 */
#define LOOPS_PRODUCT(name) name##_prod_avx2
#include "base/reduce_loops.h"
#endif

/* Narrowest first; every x86-64 has the plain one's 16 bytes. */
static const struct {
    const char *name;
    const struct loops *loops;
} widths[] = {
    { "plain", &loops_plain },
#ifdef HAVE_WIDER
    { "avx2", &loops_avx2 },
    { "avx512", &loops_avx512 },
#endif
};

/* How many of the widths this CPU has. */
static int reduce_widths(void)
{
#ifdef HAVE_WIDER
    if (!HAVE_AVX2())
        return 1;
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return 2;
#endif
    return (int)DTN_COUNT(widths);
}

const char *dtn_reduce_width_name(int width)
{
    return width >= 0 && width < reduce_widths() ? widths[width].name : NULL;
}

/* Three or more sources, block by block. */
static void reduce_many(fold_f *fold, size_t size, char *dst,
                        const void *const src[], int nsrc, size_t count)
{
    _Alignas(DTN_CACHE_LINE) char result[BLOCK_BYTES];
    const size_t total = count * size;
    size_t n;

    for (size_t at = 0; at < total; at += n * size) {
        n = (total - at < BLOCK_BYTES ? total - at : BLOCK_BYTES) / size;
        fold(result, (const char *)src[0] + at, (const char *)src[1] + at, n);
        for (int s = 2; s < nsrc - 1; s++)
            fold(result, result, (const char *)src[s] + at, n);
        fold(dst + at, result, (const char *)src[nsrc - 1] + at, n);
    }
}

/* Two or more sources of floats narrower than f32, block by block. */
static void reduce_narrow(const struct loops *loops, enum dtensor_dtype dtype,
                          enum dtensor_redop op, char *dst,
                          const void *const src[], int nsrc, size_t count)
{
    _Alignas(DTN_CACHE_LINE) float result[BLOCK_FLOATS], term[BLOCK_FLOATS];
    const size_t size = dtensor_dtype_size(dtype);
    size_t n;

    for (size_t i = 0; i < count; i += n) {
        n = count - i < BLOCK_FLOATS ? count - i : BLOCK_FLOATS;
        loops->widen[dtype](result, (const char *)src[0] + i * size, n);
        for (int s = 1; s < nsrc; s++) {
            loops->widen[dtype](term, (const char *)src[s] + i * size, n);
            loops->fold[dtype][op](result, result, term, n);
        }
        loops->narrow[dtype](dst + i * size, result, n);
    }
}

void dtn_reduce_width(int width, enum dtensor_dtype dtype,
                      enum dtensor_redop op, void *dst,
                      const void *const src[], int nsrc, size_t count)
{
    const struct loops *loops = widths[width].loops;
    const size_t size = dtensor_dtype_size(dtype);
    fold_f *fold = loops->fold[dtype][op];

    assert(nsrc >= 1 && dtn_redop_ok(op, dtype));
    if (nsrc == 1) {
        if (dst != src[0] && count > 0)
            memcpy(dst, src[0], count * size);
    } else if (loops->widen[dtype]) {
        reduce_narrow(loops, dtype, op, dst, src, nsrc, count);
    } else if (nsrc == 2) {
        fold(dst, src[0], src[1], count);
    } else {
        reduce_many(fold, size, dst, src, nsrc, count);
    }
}

void dtn_reduce(enum dtensor_dtype dtype, enum dtensor_redop op, void *dst,
                const void *const src[], int nsrc, size_t count)
{
    dtn_reduce_width(reduce_widths() - 1, dtype, op, dst, src, nsrc, count);
}
