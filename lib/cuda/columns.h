/* columns.h - kernels that add up the gradients of a norm over its rows
 *
 * As in math/norm_backward.c: each 64 rows are added up, then these sums.  In
 * the first step a thread adds one column of 64 rows, in the second one column
 * of the sums.  8,192 rows of 1,024 take 131,072 threads, then 1,024.
 */
#ifndef DTN_CUDA_COLUMNS_H
#define DTN_CUDA_COLUMNS_H

#include "cuda/numbers.h"
#include "cuda/spots.h"
#include "math/backward.h"

#include <stdint.h>

DTN_KERNEL(column_blocks, column_args)
{
    const uint64_t all = args->blocks * args->columns.by;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const uint64_t block = divided(u, &args->columns);
        const uint64_t first = block * DTN_NORM_ROWS;
        const uint64_t end = first + DTN_NORM_ROWS < args->rows
                           ? first + DTN_NORM_ROWS : args->rows;
        const struct dtn_spots within =
            spot_of(&args->row, u - block * args->columns.by);
        double weight = 0, bias = 0;

        for (uint64_t row = first; row < end; row++) {
            const struct dtn_spots spot = spot_of(&args->outer, row);
            const double g = get_float(args->dtype, (const char *)args->grad
                                       + spot.at[1] + within.at[1]);
            const double x = get_float(args->dtype, (const char *)args->in
                                       + spot.at[2] + within.at[2]);

            weight += g * dtn_norm_unit(x, args->mean ? args->mean[row] : 0,
                                        args->rstd[row]);
            bias += g;
        }
        args->sums[u] = weight;
        args->sums[all + u] = bias;
    }
}

DTN_KERNEL(column_ends, column_args)
{
    const uint64_t all = args->blocks * args->columns.by;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_spots to = spot_of(&args->row, u);
        double weight = 0, bias = 0;

        for (uint64_t i = u; i < all; i += args->columns.by) {
            weight += args->sums[i];
            bias += args->sums[all + i];
        }
        if (args->weight)
            put_float(args->dtype, (char *)args->weight + to.at[0],
                      weight);
        if (args->bias)
            put_float(args->dtype, (char *)args->bias + to.at[1], bias);
    }
}

#endif
