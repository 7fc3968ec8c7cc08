/* blocks.h - attention of this rank's queries to some of the keys
 *
 * What the keys of one rank add is merged into what those before have given:
 * of each query the result so far and the logarithm of the sum of its
 * exponentials, both of the type of computation.
 */
#ifndef DTN_ATTENTION_BLOCKS_H
#define DTN_ATTENTION_BLOCKS_H

#include "math/array.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of a part along the sequence: ascending runs, one after another. */
struct dtn_spans {
    int64_t n;                    /* entries of run                           */
    const struct dtensor_run *run;               /* [n] which rows of the     */
                                  /* whole sequence                           */
};

/* This rank's queries, and what is known of their results. */
struct dtn_queries {
    double scale;                 /* of the scores                            */
    bool causal;                  /* query i sees the keys 0 to i             */
    unsigned flags;               /* DTN_MATMUL_REPRO or 0                    */
    enum dtensor_dtype work;      /* f32 or f64: the type of computation      */
    struct dtn_spans rows;        /* which they are                           */
    struct dtn_array q;           /* n x h x l x D                            */
    struct dtn_array out;         /* n x h x l x V; gradients: final          */
    struct dtn_array lse;         /* n x h x l of WORK; the same              */
    struct dtn_array grad;        /* of the result; data NULL: no gradients   */
    struct dtn_array dq;          /* of WORK, added to                        */
    void *room;                   /* dtn_queries_room() bytes                 */
    int (*progress)(void *whose, struct dtensor_error *err); /* called after  */
                                  /* each head: peers wait for what this rank */
                                  /* moves; or NULL                           */
    void *whose;                  /* argument of progress                     */
};

/* Keys and values, of this or another rank. */
struct dtn_keys {
    struct dtn_spans rows;        /* which they are                           */
    struct dtn_array k, v;        /* n x h x m x D, n x h x m x V             */
    struct dtn_array dk, dv;      /* of WORK, added to; or data NULL          */
};

/* Bytes of memory to work with, for any keys of up to `keys` rows. */
size_t dtn_queries_room(const struct dtn_queries *queries, int64_t keys,
                        int64_t values);

/* Before the first keys. */
void dtn_queries_begin(const struct dtn_queries *queries);

/* Merge what these keys give to the results; or add what they give to the
 * gradients of queries, keys and values.
 * Errors: of progress()
 */
int dtn_queries_see(const struct dtn_queries *queries,
                    const struct dtn_keys *keys, struct dtensor_error *err);
int dtn_queries_back(const struct dtn_queries *queries,
                     const struct dtn_keys *keys, struct dtensor_error *err);

#endif
