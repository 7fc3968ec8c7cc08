/* reduce.c - dst[i] = a[i] op b[i] op c[i] ...
 *
 * Two sources take one pass: two reads and one write of memory per element.
 * k sources in k - 1 passes would write the running result k - 1 times.  So
 * the array is cut into blocks of 1024 f32, and the running result of a block,
 * 4 KiB, stays in the L1 cache: k reads and one write of memory.  dst is
 * written last, so it may be any of the sources.  Floats of 16 and 8 bits are
 * widened to f32 block by block and rounded once, at the end of the block.
 * Integers that are averaged are widened to 64 or 128 bits, also block by
 * block.
 *
 * A reduction over several ranks is folded piece by piece.  A *partial result*
 * lies between two pieces: for a sum of bf16 it is an f32, because in bf16
 * 256 + 1 + 1 is 256.  An element that comes in is converted to the accumulator
 * type ("lifted").  A result that goes out is finalised ("dropped"): divided if
 * it is an average, then rounded.
 *
 * Every NaN that an operation makes has the same bits.  Otherwise they would
 * depend on the operand order of an addition of two NaNs, and on the CPU: inf -
 * inf is a negative NaN on x86 and a positive one on ARM.  The first loop only
 * records, in integers, that there is a NaN; a second loop replaces them.
 *
 * The loops are in reduce_loops.h, compiled for each vector width; the CPU's
 * widest is chosen at run time.  In the L2 cache a sum of two sources runs at
 * the speed of memcpy: 42 against 44-50 GB/s of result, 64 to 256 KiB, AVX2.
 */
/* Packages are built with -O2.  There gcc does not vectorise these loops: 3.6
 * instead of 42 GB/s for i8.  A build without optimisation is left alone.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "base/reduce.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/narrow.h"
#include "dtensor.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    BLOCK_BYTES = 4096,
    FEW = 8                       /* elements                                 */
};

typedef void convert_f(void *dst, const void *src, size_t count);
typedef void scale_f(void *dst, const void *src, double by, size_t count);

/* The loops of one vector width.  `widen` and `narrow` convert to and from
 * dtn_dtype_wide(); they are NULL where that is the type itself.
 */
struct loops {
    dtn_fold_f *fold[DTN_NDTYPES][DTENSOR_NREDOPS];
    convert_f *widen[DTN_NDTYPES];
    convert_f *narrow[DTN_NDTYPES];
    scale_f *times[DTN_NDTYPES];
    scale_f *over[DTN_NDTYPES];
};

static inline float f32_one_nan(float value)
{
    return value != value ? NAN : value;
}

static inline double f64_one_nan(double value)
{
    return value != value ? (double)NAN : value;
}

/* The highest bit is set for a NaN: without its sign it is above infinity. */
static inline uint32_t f32_nan_bit(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7fffffff) + 0x007fffff;
}

static inline uint64_t f64_nan_bit(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (bits & INT64_MAX) + 0x000fffffffffffff;
}

/* No CPU has vectors of 128-bit integers: these loops serve every width. */
#define CONVERT_I128(name, T)                                                 \
    static void name##_widen(void *to, const void *from, size_t count)        \
    {                                                                         \
        dtn_i128 *dst = to;                                                   \
        const T *src = from;                                                  \
                                                                              \
        for (size_t i = 0; i < count; i++)                                    \
            dst[i] = src[i];                                                  \
    }                                                                         \
    static void name##_narrow(void *to, const void *from, size_t count)       \
    {                                                                         \
        T *dst = to;                                                          \
        const dtn_i128 *src = from;                                           \
                                                                              \
        for (size_t i = 0; i < count; i++)                                    \
            dst[i] = (T)src[i];                                               \
    }

CONVERT_I128(i64, int64_t)
CONVERT_I128(u64, uint64_t)

static void i128_sum(void *dst, const void *a, const void *b, size_t count)
{
    dtn_u128 *to = dst;
    const dtn_u128 *left = a, *right = b;

    for (size_t i = 0; i < count; i++)
        to[i] = left[i] + right[i];
}

/* A sanitizer puts checks into the loop.  Then clang cannot vectorise it, and
 * warns that it did not.
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

/* If the compiler cannot test the CPU for F16C, arithmetic converts f16. */
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
/* AVX-512 has fused multiply-add, and gcc 12 uses it for re * re - im * im even
 * where it must not.  The bits would differ from those of other widths.
 */
#define LOOPS_PRODUCT(name) name##_prod_avx2
#include "base/reduce_loops.h"
#endif

/* Narrowest first.  The plain one has 16 bytes, as every x86-64 has. */
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

/* ------------------------------------------------------------- folding --- */

/* One call of dtn_fold().  `work` is the accumulator type. */
struct folder {
    const struct loops *loops;
    const struct dtn_reduction *how;
    dtn_fold_f *fold;
    enum dtensor_dtype work;
    size_t work_bytes;
    unsigned partial;
};

static enum dtensor_dtype folder_dtype(const struct folder *f, unsigned which)
{
    return f->partial & which ? f->how->partial : f->how->dtype;
}

/* dst = a op b, for `n` elements of the accumulator type. */
static void folder_two(const struct folder *f, void *dst, const void *a,
                       const void *b, size_t n)
{
    if (f->how->fn)
        f->how->fn(dst, a, b, n, f->work, f->how->arg);
    else
        f->fold(dst, a, b, n);
}

/* `n` terms from `at` on, in the accumulator type: in place if they have it,
 * else converted into `room`.
 */
static const void *folder_load(const struct folder *f, unsigned which,
                               const char *src, size_t at, size_t n,
                               void *room)
{
    const enum dtensor_dtype dtype = folder_dtype(f, which);
    const void *terms = src + at * dtn_dtype_size(dtype);

    if (dtype != f->work) {
        f->loops->widen[dtype](room, terms, n);
        terms = room;
    }
    if (f->partial & which || f->how->factor == 1)
        return terms;
    f->loops->times[f->work](room, terms, f->how->factor, n);
    return room;
}

/* Finalise `n` results from `room` into dst: divide an average, then round to
 * the element type.
 */
static void folder_drop(const struct folder *f, char *dst, size_t at, size_t n,
                        void *room)
{
    const enum dtensor_dtype dtype = folder_dtype(f, DTN_PARTIAL_DST);
    const int divisor = f->partial & DTN_PARTIAL_DST ? 1 : f->how->divisor;

    if (divisor > 1 && f->loops->over[f->work])
        f->loops->over[f->work](room, room, divisor, n);
    else if (divisor > 1)
        dtn_scale(f->work, room, n, divisor);
    dst += at * dtn_dtype_size(dtype);
    if (dtype != f->work)
        f->loops->narrow[dtype](dst, room, n);
    else
        memcpy(dst, room, n * f->work_bytes);
}

/* Can the last fold of a block write `dst`, without a step that finalises? */
static bool folder_ends(const struct folder *f)
{
    return folder_dtype(f, DTN_PARTIAL_DST) == f->work
        && (f->partial & DTN_PARTIAL_DST || f->how->divisor <= 1);
}

/* Fold `n` elements from `at` on; they fit a block. */
static void folder_block(const struct folder *f, char *dst,
                         const void *const src[], int nsrc, size_t at,
                         size_t n)
{
    _Alignas(DTN_CACHE_LINE) char room[BLOCK_BYTES], next[BLOCK_BYTES];
    char *end = folder_ends(f) ? dst + at * f->work_bytes : room;
    const void *left = folder_load(f, DTN_PARTIAL_FIRST, src[0], at, n, room);

    for (int s = 1; s < nsrc; s++) {
        char *to = s < nsrc - 1 ? room : end;

        folder_two(f, to, left, folder_load(f, DTN_PARTIAL_REST, src[s], at, n,
                                            next), n);
        left = to;
    }
    if (left != end)
        memcpy(end, left, n * f->work_bytes);
    if (end == room)
        folder_drop(f, dst, at, n, room);
}

static void fold_blocks(const struct loops *loops,
                        const struct dtn_reduction *how, unsigned partial,
                        void *dst, const void *const src[], int nsrc,
                        size_t count)
{
    struct folder f = { .loops = loops, .how = how, .partial = partial,
                        .fold = loops->fold[how->work][how->op],
                        .work = how->work,
                        .work_bytes = dtn_dtype_size(how->work) };
    size_t n;

    for (size_t at = 0; at < count; at += n) {
        n = BLOCK_BYTES / f.work_bytes;
        n = count - at < n ? count - at : n;
        folder_block(&f, dst, src, nsrc, at, n);
    }
}

/* Is it one call of a loop: are two sources folded without a conversion? */
static bool fold_is_loop(const struct dtn_reduction *how, unsigned partial)
{
    return how->work == how->dtype && !how->fn && how->factor == 1
        && (partial & DTN_PARTIAL_DST || how->divisor <= 1);
}

bool dtn_fold_moves(const struct dtn_reduction *how, unsigned partial)
{
    const bool from = partial & DTN_PARTIAL_FIRST;
    const bool to = partial & DTN_PARTIAL_DST;

    return from == to ? from || (how->factor == 1 && how->divisor <= 1)
         : how->partial == how->dtype && (from ? how->divisor <= 1
                                               : how->factor == 1);
}

static void fold_loops(const struct loops *loops,
                       const struct dtn_reduction *how, unsigned partial,
                       void *dst, const void *const src[], int nsrc,
                       size_t count)
{
    const enum dtensor_dtype dtype = partial & DTN_PARTIAL_DST ? how->partial
                                                               : how->dtype;

    assert(nsrc >= 1);
    if (nsrc == 2 && fold_is_loop(how, partial))
        loops->fold[how->dtype][how->op](dst, src[0], src[1], count);
    else if (nsrc > 1 || !dtn_fold_moves(how, partial))
        fold_blocks(loops, how, partial, dst, src, nsrc, count);
    else if (dst != src[0] && count > 0)
        memcpy(dst, src[0], count * dtn_dtype_size(dtype));
}

void dtn_fold_width(int width, const struct dtn_reduction *how,
                    unsigned partial, void *dst, const void *const src[],
                    int nsrc, size_t count)
{
    fold_loops(widths[width].loops, how, partial, dst, src, nsrc, count);
}

/* For a few elements the widest vectors are slower: their start costs more. */
static const struct loops *loops_for(size_t count)
{
    return widths[count <= FEW ? 0 : reduce_widths() - 1].loops;
}

void dtn_fold(const struct dtn_reduction *how, unsigned partial, void *dst,
              const void *const src[], int nsrc, size_t count)
{
    fold_loops(loops_for(count), how, partial, dst, src, nsrc, count);
}

dtn_fold_f *dtn_fold_loop(const struct dtn_reduction *how, unsigned partial,
                          size_t count)
{
    return fold_is_loop(how, partial)
         ? loops_for(count)->fold[how->dtype][how->op] : NULL;
}
