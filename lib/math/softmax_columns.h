/* softmax_columns.h - softmax of neighbouring columns, going down them at once
 *
 * Along a dimension that is not the last the rows of a softmax are columns:
 * neighbours in memory belong to different rows.  A vector has the same element
 * of several columns.
 */
#ifndef DTN_MATH_SOFTMAX_COLUMNS_H
#define DTN_MATH_SOFTMAX_COLUMNS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_columns {
    enum dtensor_dtype dtype;     /* f32, f64, bf16 or f16                    */
    const char *in;               /* element 0 of the first column            */
    char *out;                    /* the same of the result; may be `in`      */
    int64_t in_apart, out_apart;  /* elements from one of a column to the     */
                                  /* next                                     */
    int64_t n;                    /* elements of a column                     */
    int64_t count;                /* columns, which are neighbours in memory  */
};

bool dtn_softmax_columns_ok(enum dtensor_dtype dtype);

/* The first of the columns, with the bits that dtn_softmax() gives to rows.
 * Returns how many; 0: one of them has a NaN or an infinity that makes one, or
 * they need a room (room.h) and there is none, and nothing was written.
 */
int64_t dtn_softmax_columns(bool logarithm, const struct dtn_columns *columns,
                            void *room);

/* The logarithm of the sum of exponentials of some of the columns, how many as
 * above, at most DTN_SOFTMAX_COLUMNS; `out` is not used.
 */
enum { DTN_SOFTMAX_COLUMNS = 256 };
int64_t dtn_logsumexp_columns(const struct dtn_columns *columns, double sum[],
                              void *room);

#endif
