/* queue.c - queue pairs: made, and joined to the peer's
 *
 * A queue pair is made when the first schedule needs its peer and joined to the
 * peer's when both know each other's number (verbs/meet.c).  Path, MTU, timeout
 * and retries come from the cluster file, or else from both ports: the smaller
 * MTU of the two is used, and the slower rate gives the rail's share of a
 * striped put.  What a device can do at most, such as bytes inline, is asked
 * for in falling steps, since only making a queue pair tells.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/completions.h"
#include "transport/verbs/device.h"
#include "transport/verbs/fail.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/words.h"
#include "dtensor.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

enum {
    INLINE_MOST = 220,            /* bytes that fit into 256 of a mlx5 queue  */
    HOPS_MOST = 64                /* routers that a packet may pass           */
};

static int conf_or(int value, int otherwise)
{
    return value < 0 ? otherwise : value;
}

/* Make a queue pair with as many inline bytes as the device grants.  It tells
 * only by making one or refusing.  Some devices refuse more than 96, which is
 * enough for a signal with 28 bytes of payload, and some refuse any.
 */
static struct ibv_qp *queue_make(struct dtn_verbs_rail *rail)
{
    static const uint32_t asked[] = { INLINE_MOST, 96, 56, 0 };
    struct ibv_qp_init_attr init;
    struct ibv_qp *qp = NULL;

    for (size_t i = 0; !qp && i < DTN_COUNT(asked); i++) {
        init = (struct ibv_qp_init_attr){
            .qp_type = IBV_QPT_RC, .send_cq = rail->cq, .recv_cq = rail->cq,
            .cap = { .max_send_wr = DTN_VERBS_DEPTH,
                     .max_send_sge = (uint32_t)rail->device.max_pieces,
                     .max_recv_wr = 1, .max_recv_sge = 1,
                     .max_inline_data = asked[i] }
        };
        qp = ibv_create_qp(rail->pd, &init);
    }
    if (qp)
        rail->device.max_inline = (int)init.cap.max_inline_data;
    return qp;
}

static int queue_create(struct dtn_verbs *verbs, int rank,
                        struct dtn_verbs_rail *rail,
                        struct dtn_verbs_queue *queue,
                        struct dtensor_error *err)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)rail->device.port,
        .pkey_index = rail->device.pkey_index,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
    };
    struct ibv_qp *qp = queue_make(rail);

    if (!qp)
        return dtn_verbs_fail_queue(verbs, rail, rank, errno, err);
    if (getrandom(&queue->psn, sizeof queue->psn, 0) < 0
        || (errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX
                                  | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) != 0) {
        ibv_destroy_qp(qp);
        return dtn_fail_sys(err, errno, "verbs: queue pair for rank %d on %s: "
                            "%m", rank, rail->device.name);
    }
    dtn_verbs_completions_add(rail);
    queue->rail = rail;
    queue->psn &= 0xffffff;       /* random, so that it cannot be guessed     */
    queue->qp = qp;
    return 0;
}

int dtn_verbs_queues_wanted(const struct dtn_transport_conf *conf, int nrails)
{
    int want = conf->qp_per_peer, most = DTN_VERBS_QUEUES_MAX / nrails;

    return want < 1 ? 1 : want < most ? want : most;
}

int dtn_verbs_queues_create(struct dtn_verbs *verbs, int rank,
                            struct dtensor_error *err)
{
    struct dtn_verbs_peer *peer = verbs->peers[rank];
    int want = dtn_verbs_queues_wanted(verbs->args.conf, verbs->nrails), rc = 0;

    while (peer->nqueues < want * verbs->nrails && rc == 0) {
        rc = queue_create(verbs, rank,
                          &verbs->rail[peer->nqueues % verbs->nrails],
                          &peer->queue[peer->nqueues], err);
        peer->nqueues += rc == 0;
    }
    return rc;
}

/* The peer is addressed by its GID if both have one, as on RoCE, else by LID.
 */
void dtn_verbs_path(const struct dtn_verbs *verbs,
                    const struct dtn_verbs_device *device,
                    const struct dtn_verbs_end *end, struct ibv_ah_attr *attr)
{
    static const union ibv_gid none;
    const struct dtn_transport_conf *conf = verbs->args.conf;

    memset(attr, 0, sizeof *attr);
    attr->dlid = end->lid;
    attr->sl = (uint8_t)conf_or(conf->service_level, 0);
    attr->port_num = (uint8_t)device->port;
    if (device->gid_index < 0 || memcmp(&end->gid, &none, sizeof none) == 0)
        return;
    attr->is_global = 1;
    attr->grh.dgid = end->gid;
    attr->grh.sgid_index = (uint8_t)device->gid_index;
    attr->grh.hop_limit = HOPS_MOST;
    attr->grh.traffic_class = (uint8_t)conf_or(conf->traffic_class, 0);
}

/* Do writes to the peer cross a wire, where packets can be lost? */
static bool queue_wired(const struct dtn_verbs_device *device,
                        const struct dtn_verbs_end *end)
{
    return memcmp(&device->gid, &end->gid, sizeof end->gid) != 0;
}

static int queue_join(const struct dtn_verbs *verbs,
                      struct dtn_verbs_peer *peer, int q)
{
    struct dtn_verbs_queue *queue = &peer->queue[q];
    const struct dtn_verbs_device *device = &queue->rail->device;
    const struct dtn_verbs_end *end = &peer->address.end[queue->rail->number];
    const struct dtn_transport_conf *conf = verbs->args.conf;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = dtn_verbs_path_mtu(verbs, device, end),
        .dest_qp_num = peer->greeting.qpn[q], .rq_psn = peer->greeting.psn[q],
        .min_rnr_timer = 1
    };
    int rc;

    queue->share = (uint32_t)device->rate_mbps < end->rate_mbps
                 ? (uint32_t)device->rate_mbps : end->rate_mbps;
    queue->request_max = device->one_packet && queue_wired(device, end)
                       ? (size_t)128 << attr.path_mtu : DTN_VERBS_MESSAGE_MAX;
    dtn_verbs_path(verbs, device, end, &attr.ah_attr);
    rc = ibv_modify_qp(queue->qp, &attr, IBV_QP_STATE | IBV_QP_AV
                       | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                       | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .sq_psn = queue->psn,
        .timeout = (uint8_t)dtn_verbs_timeout(conf),
        .retry_cnt = (uint8_t)conf->retry_count,
        .rnr_retry = (uint8_t)conf_or(conf->rnr_retry, 6)
    };
    if (rc == 0)
        rc = ibv_modify_qp(queue->qp, &attr, IBV_QP_STATE
                           | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT
                           | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                           | IBV_QP_MAX_QP_RD_ATOMIC);
    return rc;
}

/* If the rate of one rail is not known, all rails get equal shares. */
static void queues_share(struct dtn_verbs_peer *peer)
{
    bool known = true;

    for (int q = 0; q < peer->nqueues; q++)
        known = known && peer->queue[q].share > 0;
    for (int q = 0; q < peer->nqueues && !known; q++)
        peer->queue[q].share = 1;
}

/* Log the MTU of each rail to this rank.  Two ports with different MTUs are a
 * warning once; on many hosts it would be the same warning a thousand times.
 */
static void queues_log(struct dtn_verbs *verbs, int rank)
{
    const struct dtn_verbs_peer *peer = verbs->peers[rank];

    for (int k = 0; k < verbs->nrails; k++) {
        const struct dtn_verbs_device *device = &verbs->rail[k].device;
        const struct dtn_verbs_end *end = &peer->address.end[k];
        bool unlike = end->mtu != (uint8_t)device->mtu;

        dtn_log(verbs->args.log, unlike && !verbs->unlike_said ? DTN_LOG_WARN
                : DTN_LOG_DEBUG, "verbs: rank %d: MTU %d over %s, which has %d "
                "here and %s %d there%s", rank,
                128 << dtn_verbs_path_mtu(verbs, device, end), device->name,
                128 << device->mtu, end->device, 128 << end->mtu, unlike
                ? " (an Ethernet MTU of 4192 or more on every host and switch "
                  "gives 4096)" : "");
        verbs->unlike_said |= unlike;
    }
}

/* Word that the network has no path between both ends. */
static int queues_apart(const struct dtn_verbs_peer *peer, int q, int rank,
                        int sys_errno, struct dtensor_error *err)
{
    const struct dtn_verbs_rail *rail = peer->queue[q].rail;
    const struct dtn_verbs_end *end = &peer->address.end[rail->number];
    char here[64], there[64];

    return dtn_fail_sys(
        err, sys_errno,
        "verbs: no path from %s (GID %s) to "
        "rank %d's %s (GID %s): %m (are both on one fabric? "
        "see gid_index)",
        rail->device.name,
        dtn_verbs_gid_text(&rail->device.gid, here, sizeof here), rank,
        end->device, dtn_verbs_gid_text(&end->gid, there, sizeof there));
}

/* Do writes that arrive by this queue pair, which is up, land in order?  The
 * call is looked up at run time, because libibverbs before 1.14 has none.
 */
static bool queue_in_order(struct ibv_qp *qp)
{
    int (*ask)(struct ibv_qp *, enum ibv_wr_opcode, uint32_t);

    *(void **)&ask = dlsym(RTLD_DEFAULT, "ibv_query_qp_data_in_order");
    return ask && ask(qp, IBV_WR_RDMA_WRITE, 0) != 0;
}

int dtn_verbs_queues_join(struct dtn_verbs *verbs, int rank,
                          struct dtensor_error *err)
{
    struct dtn_verbs_peer *peer = verbs->peers[rank];
    int rc;

    if (peer->greeting.nqueues != (uint32_t)peer->nqueues)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, rank, "verbs: rank %d "
                             "made %u queue pairs, this rank %d (is "
                             "qp_per_peer the same?)", rank,
                             peer->greeting.nqueues, peer->nqueues);
    for (int q = 0; q < peer->nqueues; q++) {
        rc = queue_join(verbs, peer, q);
        if (rc != 0)
            return queues_apart(peer, q, rank, rc, err);
    }
    queues_share(peer);
    queues_log(verbs, rank);
    peer->plain = queue_in_order(peer->queue[0].qp);
    peer->ready = true;
    return 0;
}
