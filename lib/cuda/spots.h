/* spots.h - where a thread finds the elements of arrays that are strided */
#ifndef DTN_CUDA_SPOTS_H
#define DTN_CUDA_SPOTS_H

#include "cuda/places.h"

/* Where element `i` of each array is, in bytes. */
struct dtn_spots {
    int64_t at[DTN_KERNEL_ARRAYS];     /* of each array                       */
};

DTN_INLINE struct dtn_spots spot_of(const struct dtn_kernel_grid *grid,
                                   uint64_t i)
{
    uint64_t run = grid->ndim > 0 ? divided(i, &grid->run) : 0;
    const int64_t within = (int64_t)(i - run * grid->run.by);
    struct dtn_spots spot;

    DTN_UNROLL
    for (int a = 0; a < DTN_KERNEL_ARRAYS; a++)
        spot.at[a] = within * grid->step[a];
    for (int64_t d = grid->ndim - 1; d >= 0; d--) {
        const uint64_t outer = divided(run, &grid->dim[d].size);
        const int64_t k = (int64_t)(run - outer * grid->dim[d].size.by);

        DTN_UNROLL
        for (int a = 0; a < DTN_KERNEL_ARRAYS; a++)
            spot.at[a] += k * grid->dim[d].stride[a];
        run = outer;
    }
    return spot;
}

#endif
