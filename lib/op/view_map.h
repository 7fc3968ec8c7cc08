/* view_map.h - which dimensions of a view are which of its input */
#ifndef DTN_OP_VIEW_MAP_H
#define DTN_OP_VIEW_MAP_H

#include "dtensor.h"

#include <stdint.h>

/* What becomes of some dimensions. */
enum dtn_view_kind {
    DTN_VIEW_KEEP,                /* the same elements in the same order      */
    DTN_VIEW_SPREAD,              /* one dimension, copied several times      */
    DTN_VIEW_DROP                 /* a dimension of size 1 that is gone       */
};

/* Neighbouring dimensions of the input and those of the output that they
 * become: 8x16 becomes 128 or 4x32.
 */
struct dtn_view_group {
    enum dtn_view_kind kind;      /* what becomes of them                     */
    int in, nin;                  /* first dimension of the input, and how    */
                                  /* many; 0: the output's are new            */
    int out, nout;                /* of the output                            */
};

struct dtn_view_map {
    int ndim;                     /* of the output                            */
    int64_t shape[DTENSOR_MAX_DIMS];             /* of the output             */
    int n;                        /* entries of group                         */
    struct dtn_view_group group[2 * DTENSOR_MAX_DIMS];   /* in order          */
};

/* The map of view, expand, repeat, squeeze, unsqueeze, transpose, permute.
 * Errors: EINVAL  args.shape or args.dim does not fit the input
 */
int dtn_view_map(const struct dtensor_op_call *call, struct dtn_view_map *map,
                 struct dtensor_error *err);

#endif
