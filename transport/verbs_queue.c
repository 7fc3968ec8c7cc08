/* verbs_queue.c - queue pairs, posting, completions
 *
 * A reliable connection carries out writes in the order they were posted, so
 * a signal may be posted right behind the bytes it announces.  Only every
 * 16th request, and the end of a chain with a put, asks for a completion: a completion
 * says that all before it are done too, which frees their places in the queue
 * of 128 and, for puts, their sources.
 *
 * Posting is a call of the device's, of some 40 ns on a good one and a system
 * call on others.  So requests are strung together, up to 16, and posted by
 * the one that ends the chain: a put and the signal behind it, or the rows of
 * a strided box.
 */
#include "transport/verbs.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static int conf_or(int value, int otherwise)
{
    return value < 0 ? otherwise : value;
}

/* The device tells only by making one how much may be inline. */
static struct ibv_qp *queue_make(struct verbs *verbs)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC, .send_cq = verbs->cq, .recv_cq = verbs->cq,
        .cap = { .max_send_wr = VERBS_DEPTH, .max_send_sge = 1,
                 .max_recv_wr = 1, .max_recv_sge = 1,
                 .max_inline_data = VERBS_INLINE }
    };
    struct ibv_qp *qp = ibv_create_qp(verbs->memory.pd, &init);

    if (!qp) {
        init.cap.max_inline_data = 0;    /* then lines are read from memory */
        qp = ibv_create_qp(verbs->memory.pd, &init);
    }
    if (qp)
        verbs->device.max_inline = (int)init.cap.max_inline_data;
    return qp;
}

static int queue_create(struct verbs *verbs, int rank,
                        struct verbs_queue *queue, struct dtensor_error *err)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)verbs->device.port,
        .pkey_index = verbs->device.pkey_index,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
    };
    struct ibv_qp *qp = queue_make(verbs);

    if (!qp)
        return verbs_fail_queue(verbs, rank, errno, err);
    if (getrandom(&queue->psn, sizeof queue->psn, 0) < 0
        || (errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX
                                  | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) != 0) {
        ibv_destroy_qp(qp);
        return dtn_fail_sys(err, errno, "verbs: queue pair for rank %d: %m",
                            rank);
    }
    queue->psn &= 0xffffff;       /* random, so that it cannot be guessed      */
    queue->qp = qp;
    return 0;
}

int verbs_queues_wanted(const struct dtn_transport_conf *conf)
{
    int want = conf->qp_per_peer;

    return want < 1 ? 1 : want < VERBS_QUEUES_MAX ? want : VERBS_QUEUES_MAX;
}

int verbs_queues_create(struct verbs *verbs, int rank,
                        struct dtensor_error *err)
{
    struct verbs_peer *peer = &verbs->peers[rank];
    int want = verbs_queues_wanted(verbs->args.conf), rc = 0;

    while (peer->nqueues < want && rc == 0) {
        rc = queue_create(verbs, rank, &peer->queue[peer->nqueues], err);
        peer->nqueues += rc == 0;
    }
    return rc;
}

static void queue_path(const struct verbs *verbs, const struct verbs_peer *peer,
                       struct ibv_ah_attr *attr)
{
    const struct dtn_transport_conf *conf = verbs->args.conf;

    memset(attr, 0, sizeof *attr);
    attr->dlid = peer->address.lid;
    attr->sl = (uint8_t)conf_or(conf->service_level, 0);
    attr->port_num = (uint8_t)verbs->device.port;
    if (verbs->device.gid_index < 0)
        return;
    attr->is_global = 1;
    attr->grh.dgid = peer->address.gid;
    attr->grh.sgid_index = (uint8_t)verbs->device.gid_index;
    attr->grh.hop_limit = 64;
    attr->grh.traffic_class = (uint8_t)conf_or(conf->traffic_class, 0);
}

/* The smaller of both ends' active MTU, and of the file's. */
static enum ibv_mtu queue_mtu(const struct verbs *verbs,
                              const struct verbs_peer *peer)
{
    enum ibv_mtu mtu = verbs->device.mtu, want = IBV_MTU_4096;

    for (int bytes = 2048; bytes >= 256; bytes /= 2)
        if (verbs->args.conf->mtu > 0 && verbs->args.conf->mtu <= bytes)
            want--;
    if (peer->address.mtu < (unsigned)mtu)
        mtu = (enum ibv_mtu)peer->address.mtu;
    return want < mtu ? want : mtu;
}

static int queue_join(const struct verbs *verbs, struct verbs_peer *peer, int q)
{
    const struct dtn_transport_conf *conf = verbs->args.conf;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = queue_mtu(verbs, peer),
        .dest_qp_num = peer->greeting.qpn[q], .rq_psn = peer->greeting.psn[q],
        .min_rnr_timer = 1
    };
    int rc;

    queue_path(verbs, peer, &attr.ah_attr);
    rc = ibv_modify_qp(peer->queue[q].qp, &attr, IBV_QP_STATE | IBV_QP_AV
                       | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                       | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .sq_psn = peer->queue[q].psn,
        .timeout = (uint8_t)verbs_timeout(conf),
        .retry_cnt = (uint8_t)conf->retry_count,
        .rnr_retry = (uint8_t)conf_or(conf->rnr_retry, 6)
    };
    if (rc == 0)
        rc = ibv_modify_qp(peer->queue[q].qp, &attr, IBV_QP_STATE
                           | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT
                           | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                           | IBV_QP_MAX_QP_RD_ATOMIC);
    return rc;
}

/* Do writes to the peer cross a wire, on which packets are lost? */
static bool queue_wired(const struct verbs *verbs,
                        const struct verbs_peer *peer)
{
    return memcmp(&verbs->device.gid, &peer->address.gid,
                  sizeof peer->address.gid) != 0;
}

int verbs_queues_join(struct verbs *verbs, int rank, struct dtensor_error *err)
{
    struct verbs_peer *peer = &verbs->peers[rank];
    char here[64], there[64];
    int rc = 0;

    if (peer->greeting.nqueues != (uint32_t)peer->nqueues)
        return dtn_fail_rank(err, DTENSOR_EMISMATCH, rank, "verbs: rank %d "
                             "made %u queue pairs, this rank %d (is "
                             "qp_per_peer the same?)", rank,
                             peer->greeting.nqueues, peer->nqueues);
    for (int q = 0; q < peer->nqueues && rc == 0; q++)
        rc = queue_join(verbs, peer, q);
    if (rc != 0)
        return dtn_fail_sys(err, rc, "verbs: no path from %s (GID %s) to rank "
                            "%d's %s (GID %s): %m (are both on one fabric? "
                            "see gid_index)", verbs->device.name,
                            verbs_gid_text(&verbs->device.gid, here,
                                           sizeof here), rank,
                            peer->address.device,
                            verbs_gid_text(&peer->address.gid, there,
                                           sizeof there));
    peer->request_max = verbs->device.one_packet && queue_wired(verbs, peer)
                      ? (size_t)128 << queue_mtu(verbs, peer)
                      : VERBS_MESSAGE_MAX;
    peer->plain = ibv_query_qp_data_in_order(peer->queue[0].qp,
                                             IBV_WR_RDMA_WRITE, 0) != 0;
    peer->ready = true;
    return 0;
}

/* --------------------------------------------------------------- posting --- */

int verbs_room(struct verbs *verbs, struct verbs_queue *queue)
{
    int room;

    if (queue->posted - queue->completed > VERBS_DEPTH / 2)
        verbs_poll(verbs);
    room = VERBS_DEPTH - (int)(queue->posted - queue->completed);
    if (verbs->cqe - verbs->outstanding < room) {
        verbs_poll(verbs);        /* never more than the CQ could report       */
        room = verbs->cqe - verbs->outstanding;
    }
    return room;
}

/* A request's id says which queue it is of, and its number's low half. */
static uint64_t queue_id(const struct verbs *verbs,
                         const struct verbs_peer *peer, int q, uint64_t number)
{
    return number << 32 | (uint64_t)(peer - verbs->peers) << 8 | (uint64_t)q;
}

int verbs_post(struct verbs *verbs, struct verbs_peer *peer, int q,
               uint64_t to, uint32_t key, const void *from, size_t size,
               const struct ibv_mr *mr)
{
    struct verbs_queue *queue = &peer->queue[q];
    struct verbs_chain *chain = &verbs->chain;
    int rc = chain->n == VERBS_CHAIN || (chain->n > 0 && chain->queue != queue)
           ? verbs_ring(verbs) : 0, i = chain->n;

    if (rc != 0)
        return rc;
    queue->posted++;
    verbs->outstanding++;
    chain->sge[i] = (struct ibv_sge){
        .addr = (uintptr_t)from, .length = (uint32_t)size,
        .lkey = mr ? mr->lkey : 0
    };
    chain->wr[i] = (struct ibv_send_wr){
        .wr_id = queue_id(verbs, peer, q, queue->posted),
        .sg_list = &chain->sge[i], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = mr ? 0 : IBV_SEND_INLINE,
        .wr.rdma = { .remote_addr = to, .rkey = key }
    };
    if (i > 0)
        chain->wr[i - 1].next = &chain->wr[i];
    chain->queue = queue;
    chain->tells |= queue->posted % verbs->signalled_every == 0;
    chain->n++;
    return 0;
}

int verbs_post_put(struct verbs *verbs, struct verbs_peer *peer, int q,
                   struct dtn_remote dst, const void *from, size_t size,
                   const struct ibv_mr *mr)
{
    int rc = verbs_post(verbs, peer, q, dst.addr, (uint32_t)dst.key, from,
                        size, mr);

    if (rc == 0 && mr) {
        verbs->chain.tells = true;
        peer->queue[q].last_put = peer->queue[q].posted;
    }
    return rc;
}

int verbs_ring(struct verbs *verbs)
{
    struct verbs_chain *chain = &verbs->chain;
    struct ibv_send_wr *bad;
    int n = chain->n;

    if (n == 0)
        return 0;
    if (chain->tells)
        chain->wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
    chain->n = 0;
    chain->tells = false;
    verbs->posts += (unsigned long)n;
    verbs->doorbells++;
    return ibv_post_send(chain->queue->qp, chain->wr, &bad) == 0 ? 0
         : DTENSOR_ESYS;
}

int verbs_unhold(struct verbs *verbs)
{
    const struct verbs_held held = verbs->held;

    verbs->held.peer = NULL;
    return !held.peer ? 0 : verbs_post_put(verbs, held.peer, 0, held.dst,
                                           held.src, held.size, held.mr);
}

int verbs_release(struct verbs *verbs)
{
    int rc = verbs_unhold(verbs);

    return rc == 0 ? verbs_ring(verbs) : rc;
}

int verbs_poll(struct verbs *verbs)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(verbs->cq, DTN_COUNT(wc), wc);
    uint32_t ahead;

    for (int i = 0; i < n; i++) {
        struct verbs_peer *peer = &verbs->peers[wc[i].wr_id >> 8 & 0xffffff];
        struct verbs_queue *queue = &peer->queue[wc[i].wr_id & 0xff];

        if (wc[i].status == IBV_WC_SUCCESS) {
            ahead = (uint32_t)(wc[i].wr_id >> 32) - (uint32_t)queue->completed;
            queue->completed += ahead;
            verbs->outstanding -= (int)ahead;
        } else if (!peer->error) {
            peer->error = wc[i].status;       /* the first: flushes follow     */
            peer->vendor_error = wc[i].vendor_err;
        }
    }
    return n < 0 ? DTENSOR_ESYS : 0;
}
