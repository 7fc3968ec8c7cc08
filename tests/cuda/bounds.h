/* bounds.h - how far a GPU's value of `fill = cuda` may be from the CPU's */
#ifndef TESTS_CUDA_BOUNDS_H
#define TESTS_CUDA_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

struct dtn_dist;
struct dtn_launch;

/* Does the launch use instructions of a GPU that are approximate? */
bool bounds_apply(const struct dtn_launch *launch);

/* Are all elements within the bound?  Else the first that is not is noted. */
bool bounds_hold(const struct dtn_dist *dist, const void *got,
                 const void *want, size_t count);

#endif
