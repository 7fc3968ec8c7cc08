/* ptx_approximate.c - instructions that give a GPU's own value */
#include "tests/cuda/ptx_approximate.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum ptx_wrong ptx_wrong;

/* From -1 to 1: how wrong this one is. */
static double part(float x)
{
    uint32_t bits;

    switch (ptx_wrong) {
    case PTX_HIGH:  return 1;
    case PTX_LOW:   return -1;
    case PTX_MIXED:
        memcpy(&bits, &x, sizeof bits);
        return (double)(int32_t)(bits * 0x9E3779B1u) * 0x1p-31;
    default:        return 0;
    }
}

float ptx_sin(float x)
{
    return (float)(sin((double)x) + part(x) * PTX_SIN_ERROR);
}

float ptx_cos(float x)
{
    return (float)(cos((double)x) + part(x) * PTX_SIN_ERROR);
}

float ptx_lg2(float x)
{
    const double y = log2((double)x);
    const double most = x > 0.5f && x < 2 ? 1 : fabs(y);

    return (float)(y + part(x) * PTX_LG2_ERROR * most);
}

/* The upper 32 bits. */
static double upper(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_MAX << 32;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double ptx_rcp(double x)
{
    return upper((1 + part((float)x) * PTX_RCP_ERROR) / upper(x));
}

float ptx_ex2(float x)
{
    const float towards = part(x) > 0 ? INFINITY : 0;
    float y = (float)exp2((double)x);

    for (long n = lrint(fabs(part(x)) * PTX_EX2_UNITS); n > 0; n--)
        y = isfinite(x) && isfinite(y) ? nextafterf(y, towards) : y;
    return y;
}
