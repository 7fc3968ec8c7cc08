/* rows.h - operators on rows, and by index, on the parts of one rank */
#ifndef DTN_OP_LOCAL_ROWS_H
#define DTN_OP_LOCAL_ROWS_H

#include "op/local/local.h"

/* `which` is 1 for the logarithm; for layer norm, not RMS norm; for products,
 * not sums.  Losses: which 1 takes scores, not their log-softmax.  Attention:
 * which 1 is that of gradients.
 */
dtn_local_f dtn_local_softmax, dtn_local_softmax_backward, dtn_local_norm,
    dtn_local_cumulate, dtn_local_loss;
dtn_local_work_f dtn_work_softmax, dtn_work_norm, dtn_work_loss;

dtn_local_f dtn_local_attention, dtn_local_attention_backward;
dtn_local_work_f dtn_work_attention;

/* `which` is 1 for tril; for scatter_add and index_put_add. */
dtn_local_f dtn_local_embedding, dtn_local_embedding_backward,
    dtn_local_gather, dtn_local_index_select, dtn_local_scatter,
    dtn_local_triangle, dtn_local_index, dtn_local_index_put;
dtn_local_work_f dtn_work_index, dtn_work_index_put;

#endif
