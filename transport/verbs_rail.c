/* verbs_rail.c - the devices of a rank
 *
 * A host with two network cards has twice the bandwidth of one if a rank uses
 * both.  `hca = mlx5_0+mlx5_1` gives it two rails.  Each rail is a device with
 * a protection domain, a completion queue, queue pairs to every peer, and its
 * own key for each region of memory.  A put of 1 MiB over rails of 200 and 100
 * Gb/s is two writes, of 684 KiB and 340 KiB.  Its signal goes by rail 0, and
 * counts when rail 1 has written its stripe number too.
 *
 * Rail 0 also meets the peers, so nothing works without it.  When a rail fails,
 * the connection fails with an error that names the rail: nobody knows which of
 * its last writes arrived.
 */
#include "base/error.h"
#include "cluster/cluster.h"
#include "transport/device.h"
#include "transport/verbs.h"
#include "transport/verbs_device.h"
#include "transport/verbs_limits.h"
#include "transport/verbs_queue.h"
#include "transport/verbs_rail.h"
#include "transport/verbs_readback.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>

enum { SIGNALLED_EVERY = 16 };    /* requests for each completion             */

/* Make a completion queue with room for these queue pairs, or for as many as
 * the device allows.
 */
static void rail_make_cq(struct dtn_verbs_rail *rail, int64_t queues)
{
    const int64_t want = queues * DTN_VERBS_DEPTH;

    rail->cqe = want < rail->device.max_cqe ? (int)want : rail->device.max_cqe;
    rail->cq = ibv_create_cq(rail->device.context, rail->cqe, NULL, NULL, 0);
}

/* A completion queue for one peer, which grows with the peers that are met.  A
 * device that does not let it grow gets one for all ranks of the world.
 */
static int rail_open_cq(const struct dtn_verbs *verbs,
                        struct dtn_verbs_rail *rail, struct dtensor_error *err)
{
    const int queues = dtn_verbs_queues_wanted(verbs->args.conf,
                                               verbs->nrails);

    rail->signalled_every = SIGNALLED_EVERY;
    rail_make_cq(rail, queues);
    if (rail->cq && ibv_resize_cq(rail->cq, rail->cqe) != 0) {
        ibv_destroy_cq(rail->cq);
        rail_make_cq(rail, (int64_t)queues * verbs->args.nranks);
    }
    if (!rail->cq)
        return dtn_fail_sys(err, errno, "verbs: no completion queue of %d on "
                            "%s: %m (see ulimit -l)", rail->cqe,
                            rail->device.name);
    return 0;
}

/* The completion queue has room for every completion that can arrive, so none
 * is lost.  If the device has less room, posting waits for it.  Then each
 * request asks for a completion: otherwise requests without one, of many
 * queues, could take all the room and never free it.
 */
void dtn_verbs_rail_add(struct dtn_verbs_rail *rail)
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

static int rail_open(struct dtn_verbs *verbs, int k, struct dtensor_error *err)
{
    struct dtn_verbs_rail *rail = &verbs->rail[k];
    char name[DTN_DEVICE_NAME];
    int rc;

    rail->number = k;
    rc = dtn_verbs_device_open(&verbs->args,
                               dtn_rails_name(verbs->args.device, k, name),
                               &rail->device, err);
    if (rc != 0)
        return rc;
    rail->pd = ibv_alloc_pd(rail->device.context);
    if (!rail->pd)
        return dtn_fail_sys(err, errno, "verbs: no protection domain on %s: "
                            "%m", rail->device.name);
    return rail_open_cq(verbs, rail, err);
}

int dtn_verbs_rails_open(struct dtn_verbs *verbs, struct dtensor_error *err)
{
    int rc = 0;

    verbs->nrails = dtn_rails_count(verbs->args.device);
    if (verbs->nrails > DTN_MAX_RAILS) {
        rc = dtn_fail(err, DTENSOR_EINVAL, "verbs: %d rails in %s (there may "
                      "be %d)", verbs->nrails, verbs->args.device,
                      DTN_MAX_RAILS);
        verbs->nrails = 0;
    }
    for (int k = 0; k < verbs->nrails && rc == 0; k++)
        rc = rail_open(verbs, k, err);
    return rc == 0 ? dtn_verbs_limits_check(verbs, err) : rc;
}

void dtn_verbs_rails_close(struct dtn_verbs *verbs)
{
    for (struct dtn_verbs_rail *rail = verbs->rail;
         rail < verbs->rail + verbs->nrails; rail++) {
        dtn_verbs_readback_close(rail);
        if (rail->cq)
            ibv_destroy_cq(rail->cq);
        if (rail->pd)
            ibv_dealloc_pd(rail->pd);
        dtn_verbs_device_close(&rail->device);
    }
}
