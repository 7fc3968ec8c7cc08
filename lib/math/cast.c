/* cast.c - elements of one type from those of another
 *
 * Both types have a type of computation (block.h), and a block goes through
 * them: bf16 to i8 is bf16, f32, i64, i8.  Between two types of computation
 * there is one loop.  Complex numbers go through f64, their real part.
 * Frequent pairs of types have a loop of their own, in cast_lanes.h, which
 * takes a run without gaps as a whole.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

#include "math/pointwise.h"
#include "math/block.h"
#include "math/loop.h"
#include "math/width.h"
#include "base/dtype.h"
#include "base/narrow.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>
#endif

typedef void direct_f(void *out, const void *in, int64_t n);

/* From one type to another; NULL: in blocks. */
struct cast_loops { direct_f *of[DTENSOR_NDTYPES][DTENSOR_NDTYPES]; };

#define LANES_FILE "math/cast_lanes.h"
#define LANES_LOOPS struct cast_loops
#include "math/width_lanes.h"

/* What integers of the result's type can be. */
struct cast_range {
    int64_t least;                /* 0 for u64                                */
    uint64_t most;                /* 2^64 - 1 for u64                         */
    bool truth;                   /* bool: 1 for all but 0                    */
};

static struct cast_range range_of(enum dtensor_dtype dtype)
{
    const int bytes = (int)dtn_dtype_size(dtype);
    const uint64_t all = UINT64_MAX >> (bytes < 8 ? 64 - 8 * bytes : 0);

    switch (dtn_dtype_kind(dtype)) {
    case DTN_DTYPE_SIGNED:
        return (struct cast_range){ -(int64_t)(all >> 1) - 1, all >> 1, false };
    case DTN_DTYPE_UNSIGNED:
        return (struct cast_range){ 0, all, false };
    default:
        return (struct cast_range){ 0, 1, dtype == DTENSOR_BOOL };
    }
}

typedef void cast_f(void *to, const void *from, int64_t n,
                    struct cast_range range);

/* Toward zero, clamped; 0 for a NaN.  The bits of a u64 are those of an i64. */
static inline int64_t integer_of(double x, struct cast_range range)
{
    if (range.truth)
        return x != 0;
    if (x != x)
        return 0;
    if (x >= (double)range.most)
        return (int64_t)range.most;
    if (x <= (double)range.least)
        return range.least;
    return x < 0x1p63 ? (int64_t)x : (int64_t)(uint64_t)x;
}

#define CAST(from, FROM, to, TO, convert)                                     \
    static void cast_##from##_##to(void *out, const void *in, int64_t n,      \
                                   struct cast_range range)                   \
    {                                                                         \
        TO *dst = out;                                                        \
        const FROM *src = in;                                                 \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const FROM x = src[i];                                            \
                                                                              \
            dst[i] = convert;                                                 \
        }                                                                     \
    }

CAST(f32, float, f64, double, (double)x)
CAST(f32, float, int, int64_t, integer_of((double)x, range))
CAST(f64, double, f32, float, (float)x)
CAST(f64, double, int, int64_t, integer_of(x, range))
CAST(i64, int64_t, f32, float, (float)x)
CAST(i64, int64_t, f64, double, (double)x)
CAST(u64, uint64_t, f32, float, (float)x)
CAST(u64, uint64_t, f64, double, (double)x)

static void cast_same(void *to, const void *from, int64_t n,
                      struct cast_range range)
{
    memcpy(to, from, (size_t)n * 8);
}

static void cast_f32_f32(void *to, const void *from, int64_t n,
                         struct cast_range range)
{
    memcpy(to, from, (size_t)n * 4);
}

static cast_f *cast_of(enum dtensor_dtype from, enum dtensor_dtype to)
{
    static cast_f *const casts[][4] = {
        [DTENSOR_F32] = { cast_f32_f32, cast_f32_f64, cast_f32_int },
        [DTENSOR_F64] = { cast_f64_f32, cast_same, cast_f64_int },
        [DTENSOR_I64] = { cast_i64_f32, cast_i64_f64, cast_same },
        [DTENSOR_U64] = { cast_u64_f32, cast_u64_f64, cast_same },
    };

    return casts[from][to == DTENSOR_F32 ? 0 : to == DTENSOR_F64 ? 1 : 2];
}

/* f64 from c128, in place: real parts, or whether they differ from 0. */
static void take_real(double *x, int64_t n, bool truth)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = !truth ? x[2 * i]
             : x[2 * i] != 0 || x[2 * i + 1] != 0 ? 1.0 : 0.0;
}

/* c128 from f64, in place, from the last on. */
static void give_imaginary(double *x, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        x[2 * i] = x[i];
        x[2 * i + 1] = 0;
    }
}

static enum dtensor_dtype without_imaginary(enum dtensor_dtype work)
{
    return work == DTENSOR_C128 ? DTENSOR_F64 : work;
}

/* n elements in one buffer, from `in` on, become results in `made`. */
static void cast_block(enum dtensor_dtype out, enum dtensor_dtype in,
                       void *made, const void *from, int64_t n)
{
    const enum dtensor_dtype to = dtn_block_type(out);
    const enum dtensor_dtype work = dtn_block_type(in);
    _Alignas(64) char real[DTN_BLOCK_BYTES];

    if (work == DTENSOR_C128 && to == DTENSOR_C128) {
        memcpy(made, from, (size_t)n * 16);
        return;
    }
    if (work == DTENSOR_C128) {
        memcpy(real, from, (size_t)n * 16);
        take_real((double *)real, n, out == DTENSOR_BOOL);
        from = real;
    }
    cast_of(without_imaginary(work), without_imaginary(to))(
        made, from, n, range_of(out));
    if (to == DTENSOR_C128)
        give_imaginary(made, n);
}

/* n elements of two types with one type of computation: loaded to where they
 * are stored from.
 */
static void cast_alike(const struct dtn_storage *out,
                       const struct dtn_storage *in, void *at, const void *src,
                       int64_t n)
{
    _Alignas(64) char room[DTN_BLOCK_BYTES];
    void *to = dtn_block_place(out, at, room);
    const void *from = dtn_block_load(in, src, n, to);

    if (to == room)
        dtn_block_store(out, at, n, from);
}

static direct_f *direct_of(enum dtensor_dtype out, enum dtensor_dtype in)
{
    return widths[dtn_width()]->of[in][out];
}

/* Narrow floats have a loop on one side of their f32; false: they have none. */
static bool cast_narrow(const struct dtn_storage *out,
                        const struct dtn_storage *in, void *at,
                        const void *src, int64_t n)
{
    _Alignas(64) char room[DTN_BLOCK_BYTES];
    direct_f *to = direct_of(out->dtype, in->work);
    direct_f *from = direct_of(out->work, in->dtype);

    if (to && out->step == 1)
        to(at, dtn_block_load(in, src, n, room), n);
    else if (from && in->step == 1 && out->work == DTENSOR_F32) {
        from(room, src, n);
        dtn_block_store(out, at, n, room);
    } else
        return false;
    return true;
}

static void cast_differing(const struct dtn_storage *out,
                           const struct dtn_storage *in, void *at,
                           const void *src, int64_t n)
{
    _Alignas(64) char room[DTN_BLOCK_BYTES], made[DTN_BLOCK_BYTES];
    void *to = dtn_block_place(out, at, made);

    if (cast_narrow(out, in, at, src, n))
        return;
    cast_block(out->dtype, in->dtype, to, dtn_block_load(in, src, n, room), n);
    if (to == made)
        dtn_block_store(out, at, n, made);
}

/* Elements of a block.  Where no buffer is needed it is the run. */
static int64_t cast_most(const struct dtn_storage *out,
                         const struct dtn_storage *in, int64_t run)
{
    const bool direct = out->dtype == out->work || in->dtype == in->work;

    return out->work == in->work && direct && out->step == 1 && in->step == 1
        ? run : DTN_BLOCK;
}

static void cast_run(const struct dtn_loop *loop,
                     const struct dtn_storage *out,
                     const struct dtn_storage *in)
{
    direct_f *direct = out->step == 1 && in->step == 1
        ? direct_of(out->dtype, in->dtype) : NULL;
    const int64_t most = direct ? loop->run : cast_most(out, in, loop->run);

    for (int64_t i = 0; i < loop->run; i += most) {
        const int64_t n = loop->run - i < most ? loop->run - i : most;
        char *at = loop->at[0] + i * out->step * (int64_t)loop->size[0];
        const char *src = loop->at[1] + i * in->step * (int64_t)loop->size[1];

        if (direct)
            direct(at, src, n);
        else if (out->work == in->work)
            cast_alike(out, in, at, src, n);
        else
            cast_differing(out, in, at, src, n);
    }
}

void dtn_cast(const struct dtn_array *out, const struct dtn_array *in)
{
    const struct dtn_array arrays[2] = { *out, dtn_array_expanded(in, out) };
    struct dtn_loop loop;

    if (out->dtype == in->dtype) {
        dtn_array_copy(out, &arrays[1]);
        return;
    }
    dtn_loop_begin(&loop, arrays, 2);
    const struct dtn_storage to = { out->dtype, dtn_block_type(out->dtype),
                                  loop.step[0] };
    const struct dtn_storage from = { in->dtype, dtn_block_type(in->dtype),
                                    loop.step[1] };

    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        cast_run(&loop, &to, &from);
}
