/* value.c - small integers in and out of every dtype
 *
 * The inputs of all tests are integers that their type holds exactly, so that
 * a sum is the same in whatever order it is folded: bf16 has 8 bits of
 * mantissa, hence all integers to 256, but 257 is stored as 256.  The 16-bit
 * floats are built from sign, exponent and mantissa; nothing needs rounding.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <string.h>

/* A 16-bit float: `mantissa` bits after the point, exponents offset by
 * `bias`.  bf16 is 7 and 127, f16 is 10 and 15.
 */
struct half {
    int mantissa, bias;
};
static const struct half value_f16 = { 10, 15 }, value_bf16 = { 7, 127 };

static uint16_t half_encode(const struct half *half, double v)
{
    unsigned sign = v < 0 ? 0x8000 : 0;
    int exponent;
    double fraction = frexp(fabs(v), &exponent);      /* 0.5 <= f < 1 */
    unsigned bits;

    if (v == 0)
        return 0;
    bits = (unsigned)ldexp(fraction, half->mantissa + 1);
    bits -= 1u << half->mantissa;                     /* the hidden bit */
    return (uint16_t)(sign | bits |
                      (unsigned)(exponent - 1 + half->bias) << half->mantissa);
}

static double half_decode(const struct half *half, uint16_t bits)
{
    int scale = 1 << half->mantissa, top = (0x7fff >> half->mantissa);
    int exponent = (bits & 0x7fff) >> half->mantissa;
    int fraction = bits & (scale - 1);
    double v;

    if (exponent == top)
        v = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        v = ldexp(fraction, 1 - half->bias - half->mantissa);
    else
        v = ldexp(fraction + scale, exponent - half->bias - half->mantissa);
    return bits & 0x8000 ? -v : v;
}

void value_store(enum dtensor_dtype dtype, void *array, size_t i, int64_t v)
{
    switch (dtype) {
    case DTENSOR_F32:
        ((float *)array)[i] = (float)v;
        break;
    case DTENSOR_F64:
        ((double *)array)[i] = (double)v;
        break;
    case DTENSOR_F16:
        ((uint16_t *)array)[i] = half_encode(&value_f16, (double)v);
        break;
    case DTENSOR_BF16:
        ((uint16_t *)array)[i] = half_encode(&value_bf16, (double)v);
        break;
    case DTENSOR_I8:
    case DTENSOR_U8:
        ((uint8_t *)array)[i] = (uint8_t)v;
        break;
    case DTENSOR_I32:
        ((uint32_t *)array)[i] = (uint32_t)v;
        break;
    default:
        ((int64_t *)array)[i] = v;
        break;
    }
}

double value_load(enum dtensor_dtype dtype, const void *array, size_t i)
{
    switch (dtype) {
    case DTENSOR_F32:
        return ((const float *)array)[i];
    case DTENSOR_F64:
        return ((const double *)array)[i];
    case DTENSOR_F16:
        return half_decode(&value_f16, ((const uint16_t *)array)[i]);
    case DTENSOR_BF16:
        return half_decode(&value_bf16, ((const uint16_t *)array)[i]);
    case DTENSOR_I8:
        return ((const int8_t *)array)[i];
    case DTENSOR_U8:
        return ((const uint8_t *)array)[i];
    case DTENSOR_I32:
        return ((const int32_t *)array)[i];
    default:
        return (double)((const int64_t *)array)[i];
    }
}

int64_t value_limit(enum dtensor_dtype dtype)
{
    static const int64_t limit[DTENSOR_NDTYPES] = {
        [DTENSOR_F32] = 1 << 24,   [DTENSOR_F64] = INT64_C(1) << 40,
        [DTENSOR_F16] = 1 << 11,   [DTENSOR_BF16] = 1 << 8,
        [DTENSOR_I8] = INT8_MAX,   [DTENSOR_U8] = UINT8_MAX,
        [DTENSOR_I32] = INT32_MAX, [DTENSOR_I64] = INT64_C(1) << 40
    };

    return limit[dtype];
}
