/* reduce.c - dst[i] = a[i] op b[i] op c[i] ...
 *
 * Two sources are one pass: two reads and a write for each element, nothing to
 * do but keep out of the way of the memory.  k sources in k - 1 passes over
 * everything would write the running result k - 1 times; so the array is cut
 * into blocks of 1024 f32 and the running result of a block, 4 KiB, stays in
 * the first cache: k reads and one write of memory, and dst, written last, may
 * be any of the sources.  The 16-bit floats take the same way, widened to f32
 * block by block and rounded once at its end.
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
#pragma GCC optimize("O3")
#endif

#include "base/base.h"
#include "base/half.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BLOCK_BYTES = 4096, BLOCK_FLOATS = BLOCK_BYTES / sizeof(float) };

typedef void fold_f(void *dst, const void *a, const void *b, size_t count);
typedef void widen_f(float *dst, const uint16_t *src, size_t count);
typedef void narrow_f(uint16_t *dst, const float *src, size_t count);

/* The loops of one vector width.  A 16-bit float's fold is that of f32. */
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

/* Two or more sources of 16-bit floats, block by block. */
static void reduce_half(fold_f *fold, widen_f *widen, narrow_f *narrow,
                        uint16_t *dst, const void *const src[], int nsrc,
                        size_t count)
{
    _Alignas(DTN_CACHE_LINE) float result[BLOCK_FLOATS], term[BLOCK_FLOATS];
    size_t n;

    for (size_t i = 0; i < count; i += n) {
        n = count - i < BLOCK_FLOATS ? count - i : BLOCK_FLOATS;
        widen(result, (const uint16_t *)src[0] + i, n);
        for (int s = 1; s < nsrc; s++) {
            widen(term, (const uint16_t *)src[s] + i, n);
            fold(result, result, term, n);
        }
        narrow(dst + i, result, n);
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
        reduce_half(fold, loops->widen[dtype], loops->narrow[dtype], dst, src,
                    nsrc, count);
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

/* ------------------------------------------------------------- naive --- */

/* f32 operands are exact in f64, and rounding their sum or product to f64
 * first does not change what it rounds to in f32.
 */
static double naive_float(enum dtensor_redop op, double x, double y)
{
    switch (op) {
    case DTENSOR_PROD: return x * y;
    case DTENSOR_MIN:  return isnan(x) ? x : isnan(y) || y < x ? y : x;
    case DTENSOR_MAX:  return isnan(x) ? x : isnan(y) || y > x ? y : x;
    default:           return x + y;
    }
}

static int64_t naive_int(enum dtensor_redop op, int64_t x, int64_t y)
{
    switch (op) {
    case DTENSOR_PROD: return (int64_t)((uint64_t)x * (uint64_t)y);
    case DTENSOR_MIN:  return y < x ? y : x;
    case DTENSOR_MAX:  return y > x ? y : x;
    case DTENSOR_BAND: return x & y;
    case DTENSOR_BOR:  return x | y;
    case DTENSOR_BXOR: return x ^ y;
    default:           return (int64_t)((uint64_t)x + (uint64_t)y);
    }
}

static int64_t naive_load_int(enum dtensor_dtype dtype, const void *array,
                              size_t i)
{
    switch (dtype) {
    case DTENSOR_I8:  return ((const int8_t *)array)[i];
    case DTENSOR_U8:  return ((const uint8_t *)array)[i];
    case DTENSOR_I32: return ((const int32_t *)array)[i];
    default:          return ((const int64_t *)array)[i];
    }
}

static void naive_store_int(enum dtensor_dtype dtype, void *array, size_t i,
                            int64_t value)
{
    switch (dtensor_dtype_size(dtype)) {
    case 1:  ((uint8_t *)array)[i] = (uint8_t)value; break;
    case 4:  ((uint32_t *)array)[i] = (uint32_t)value; break;
    default: ((uint64_t *)array)[i] = (uint64_t)value; break;
    }
}

static void naive_fold_float(enum dtensor_dtype dtype, enum dtensor_redop op,
                             void *dst, const void *const src[], int nsrc,
                             size_t i)
{
    double value = dtn_load(dtype, src[0], i);

    for (int s = 1; s < nsrc; s++) {
        value = naive_float(op, value, dtn_load(dtype, src[s], i));
        if (dtype != DTENSOR_F64)
            value = (float)value;
    }
    dtn_store(dtype, dst, i, isnan(value) ? (double)NAN : value);
}

static void naive_fold_int(enum dtensor_dtype dtype, enum dtensor_redop op,
                           void *dst, const void *const src[], int nsrc,
                           size_t i)
{
    int64_t value = naive_load_int(dtype, src[0], i);

    for (int s = 1; s < nsrc; s++)
        value = naive_int(op, value, naive_load_int(dtype, src[s], i));
    naive_store_int(dtype, dst, i, value);
}

void dtn_reduce_naive(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *dst, const void *const src[], int nsrc,
                      size_t count)
{
    if (nsrc == 1 && dst != src[0] && count > 0)
        memcpy(dst, src[0], count * dtensor_dtype_size(dtype));
    for (size_t i = 0; nsrc > 1 && i < count; i++) {
        if (dtn_dtype_is_float(dtype))
            naive_fold_float(dtype, op, dst, src, nsrc, i);
        else
            naive_fold_int(dtype, op, dst, src, nsrc, i);
    }
}

/* ------------------------------------------- scale, neutral elements --- */

#define SCALE_LOOP(name, T, load, store)                                      \
    static void scale_##name(void *array, size_t count, int n)                \
    {                                                                         \
        T *a = array;                                                         \
                                                                              \
        for (size_t i = 0; i < count; i++)                                    \
            a[i] = store(load(a[i]) / n);                                     \
    }

SCALE_LOOP(f32, float, , )
SCALE_LOOP(f64, double, , )
SCALE_LOOP(f16, uint16_t, half_from_f16, half_to_f16)
SCALE_LOOP(bf16, uint16_t, half_from_bf16, half_to_bf16)
SCALE_LOOP(i8, int8_t, , (int8_t))
SCALE_LOOP(u8, uint8_t, , (uint8_t))
SCALE_LOOP(i32, int32_t, , )
SCALE_LOOP(i64, int64_t, , )

void dtn_scale(enum dtensor_dtype dtype, void *array, size_t count, int n)
{
    static void (*const scales[DTENSOR_NDTYPES])(void *, size_t, int) = {
        [DTENSOR_F32] = scale_f32, [DTENSOR_F64] = scale_f64,
        [DTENSOR_F16] = scale_f16, [DTENSOR_BF16] = scale_bf16,
        [DTENSOR_I8] = scale_i8,   [DTENSOR_U8] = scale_u8,
        [DTENSOR_I32] = scale_i32, [DTENSOR_I64] = scale_i64,
    };

    assert(n >= 1);
    scales[dtype](array, count, n);
}

/* The float sum's is -0: x + -0 is x for every x, while -0 + 0 is 0. */
static double neutral_float(enum dtensor_redop op)
{
    switch (op) {
    case DTENSOR_PROD: return 1;
    case DTENSOR_MIN:  return (double)INFINITY;
    case DTENSOR_MAX:  return (double)-INFINITY;
    default:           return -0.0;
    }
}

/* The bits of the lowest and highest value of an integer of `size` bytes. */
static int64_t neutral_int(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    const int bits = 8 * (int)dtensor_dtype_size(dtype);
    const bool is_signed = dtype != DTENSOR_U8;
    const int64_t highest = (int64_t)(UINT64_MAX >> (64 - bits + is_signed));

    switch (op) {
    case DTENSOR_PROD: return 1;
    case DTENSOR_MIN:  return highest;
    case DTENSOR_MAX:  return is_signed ? -highest - 1 : 0;
    case DTENSOR_BAND: return -1;
    default:           return 0;
    }
}

void dtn_fill_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *array, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (dtn_dtype_is_float(dtype))
            dtn_store(dtype, array, i, neutral_float(op));
        else
            naive_store_int(dtype, array, i, neutral_int(dtype, op));
    }
}
