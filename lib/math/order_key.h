/* order_key.h - a number of 64 bits that has the order of a float
 *
 * Of a positive float the highest bit is turned, of a negative one all are.
 * Zeros are equal; a NaN is larger than all.
 */
#ifndef DTN_MATH_ORDER_KEY_H
#define DTN_MATH_ORDER_KEY_H

#include "base/compiler.h"

#include <stdint.h>
#include <string.h>

#define DTN_KEY_HIGHEST ((uint64_t)1 << 63)
#define DTN_KEY_NAN UINT64_MAX

DTN_DEVICE static inline uint64_t dtn_order_key(double value)
{
    const double plain = value == 0 ? 0 : value;         /* of -0 too         */
    uint64_t bits;

    if (value != value)
        return DTN_KEY_NAN;
    memcpy(&bits, &plain, sizeof bits);
    return bits & DTN_KEY_HIGHEST ? ~bits : bits | DTN_KEY_HIGHEST;
}

#endif
