/* box.h - strided boxes */
#ifndef DTN_BASE_BOX_H
#define DTN_BASE_BOX_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_reduction;

/* An n-dimensional box of elements seen from two arrays.  Strides in elements
 * between neighbours along each dimension; a row of the last dimension with
 * stride 1 on both sides is one memcpy.  ndim 0 is one element; any size 0 is
 * none.
 */
#define DTN_BOX_DIMS (2 * DTENSOR_MAX_DIMS)    /* runs, along each dimension */

struct dtn_box {
    int ndim;
    int64_t size[DTN_BOX_DIMS];
    int64_t dst_stride[DTN_BOX_DIMS];
    int64_t src_stride[DTN_BOX_DIMS];
};

/* Merge dimensions that lie flat on both sides and drop those of size 1: the
 * fewest, longest runs.  The elements stay the same.
 */
void dtn_box_coalesce(struct dtn_box *box);

int64_t dtn_box_count(const struct dtn_box *box);

/* Take the last dimension off a coalesced box if its elements are neighbours
 * on both sides, and return how many they are; else 1.  What is left are the
 * places where these runs begin.
 */
size_t dtn_box_take_run(struct dtn_box *box);

/* An odometer over a box, row-major, in the unit of its strides: begin with
 * all 0.  next() is false when there was no further place.
 */
struct dtn_walk {
    const struct dtn_box *box;
    int64_t index[DTN_BOX_DIMS];
    int64_t dst;
    int64_t src;
};
bool dtn_walk_next(struct dtn_walk *walk);

/* Copy the box of `elem_bytes`-byte elements; dst and src are its first. */
void dtn_box_copy(const struct dtn_box *box, size_t elem_bytes, void *dst,
                  const void *src);

/* dtn_fold() over the box: of dst and src if it adds, else of src alone. */
void dtn_box_fold(const struct dtn_box *box, const struct dtn_reduction *how,
                  unsigned partial, bool adds, void *dst, const void *src);

#endif
