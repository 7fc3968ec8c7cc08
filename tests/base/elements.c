/* elements.c - random elements of any type, with the special ones among them */
#include "base/dtype.h"
#include "tests/base/elements.h"
#include "tests/support/rand.h"

#include <math.h>

void elements_fill(uint64_t *seed, enum dtensor_dtype dtype, void *array,
                   size_t count)
{
    static const double special[] = { 0.0, -0.0, 1, (double)INFINITY,
                                      (double)-INFINITY, (double)NAN };

    rand_bytes(seed, array, count * dtn_dtype_size(dtype));
    for (size_t i = 0; dtype == DTENSOR_BOOL && i < count; i++)
        ((uint8_t *)array)[i] &= 1;
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX) {
        elements_fill(seed, dtype == DTENSOR_C64 ? DTENSOR_F32 : DTENSOR_F64,
                      array, 2 * count);
        return;
    }
    for (size_t i = 0; dtn_dtype_is_float(dtype) && i < count; i++) {
        if (i % 2)
            dtn_store(dtype, array, i, (rand_below(seed, 4001) - 2000) / 64.0);
        if (rand_below(seed, 8) == 0)
            dtn_store(dtype, array, i, special[rand_below(seed, 6)]);
    }
}
