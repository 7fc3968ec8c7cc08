/* rail.c - the devices of a rank
 *
 * A host with two network cards has twice the bandwidth of one if a rank uses
 * both.  `hca = mlx5_0+mlx5_1` gives it two rails.  Each rail is a device with
 * a protection domain, a completion queue, queue pairs to every peer, and its
 * own key for each region of memory.  A put of 1 MiB over rails of 200 and 100
 * Gb/s is two writes, of 684 KiB and 340 KiB.  Its signal goes over rail 0, and
 * is valid when rail 1 has written its stripe number too.
 *
 * Rail 0 also exchanges the queue pair numbers with peers, so nothing works
 * without it.  When a rail fails, the connection fails with an error that names
 * the rail, because it is unknown which of its last writes arrived.
 */
#include "base/error.h"
#include "cluster/cluster.h"
#include "transport/device.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/completions.h"
#include "transport/verbs/device.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/readback.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>

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
    return dtn_verbs_completions_open(rail,
        dtn_verbs_queues_wanted(verbs->args.conf, verbs->nrails),
        verbs->args.nranks, err);
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
