/* post.c - writes: strung to chains, posted, completed
 *
 * A reliable connection carries out writes in the order they were posted, so a
 * signal is posted right behind the bytes that it announces.  Only every 16th
 * request, and the end of a chain with a put, asks for a completion.  It tells
 * that all requests before it are done, too: their places in the queue of 128
 * are free then and, for puts, their sources.
 *
 * Posting is a call of the device's, of some 40 ns on a good one and a system
 * call on others.  So up to 16 requests are linked to a chain, which one call
 * posts: a put and the signal behind it, or the rows of a strided box.  A put
 * that begins where the one before it ends becomes one more piece of that
 * request: 512 rows of 2 KiB that are apart here and adjacent at the peer make
 * 37 requests, of 14 rows each.
 */
#include "base/compiler.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/rail.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int dtn_verbs_room(struct dtn_verbs *verbs, struct dtn_verbs_queue *queue)
{
    const struct dtn_verbs_rail *rail = queue->rail;
    int room;

    if (queue->posted - queue->completed > DTN_VERBS_DEPTH / 2)
        dtn_verbs_poll(verbs);
    room = DTN_VERBS_DEPTH - (int)(queue->posted - queue->completed);
    if (rail->cqe - rail->outstanding < room) {
        dtn_verbs_poll(verbs);    /* the CQ must have room for each */
        room = rail->cqe - rail->outstanding;
    }
    return room;
}

/* The id of a request: the low half of its number, its peer and its queue. */
static uint64_t queue_id(const struct dtn_verbs_peer *peer, int q,
                         uint64_t number)
{
    return number << 32 | (uint64_t)peer->index << 8 | (uint64_t)q;
}

/* Append the piece to the last request of the chain, if its target begins where
 * that request's target ends.
 */
static bool post_gathered(struct dtn_verbs_chain *chain,
                          const struct dtn_verbs_queue *queue,
                          const struct dtn_verbs_write *write)
{
    struct ibv_send_wr *last;

    if (chain->n == 0 || chain->queue != queue)
        return false;
    last = &chain->wr[chain->n - 1];
    if (last->wr.rdma.remote_addr + chain->last_bytes != write->to
        || last->wr.rdma.rkey != write->key
        || last->send_flags & IBV_SEND_INLINE
        || last->num_sge == queue->rail->device.max_pieces
        || chain->last_bytes + write->size > queue->request_max)
        return false;
    last->sg_list[last->num_sge++] = (struct ibv_sge){
        .addr = (uintptr_t)write->from, .length = (uint32_t)write->size,
        .lkey = write->mr->lkey };
    chain->last_bytes += write->size;
    return true;
}

size_t dtn_verbs_post_rows(struct dtn_verbs *verbs, const unsigned char *row,
                           size_t size, size_t step, size_t n)
{
    struct dtn_verbs_chain *chain = &verbs->chain;
    struct ibv_send_wr *last = &chain->wr[chain->n - 1];
    struct dtn_verbs_rail *rail = chain->queue->rail;
    const size_t pieces = (size_t)(rail->device.max_pieces - last->num_sge);
    const size_t fit = (chain->queue->request_max - chain->last_bytes) / size;
    const uint32_t lkey = last->sg_list[last->num_sge - 1].lkey;

    n = n < pieces ? n : pieces;
    n = n < fit ? n : fit;
    for (size_t i = 0; i < n; i++)
        last->sg_list[last->num_sge++] = (struct ibv_sge){
            .addr = (uintptr_t)(row + i * step), .length = (uint32_t)size,
            .lkey = lkey };
    chain->last_bytes += n * size;
    rail->put_bytes += n * size;
    return n;
}

int dtn_verbs_post(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer, int q,
                   const struct dtn_verbs_write *write)
{
    struct dtn_verbs_queue *queue = &peer->queue[q];
    struct dtn_verbs_chain *chain = &verbs->chain;
    struct ibv_send_wr *wr;
    int rc;

    if (write->mr && post_gathered(chain, queue, write))
        return 0;
    rc = chain->n == DTN_VERBS_CHAIN || (chain->n > 0 && chain->queue != queue)
       ? dtn_verbs_ring(verbs) : 0;
    if (rc != 0)
        return rc;
    queue->posted++;
    queue->rail->outstanding++;
    chain->sge[chain->n][0] = (struct ibv_sge){
        .addr = (uintptr_t)write->from, .length = (uint32_t)write->size,
        .lkey = write->mr ? write->mr->lkey : 0 };
    chain->last_bytes = write->size;
    wr = &chain->wr[chain->n];    /* the other fields are always 0            */
    wr->wr_id = queue_id(peer, q, queue->posted);
    wr->next = NULL;
    wr->sg_list = chain->sge[chain->n];
    wr->num_sge = 1;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->send_flags = write->mr ? 0 : IBV_SEND_INLINE;
    wr->wr.rdma.remote_addr = write->to;
    wr->wr.rdma.rkey = write->key;
    if (chain->n > 0)
        wr[-1].next = wr;
    chain->queue = queue;
    chain->tells |= queue->posted % queue->rail->signalled_every == 0;
    chain->n++;
    return 0;
}

int dtn_verbs_post_put(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                       int q, const struct dtn_verbs_write *write)
{
    int rc = dtn_verbs_post(verbs, peer, q, write);

    if (rc == 0 && write->mr) {
        verbs->chain.tells = true;
        peer->queue[q].last_put = peer->queue[q].posted;
    }
    if (rc == 0)
        peer->queue[q].rail->put_bytes += write->size;
    return rc;
}

int dtn_verbs_ring(struct dtn_verbs *verbs)
{
    struct dtn_verbs_chain *chain = &verbs->chain;
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

int dtn_verbs_unhold(struct dtn_verbs *verbs)
{
    const struct dtn_verbs_region *region;
    const struct dtn_eager *put = &verbs->held.put;
    struct dtn_verbs_peer *peer = verbs->held.peer;
    struct dtn_verbs_write write;

    if (!peer)
        return 0;
    write = (struct dtn_verbs_write){ .to = put->dst.addr,
        .key = (uint32_t)put->dst.key, .from = put->src, .size = put->size };
    verbs->held.peer = NULL;
    if (put->size > (size_t)verbs->rail[0].device.max_inline) {
        region = dtn_verbs_memory_get(&verbs->memory, put->src, put->size);
        if (!region)
            return DTENSOR_ENOMEM;
        write.mr = region->mr[0];
    }
    return dtn_verbs_post_put(verbs, peer, 0, &write);
}

int dtn_verbs_release(struct dtn_verbs *verbs)
{
    int rc = dtn_verbs_unhold(verbs);

    return rc == 0 ? dtn_verbs_ring(verbs) : rc;
}

/* Note the first bad completion of a peer.  Those of the flushed requests
 * behind it, on the same and other queues, say nothing new.
 */
static void poll_bad(struct dtn_verbs_peer *peer, struct dtn_verbs_queue *queue,
                     const struct ibv_wc *wc)
{
    if (!queue->error)
        queue->error = wc->status;
    if (peer->error)
        return;
    peer->error = wc->status;
    peer->vendor_error = wc->vendor_err;
    peer->error_rail = queue->rail->number;
    peer->narrow = wc->status == IBV_WC_RETRY_EXC_ERR && queue->probe > 0
                && (uint32_t)(wc->wr_id >> 32) == (uint32_t)queue->probe;
}

static int poll_rail(struct dtn_verbs *verbs, struct dtn_verbs_rail *rail)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(rail->cq, DTN_COUNT(wc), wc);
    uint32_t ahead;

    for (int i = 0; i < n; i++) {
        struct dtn_verbs_peer *peer =
            verbs->met[wc[i].wr_id >> 8 & 0xffffff];
        struct dtn_verbs_queue *queue = &peer->queue[wc[i].wr_id & 0xff];

        if (wc[i].status == IBV_WC_SUCCESS) {
            ahead = (uint32_t)(wc[i].wr_id >> 32) - (uint32_t)queue->completed;
            queue->completed += ahead;
            rail->outstanding -= (int)ahead;
        } else {
            poll_bad(peer, queue, &wc[i]);
        }
    }
    return n < 0 ? DTENSOR_ESYS : 0;
}

int dtn_verbs_poll(struct dtn_verbs *verbs)
{
    int rc = 0;

    for (int k = 0; k < verbs->nrails && rc == 0; k++)
        rc = poll_rail(verbs, &verbs->rail[k]);
    return rc;
}
