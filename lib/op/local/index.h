/* index.h - of operators that find elements by index */
#ifndef DTN_OP_LOCAL_INDEX_H
#define DTN_OP_LOCAL_INDEX_H

#include "op/local/local.h"
#include "dtensor.h"

#include <stdint.h>

/* Element `at` of this rank's part of input i is `value`, which is no index
 * below `size`: EINVAL, of this rank.
 */
int dtn_index_fail(const struct dtn_parts *parts, int i, int64_t at,
                   int64_t value, int64_t size, struct dtensor_error *err);

/* Is each element of input i an index below `size`?   Errors: EINVAL  no */
int dtn_index_check(const struct dtn_parts *parts, int i, int64_t size,
                    struct dtensor_error *err);

/* The first index along `dim` that this rank has of a tensor. */
int64_t dtn_index_first(const struct dtn_parts *parts,
                        const struct dtensor_spec *spec, int dim);

#endif
