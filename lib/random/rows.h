/* rows.h - the contiguous runs of a rank's part */
#ifndef DTN_RANDOM_ROWS_H
#define DTN_RANDOM_ROWS_H

#include "layout/layout.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* A walk over the part. */
struct dtn_rows {
    struct dtn_part part;         /* where its elements are in the whole      */
    int last;                     /* the last dimension that is cut           */
    int64_t stride[DTENSOR_MAX_DIMS];     /* of the whole, in elements        */
    int64_t at[DTENSOR_MAX_DIMS]; /* local index of the next run              */
    int64_t inner;                /* elements of an index of `last`           */
    int64_t count;                /* elements of the part                     */
    int64_t done;                 /* of these, walked over                    */
};

/* Elements local .. local + count - 1 of the part are elements global .. global
 * + count - 1 of the whole.
 */
struct dtn_row {
    int64_t local;                /* row-major index in the part              */
    int64_t global;               /* row-major index in the whole             */
    int64_t count;                /* elements that are neighbours in both     */
};

/* Walk over the part of position `index` of the mesh; next() is false at the
 * end.
 */
void dtn_rows_init(struct dtn_rows *rows, const struct dtensor_spec *spec,
                   int index);
bool dtn_rows_next(struct dtn_rows *rows, struct dtn_row *row);

#endif
