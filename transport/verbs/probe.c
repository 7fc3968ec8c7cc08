/* probe.c - does the network carry packets as long as both ports say?
 *
 * Two ports have an MTU of 4096, but a switch between them has an Ethernet MTU
 * of 1500.  Then short packets arrive and long ones vanish, and a job ends with
 * "it does not answer" in its first large message.  So when two ranks are
 * joined, each writes 8 bytes and then one packet of the full MTU on every
 * rail, into memory that nothing uses yet.  They are connected when both writes
 * were acknowledged.  If only the first was, the error blames the MTU.
 */
#include "base/error.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/probe.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/words.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static int probe_post(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                      int q)
{
    struct dtn_verbs_queue *queue = &peer->queue[q];
    const int k = queue->rail->number;
    const uint64_t there = peer->greeting.lane;
    const uint32_t key = peer->greeting.lane_key[k];
    const struct ibv_mr *mr = peer->lane_mr[k];
    size_t size = (size_t)128 << dtn_verbs_path_mtu(verbs, &queue->rail->device,
                                                    &peer->address.end[k]);
    int rc = dtn_verbs_release(verbs);

    if (rc == 0)
        rc = dtn_verbs_post(verbs, peer, q, &(struct dtn_verbs_write){
            .to = there + offsetof(struct dtn_verbs_lane, beat), .key = key,
            .from = &peer->lane->out_beat,
            .size = sizeof peer->lane->out_beat, .mr = mr });
    if (rc == 0)
        rc = dtn_verbs_post(verbs, peer, q, &(struct dtn_verbs_write){
            .to = there + offsetof(struct dtn_verbs_lane, place), .key = key,
            .from = peer->lane->out, .size = size, .mr = mr });
    queue->probe = queue->posted;
    verbs->chain.tells = true;
    return rc == 0 ? dtn_verbs_ring(verbs) : rc;
}

static int probe_failed(const struct dtn_verbs *verbs, int rank,
                        struct dtensor_error *err)
{
    const struct dtn_verbs_peer *peer = verbs->peers[rank];
    char words[400];

    return dtn_fail_rank(err, peer->narrow ? DTENSOR_ESYS : DTENSOR_EPEER,
                         rank, "verbs: %s",
                         dtn_verbs_words(verbs, rank, words, sizeof words));
}

int dtn_verbs_probe(struct dtn_verbs *verbs, int rank,
                    struct dtensor_error *err)
{
    struct dtn_verbs_peer *peer = verbs->peers[rank];

    for (int q = 0; q < verbs->nrails; q++) {
        if (peer->queue[q].probe > 0)
            continue;
        if (dtn_verbs_room(verbs, &peer->queue[q]) < 2)
            return DTENSOR_EAGAIN;
        if (probe_post(verbs, peer, q) != 0)
            return dtn_fail(err, DTENSOR_ESYS, "verbs: cannot write to rank %d "
                            "on %s", rank, peer->queue[q].rail->device.name);
    }
    if (dtn_verbs_poll(verbs) != 0)
        return dtn_fail(err, DTENSOR_ESYS, "verbs: the completion queue "
                        "failed");
    if (peer->error)
        return probe_failed(verbs, rank, err);
    for (int q = 0; q < verbs->nrails; q++)
        if (peer->queue[q].completed < peer->queue[q].probe)
            return DTENSOR_EAGAIN;
    return 0;
}
