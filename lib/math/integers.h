/* integers.h - functions of whole numbers, as functions.h has them of floats */
#ifndef DTN_MATH_INTEGERS_H
#define DTN_MATH_INTEGERS_H

#include "base/compiler.h"

#include <stdint.h>

/* The quotient, rounded toward zero; a division by 0 gives 0. */
DTN_DEVICE
static inline int64_t dtn_over_i64(int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

DTN_DEVICE
static inline uint64_t dtn_over_u64(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x / y;
}

/* -1, 0 or 1. */
DTN_DEVICE
static inline int dtn_sign_i64(int64_t x)
{
    return (x > 0) - (x < 0);
}

DTN_DEVICE
static inline int dtn_sign_u64(uint64_t x)
{
    return x > 0;
}

DTN_DEVICE
static inline int64_t dtn_clamp_i64(int64_t x, int64_t low, int64_t high)
{
    const int64_t raised = x < low ? low : x;

    return raised > high ? high : raised;
}

DTN_DEVICE
static inline uint64_t dtn_clamp_u64(uint64_t x, uint64_t low, uint64_t high)
{
    const uint64_t raised = x < low ? low : x;

    return raised > high ? high : raised;
}

#endif
