/* rows.h - the runs of a rank's part */
#ifndef DTN_RANDOM_ROWS_H
#define DTN_RANDOM_ROWS_H

#include "layout/layout.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_rows {
    struct dtn_part part;
    int last;                     /* the last dimension that is cut            */
    int64_t stride[DTENSOR_MAX_DIMS], at[DTENSOR_MAX_DIMS];
    int64_t inner;                /* elements of an index of `last`            */
    int64_t count, done;          /* elements of the part                      */
};

/* Elements local .. local + count - 1 of the part are global .. of the whole. */
struct dtn_row {
    int64_t local, global, count;
};

/* Of position `index` of the mesh; next() is false at the end. */
void dtn_rows_init(struct dtn_rows *rows, const struct dtensor_spec *spec,
                   int index);
bool dtn_rows_next(struct dtn_rows *rows, struct dtn_row *row);

#endif
