/* signal.c - signals over verbs
 *
 * A signal is one write, which can carry up to 4 KiB of data (verbs/lane.c).
 * The receiver's CPU does nothing until it looks.  Each signal also says how
 * many signals of the other side were read.
 *
 * With several queue pairs to a peer, on one rail or more, puts of 64 KiB and
 * more are divided among all of them.  Different queue pairs do not keep order.
 * So before the next signal each other queue writes a stripe number behind its
 * bytes; the signal, on the first queue, counts only when all of them show it.
 */
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/readback.h"
#include "transport/verbs/signal.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Signals that were read before an acknowledgement is written by itself. */
#define ACK_EVERY (DTN_QUEUE_DEPTH / 2)

/* Write the next stripe number behind the puts of each other queue, which has
 * room for it.
 */
static int signal_stripes(struct dtn_verbs *verbs, struct dtn_verbs_peer *p)
{
    uint64_t *out = &p->lane->out_stripes[++p->stripes % DTN_QUEUE_DEPTH];
    int rc = 0;

    *out = p->stripes;
    p->striped = false;
    for (int q = 1; q < p->nqueues && rc == 0; q++)
        rc = dtn_verbs_lane_write(verbs, p, q,
                                  offsetof(struct dtn_verbs_lane, stripes) +
                                      (size_t)q * sizeof p->lane->stripes[0],
                                  out, sizeof *out);
    return rc;
}

/* The peer said how many of our signals it had read. */
static void signal_acked(struct dtn_verbs_peer *p, uint32_t consumed)
{
    uint32_t more = consumed - (uint32_t)p->acked;

    if (more <= DTN_QUEUE_DEPTH)
        p->acked += more;
}

/* Has the peer room for one more?  If it seems not, read the acknowledgements
 * in all lines that have arrived, even those that nobody has read.
 */
static bool signal_room(struct dtn_verbs_peer *p)
{
    struct dtn_verbs_content said;
    uint64_t seq = p->consumed;

    if (p->sent - p->acked < DTN_QUEUE_DEPTH)
        return true;
    signal_acked(p, (uint32_t)atomic_load_explicit(&p->lane->acked,
                                                   memory_order_acquire));
    while (dtn_verbs_line_take(p, seq + 1, &said)) {
        signal_acked(p, said.consumed);
        seq++;
    }
    return p->sent - p->acked < DTN_QUEUE_DEPTH;
}

/* Requests of queue 0 that a signal may take: the keys and the line; with data
 * also the put that was held back, and the data by themselves.
 */
static int signal_requests(const struct dtn_verbs_peer *p,
                           const struct dtn_eager *data)
{
    const size_t most = p->queue[0].request_max;

    return data ? 3 + (int)((data->size + most - 1) / most) : 2;
}

/* Has the peer a free line, and have the queues room for the requests, and for
 * the stripe numbers if they are due?
 */
static bool signal_fits(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                        const struct dtn_eager *data)
{
    if (!signal_room(p)
        || dtn_verbs_room(verbs, &p->queue[0]) < signal_requests(p, data))
        return false;
    for (int q = 1; q < p->nqueues && p->striped; q++)
        if (dtn_verbs_room(verbs, &p->queue[q]) < 1)
            return false;
    return true;
}

static struct dtn_verbs_place *signal_out(const struct dtn_verbs_peer *p)
{
    return &p->lane->out[p->sent % DTN_QUEUE_DEPTH];
}

/* Where data of the next signal stay that the peer keeps. */
static struct dtn_remote signal_place(const struct dtn_verbs_peer *p,
                                      size_t size)
{
    const unsigned char *data = dtn_verbs_line_data(signal_out(p), size,
                                                    p->plain);
    const size_t at = (size_t)(data - (unsigned char *)p->lane->out);

    return (struct dtn_remote){
        p->greeting.lane + offsetof(struct dtn_verbs_lane, place) + at,
        p->greeting.lane_key[0]
    };
}

/* Data that the write of the line cannot carry, or that belong into memory of a
 * device, are written before it, from the place of the line: it is free, and
 * stays as it is until the peer has consumed the signal.
 */
static int signal_put(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                      const struct dtn_eager *data)
{
    const struct dtn_verbs_queue *queue = &p->queue[0];
    const struct dtn_remote to = data->dst.addr ? data->dst
                               : signal_place(p, data->size);
    unsigned char *from = dtn_verbs_line_data(signal_out(p), data->size,
                                              p->plain);
    int rc = 0;

    memcpy(from, data->src, data->size);
    for (size_t at = 0; at < data->size && rc == 0; at += queue->request_max) {
        const size_t rest = data->size - at;

        rc = dtn_verbs_post(verbs, p, 0, &(struct dtn_verbs_write){
            .to = to.addr + at, .key = (uint32_t)to.key, .from = from + at,
            .size = rest < queue->request_max ? rest : queue->request_max,
            .mr = p->lane_mr[0] });
    }
    queue->rail->put_bytes += data->size;
    return rc;
}

/* Post what goes before the line.  *alongp becomes what goes with it: `data`,
 * or the put that was held back for this peer, or NULL.
 */
static int signal_before(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                         const struct dtn_eager *data, struct dtn_eager *held,
                         const struct dtn_eager **alongp)
{
    bool to_device;
    int rc = 0;

    *alongp = data;
    if (!data && verbs->held.peer == p) {
        *held = verbs->held.put;
        *alongp = held;
        verbs->held.peer = NULL;
    } else {
        rc = dtn_verbs_unhold(verbs);
    }
    if (rc == 0 && p->striped)
        rc = signal_stripes(verbs, p);
    if (rc == 0)
        rc = dtn_verbs_keys_tell(verbs, p);
    to_device = data && data->dst.key & DTN_KEY_DEVICE;
    if (rc == 0 && data
        && (to_device || !dtn_verbs_line_carries(&p->queue[0], data->size))) {
        *alongp = NULL;
        p->to_device |= to_device;
        rc = signal_put(verbs, p, data);
    }
    return rc;
}

int dtn_verbs_signal(struct dtn_transport *tp, int peer,
                     const struct dtn_signal *signal,
                     const struct dtn_eager *data)
{
    struct dtn_verbs *verbs = dtn_verbs_of(tp);
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);
    struct dtn_verbs_content say = { .len = (uint16_t)signal->len };
    const size_t skip = dtn_verbs_line_skip(signal->len);
    const struct dtn_eager *along;
    struct dtn_eager held;
    int rc;

    if (p->error)
        return DTENSOR_EPEER;
    if (!signal_fits(verbs, p, data))
        return DTENSOR_EAGAIN;
    rc = signal_before(verbs, p, data, &held, &along);
    if (rc != 0)
        return rc;
    say.fingerprint = signal->fingerprint;
    say.tag = (uint16_t)signal->tag;
    say.consumed = (uint32_t)p->consumed;
    say.stripes = p->stripes;
    memcpy(say.payload + skip, signal->payload, sizeof say.payload - skip);
    rc = dtn_verbs_line_send(verbs, p, p->sent + 1, &say, along);
    if (rc == 0)
        rc = dtn_verbs_ring(verbs);
    if (rc != 0)
        return rc;
    p->to_device = false;
    p->sent++;
    p->told = p->consumed;
    return 0;
}

/* Do all other queues show what the signal asks for? */
static bool stripes_shown(const struct dtn_verbs_peer *p, uint16_t stripes)
{
    for (int q = 1; q < p->nqueues; q++)
        if ((int16_t)(uint16_t)((uint16_t)atomic_load_explicit(
                &p->lane->stripes[q], memory_order_acquire) - stripes) < 0)
            return false;
    return true;
}

/* Has all that was written before the signal arrived, and what came with it?
 * EAGAIN: not yet; EINVAL, ESYS: this connection cannot be used any more
 */
static int signal_data(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                       struct dtn_verbs_content *said)
{
    const bool striped = said->stripes != p->stripes_seen;
    int rc = 0;

    if (!stripes_shown(p, said->stripes))
        return DTENSOR_EAGAIN;
    if (said->along & DTN_VERBS_TO_DEVICE && verbs->reads_back)
        rc = dtn_verbs_readback(verbs, p, striped);
    said->along &= (uint16_t)~DTN_VERBS_TO_DEVICE;
    if (rc == 0 && said->along > 0)
        rc = dtn_verbs_along_take(verbs, p, p->consumed + 1, said);
    return rc;
}

const struct dtn_signal *dtn_verbs_peek(struct dtn_transport *tp, int peer)
{
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);
    struct dtn_verbs_content said;
    size_t skip;
    int rc;

    if (p->arrived)
        return &p->incoming;
    if (!dtn_verbs_line_take(p, p->consumed + 1, &said))
        return NULL;
    rc = signal_data(dtn_verbs_of(tp), p, &said);
    if (rc != 0 && rc != DTENSOR_EAGAIN && !p->error)    /* health() says it */
        p->error = rc == DTENSOR_EINVAL ? IBV_WC_LOC_ACCESS_ERR
                                        : IBV_WC_LOC_QP_OP_ERR;
    if (rc != 0)
        return NULL;
    skip = dtn_verbs_line_skip(said.len);
    memcpy(p->incoming.payload, said.payload + skip,
           sizeof said.payload - skip);
    p->incoming.fingerprint = said.fingerprint;
    p->incoming.tag = said.tag;
    p->incoming.len = said.len;
    signal_acked(p, said.consumed);
    p->stripes_seen = said.stripes;
    p->arrived = true;
    return &p->incoming;
}

const void *dtn_verbs_kept(struct dtn_transport *tp, int peer)
{
    const struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);

    return dtn_verbs_line_data(&p->lane->place[p->consumed % DTN_QUEUE_DEPTH],
                               p->incoming.len, p->plain);
}

/* Tell the peer how many of its signals were read, once `least` are new. */
void dtn_verbs_acknowledge(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                           uint64_t least)
{
    if (p->consumed - p->told < least)
        return;
    p->lane->out_acked = p->consumed;
    if (dtn_verbs_lane_write(
            verbs, p, 0, offsetof(struct dtn_verbs_lane, acked),
            &p->lane->out_acked, sizeof p->lane->out_acked) == 0)
        p->told = p->consumed;
}

void dtn_verbs_consume(struct dtn_transport *tp, int peer)
{
    struct dtn_verbs_peer *p = dtn_verbs_peer(tp, peer);

    p->arrived = false;
    p->consumed++;
    dtn_verbs_acknowledge(dtn_verbs_of(tp), p, ACK_EVERY);
}
