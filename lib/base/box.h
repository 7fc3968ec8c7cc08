/* box.h - strided boxes */
#ifndef DTN_BASE_BOX_H
#define DTN_BASE_BOX_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_reduction;

/* An n-dimensional box of elements in two arrays.  A stride is the distance of
 * two neighbours along a dimension, in elements.  A row of the last dimension
 * with stride 1 on both sides is one memcpy.  With ndim 0 the box is one
 * element; if any size is 0, it is empty.
 */
#define DTN_BOX_DIMS (2 * DTENSOR_MAX_DIMS)    /* runs, along each dimension */

struct dtn_box {
    int ndim;                     /* dimensions in use, from 0                */
    int64_t size[DTN_BOX_DIMS];   /* elements along each dimension            */
    int64_t dst_stride[DTN_BOX_DIMS]; /* elements, in the destination         */
    int64_t src_stride[DTN_BOX_DIMS]; /* elements, in the source              */
};

/* Merge dimensions that are contiguous on both sides and remove those of size
 * 1, so that the runs are as few and as long as possible.  The box keeps its
 * elements.
 */
void dtn_box_coalesce(struct dtn_box *box);

int64_t dtn_box_count(const struct dtn_box *box);

/* If the elements of the last dimension of a coalesced box are contiguous on
 * both sides, remove that dimension and return its size; else return 1.  The
 * box is then the places where these runs begin.
 */
size_t dtn_box_take_run(struct dtn_box *box);

/* An odometer over a box, in row-major order.  It begins with all 0.
 * dtn_walk_next() returns false after the last place.
 */
struct dtn_walk {
    const struct dtn_box *box;    /* it is walked over; not owned             */
    int64_t index[DTN_BOX_DIMS];  /* the place, along each dimension          */
    int64_t dst;                  /* its offset in the destination            */
    int64_t src;                  /* its offset in the source                 */
};
bool dtn_walk_next(struct dtn_walk *walk);

/* Copy a box of elements of `elem_bytes` bytes each.  dst and src point to its
 * first element.
 */
void dtn_box_copy(const struct dtn_box *box, size_t elem_bytes, void *dst,
                  const void *src);

/* dtn_fold() over the box: of dst and src if `adds`, else of src alone. */
void dtn_box_fold(const struct dtn_box *box, const struct dtn_reduction *how,
                  unsigned partial, bool adds, void *dst, const void *src);

#endif
