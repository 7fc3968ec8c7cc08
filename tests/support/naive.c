/* naive.c - dtn_fold() again, as simple as possible
 *
 * One element at a time, from the left.  Floats are computed as f64 and rounded
 * to f32 after every step.  This gives the bits of f32 arithmetic: f32 operands
 * are exact in f64, and rounding their sum or product to f64 first does not
 * change its f32.  Example: 2^24 + 1 + 1 is 2^24 in f32, here and in reduce.c.
 */
#include "tests/support/naive.h"
#include "base/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double naive_float(enum dtensor_redop op, double x, double y)
{
    switch (op) {
    case DTENSOR_PROD: return x * y;
    case DTENSOR_MIN:  return isnan(x) ? x : isnan(y) || y < x ? y : x;
    case DTENSOR_MAX:  return isnan(x) ? x : isnan(y) || y > x ? y : x;
    default:           return x + y;
    }
}

static bool naive_less(enum dtensor_dtype dtype, int64_t x, int64_t y)
{
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_SIGNED)
        return x < y;
    return (uint64_t)x < (uint64_t)y;
}

static int64_t naive_int(enum dtensor_dtype dtype, enum dtensor_redop op,
                         int64_t x, int64_t y)
{
    switch (op) {
    case DTENSOR_PROD: return (int64_t)((uint64_t)x * (uint64_t)y);
    case DTENSOR_MIN:  return naive_less(dtype, y, x) ? y : x;
    case DTENSOR_MAX:  return naive_less(dtype, x, y) ? y : x;
    case DTENSOR_BAND: return x & y;
    case DTENSOR_BOR:  return x | y;
    case DTENSOR_BXOR: return x ^ y;
    default:           return (int64_t)((uint64_t)x + (uint64_t)y);
    }
}

static int64_t naive_bool(enum dtensor_redop op, int64_t x, int64_t y)
{
    switch (op) {
    case DTENSOR_PROD: case DTENSOR_MIN: case DTENSOR_BAND:
        return x && y;
    case DTENSOR_BXOR:
        return x != y;
    default:
        return x || y;
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
    int64_t value = dtn_load_int(dtype, src[0], i), next;

    for (int s = 1; s < nsrc; s++) {
        next = dtn_load_int(dtype, src[s], i);
        if (dtype == DTENSOR_BOOL)
            value = naive_bool(op, value, next);
        else
            value = naive_int(dtype, op, value, next);
    }
    dtn_store_int(dtype, dst, i, value);
}

/* A step of a complex product or sum, each operation rounded to its type. */
static double naive_part(enum dtensor_dtype part, double value)
{
    return part == DTENSOR_F32 ? (double)(float)value : value;
}

static void naive_fold_complex(enum dtensor_dtype dtype, enum dtensor_redop op,
                               void *dst, const void *const src[], int nsrc,
                               size_t i)
{
    const enum dtensor_dtype part = dtype == DTENSOR_C64 ? DTENSOR_F32
                                                         : DTENSOR_F64;
    double re = dtn_load(part, src[0], 2 * i);
    double im = dtn_load(part, src[0], 2 * i + 1);

    for (int s = 1; s < nsrc; s++) {
        const double x = dtn_load(part, src[s], 2 * i);
        const double y = dtn_load(part, src[s], 2 * i + 1);
        const double rx = naive_part(part, re * x);
        const double iy = naive_part(part, im * y);
        const double ry = naive_part(part, re * y);
        const double ix = naive_part(part, im * x);

        re = naive_part(part, op == DTENSOR_PROD ? rx - iy : re + x);
        im = naive_part(part, op == DTENSOR_PROD ? ry + ix : im + y);
    }
    dtn_store(part, dst, 2 * i, isnan(re) ? (double)NAN : re);
    dtn_store(part, dst, 2 * i + 1, isnan(im) ? (double)NAN : im);
}

void naive_reduce(enum dtensor_dtype dtype, enum dtensor_redop op, void *dst,
                  const void *const src[], int nsrc, size_t count)
{
    if (nsrc == 1 && dst != src[0] && count > 0)
        memcpy(dst, src[0], count * dtensor_dtype_size(dtype));
    for (size_t i = 0; nsrc > 1 && i < count; i++) {
        switch (dtn_dtype_kind(dtype)) {
        case DTN_DTYPE_FLOAT:
            naive_fold_float(dtype, op, dst, src, nsrc, i);
            break;
        case DTN_DTYPE_COMPLEX:
            naive_fold_complex(dtype, op, dst, src, nsrc, i);
            break;
        case DTN_DTYPE_SIGNED: case DTN_DTYPE_UNSIGNED: case DTN_DTYPE_BOOL:
            naive_fold_int(dtype, op, dst, src, nsrc, i);
            break;
        }
    }
}

/* Divide or multiply one value of the accumulator type. */
static void naive_scale(const struct dtn_reduction *how, void *value, double by,
                        bool divide)
{
    const bool is_complex = dtn_dtype_kind(how->dtype) == DTN_DTYPE_COMPLEX;
    const enum dtensor_dtype work = how->work;
    const enum dtensor_dtype part = work == DTENSOR_C64 ? DTENSOR_F32
                                  : work == DTENSOR_C128 ? DTENSOR_F64 : work;
    double x;

    for (size_t i = 0; i < (is_complex ? 2 : 1); i++) {
        x = dtn_load(part, value, i);
        x = divide ? x / naive_part(part, by) : x * naive_part(part, by);
        dtn_store(part, value, i, isnan(x) ? (double)NAN : x);
    }
}

/* Element or partial result `i` as a value of the accumulator type. */
static void naive_lift(const struct dtn_reduction *how, bool partial,
                       const void *src, size_t i, void *value)
{
    const enum dtensor_dtype dtype = partial ? how->partial : how->dtype;
    const size_t size = dtn_dtype_size(dtype);

    if (dtype == how->work)
        memcpy(value, (const char *)src + i * size, size);
    else if (how->work == DTN_I128 && dtype == DTENSOR_U64)
        *(dtn_i128 *)value = (uint64_t)dtn_load_int(dtype, src, i);
    else if (how->work == DTN_I128)
        *(dtn_i128 *)value = dtn_load_int(dtype, src, i);
    else if (how->work == DTENSOR_I64)
        dtn_store_int(DTENSOR_I64, value, 0, dtn_load_int(dtype, src, i));
    else
        dtn_store(DTENSOR_F32, value, 0, dtn_load(dtype, src, i));
    if (!partial && how->factor != 1)
        naive_scale(how, value, how->factor, false);
}

static void naive_drop(const struct dtn_reduction *how, bool partial,
                       void *value, void *dst, size_t i)
{
    const enum dtensor_dtype dtype = partial ? how->partial : how->dtype;
    const size_t size = dtn_dtype_size(dtype);

    if (!partial && how->divisor > 1 && dtn_dtype_is_float(how->dtype))
        naive_scale(how, value, how->divisor, true);
    else if (!partial && how->divisor > 1)
        dtn_scale(how->work, value, 1, how->divisor);
    if (dtype == how->work)
        memcpy((char *)dst + i * size, value, size);
    else if (how->work == DTN_I128)
        dtn_store_int(dtype, dst, i, (int64_t)*(dtn_i128 *)value);
    else if (how->work == DTENSOR_I64)
        dtn_store_int(dtype, dst, i, dtn_load_int(DTENSOR_I64, value, 0));
    else
        dtn_store(dtype, dst, i, dtn_load(DTENSOR_F32, value, 0));
}

void naive_fold(const struct dtn_reduction *how, unsigned partial, void *dst,
                const void *const src[], int nsrc, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dtn_i128 value = 0, term = 0;                 /* room for any type    */
        const void *const both[] = { &value, &term };

        naive_lift(how, partial & DTN_PARTIAL_FIRST, src[0], i, &value);
        for (int s = 1; s < nsrc; s++) {
            naive_lift(how, partial & DTN_PARTIAL_REST, src[s], i, &term);
            if (how->fn)
                how->fn(&value, &value, &term, 1, how->work, how->arg);
            else if (how->work == DTN_I128)
                value = (dtn_i128)((dtn_u128)value + (dtn_u128)term);
            else
                naive_reduce(how->work, how->op, &value, both, 2, 1);
        }
        naive_drop(how, partial & DTN_PARTIAL_DST, &value, dst, i);
    }
}
