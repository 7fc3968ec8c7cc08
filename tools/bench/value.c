/* value.c - small integers in and out of every dtype
 *
 * The inputs of all tests are integers that their type holds exactly, so that
 * a sum is the same in whatever order it is folded: bf16 has 8 bits of
 * mantissa, hence all integers to 256, but 257 is stored as 256.  The floats of
 * 16 and 8 bits are built from sign, exponent and mantissa; nothing needs
 * rounding.  Complex numbers are real here.
 */
#include "tools/bench/value.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A float of `bits` bits, `mantissa` of them after the point, and exponents
 * offset by `bias`.  The integers a test uses never reach the largest exponent.
 */
struct narrow {
    int bits, mantissa, bias;
};

static const struct narrow *value_narrow(enum dtensor_dtype dtype)
{
    static const struct narrow table[DTENSOR_NDTYPES] = {
        [DTENSOR_F16] = { 16, 10, 15 }, [DTENSOR_BF16] = { 16, 7, 127 },
        [DTENSOR_F8E4M3] = { 8, 3, 7 }, [DTENSOR_F8E5M2] = { 8, 2, 15 },
    };

    return table[dtype].bits ? &table[dtype] : NULL;
}

static unsigned narrow_encode(const struct narrow *narrow, double v)
{
    unsigned sign = v < 0 ? 1u << (narrow->bits - 1) : 0;
    int exponent;
    double fraction = frexp(fabs(v), &exponent);      /* 0.5 <= f < 1 */
    unsigned bits;

    if (v == 0)
        return 0;
    bits = (unsigned)ldexp(fraction, narrow->mantissa + 1);
    bits -= 1u << narrow->mantissa;                   /* the hidden bit */
    return sign | bits |
           (unsigned)(exponent - 1 + narrow->bias) << narrow->mantissa;
}

/* What is wrong may be anything: an infinity or NaN too, but f8e4m3 has the
 * former not and the latter in one code only.
 */
static double narrow_decode(const struct narrow *narrow, unsigned code)
{
    int scale = 1 << narrow->mantissa;
    int magnitude = (int)(code & ((1u << (narrow->bits - 1)) - 1));
    int exponent = magnitude >> narrow->mantissa;
    int fraction = magnitude & (scale - 1);
    bool finite = narrow->mantissa == 3 && fraction != scale - 1;
    double v;

    if (exponent == 2 * narrow->bias + 1 && !finite)
        v = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        v = ldexp(fraction, 1 - narrow->bias - narrow->mantissa);
    else
        v = ldexp(fraction + scale,
                  exponent - narrow->bias - narrow->mantissa);
    return code >> (narrow->bits - 1) ? -v : v;
}

static void store_bits(size_t bytes, void *array, size_t i, uint64_t v)
{
    switch (bytes) {
    case 1:  ((uint8_t *)array)[i] = (uint8_t)v; break;
    case 2:  ((uint16_t *)array)[i] = (uint16_t)v; break;
    case 4:  ((uint32_t *)array)[i] = (uint32_t)v; break;
    default: ((uint64_t *)array)[i] = v; break;
    }
}

void value_store(enum dtensor_dtype dtype, void *array, size_t i, int64_t v)
{
    const struct narrow *narrow = value_narrow(dtype);

    switch (dtype) {
    case DTENSOR_F32:
        ((float *)array)[i] = (float)v;
        break;
    case DTENSOR_F64:
        ((double *)array)[i] = (double)v;
        break;
    case DTENSOR_C64:
        ((float *)array)[2 * i] = (float)v;
        ((float *)array)[2 * i + 1] = 0;
        break;
    case DTENSOR_C128:
        ((double *)array)[2 * i] = (double)v;
        ((double *)array)[2 * i + 1] = 0;
        break;
    case DTENSOR_BOOL:
        ((uint8_t *)array)[i] = v != 0;
        break;
    default:
        store_bits(dtensor_dtype_size(dtype), array, i,
                   narrow ? narrow_encode(narrow, (double)v) : (uint64_t)v);
        break;
    }
}

double value_load(enum dtensor_dtype dtype, const void *array, size_t i)
{
    const struct narrow *narrow = value_narrow(dtype);

    if (narrow)
        return narrow_decode(narrow, narrow->bits == 8
                             ? ((const uint8_t *)array)[i]
                             : ((const uint16_t *)array)[i]);
    switch (dtype) {
    case DTENSOR_F32:  return ((const float *)array)[i];
    case DTENSOR_F64:  return ((const double *)array)[i];
    case DTENSOR_C64:  return ((const float *)array)[2 * i];
    case DTENSOR_C128: return ((const double *)array)[2 * i];
    case DTENSOR_I8:   return ((const int8_t *)array)[i];
    case DTENSOR_I16:  return ((const int16_t *)array)[i];
    case DTENSOR_U16:  return ((const uint16_t *)array)[i];
    case DTENSOR_I32:  return ((const int32_t *)array)[i];
    case DTENSOR_U32:  return ((const uint32_t *)array)[i];
    case DTENSOR_I64:  return (double)((const int64_t *)array)[i];
    case DTENSOR_U64:  return (double)((const uint64_t *)array)[i];
    default:           return ((const uint8_t *)array)[i];
    }
}

int64_t value_limit(enum dtensor_dtype dtype)
{
    static const int64_t limit[DTENSOR_NDTYPES] = {
        [DTENSOR_F32] = 1 << 24,   [DTENSOR_F64] = INT64_C(1) << 40,
        [DTENSOR_F16] = 1 << 11,   [DTENSOR_BF16] = 1 << 8,
        [DTENSOR_I8] = INT8_MAX,   [DTENSOR_U8] = UINT8_MAX,
        [DTENSOR_I32] = INT32_MAX, [DTENSOR_I64] = INT64_C(1) << 40,
        [DTENSOR_I16] = INT16_MAX, [DTENSOR_U16] = UINT16_MAX,
        [DTENSOR_U32] = UINT32_MAX, [DTENSOR_U64] = INT64_C(1) << 40,
        [DTENSOR_BOOL] = 1,
        [DTENSOR_C64] = 1 << 24,   [DTENSOR_C128] = INT64_C(1) << 40,
        [DTENSOR_F8E4M3] = 1 << 4, [DTENSOR_F8E5M2] = 1 << 3
    };

    return limit[dtype];
}

bool value_op_fits(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    bool bits = op == DTENSOR_BAND || op == DTENSOR_BOR || op == DTENSOR_BXOR;

    switch (dtype) {
    case DTENSOR_C64: case DTENSOR_C128:
        return !bits && op != DTENSOR_MIN && op != DTENSOR_MAX;
    case DTENSOR_BOOL:
        return op != DTENSOR_AVG;
    case DTENSOR_F64: case DTENSOR_F32: case DTENSOR_F16: case DTENSOR_BF16:
    case DTENSOR_F8E4M3: case DTENSOR_F8E5M2:
        return !bits;
    default:
        return true;
    }
}
