/* order.h - elements of a row in order */
#ifndef DTN_MATH_ORDER_H
#define DTN_MATH_ORDER_H

#include "math/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of scratch memory for rows of `in` along dimension `dim`. */
size_t dtn_order_workspace(const struct dtn_array *in, int dim);

/* values = the elements of each row of `in` along dimension `dim` from the
 * first-th on, when they are in order, and index (i64) where each was; as many
 * as the two have along `dim`.  `down`: the largest first.  Equal elements stay
 * in the order of the row; a NaN is larger than all.  No complex numbers.
 */
struct dtn_order {
    const struct dtn_array *values, *index;      /* either may be NULL        */
    int dim;                      /* along which a row goes                   */
    bool down;                    /* the largest first                        */
    int64_t first;                /* the place of the first one that is taken */
    bool nan;                     /* but a NaN, if there is one in the row    */
    bool often;                   /* instead the last of those which are      */
                                  /* there most often, of equals the least;   */
                                  /* NaNs are equal                           */
};
void dtn_order(const struct dtn_order *order, const struct dtn_array *in,
               void *workspace);

#endif
