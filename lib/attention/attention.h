/* attention.h - attention on a sharded sequence
 *
 * way.c        which way a call takes, and what it costs
 * blocks.c     this rank's queries and the keys of one rank
 * ring.c       keys and values go round
 * gather.c     all keys and values are gathered
 * attention.c  dtensor_attention()
 */
#ifndef DTN_ATTENTION_ATTENTION_H
#define DTN_ATTENTION_ATTENTION_H

#include "attention/blocks.h"
#include "attention/way.h"
#include "dtensor.h"

#include <stdbool.h>

/* What a call leaves for its gradients, as a tape notes it: this operator, with
 * q, k and v, the result, and the logarithms of the sums of exponentials.
 * args.count is the method.
 */
#define DTN_SHARDED_ATTENTION "sharded_attention"

/* grads[0] to grads[2]: of q, k and v, sharded like these, which are in[0] to
 * in[2]; in[3] and in[4] are the results.  `grad` lies like in[3].
 * Errors: as dtensor_attention()
 */
int dtn_attention_gradients(const struct dtensor *const in[5],
                            const struct dtensor_op_args *args,
                            const struct dtensor *grad,
                            struct dtensor *grads[3],
                            struct dtensor_error *err);

/* One call on this rank. */
struct dtn_attention_call {
    bool back;                    /* backward: queries.grad is there          */
    const struct dtn_attention_way *way;         /* that it takes             */
    const struct dtensor_spec *k_spec, *v_spec;  /* of keys and values        */
    struct dtn_queries queries;   /* without room and progress                */
    const struct dtn_spans *rows; /* [way->n] of the keys of each rank        */
    struct dtn_array k, v;        /* of this rank                             */
    struct dtn_array dk, dv;      /* of type queries.work: backward: written  */
};

/* ring.c, gather.c: see all keys.
 * Collective: the ranks of way->ring
 * Errors: ENOMEM; and of messages and redistributes
 */
int dtn_attention_ring(struct dtn_attention_call *call,
                       struct dtensor_error *err);
int dtn_attention_gather(struct dtn_attention_call *call,
                         struct dtensor_error *err);

#endif
