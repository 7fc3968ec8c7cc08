/* meet.c - two ranks meet: queue pair numbers by datagram
 *
 * A queue pair must know the number of its peer's before it can be used, and a
 * job of a thousand ranks should not make a million of them.  So queue pairs
 * are made when the first schedule needs them.  Each rank has one queue for
 * datagrams, whose number all ranks got when the job started, and two ranks
 * exchange the numbers of their queue pairs through it:
 *
 *      2 -> 5   here is my end, number 17, first packet 0x3fa2c1
 *      5 -> 2   and mine, 23; it is ready
 *      2 -> 5   mine is ready too, and I know yours is
 *
 * Datagrams go by rail 0 and list the queue pairs of all rails.  They can be
 * lost, so each side repeats its own every 5 ms until it hears that the other
 * side knows.  Each proves that its sender knows the key of the receiver, which
 * all ranks got, sealed, when the job started.  Others are ignored.  A datagram
 * that is heard and sent again says nothing new: a key is good for one context,
 * and the first greeting of a rank counts.
 */
#include "base/array.h"
#include "base/error.h"
#include "base/seal.h"
#include "base/wait.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MEET_MAGIC UINT64_C(0x6474656e76726273)      /* "dtenvrbs" */

enum {
    MEET_SLOTS = 64,              /* datagrams that can wait to be read       */
    MEET_HEADER = 40,             /* bytes of the GRH in front of each        */
    MEET_QKEY = 0x11111111,
    MEET_AGAIN_NS = 5000000
};

/* Buffers of datagrams: the last one is to send from, the others to receive. */
struct dtn_verbs_datagrams {
    struct ibv_mr *mr;
    bool sending;
    struct {
        unsigned char header[MEET_HEADER];
        struct dtn_verbs_greeting greeting;
    } slot[MEET_SLOTS + 1];
};

static int meet_listen(struct dtn_verbs *verbs, int slot)
{
    struct dtn_verbs_datagrams *datagrams = verbs->datagrams;
    struct ibv_sge sge = {
        .addr = (uintptr_t)&datagrams->slot[slot],
        .length = sizeof datagrams->slot[slot], .lkey = datagrams->mr->lkey
    };
    struct ibv_recv_wr wr = { .wr_id = (uint64_t)slot, .sg_list = &sge,
                              .num_sge = 1 };
    struct ibv_recv_wr *bad;

    return ibv_post_recv(verbs->datagram, &wr, &bad);
}

/* Bring the datagram queue to the state in which it sends and receives. */
static int meet_ready(struct dtn_verbs *verbs)
{
    const struct dtn_verbs_device *device = &verbs->rail[0].device;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)device->port,
        .pkey_index = device->pkey_index,
        .qkey = MEET_QKEY
    };
    int rc = ibv_modify_qp(verbs->datagram, &attr, IBV_QP_STATE
                           | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    for (int i = 0; rc == 0 && i < MEET_SLOTS; i++)
        rc = meet_listen(verbs, i);
    attr.qp_state = IBV_QPS_RTR;
    if (rc == 0)
        rc = ibv_modify_qp(verbs->datagram, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(verbs->datagram, &attr, IBV_QP_STATE
                           | IBV_QP_SQ_PSN);
    return rc;
}

int dtn_verbs_meet_open(struct dtn_verbs *verbs, struct dtensor_error *err)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UD,
        .cap = { .max_send_wr = 1, .max_recv_wr = MEET_SLOTS,
                 .max_send_sge = 1, .max_recv_sge = 1 }
    };
    const struct dtn_verbs_rail *rail = &verbs->rail[0];
    struct dtn_verbs_datagrams *datagrams;

    if (!dtn_secret_random(verbs->key, sizeof verbs->key))
        return dtn_fail_sys(err, errno, "verbs: no random numbers: %m");
    verbs->datagrams = datagrams = calloc(1, sizeof *datagrams);
    if (!datagrams)
        return dtn_fail_nomem(err, "verbs", sizeof *datagrams);
    datagrams->mr = ibv_reg_mr(rail->pd, datagrams, sizeof *datagrams,
                               IBV_ACCESS_LOCAL_WRITE);
    verbs->datagram_cq = ibv_create_cq(rail->device.context, MEET_SLOTS + 1,
                                       NULL, NULL, 0);
    if (!datagrams->mr || !verbs->datagram_cq)
        return dtn_fail_sys(err, errno, "verbs: no memory or queue for "
                            "datagrams on %s: %m (see ulimit -l)",
                            rail->device.name);
    init.send_cq = init.recv_cq = verbs->datagram_cq;
    verbs->datagram = ibv_create_qp(rail->pd, &init);
    if (!verbs->datagram || meet_ready(verbs) != 0)
        return dtn_fail_sys(err, errno, "verbs: no datagram queue pair on %s: "
                            "%m", rail->device.name);
    return 0;
}

void dtn_verbs_meet_close(struct dtn_verbs *verbs)
{
    if (verbs->datagram)
        ibv_destroy_qp(verbs->datagram);
    if (verbs->datagram_cq)
        ibv_destroy_cq(verbs->datagram_cq);
    if (verbs->datagrams && verbs->datagrams->mr)
        ibv_dereg_mr(verbs->datagrams->mr);
    free(verbs->datagrams);
    for (int i = 0; i < verbs->nmet; i++)
        if (verbs->met[i]->way)
            ibv_destroy_ah(verbs->met[i]->way);
}

struct dtn_verbs_peer *dtn_verbs_met(struct dtn_verbs *verbs, int rank)
{
    struct dtn_verbs_peer *peer = verbs->peers[rank];

    if (peer)
        return peer;
    peer = dtn_array_reserve(&verbs->met, &verbs->met_capacity,
                             verbs->nmet + 1, sizeof verbs->met[0])
         ? calloc(1, sizeof *peer) : NULL;
    if (!peer)
        return NULL;
    peer->rank = rank;
    peer->index = verbs->nmet;
    verbs->met[verbs->nmet++] = peer;
    verbs->peers[rank] = peer;
    return peer;
}

/* ------------------------------------------------------------ greetings --- */

/* How datagrams get to a peer. */
static struct ibv_ah *meet_way(const struct dtn_verbs *verbs,
                               const struct dtn_verbs_address *address)
{
    const struct dtn_verbs_rail *rail = &verbs->rail[0];
    struct ibv_ah_attr attr;

    dtn_verbs_path(verbs, &rail->device, &address->end[0], &attr);
    return ibv_create_ah(rail->pd, &attr);
}

static void meet_prove(const struct dtn_verbs_greeting *greeting,
                       const unsigned char key[DTN_SECRET_BYTES],
                       unsigned char proof[DTN_SECRET_BYTES])
{
    dtn_secret_prove(proof, key, "verbs greeting", greeting,
                     offsetof(struct dtn_verbs_greeting, proof));
}

/* Tell a peer where our end is, unless a datagram is still being sent. */
static int meet_greet(struct dtn_verbs *verbs, int rank)
{
    struct dtn_verbs_datagrams *datagrams = verbs->datagrams;
    struct dtn_verbs_peer *peer = verbs->peers[rank];
    struct dtn_verbs_greeting *greeting = &datagrams->slot[MEET_SLOTS].greeting;
    struct ibv_sge sge = { .addr = (uintptr_t)greeting,
                           .length = sizeof *greeting,
                           .lkey = datagrams->mr->lkey };
    struct ibv_send_wr wr = {
        .wr_id = MEET_SLOTS, .sg_list = &sge, .num_sge = 1,
        .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = { .ah = peer->way, .remote_qkey = MEET_QKEY,
                   .remote_qpn = peer->address.datagram_qpn }
    };
    struct ibv_send_wr *bad;

    if (datagrams->sending)
        return 0;
    *greeting = (struct dtn_verbs_greeting){
        .magic = MEET_MAGIC, .lane = (uintptr_t)peer->lane,
        .rank = verbs->args.rank, .ready = peer->ready, .seen = peer->joined,
        .in_order = peer->plain, .nqueues = (uint32_t)peer->nqueues
    };
    for (int k = 0; k < verbs->nrails; k++)
        greeting->lane_key[k] = peer->lane_mr[k]->rkey;
    for (int q = 0; q < peer->nqueues; q++) {
        greeting->qpn[q] = peer->queue[q].qp->qp_num;
        greeting->psn[q] = peer->queue[q].psn;
    }
    meet_prove(greeting, peer->address.key, greeting->proof);
    if (ibv_post_send(verbs->datagram, &wr, &bad) != 0)
        return DTENSOR_ESYS;
    datagrams->sending = true;
    peer->next_greeting_ns = dtn_now_ns() + MEET_AGAIN_NS;
    return 0;
}

/* A datagram arrived: check that it is genuine, and note what it says. */
static int meet_hear(struct dtn_verbs *verbs,
                     const struct dtn_verbs_greeting *said)
{
    unsigned char proof[DTN_SECRET_BYTES];
    struct dtn_verbs_peer *peer;

    meet_prove(said, verbs->key, proof);
    if (said->magic != MEET_MAGIC || said->rank < 0
        || said->rank >= verbs->args.nranks
        || !dtn_secret_same(proof, said->proof, sizeof proof))
        return 0;
    peer = dtn_verbs_met(verbs, said->rank);
    if (!peer)
        return 0;                 /* no memory now: it greets again           */
    if (!peer->greeted) {
        peer->greeting = *said;
        peer->greeted = true;
    }
    if (said->qpn[0] != peer->greeting.qpn[0])
        return 0;                 /* of an earlier connection                 */
    if (peer->ready && said->ready) {
        peer->joined = true;
        peer->plain = peer->plain && said->in_order;
    }
    if (peer->ready && !said->seen)
        return meet_greet(verbs, said->rank);
    return 0;
}

int dtn_verbs_meet_progress(struct dtn_verbs *verbs)
{
    struct ibv_wc wc;
    int n, rc = 0;

    while (rc == 0 && (n = ibv_poll_cq(verbs->datagram_cq, 1, &wc)) != 0) {
        if (n < 0 || wc.status != IBV_WC_SUCCESS)
            return DTENSOR_ESYS;
        if (wc.wr_id == MEET_SLOTS) {
            verbs->datagrams->sending = false;
            continue;
        }
        if (wc.byte_len == sizeof verbs->datagrams->slot[0])
            rc = meet_hear(verbs,
                           &verbs->datagrams->slot[wc.wr_id].greeting);
        if (meet_listen(verbs, (int)wc.wr_id) != 0)
            rc = DTENSOR_ESYS;
    }
    return rc;
}

int dtn_verbs_meet(struct dtn_verbs *verbs, int rank, struct dtensor_error *err)
{
    struct dtn_verbs_peer *peer = verbs->peers[rank];
    int rc;

    if (peer->nqueues == 0) {
        rc = peer->lane ? 0 : dtn_verbs_lane_open(verbs, rank, err);
        if (rc == 0)
            rc = dtn_verbs_queues_create(verbs, rank, err);
        if (rc != 0)
            return rc;
    }
    if (!peer->way) {
        peer->way = meet_way(verbs, &peer->address);
        if (!peer->way && errno == ETIMEDOUT)
            return DTENSOR_EAGAIN;   /* its address was not resolved in 1 s  */
        if (!peer->way)
            return dtn_fail_sys(err, errno, "verbs: %s knows no way to rank "
                                "%d: %m", verbs->rail[0].device.name, rank);
    }
    if (dtn_verbs_meet_progress(verbs) != 0)
        return dtn_fail(err, DTENSOR_ESYS, "verbs: the datagram queue of %s "
                        "failed", verbs->rail[0].device.name);
    if (peer->greeted && !peer->ready) {
        rc = dtn_verbs_queues_join(verbs, rank, err);
        if (rc != 0)
            return rc;
        peer->next_greeting_ns = 0;
    }
    if (peer->joined)
        return 0;
    if (dtn_now_ns() >= peer->next_greeting_ns
        && meet_greet(verbs, rank) != 0)
        return dtn_fail(err, DTENSOR_ESYS, "verbs: cannot send a datagram to "
                        "rank %d", rank);
    return DTENSOR_EAGAIN;
}
