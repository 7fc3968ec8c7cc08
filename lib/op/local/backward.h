/* backward.h - gradients of norms and losses, on the parts of one rank */
#ifndef DTN_OP_LOCAL_BACKWARD_H
#define DTN_OP_LOCAL_BACKWARD_H

#include "op/local/local.h"

/* `which` is 1 for layer norm, not RMS norm; for scores, not their
 * log-softmax.
 */
dtn_local_f dtn_local_norm_backward, dtn_local_loss_backward;
dtn_local_work_f dtn_work_norm_backward, dtn_work_loss_backward;

#endif
