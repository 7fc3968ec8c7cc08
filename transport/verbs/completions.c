/* completions.c - the completion queue of a rail grows with its peers
 *
 * It has room for every completion that can arrive, so none is lost: 128 for
 * each queue pair.  A rank of 131,072 meets 24 peers, so the queue begins with
 * room for one and doubles when that is full, to 32.  A device that does not
 * let a queue grow gets one for all ranks at the start.
 *
 * If the device has less room, posting waits for it.  Then each request asks
 * for a completion: otherwise requests without one, of many queue pairs, could
 * take all the room and never free it.
 */
#include "transport/verbs/completions.h"
#include "base/error.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>

enum { SIGNALLED_EVERY = 16 };    /* requests for each completion             */

/* Room for these queue pairs, or for as many as the device allows. */
static void completions_make(struct dtn_verbs_rail *rail, int64_t queues)
{
    const int64_t want = queues * DTN_VERBS_DEPTH;

    rail->cqe = want < rail->device.max_cqe ? (int)want : rail->device.max_cqe;
    rail->cq = ibv_create_cq(rail->device.context, rail->cqe, NULL, NULL, 0);
}

int dtn_verbs_completions_open(struct dtn_verbs_rail *rail, int queues,
                               int nranks, struct dtensor_error *err)
{
    rail->signalled_every = SIGNALLED_EVERY;
    completions_make(rail, queues);
    if (rail->cq && ibv_resize_cq(rail->cq, rail->cqe) != 0) {
        ibv_destroy_cq(rail->cq);
        completions_make(rail, (int64_t)queues * nranks);
    }
    if (!rail->cq)
        return dtn_fail_sys(err, errno, "verbs: no completion queue of %d on "
                            "%s: %m (see ulimit -l)", rail->cqe,
                            rail->device.name);
    return 0;
}

void dtn_verbs_completions_add(struct dtn_verbs_rail *rail)
{
    const int most = rail->device.max_cqe;
    const int more = rail->cqe < most / 2 ? 2 * rail->cqe : most;

    rail->queues++;
    if ((int64_t)rail->queues * DTN_VERBS_DEPTH > rail->cqe
        && more > rail->cqe && ibv_resize_cq(rail->cq, more) == 0)
        rail->cqe = more;
    if ((int64_t)rail->queues * 2 * SIGNALLED_EVERY > rail->cqe)
        rail->signalled_every = 1;
}
