/* rail.h - a device that carries bytes of this rank, and its queues */
#ifndef DTN_TRANSPORT_VERBS_RAIL_H
#define DTN_TRANSPORT_VERBS_RAIL_H

#include "transport/verbs/device.h"
#include "transport/verbs/readback.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdint.h>

struct dtn_verbs;

/* Rail k of one rank talks to rail k of another.  Signals and short puts go by
 * rail 0.
 */
struct dtn_verbs_rail {
    int number;                   /* from 0                                   */
    struct dtn_verbs_device device; /* open                                   */
    struct ibv_pd *pd;            /* protection domain of all its memory      */
    struct ibv_cq *cq;            /* completions of all its queue pairs       */
    int cqe;                      /* completions that `cq` holds              */
    int queues;                   /* queue pairs whose completions it gets    */
    int outstanding;              /* requests that have not completed yet     */
    unsigned signalled_every;     /* one of so many asks for a completion     */
    uint64_t put_bytes;           /* counter: bytes of puts posted on it      */
    struct dtn_verbs_readback readback; /* of device memory                   */
};

/* Open the devices that args name, and log the choice.
 * Errors: EINVAL, ENODEV, ENOMEM, ESYS
 */
int dtn_verbs_rails_open(struct dtn_verbs *verbs, struct dtensor_error *err);
void dtn_verbs_rails_close(struct dtn_verbs *verbs);

#endif
