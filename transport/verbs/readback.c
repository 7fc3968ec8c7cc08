/* readback.c - a read by the card that makes its writes into a GPU
 * visible
 *
 * A card writes the bytes of a put into a GPU and the signal behind them into
 * host memory.  These are two destinations on the PCIe bus, so the signal may
 * be seen before the bytes have reached the GPU.  But a read pushes the writes
 * in front of it: when the card has read a word of the GPU's memory, all that
 * it wrote there before has arrived.  So before peek() shows a signal behind
 * puts into device memory, each rail that carried them reads 8 bytes of it, by
 * a queue pair that is joined to itself, and peek() shows nothing until then.
 *
 * Some GPUs keep the order by themselves and say so (exporter.h).  With two
 * rails the word of one card says nothing of the other's bytes.  [transport]
 * gpu_flush = always or never overrules both.
 */
#include "base/error.h"
#include "cluster/cluster.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/readback.h"
#include "transport/verbs/words.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { READS_MAX = 64 };          /* on their way, on one rail                */

bool dtn_verbs_readback_needed(const struct dtn_transport_conf *conf,
                               bool ordered, int nrails)
{
    return conf->gpu_flush == DTN_FLUSH_ALWAYS
        || (conf->gpu_flush == DTN_FLUSH_AUTO && (!ordered || nrails > 1));
}

/* Join the queue pair to itself; 0 or an errno. */
static int readback_join(const struct dtn_verbs *verbs,
                         const struct dtn_verbs_rail *rail, struct ibv_qp *qp)
{
    const struct dtn_verbs_device *device = &rail->device;
    struct dtn_verbs_end end;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)device->port,
        .pkey_index = device->pkey_index,
        .qp_access_flags = IBV_ACCESS_REMOTE_READ
    };
    int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX
                           | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR, .path_mtu = device->mtu,
        .dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1, .min_rnr_timer = 1
    };
    dtn_verbs_device_end(device, &end);
    dtn_verbs_path(verbs, device, &end, &attr.ah_attr);
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV
                           | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                           | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .max_rd_atomic = 1,
        .timeout = (uint8_t)dtn_verbs_timeout(verbs->args.conf),
        .retry_cnt = (uint8_t)verbs->args.conf->retry_count, .rnr_retry = 6
    };
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT
                           | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                           | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return rc;
}

/* 0 or an errno. */
static int readback_make(const struct dtn_verbs *verbs,
                         struct dtn_verbs_rail *rail)
{
    struct dtn_verbs_readback *back = &rail->readback;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = READS_MAX, .max_recv_wr = 1,
                 .max_send_sge = 1, .max_recv_sge = 1 }
    };

    errno = 0;
    back->mr = ibv_reg_mr(rail->pd, &back->word, sizeof back->word,
                          IBV_ACCESS_LOCAL_WRITE);
    back->cq = ibv_create_cq(rail->device.context, READS_MAX, NULL, NULL, 0);
    init.send_cq = init.recv_cq = back->cq;
    if (back->mr && back->cq)
        back->qp = ibv_create_qp(rail->pd, &init);
    if (!back->qp)
        return errno ? errno : ENOMEM;
    return readback_join(verbs, rail, back->qp);
}

int dtn_verbs_readback_open(struct dtn_verbs *verbs, struct dtensor_error *err)
{
    for (int k = 0; k < verbs->nrails; k++) {
        struct dtn_verbs_rail *rail = &verbs->rail[k];
        int rc = rail->readback.qp ? 0 : readback_make(verbs, rail);

        if (rc == 0)
            continue;
        dtn_verbs_readback_close(rail);
        return dtn_fail_sys(err, rc, "verbs: %s cannot read device memory back "
                            "through a queue pair of its own: %m",
                            rail->device.name);
    }
    return 0;
}

void dtn_verbs_readback_close(struct dtn_verbs_rail *rail)
{
    struct dtn_verbs_readback *back = &rail->readback;

    if (back->qp)
        ibv_destroy_qp(back->qp);
    if (back->cq)
        ibv_destroy_cq(back->cq);
    if (back->mr)
        ibv_dereg_mr(back->mr);
    *back = (struct dtn_verbs_readback){ .qp = NULL };
}

static int readback_poll(struct dtn_verbs_readback *back)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(back->cq, 1, &wc)) > 0) {
        if (wc.status != IBV_WC_SUCCESS)
            return DTENSOR_ESYS;
        back->completed++;
    }
    return n < 0 ? DTENSOR_ESYS : 0;
}

/* Read 8 bytes of the device's memory. */
static int readback_post(struct dtn_verbs *verbs, struct dtn_verbs_rail *rail,
                         const struct dtn_verbs_region *region)
{
    struct dtn_verbs_readback *back = &rail->readback;
    struct ibv_sge sge = { .addr = (uintptr_t)&back->word,
                           .length = region->size < sizeof back->word
                                   ? (uint32_t)region->size
                                   : (uint32_t)sizeof back->word,
                           .lkey = back->mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
                              .opcode = IBV_WR_RDMA_READ,
                              .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)region->start;
    wr.wr.rdma.rkey = region->mr[rail->number]->rkey;
    if (ibv_post_send(back->qp, &wr, &bad) != 0)
        return DTENSOR_ESYS;
    back->posted++;
    verbs->readbacks++;
    return 0;
}

/* Post a READ on each rail that carried bytes of the peer. */
static int readback_begin(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                          bool striped)
{
    const struct dtn_verbs_region *region =
        dtn_verbs_memory_of_device(&verbs->memory);
    const int nrails = striped ? verbs->nrails : 1;
    int rc = 0;

    for (int k = 0; k < nrails && region && rc == 0; k++) {
        struct dtn_verbs_readback *back = &verbs->rail[k].readback;

        rc = readback_poll(back);
        if (rc == 0 && back->posted - back->completed == READS_MAX)
            rc = DTENSOR_EAGAIN;
    }
    for (int k = 0; k < nrails && region && rc == 0; k++) {
        rc = readback_post(verbs, &verbs->rail[k], region);
        peer->reads[k] = verbs->rail[k].readback.posted;
    }
    peer->reading = rc == 0;
    return rc;
}

int dtn_verbs_readback(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                       bool striped)
{
    int rc = peer->reading ? 0 : readback_begin(verbs, peer, striped);

    for (int k = 0; k < verbs->nrails && rc == 0; k++) {
        struct dtn_verbs_readback *back = &verbs->rail[k].readback;

        rc = back->qp ? readback_poll(back) : 0;
        if (rc == 0 && back->completed < peer->reads[k])
            rc = DTENSOR_EAGAIN;
    }
    peer->reading = rc == DTENSOR_EAGAIN && peer->reading;
    return rc;
}
