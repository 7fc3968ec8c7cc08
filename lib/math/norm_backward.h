/* norm_backward.h - the gradients of layer norm and RMS norm */
#ifndef DTN_MATH_NORM_BACKWARD_H
#define DTN_MATH_NORM_BACKWARD_H

#include "math/array.h"

#include <stdbool.h>

/* The operands, over the last `dims` dimensions of `in`; see norm.h.  `mean`
 * and `rstd` NULL: they are computed again.  `weight` NULL: 1.
 */
struct dtn_norm_backward {
    const struct dtn_array *in_grad; /* is written                            */
    const struct dtn_array *weight_grad; /* is written; or NULL               */
    const struct dtn_array *bias_grad; /* is written; or NULL                 */
    const struct dtn_array *grad; /* of the output                            */
    const struct dtn_array *in;   /* as it was                                */
    const struct dtn_array *weight; /* or NULL                                */
    const struct dtn_array *mean; /* of RMS norm NULL; or NULL                */
    const struct dtn_array *rstd; /* or NULL                                  */
    int dims;                     /* how many dimensions a row has            */
    bool centred;                 /* layer norm; else RMS norm                */
    double epsilon;               /* added to the mean of the squares         */
    double *sums;                 /* room for four rows                       */
};

/* With x' = (x - mean) rstd and d = g weight: the gradient of the input is
 * rstd (d - mean of d - x' mean of (d x')), of RMS norm without the mean of d;
 * of the weight the sum over the rows of g x', of the bias that of g.  The
 * sums are f64; their order depends on the shape only.
 */
void dtn_norm_backward(const struct dtn_norm_backward *norm);

/* The same for rows of which a rank has a part, in two passes.  `numbers` is
 * f64, of size 1 along a row, and the first of four such arrays, one behind the
 * other: mean, rstd, and the sums of d and of d x'.  The first pass reads mean
 * and rstd, and writes those sums for the part; the second one reads all, the
 * sums of whole rows of `count` elements.
 */
void dtn_norm_backward_sums(const struct dtn_norm_backward *norm,
                            const struct dtn_array *numbers);
void dtn_norm_backward_finish(const struct dtn_norm_backward *norm,
                              const struct dtn_array *numbers, double count);

#endif
