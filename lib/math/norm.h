/* norm.h - layer norm and RMS norm, whole and in passes
 *
 * A row, the last dimensions, becomes (x - mean) rstd weight + bias, where rstd
 * is 1 / sqrt(mean of (x - mean)^2 + epsilon).  RMS norm is the same without
 * mean and bias.  A row of which a rank has a part only takes three passes: the
 * sum of the part, the sum of its squares, and the end.
 */
#ifndef DTN_MATH_NORM_H
#define DTN_MATH_NORM_H

#include "math/array.h"

#include <stdbool.h>

/* The operands of a norm over the last dimensions of `in`.  `weight` and `bias`
 * have those dimensions, or are NULL: 1 and 0.  `mean` and `rstd` have size 1
 * there and any float type; `mean` is NULL for RMS norm; `rstd` may be NULL for
 * dtn_norm().
 */
struct dtn_norm {
    const struct dtn_array *out;  /* may be `in`                              */
    const struct dtn_array *in;   /* floats, of one type with out, weight,    */
                                  /* and bias                                 */
    const struct dtn_array *weight; /* or NULL                                */
    const struct dtn_array *bias; /* or NULL                                  */
    const struct dtn_array *mean; /* or NULL                                  */
    const struct dtn_array *rstd; /* or NULL                                  */
    int dims;                     /* how many dimensions a row has            */
    bool centred;                 /* layer norm; else RMS norm                */
    double epsilon;               /* added to the mean of the squares         */
    void *room;                   /* of dtn_norm(), see room.h                */
};

/* The whole: `mean`, if it is not NULL, `rstd`, if it is not NULL, and `out`
 * are written.
 */
void dtn_norm(const struct dtn_norm *norm);

/* The passes.  squares = the sum over a row of (x - mean)^2, `mean` NULL: of
 * x^2; as f32 or f64.  dtn_norm_finish() reads `mean` and `rstd`, writes `out`.
 */
void dtn_norm_squares(const struct dtn_array *squares,
                      const struct dtn_array *in,
                      const struct dtn_array *mean);
void dtn_norm_finish(const struct dtn_norm *norm);

#endif
