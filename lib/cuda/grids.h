/* grids.h - from a loop over arrays to where a kernel finds their elements */
#ifndef DTN_CUDA_GRIDS_H
#define DTN_CUDA_GRIDS_H

#include "cuda/kernels.h"
#include "math/array.h"
#include "math/loop.h"

/* Of the first DTN_KERNEL_ARRAYS arrays of the loop. */
struct dtn_kernel_grid dtn_grid_of(const struct dtn_loop *loop);

/* An empty launch of `kernel`, and the grid of these arrays of one shape. */
struct dtn_kernel_grid dtn_launch_over(const struct dtn_array arrays[], int n,
                                       enum dtn_kernel kernel,
                                       struct dtn_launch *launch);

#endif
