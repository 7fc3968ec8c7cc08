/* softmax.h - softmax, log-softmax and the loss of classes, whole and in passes
 *
 * softmax is exp(x - m) / s, log-softmax x - m - log(s), where m is the largest
 * x of a row and s the sum of exp(x - m).  A row of which a rank has a part
 * only takes three passes: m of the part, whose maximum over the ranks is m; s
 * of the part, whose sum over the ranks is s; and the end.
 */
#ifndef DTN_MATH_SOFTMAX_H
#define DTN_MATH_SOFTMAX_H

#include "math/array.h"

#include <stdbool.h>

/* out = softmax, or its logarithm, along dimension `dim`, of floats.  `out`
 * may be `in`.  `room`: see room.h.
 */
void dtn_softmax(bool logarithm, const struct dtn_array *out,
                 const struct dtn_array *in, int dim, void *room);

/* The passes.  `most` and `sum` have size 1 along the dimensions of a row and
 * are f32, or f64 for f64.  dtn_reduce_dims() with DTN_REDUCE_MAX gives `most`.
 * Where it is -inf, the row is all -inf and the sum is 0.
 */
void dtn_softmax_sum(const struct dtn_array *sum, const struct dtn_array *in,
                     const struct dtn_array *most);
void dtn_softmax_finish(bool logarithm, const struct dtn_array *out,
                        const struct dtn_array *in,
                        const struct dtn_array *most,
                        const struct dtn_array *sum);

/* The loss of each row along dimension `dim`, m + log(s) - x[target].  All
 * arrays but `in` have size 1 there, and those that are written any float type.
 * A target outside of the row is that of another rank: its x is taken as 0.
 */
struct dtn_row_loss {
    const struct dtn_array *loss; /* where it goes                            */
    const struct dtn_array *most; /* m; NULL: not wanted                      */
    const struct dtn_array *sum;  /* s; NULL: not wanted                      */
    const struct dtn_array *in;   /* x                                        */
    const struct dtn_array *target;    /* i64 or i32                          */
    int dim;                      /* along which rows lie                     */
};
void dtn_cross_entropy(const struct dtn_row_loss *of);

/* The gradient of the input from `out`, which is what came out, and the
 * gradient of that: out (g - sum of g out), or of the logarithm g - exp(out)
 * (sum of g).  `in_grad` may be `grad`.
 */
void dtn_softmax_backward(bool logarithm, const struct dtn_array *in_grad,
                          const struct dtn_array *grad,
                          const struct dtn_array *out, int dim);

/* Its passes: sum = sum of g out, or of the logarithm sum of g, a float with
 * size 1 along the dimensions of a row; and the end.
 */
void dtn_softmax_backward_sum(bool logarithm, const struct dtn_array *sum,
                              const struct dtn_array *grad,
                              const struct dtn_array *out);
void dtn_softmax_backward_finish(bool logarithm,
                                 const struct dtn_array *in_grad,
                                 const struct dtn_array *grad,
                                 const struct dtn_array *out,
                                 const struct dtn_array *sum);

#endif
