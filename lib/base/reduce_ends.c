/* reduce_ends.c - what a reduction begins and ends with
 *
 * A rank that adds nothing starts from the neutral element: 0 for a sum, 1 for
 * a product, the largest value for a minimum.  An average is a sum that is
 * divided once, at the end: for i32 (7 + 8) / 2 is 7, rounded toward zero.
 */
#include "base/dtype.h"
#include "base/narrow.h"
#include "base/reduce.h"
#include "dtensor.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SCALE_LOOP(name, T, N, load, store)                                   \
    static void scale_##name(void *array, size_t count, int n)                \
    {                                                                         \
        const N divisor = (N)n;                                               \
        T *a = array;                                                         \
                                                                              \
        for (size_t i = 0; i < count; i++)                                    \
            a[i] = store(load(a[i]) / divisor);                               \
    }

SCALE_LOOP(f32, float, float, , )
SCALE_LOOP(f64, double, double, , )
SCALE_LOOP(f16, uint16_t, float, dtn_f16_widen, dtn_f16_narrow)
SCALE_LOOP(bf16, uint16_t, float, dtn_bf16_widen, dtn_bf16_narrow)
SCALE_LOOP(f8e4m3, uint8_t, float, dtn_f8e4m3_widen, dtn_f8e4m3_narrow)
SCALE_LOOP(f8e5m2, uint8_t, float, dtn_f8e5m2_widen, dtn_f8e5m2_narrow)
SCALE_LOOP(i8, int8_t, int, , (int8_t))
SCALE_LOOP(i16, int16_t, int, , (int16_t))
SCALE_LOOP(i32, int32_t, int, , )
SCALE_LOOP(i64, int64_t, int64_t, , )
SCALE_LOOP(u8, uint8_t, int, , (uint8_t))
SCALE_LOOP(u16, uint16_t, int, , (uint16_t))
SCALE_LOOP(u32, uint32_t, uint32_t, , )
SCALE_LOOP(u64, uint64_t, uint64_t, , )
SCALE_LOOP(i128, dtn_i128, dtn_i128, , )

void dtn_scale(enum dtensor_dtype dtype, void *array, size_t count, int n)
{
    static void (*const scales[DTN_NDTYPES])(void *, size_t, int) = {
        [DTENSOR_F32] = scale_f32, [DTENSOR_F64] = scale_f64,
        [DTENSOR_F16] = scale_f16, [DTENSOR_BF16] = scale_bf16,
        [DTENSOR_F8E4M3] = scale_f8e4m3, [DTENSOR_F8E5M2] = scale_f8e5m2,
        [DTENSOR_I8] = scale_i8,   [DTENSOR_U8] = scale_u8,
        [DTENSOR_I16] = scale_i16, [DTENSOR_U16] = scale_u16,
        [DTENSOR_I32] = scale_i32, [DTENSOR_U32] = scale_u32,
        [DTENSOR_I64] = scale_i64, [DTENSOR_U64] = scale_u64,
        [DTENSOR_C64] = scale_f32, [DTENSOR_C128] = scale_f64,
        [DTN_I128] = scale_i128,
    };

    assert(n >= 1 && scales[dtype]);
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX)
        count *= 2;                              /* both parts are divided    */
    scales[dtype](array, count, n);
}

/* For a sum it is -0: x + -0 is x for every x, but -0 + 0 is 0.  f8e4m3 has no
 * infinity; its largest value is 448.
 */
static double neutral_float(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    const double largest = dtype == DTENSOR_F8E4M3 ? 448 : (double)INFINITY;

    switch (op) {
    case DTENSOR_PROD: return 1;
    case DTENSOR_MIN:  return largest;
    case DTENSOR_MAX:  return -largest;
    default:           return -0.0;
    }
}

/* The lowest or highest value of an integer type.  u64 keeps its bits. */
static int64_t neutral_int(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    const int bits = 8 * (int)dtensor_dtype_size(dtype);
    const bool is_signed = dtn_dtype_kind(dtype) == DTN_DTYPE_SIGNED;
    const int64_t highest = (int64_t)(UINT64_MAX >> (64 - bits + is_signed));

    switch (op) {
    case DTENSOR_PROD: return 1;
    case DTENSOR_MIN:  return highest;
    case DTENSOR_MAX:  return is_signed ? -highest - 1 : 0;
    case DTENSOR_BAND: return -1;
    default:           return 0;
    }
}

static int64_t neutral_bool(enum dtensor_redop op)
{
    return op == DTENSOR_PROD || op == DTENSOR_MIN || op == DTENSOR_BAND;
}

static void neutral_complex(enum dtensor_dtype dtype, enum dtensor_redop op,
                            void *array, size_t i)
{
    dtn_store(dtype, array, i, neutral_float(dtype, op));
    if (op != DTENSOR_PROD)
        dtn_store(dtype == DTENSOR_C64 ? DTENSOR_F32 : DTENSOR_F64, array,
                  2 * i + 1, -0.0);
}

void dtn_fill_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *array, size_t count)
{
    if (dtype == DTN_I128) {                     /* only sums are of it       */
        memset(array, 0, count * sizeof(dtn_i128));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        switch (dtn_dtype_kind(dtype)) {
        case DTN_DTYPE_FLOAT:
            dtn_store(dtype, array, i, neutral_float(dtype, op));
            break;
        case DTN_DTYPE_COMPLEX:
            neutral_complex(dtype, op, array, i);
            break;
        case DTN_DTYPE_BOOL:
            dtn_store_int(dtype, array, i, neutral_bool(op));
            break;
        case DTN_DTYPE_SIGNED: case DTN_DTYPE_UNSIGNED:
            dtn_store_int(dtype, array, i, neutral_int(dtype, op));
            break;
        }
    }
}
