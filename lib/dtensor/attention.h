/* dtensor/attention.h - attention with a sharded sequence
 *
 * The operator "attention" needs whole sequences on each rank.  Here queries,
 * keys and values may be sharded along the sequence, dimension 2, so a rank
 * never holds all of them, or only during the computation.  Under a causal mask
 * the last queries have the most work; HT(2) gives each rank the same share.
 */
#ifndef DTENSOR_ATTENTION_H
#define DTENSOR_ATTENTION_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- attention --- */

/* How a rank gets the keys and values of other ranks. */
enum dtensor_attention_method {
    DTENSOR_ATTENTION_AUTO,    /* the least predicted time; under repro only  */
                               /* of ways with the operator's bits            */
    DTENSOR_ATTENTION_RING,    /* keys and values move around a ring; a rank  */
                               /* computes with one part while the next comes */
    DTENSOR_ATTENTION_GATHER,  /* each rank gathers all keys and values       */
    DTENSOR_ATTENTION_HEADS,   /* two all-to-alls: heads are sharded instead  */
                               /* of the sequence, and back                   */
    DTENSOR_ATTENTION_WHOLE,   /* the operator "attention", which gathers     */
                               /* sharded sequences                           */
    DTENSOR_ATTENTION_METHODS
};

/* All zero are the defaults. */
struct dtensor_attention_options {
    double scale;              /* factor of the scores; 0: 1 / sqrt(elements  */
                               /* of a key)                                   */
    int causal;                /* 1: query i sees the keys 0 to i             */
    enum dtensor_attention_method method;      /* AUTO: the one predicted best*/
};

/* The predicted times. */
struct dtensor_attention_info {
    enum dtensor_attention_method method;      /* the one that would be used  */
    double predicted_us[DTENSOR_ATTENTION_METHODS]; /* for each: messages     */
                               /* that do not overlap computation, and the    */
                               /* extra work of the rank with the most work;  */
                               /* INFINITY: the method is not possible, or it */
                               /* is AUTO or WHOLE, for which none is         */
                               /* predicted                                   */
    const char *why;           /* reason for the method; static storage       */
};

/* Softmax(scale q k^T) v for each sequence and head.  Queries are n x h x L x
 * D, keys n x h x M x D, values n x h x M x V, the result n x h x L x V, of one
 * float dtype, on one mesh.  If one mesh dimension shards dimension 2 of all
 * three equally, by S, HT, SS or C, the result is sharded like the queries.
 * Other mesh dimensions may be S(0) (sequences), S(1) (heads) or R.  For all
 * other placements the operator redistributes.  `options` NULL is all
 * zero.  Parts are added in f32, or f64 for f64, in an order that depends on
 * the method and on the number of ranks.
 *
 * A tape notes the call; the backward uses the same method.
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

/* The method that dtensor_attention() would use for q, k and v of the specs
 * in[0] to in[2], and the predicted time of each method.
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
