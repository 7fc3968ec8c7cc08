/* values.h - contents of tensors that depend on what is watched */
#ifndef DTN_TAPE_VALUES_H
#define DTN_TAPE_VALUES_H

#include "dtensor.h"

#include <stdint.h>

struct dtn_value {
    uint64_t content;             /* its number                               */
    struct dtensor *grad;         /* what is known of its gradient; or NULL   */
};

/* Found by number: a table of indices into the array, by hash. */
struct dtn_values {
    struct dtn_value *value;      /* [n]                                      */
    int n, room;                  /* in use; allocated                        */
    int *slot;                    /* [nslots] index + 1; 0: free              */
    int nslots;                   /* a power of two, over 2 n; or 0           */
};

/* The index of a content; -1: it depends on nothing that is watched. */
int dtn_values_find(const struct dtn_values *values, uint64_t content);

/* The same, added if it is not there.   Errors: ENOMEM */
int dtn_values_add(struct dtn_values *values, uint64_t content, int *indexp,
                   struct dtensor_error *err);

/* Room for `more`, so that so many additions do not fail.   Errors: ENOMEM */
int dtn_values_reserve(struct dtn_values *values, int more,
                       struct dtensor_error *err);

/* Add to the gradient of value i.  `grad` is the values' then, also on failure.
 *   Errors: of dtensor_op()
 */
int dtn_values_give(struct dtn_values *values, int i, struct dtensor *grad,
                    struct dtensor_error *err);

/* Forget all; free: and the memory. */
void dtn_values_clear(struct dtn_values *values);
void dtn_values_free(struct dtn_values *values);

#endif
