/* launch.h - from an operation to a kernel and its arguments
 *
 * Each function writes a launch that does on a GPU what a function of lib/base
 * does on the CPU, to the bit, NaNs included.  Pointers are only looked at for
 * their alignment.  A function that returns bool returns false, with nothing
 * written, if no kernel does the operation.
 */
#ifndef DTN_CUDA_LAUNCH_H
#define DTN_CUDA_LAUNCH_H

#include "cuda/kernels.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_box;
struct dtn_reduction;

/* dtn_fold(), with the same result in each dst.  Not for one source of which
 * dtn_fold_moves() is true: that is a copy.  false: more than DTN_KERNEL_TERMS
 * of either, or a function of the caller's.
 */
bool dtn_launch_fold(const struct dtn_reduction *how, unsigned partial,
                     void *const dst[], int ndst, const void *const src[],
                     int nsrc, size_t count, struct dtn_launch *launch);

/* dtn_box_fold().  Not without `adds` if dtn_fold_moves() is true. */
bool dtn_launch_fold_box(const struct dtn_box *box,
                         const struct dtn_reduction *how, unsigned partial,
                         bool adds, void *dst, const void *src,
                         struct dtn_launch *launch);

/* dtn_box_copy(). */
void dtn_launch_copy_box(const struct dtn_box *box, size_t elem_bytes,
                         void *dst, const void *src,
                         struct dtn_launch *launch);

/* dtn_scale(). */
void dtn_launch_scale(enum dtensor_dtype dtype, void *array, size_t count,
                      int n, struct dtn_launch *launch);

/* `count` times the element of 1, 2, 4, 8 or 16 bytes. */
void dtn_launch_repeat(const void *elem, size_t elem_bytes, void *dst,
                       size_t count, struct dtn_launch *launch);

/* dtn_fill_neutral(). */
void dtn_launch_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                        void *array, size_t count, struct dtn_launch *launch);

/* dtn_equal(): sets *differ, which is on the device, to 1 if they differ.  It
 * must be 0 before.
 */
void dtn_launch_equal(enum dtensor_dtype dtype, const void *left,
                      const void *right, size_t count, uint32_t *differ,
                      struct dtn_launch *launch);

/* A divisor from 1 to 2^63. */
struct dtn_divide dtn_divide_by(uint64_t by);

#endif
