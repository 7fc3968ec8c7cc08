/* verbs_rail.c - the devices of a rank
 *
 * A host with two network cards has twice the bandwidth of one, if a rank may
 * use both.  `hca = mlx5_0+mlx5_1` gives it two rails: two devices, each with
 * a protection domain, a completion queue, queue pairs to every peer, and its
 * own key for every piece of memory.  A put of 1 MiB over rails of 200 and 100
 * Gb/s is two writes, of 684 KiB and 340 KiB; a signal goes by rail 0, and
 * counts once rail 1 shows its stripe number too.
 *
 * Rail 0 also meets the peers, so with it everything stands or falls.  A rail
 * that fails takes the connection down with an error that names it: what was
 * on its way may or may not have been written.
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

enum { SIGNALLED_EVERY = 16 };    /* requests, of which one tells it is done  */

/* Room for every completion that can be on its way: none is ever lost.  Where
 * the device has less, posting waits; then each request must tell of itself,
 * lest the silent ones of many queues fill the room.
 */
static int rail_open_cq(const struct dtn_verbs *verbs,
                        struct dtn_verbs_rail *rail, struct dtensor_error *err)
{
    int64_t queues = (int64_t)verbs->args.nranks
                   * dtn_verbs_queues_wanted(verbs->args.conf, verbs->nrails);
    int64_t want = queues * DTN_VERBS_DEPTH;

    rail->cqe = want < rail->device.max_cqe ? (int)want : rail->device.max_cqe;
    rail->signalled_every = queues * 2 * SIGNALLED_EVERY > rail->cqe
                          ? 1 : SIGNALLED_EVERY;
    rail->cq = ibv_create_cq(rail->device.context, rail->cqe, NULL, NULL, 0);
    if (!rail->cq)
        return dtn_fail_sys(err, errno, "verbs: no completion queue of %d on "
                            "%s: %m (see ulimit -l)", rail->cqe,
                            rail->device.name);
    return 0;
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
