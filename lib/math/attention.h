/* attention.h - softmax(scale q k^T) v, and its gradients
 *
 * Arrays are packed: q is n x h x L x D, k n x h x M x D, v n x h x M x V, the
 * result n x h x L x V, for n sequences and h heads.  A matrix of L x M is
 * never in memory: keys are walked over in blocks, and what a block adds is
 * corrected when a later one has a larger score.
 */
#ifndef DTN_MATH_ATTENTION_H
#define DTN_MATH_ATTENTION_H

#include "math/array.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_attention {
    const struct dtn_array *q, *k, *v;     /* of one type of floats           */
    double scale;                 /* of the scores                            */
    bool causal;                  /* query i sees the keys 0 to i only        */
    unsigned flags;               /* DTN_MATMUL_REPRO or 0, of the products   */
};

/* Bytes of scratch memory for the result, or for the gradients; data is not
 * looked at.
 */
size_t dtn_attention_workspace(const struct dtn_attention *a, bool gradients);

/* out = the result; lse, n x h x L of f32 or f64, or NULL: the logarithm of the
 * sum of the exponentials of each query's scores.  Products and sums are f32,
 * or f64 of f64.
 */
void dtn_attention(const struct dtn_attention *a, const struct dtn_array *out,
                   const struct dtn_array *lse, void *workspace);

/* The gradients of q, k and v, of grad, that of the result, from `out` and
 * `lse` as dtn_attention() made them.
 */
struct dtn_attention_grads {
    const struct dtn_array *grad, *out, *lse;    /* read                      */
    const struct dtn_array *q, *k, *v;           /* written; k, v may be NULL */
};
void dtn_attention_backward(const struct dtn_attention *a,
                            const struct dtn_attention_grads *grads,
                            void *workspace);

#endif
