/* slabs.h - the bytes of a file that a rank writes and reads */
#ifndef DTN_FILE_SLABS_H
#define DTN_FILE_SLABS_H

#include "dtensor.h"

#include <stdint.h>

/* `count` ranges of the row-major elements, one every `step` bytes: range i is
 * [at + i * step, at + i * step + bytes).  In the rank's part the ranges are
 * contiguous.
 */
struct dtn_slabs {
    int64_t count;                /* ranges; 0: none                          */
    uint64_t at;                  /* first byte of the first                  */
    uint64_t step;                /* from the start of one to the next        */
    uint64_t bytes;               /* of each                                  */
};

/* How the elements of `spec` are placed for a file: each element is on one
 * rank, in few long ranges.  A tensor without dimensions has one element, which
 * is on all ranks.
 */
void dtn_slabs_spec(const struct dtensor_spec *spec,
                    struct dtensor_spec *slabs);

/* The ranges of position `index` of such a spec. */
void dtn_slabs_of(const struct dtensor_spec *slabs, int index,
                  struct dtn_slabs *made);

#endif
