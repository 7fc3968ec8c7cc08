/* rows.c - the runs of a rank's part, and their places in the whole
 *
 * A run is a sequence of elements that is contiguous in the part and in the
 * whole.  Example: for f32[4,6] as S(1) on 2 ranks, rank 1 has four runs of 3
 * elements; its elements 0..2 are 3..5 of the whole, and 3..5 are 9..11.
 * Placements that cut a dimension apply from left to right, each to the result
 * of the one before.  So an index in the part is mapped back through them from
 * right to left.  No list is made, for any number of pieces of a cyclic
 * placement.
 */
#include "random/rows.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>

/* The last dimension that the rank does not hold completely and in order; 0: it
 * holds all of them so.
 */
static int rows_last(const struct dtensor_spec *spec)
{
    int last = 0;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
            spec->placement[m].dim > last)
            last = spec->placement[m].dim;
    return last;
}

void dtn_rows_init(struct dtn_rows *rows, const struct dtensor_spec *spec,
                   int index)
{
    *rows = (struct dtn_rows){ .last = rows_last(spec), .inner = 1 };
    dtn_part_init(&rows->part, spec, index);
    dtn_strides(spec->ndim, spec->shape, rows->stride);
    rows->count = dtn_numel(spec->ndim, rows->part.shape);
    for (int d = rows->last + 1; d < spec->ndim; d++)
        rows->inner *= rows->part.shape[d];
}

/* Advance by `n` in the last cut dimension; at its end go to the next row. */
static void rows_step(struct dtn_rows *rows, int64_t n)
{
    rows->at[rows->last] += n;
    for (int d = rows->last; d > 0 && rows->at[d] == rows->part.shape[d]; d--) {
        rows->at[d] = 0;
        rows->at[d - 1]++;
    }
}

bool dtn_rows_next(struct dtn_rows *rows, struct dtn_row *row)
{
    int64_t left = 1, global = 0;

    if (rows->done >= rows->count)
        return false;
    for (int d = 0; d <= rows->last && d < rows->part.spec->ndim; d++)
        global += dtn_part_at(&rows->part, d, rows->at[d],
                              d == rows->last ? &left : NULL) *
                  rows->stride[d];
    *row = (struct dtn_row){ rows->done, global, left * rows->inner };
    rows->done += row->count;
    rows_step(rows, left);
    return true;
}
