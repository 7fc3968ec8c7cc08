/* row.h - what an operator accepts along one mesh dimension */
#ifndef DTN_OP_ROW_H
#define DTN_OP_ROW_H

#include "op/signature.h"
#include "dtensor.h"

#include <stdbool.h>

/* The placement of a tensor along one mesh dimension, by a row. */
struct dtn_row_place {
    enum dtensor_placement_kind kind;            /* REPLICATE; SHARD, also in */
                                                 /* another way; or PARTIAL   */
    int dim;                      /* SHARD: tensor dimension                  */
    enum dtensor_redop op;        /* PARTIAL: the reduction                   */
};

/* One row: with the inputs so, the outputs are so. */
struct dtn_rule_row {
    struct dtn_row_place in[DTN_RULE_IN];        /* each kind of operand      */
    struct dtn_row_place out[DTN_RULE_OUT];      /* each kind of result       */
    bool shards;                  /* something is sharded                     */
    bool plain;                   /* only S, and also if no input is sharded  */
    bool collective;              /* the operator reduces over the ranks      */
};

enum { DTN_ROWS_MAX = 64 };
struct dtn_rowset {
    int n;                        /* rows; the first is all R -> R            */
    bool sums;                    /* there are some that DTN_ROWS_WHOLE       */
                                  /* leaves out                               */
    struct dtn_rule_row row[DTN_ROWS_MAX];       /* in order                  */
};

/* Which rows are made; a bit set.  SHARDED: an input is sharded; if none is,
 * rows that shard are left out, but for plain ones: a term is reduced whole.
 * COLLECTIVE: with those in which the operator reduces over the ranks.  WHOLE:
 * without those in which the output is a term of a sum that rounds, since its
 * bits would depend on how the inputs are sharded.
 */
enum { DTN_ROWS_SHARDED = 1, DTN_ROWS_COLLECTIVE = 2, DTN_ROWS_WHOLE = 4 };

/* All rows of a signature. */
void dtn_rows_make(const struct dtn_signature *sig, unsigned which,
                   struct dtn_rowset *rows);

/* "S(0),R -> S(0)", in `buf`; with ", allreduces max, sum" if it does. */
char *dtn_row_format(const struct dtn_signature *sig,
                     const struct dtn_rule_row *row, char *buf, size_t size);

#endif
