/* dtensor/attention.h - attention with the sequence cut
 *
 * The operator "attention" wants whole sequences on each rank.  Here queries,
 * keys and values may be cut along the sequence, dimension 2, so that no rank
 * ever has all of them, or has all of them only while it computes.  Under a
 * causal mask the last queries have most to do: HT(2) gives each rank as much.
 */
#ifndef DTENSOR_ATTENTION_H
#define DTENSOR_ATTENTION_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- attention --- */

/* How queries get to see keys and values of other ranks. */
enum dtensor_attention_method {
    DTENSOR_ATTENTION_AUTO,    /* the least predicted time; under repro only  */
                               /* of ways with the operator's bits            */
    DTENSOR_ATTENTION_RING,    /* keys and values go round in a ring, each    */
                               /* rank computing with what it has meanwhile   */
    DTENSOR_ATTENTION_GATHER,  /* each rank gathers all keys and values       */
    DTENSOR_ATTENTION_HEADS,   /* two all-to-alls: heads are cut in place of  */
                               /* the sequence, and back                      */
    DTENSOR_ATTENTION_WHOLE,   /* the operator: no sequence is cut, or it     */
                               /* gathers what is                             */
    DTENSOR_ATTENTION_METHODS
};

/* All zero is a good start. */
struct dtensor_attention_options {
    double scale;              /* factor of the scores; 0: 1 / sqrt(elements  */
                               /* of a key)                                   */
    int causal;                /* 1: query i sees the keys 0 to i             */
    enum dtensor_attention_method method;      /* AUTO: the one predicted best*/
};

/* What a method would take. */
struct dtensor_attention_info {
    enum dtensor_attention_method method;      /* that would be taken         */
    double predicted_us[DTENSOR_ATTENTION_METHODS]; /* of each: what it moves */
                               /* and does not hide behind computing, and     */
                               /* what the slowest rank computes more than    */
                               /* its share; INFINITY: it cannot be done      */
    const char *why;           /* why that one; static storage                */
};

/* Softmax(scale q k^T) v for each sequence and head.  Queries are n x h x L x
 * D, keys n x h x M x D, values n x h x M x V, the result n x h x L x V, of one
 * dtype of floats, on one mesh.  If one mesh dimension cuts dimension 2 of all
 * three alike, by S, HT, SS or C, the result is cut like the queries; other
 * mesh dimensions may cut sequences or heads, S(0) and S(1), or replicate.
 * What lies otherwise is left to the operator, which redistributes.  `options`
 * NULL is all zero.  Parts are added as f32, or f64 of f64, in an order that
 * depends on the method and on the number of ranks.
 *
 * A tape notes it; the backward takes the same way.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until this rank has its
 *         part and no peer needs its keys and values.
 * Owns:   *outp is the caller's, for dtensor_destroy(); untouched on failure.
 * Errors: EINVAL  q, k or v is NULL; shapes, dtypes or meshes do not fit; a
 *                 length that head and tail cannot halve on each rank; a method
 *                 that cannot be taken: says why; a group of calls is open;
 *                 dtensor_op_implied(), where the operator has to redistribute
 *         and those of dtensor_allreduce()
 * Semantics: scaled_dot_product_attention inside context_parallel.
 */
int dtensor_attention(const struct dtensor *q, const struct dtensor *k,
                      const struct dtensor *v,
                      const struct dtensor_attention_options *options,
                      struct dtensor **outp, struct dtensor_error *err);

/* The way that dtensor_attention() would take for tensors of the specs in[0] to
 * in[2], and what each way is predicted to take.
 *
 * Collective: no.   Blocks: no.
 * Errors: as dtensor_attention()
 * Semantics: its own.
 */
int dtensor_attention_predict(const struct dtensor_spec in[3],
                              const struct dtensor_attention_options *options,
                              struct dtensor_attention_info *info,
                              struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif
