/* dtype.c - element types and reductions, by table
 *
 * A type is a row: name, size, whether it is a floating type.  f16 and bf16
 * are stored as 16 bits and computed as f32 (half.h): bf16 is the upper half of
 * an f32, so 1.0f = 0x3f800000 is 0x3f80.
 */
#include "base/base.h"
#include "base/half.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
    bool is_float;
} dtypes[DTENSOR_NDTYPES] = {
    [DTENSOR_F32]  = { "f32", 4, true },
    [DTENSOR_F64]  = { "f64", 8, true },
    [DTENSOR_F16]  = { "f16", 2, true },
    [DTENSOR_BF16] = { "bf16", 2, true },
    [DTENSOR_I8]   = { "i8", 1, false },
    [DTENSOR_U8]   = { "u8", 1, false },
    [DTENSOR_I32]  = { "i32", 4, false },
    [DTENSOR_I64]  = { "i64", 8, false },
};

static const char *const redops[DTENSOR_NREDOPS] = {
    [DTENSOR_SUM] = "sum",   [DTENSOR_AVG] = "avg",  [DTENSOR_PROD] = "prod",
    [DTENSOR_MIN] = "min",   [DTENSOR_MAX] = "max",  [DTENSOR_BAND] = "band",
    [DTENSOR_BOR] = "bor",   [DTENSOR_BXOR] = "bxor",
};

bool dtn_dtype_ok(enum dtensor_dtype dtype)
{
    return (unsigned)dtype < DTENSOR_NDTYPES;
}

bool dtn_dtype_is_float(enum dtensor_dtype dtype)
{
    return dtypes[dtype].is_float;
}

bool dtn_redop_ok(enum dtensor_redop op, enum dtensor_dtype dtype)
{
    if ((unsigned)op >= DTENSOR_NREDOPS || !dtn_dtype_ok(dtype))
        return false;
    return op < DTENSOR_BAND || !dtypes[dtype].is_float;
}

size_t dtensor_dtype_size(enum dtensor_dtype dtype)
{
    return dtn_dtype_ok(dtype) ? dtypes[dtype].size : 0;
}

const char *dtensor_dtype_name(enum dtensor_dtype dtype)
{
    return dtn_dtype_ok(dtype) ? dtypes[dtype].name : "?";
}

const char *dtensor_redop_name(enum dtensor_redop op)
{
    return (unsigned)op < DTENSOR_NREDOPS ? redops[op] : "?";
}

int dtensor_dtype_parse(const char *name, enum dtensor_dtype *dtypep,
                        struct dtensor_error *err)
{
    for (int i = 0; i < DTENSOR_NDTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtypep = (enum dtensor_dtype)i;
            return 0;
        }
    return dtn_fail(err, DTENSOR_EINVAL, "dtype: unknown \"%s\"; expected f32, "
                    "f64, f16, bf16, i8, u8, i32 or i64", name);
}

int dtensor_redop_parse(const char *name, enum dtensor_redop *opp,
                        struct dtensor_error *err)
{
    for (int i = 0; i < DTENSOR_NREDOPS; i++)
        if (strcmp(name, redops[i]) == 0) {
            *opp = (enum dtensor_redop)i;
            return 0;
        }
    return dtn_fail(err, DTENSOR_EINVAL, "reduction: unknown \"%s\"; expected "
                    "sum, avg, prod, min, max, band, bor or bxor", name);
}

float dtn_f16_to_f32(uint16_t bits)
{
    return half_from_f16(bits);
}

uint16_t dtn_f32_to_f16(float value)
{
    return half_to_f16(value);
}

float dtn_bf16_to_f32(uint16_t bits)
{
    return half_from_bf16(bits);
}

uint16_t dtn_f32_to_bf16(float value)
{
    return half_to_bf16(value);
}

double dtn_load(enum dtensor_dtype dtype, const void *array, size_t i)
{
    switch (dtype) {
    case DTENSOR_F32:  return ((const float *)array)[i];
    case DTENSOR_F64:  return ((const double *)array)[i];
    case DTENSOR_F16:  return dtn_f16_to_f32(((const uint16_t *)array)[i]);
    case DTENSOR_BF16: return dtn_bf16_to_f32(((const uint16_t *)array)[i]);
    case DTENSOR_I8:   return ((const int8_t *)array)[i];
    case DTENSOR_U8:   return ((const uint8_t *)array)[i];
    case DTENSOR_I32:  return ((const int32_t *)array)[i];
    case DTENSOR_I64:  return (double)((const int64_t *)array)[i];
    case DTENSOR_NDTYPES: break;
    }
    return 0;
}

/* To the integer range [low, high], toward zero; NaN is 0. */
static int64_t clamp_int(double value, double low, double high)
{
    if (value != value)
        return 0;
    if (value <= low)
        return (int64_t)low;
    if (value >= high)
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)value;
}

void dtn_store(enum dtensor_dtype dtype, void *array, size_t i, double value)
{
    switch (dtype) {
    case DTENSOR_F32:
        ((float *)array)[i] = (float)value;
        break;
    case DTENSOR_F64:
        ((double *)array)[i] = value;
        break;
    case DTENSOR_F16:
        ((uint16_t *)array)[i] = dtn_f32_to_f16((float)value);
        break;
    case DTENSOR_BF16:
        ((uint16_t *)array)[i] = dtn_f32_to_bf16((float)value);
        break;
    case DTENSOR_I8:
        ((int8_t *)array)[i] = (int8_t)clamp_int(value, INT8_MIN, INT8_MAX);
        break;
    case DTENSOR_U8:
        ((uint8_t *)array)[i] = (uint8_t)clamp_int(value, 0, UINT8_MAX);
        break;
    case DTENSOR_I32:
        ((int32_t *)array)[i] = (int32_t)clamp_int(value, INT32_MIN, INT32_MAX);
        break;
    case DTENSOR_I64:
        ((int64_t *)array)[i] = clamp_int(value, -0x1p63, 0x1p63);
        break;
    case DTENSOR_NDTYPES:
        break;
    }
}
