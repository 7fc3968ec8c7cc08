/* block.c - elements of any type and stride as a short array to compute with
 *
 * A loop in vectors wants neighbours of a type that the CPU computes with.  So
 * 512 elements at a time are gathered and widened in a buffer that stays in the
 * L1 cache, and what comes of them is narrowed and scattered.  An array of f32
 * without gaps needs neither: the loop reads and writes it where it lies.
 */
#include "math/block.h"
#include "math/widen.h"
#include "base/copy.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"

#include <string.h>

enum dtensor_dtype dtn_block_type(enum dtensor_dtype dtype)
{
    switch (dtn_dtype_kind(dtype)) {
    case DTN_DTYPE_FLOAT:
        return dtype == DTENSOR_F64 ? DTENSOR_F64 : DTENSOR_F32;
    case DTN_DTYPE_COMPLEX:
        return DTENSOR_C128;
    default:
        return dtype == DTENSOR_U64 ? DTENSOR_U64 : DTENSOR_I64;
    }
}

/* ------------------------------------------------------------- strides --- */

#define STRIDED(bytes, T)                                                     \
    static void gather_##bytes(void *to, const void *from, int64_t step,      \
                               int64_t n)                                     \
    {                                                                         \
        T *dst = to;                                                          \
        const T *src = from;                                                  \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i] = src[i * step];                                           \
    }                                                                         \
    static void scatter_##bytes(void *to, const void *from, int64_t step,     \
                                int64_t n)                                    \
    {                                                                         \
        T *dst = to;                                                          \
        const T *src = from;                                                  \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i * step] = src[i];                                           \
    }

struct block_pair { uint64_t part[2]; };
STRIDED(1, uint8_t)
STRIDED(2, uint16_t)
STRIDED(4, uint32_t)
STRIDED(8, uint64_t)
STRIDED(16, struct block_pair)

static void gather(enum dtensor_dtype dtype, void *to, const void *from,
                   int64_t step, int64_t n)
{
    switch (dtn_dtype_size(dtype)) {
    case 1: gather_1(to, from, step, n); break;
    case 2: gather_2(to, from, step, n); break;
    case 4: gather_4(to, from, step, n); break;
    case 8: gather_8(to, from, step, n); break;
    default: gather_16(to, from, step, n); break;
    }
}

static void scatter(enum dtensor_dtype dtype, void *to, const void *from,
                    int64_t step, int64_t n)
{
    switch (dtn_dtype_size(dtype)) {
    case 1: scatter_1(to, from, step, n); break;
    case 2: scatter_2(to, from, step, n); break;
    case 4: scatter_4(to, from, step, n); break;
    case 8: scatter_8(to, from, step, n); break;
    default: scatter_16(to, from, step, n); break;
    }
}

/* --------------------------------------------------------------- types --- */

/* lib/base has vector loops for floats of 8 bits and for integers. */
static void fold(enum dtensor_dtype dtype, unsigned partial, void *to,
                 const void *from, int64_t n)
{
    const struct dtn_reduction how =
        dtn_reduction(dtype, dtn_dtype_is_float(dtype) ? DTENSOR_SUM
                                                       : DTENSOR_AVG, 1);

    dtn_fold(&how, partial, to, &from, 1, (size_t)n);
}

static void widen(enum dtensor_dtype dtype, void *to, const void *from,
                  int64_t n)
{
    double *dst = to;

    if (dtype == DTENSOR_BF16)
        dtn_widen_bf16(to, from, n);
    else if (dtype == DTENSOR_F16)
        dtn_widen_f16(to, from, n);
    else if (dtype == DTENSOR_BOOL)
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)to)[i] = ((const uint8_t *)from)[i] != 0;
    else if (dtype == DTENSOR_C64)
        for (int64_t i = 0; i < 2 * n; i++)
            dst[i] = (double)((const float *)from)[i];
    else
        fold(dtype, DTN_PARTIAL_DST, to, from, n);
}

static void narrow(enum dtensor_dtype dtype, void *to, const void *from,
                   int64_t n)
{
    const double *src = from;

    if (dtype == DTENSOR_BF16)
        dtn_narrow_bf16(to, from, n);
    else if (dtype == DTENSOR_F16)
        dtn_narrow_f16(to, from, n);
    else if (dtype == DTENSOR_BOOL)
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = ((const int64_t *)from)[i] != 0;
    else if (dtype == DTENSOR_C64)
        for (int64_t i = 0; i < 2 * n; i++)
            ((float *)to)[i] = (float)src[i];
    else
        fold(dtype, DTN_PARTIAL_FIRST, to, from, n);
}

/* ------------------------------------------------------------- the two --- */

/* An element that is broadcast is widened once. */
static void block_spread(const struct dtn_storage *how, const void *at,
                         int64_t n, void *buffer)
{
    _Alignas(64) char one[16];

    if (how->dtype != how->work) {
        widen(how->dtype, one, at, 1);
        at = one;
    }
    dtn_copy_spread(buffer, at, dtn_dtype_size(how->work), (size_t)n);
}

const void *dtn_block_load(const struct dtn_storage *how, const void *at,
                           int64_t n, void *buffer)
{
    _Alignas(64) char raw[DTN_BLOCK_BYTES];

    if (how->dtype == how->work && how->step == 1)
        return at;
    if (how->step == 0) {
        block_spread(how, at, n, buffer);
        return buffer;
    }
    if (how->dtype == how->work) {
        gather(how->dtype, buffer, at, how->step, n);
        return buffer;
    }
    if (how->step != 1) {
        gather(how->dtype, raw, at, how->step, n);
        at = raw;
    }
    widen(how->dtype, buffer, at, n);
    return buffer;
}

void *dtn_block_place(const struct dtn_storage *how, void *at, void *buffer)
{
    return how->dtype == how->work && how->step == 1 ? at : buffer;
}

void dtn_block_store(const struct dtn_storage *how, void *at, int64_t n,
                     const void *buffer)
{
    _Alignas(64) char raw[DTN_BLOCK_BYTES];

    if (how->dtype == how->work) {
        if (how->step != 1)
            scatter(how->dtype, at, buffer, how->step, n);
        return;
    }
    if (how->step == 1) {
        narrow(how->dtype, at, buffer, n);
        return;
    }
    narrow(how->dtype, raw, buffer, n);
    scatter(how->dtype, at, raw, how->step, n);
}
