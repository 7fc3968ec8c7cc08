/* copy.h - operators that copy elements of this rank, and nothing else */
#ifndef DTN_OP_LOCAL_COPY_H
#define DTN_OP_LOCAL_COPY_H

#include "op/local/local.h"

/* same: output 0 has the elements of the last input, in their order.  fill: all
 * elements are args.value, or what `which` says, of enum dtn_fill.  The other
 * functions are the operators of that name.
 */
enum dtn_fill { DTN_FILL_VALUE, DTN_FILL_ZEROS, DTN_FILL_ONES };

dtn_local_f dtn_local_same, dtn_local_fill, dtn_local_permute,
    dtn_local_repeat, dtn_local_cat, dtn_local_stack, dtn_local_split,
    dtn_local_unbind, dtn_local_select, dtn_local_slice, dtn_local_flip,
    dtn_local_pad;

#endif
