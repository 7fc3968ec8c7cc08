/* readback.h - a read by the card that makes its writes into a GPU
 * visible
 */
#ifndef DTN_TRANSPORT_VERBS_READBACK_H
#define DTN_TRANSPORT_VERBS_READBACK_H

#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct dtn_transport_conf;
struct dtn_verbs;
struct dtn_verbs_peer;
struct dtn_verbs_rail;

/* A queue pair of a rail that is joined to itself.  READs are numbered from 1.
 */
struct dtn_verbs_readback {
    struct ibv_qp *qp;            /* NULL: not opened                         */
    struct ibv_cq *cq;            /* its completions                          */
    struct ibv_mr *mr;            /* of `word`                                */
    uint64_t word;                /* what was read last; nobody looks at it   */
    uint64_t posted, completed;   /* number of the last READ that is          */
};

/* Is a READ needed, by [transport] gpu_flush?  `ordered`: see exporter.h. */
bool dtn_verbs_readback_needed(const struct dtn_transport_conf *conf,
                               bool ordered, int nrails);

/* Make the queue pairs of all rails, once.   Errors: ESYS */
int dtn_verbs_readback_open(struct dtn_verbs *verbs, struct dtensor_error *err);
void dtn_verbs_readback_close(struct dtn_verbs_rail *rail);

/* A signal of the peer has arrived.  The bytes that the peer wrote into our
 * device by rail 0, and if `striped` by the other rails, are there when this
 * returns 0.  EAGAIN: call again.   Errors: ESYS
 */
int dtn_verbs_readback(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                       bool striped);

#endif
