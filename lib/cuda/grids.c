/* grids.c - from a loop over arrays to where a kernel finds their elements
 *
 * The arrays are walked over as on the CPU: dtn_loop_begin() makes runs of the
 * dimensions that follow each other.  Of 4 x 5 without gaps and a row of 5 that
 * is broadcast there are 4 runs of 5; element 13 is number 3 of run 2.
 */
#include "cuda/grids.h"
#include "cuda/launch.h"

#include <string.h>

struct dtn_kernel_grid dtn_grid_of(const struct dtn_loop *loop)
{
    const int n = loop->narrays < DTN_KERNEL_ARRAYS ? loop->narrays
                                                    : DTN_KERNEL_ARRAYS;
    struct dtn_kernel_grid grid = { .count = loop->empty ? 0
                                           : (uint64_t)loop->run,
                                    .ndim = loop->ndim };

    grid.run = dtn_divide_by(grid.count > 0 ? grid.count : 1);
    for (int i = 0; i < n; i++)
        grid.step[i] = loop->step[i] * (int64_t)loop->size[i];
    for (int d = 0; d < loop->ndim && !loop->empty; d++) {
        grid.count *= (uint64_t)loop->shape[d];
        grid.dim[d].size = dtn_divide_by((uint64_t)loop->shape[d]);
        for (int i = 0; i < n; i++)
            grid.dim[d].stride[i] = loop->stride[i][d];
    }
    return grid;
}

struct dtn_kernel_grid dtn_launch_over(const struct dtn_array arrays[], int n,
                                       enum dtn_kernel kernel,
                                       struct dtn_launch *launch)
{
    struct dtn_kernel_grid grid;
    struct dtn_loop loop;

    dtn_loop_begin(&loop, arrays, n);
    grid = dtn_grid_of(&loop);
    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    launch->threads = grid.count;
    return grid;
}
