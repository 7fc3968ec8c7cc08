/* index.h - the kernels that find elements by index */
#ifndef DTN_CUDA_INDEX_H
#define DTN_CUDA_INDEX_H

#include "cuda/numbers.h"
#include "cuda/pointwise.h"
#include "cuda/spots.h"

#include <stdint.h>

DTN_INLINE int64_t index_get(uint32_t bytes, const void *at)
{
    return bytes == 8 ? *(const int64_t *)at : *(const int32_t *)at;
}

/* Sets *wrong to 1 if an element is no index below `limit`; else leaves it. */
DTN_KERNEL(index_check, index_args)
{
    for (uint64_t i = at.first; i < args->grid.count; i += at.step) {
        const struct dtn_spots spot = spot_of(&args->grid, i);
        const int64_t found = index_get(args->index_bytes,
                                        (const char *)args->index
                                        + spot.at[1]);

        if (found < 0 || found >= args->limit)
            *(uint32_t *)args->out = 1;
    }
}

/* Zeros for what this rank does not have. */
DTN_INLINE void element_zero(uint32_t bytes, void *to)
{
    switch (bytes) {
    case 1: *(uint8_t *)to = 0; break;
    case 2: *(uint16_t *)to = 0; break;
    case 4: *(uint32_t *)to = 0; break;
    case 8: *(uint64_t *)to = 0; break;
    default:
        ((uint64_t *)to)[0] = 0;
        ((uint64_t *)to)[1] = 0;
    }
}

DTN_KERNEL(gather, index_args)
{
    for (uint64_t i = at.first; i < args->grid.count; i += at.step) {
        const struct dtn_spots spot = spot_of(&args->grid, i);
        const int64_t found = index_get(args->index_bytes,
                                        (const char *)args->index
                                        + spot.at[1]) - args->first;
        void *to = (char *)args->out + spot.at[0];

        if (found >= 0 && found < args->limit)
            element_copy(args->bytes, to, (const char *)args->table
                         + spot.at[2] + found * args->stride);
        else
            element_zero(args->bytes, to);
    }
}

#endif
