/* verbs_signal.c - signals over verbs
 *
 * A signal is one inline write.  Where the device promises that a write lands
 * in order (ibv_query_qp_data_in_order), its number comes last and says that
 * the rest is there; elsewhere the number stands beside every four bytes, 128
 * bytes instead of 72.  The processor of the receiver is not involved until
 * it looks.  Every signal also tells how many of the other side's were read.
 *
 * With several queue pairs to a peer, puts of 64 KiB and more are cut over all
 * of them.  Queues do not keep order among each other, so before the next
 * signal each other queue writes a stripe number of its own behind its bytes,
 * and the signal, on the first, counts only once all of them show.
 */
#include "transport/verbs.h"

#include <string.h>

/* A standing acknowledgement is due after so many signals. */
#define ACK_EVERY (DTN_QUEUE_DEPTH / 2)

/* Write from our lane to the same peer's lane for us, if there is room. */
int verbs_lane_write(struct verbs *verbs, struct verbs_peer *peer, int q,
                      size_t offset, const void *from, size_t size)
{
    const struct ibv_mr *mr = size <= (size_t)verbs->device.max_inline ? NULL
                            : verbs->lanes_mr;

    if (peer->error)
        return DTENSOR_EPEER;
    if (verbs_room(verbs, &peer->queue[q]) < 1)
        return DTENSOR_EAGAIN;
    return verbs_post(verbs, peer, q, peer->greeting.lane + offset,
                      peer->greeting.lane_key, from, size, mr);
}

static void line_fill(union verbs_line *line, const struct verbs_content *said,
                      uint64_t seq, bool plain)
{
    uint32_t part[16];

    if (plain) {
        line->plain.content = *said;
        atomic_store_explicit(&line->plain.seq, seq, memory_order_relaxed);
        return;
    }
    memcpy(part, said, sizeof part);
    for (int i = 0; i < 16; i++)
        atomic_store_explicit(&line->word[i], (uint64_t)(uint32_t)seq << 32
                              | part[i], memory_order_relaxed);
}

/* Take the content of line number `seq` if all of it is there. */
static bool line_take(union verbs_line *line, uint64_t seq, bool plain,
                      struct verbs_content *said)
{
    uint32_t part[16];
    uint64_t word;

    if (plain) {
        if (atomic_load_explicit(&line->plain.seq, memory_order_acquire) != seq)
            return false;
        *said = line->plain.content;
        return true;
    }
    for (int i = 15; i >= 0; i--) {
        word = atomic_load_explicit(&line->word[i], memory_order_acquire);
        if (word >> 32 != (uint32_t)seq)
            return false;
        part[i] = (uint32_t)word;
    }
    memcpy(said, part, sizeof part);
    return true;
}

/* Behind the puts of every other queue goes the next stripe number. */
static int signal_stripes(struct verbs *verbs, struct verbs_peer *p)
{
    int rc = 0;

    for (int q = 1; q < p->nqueues; q++)
        if (verbs_room(verbs, &p->queue[q]) < 1)
            return DTENSOR_EAGAIN;
    p->lane->out_stripes = ++p->stripes;
    p->striped = false;
    for (int q = 1; q < p->nqueues && rc == 0; q++)
        rc = verbs_lane_write(verbs, p, q, offsetof(struct verbs_lane, stripes)
                        + (size_t)q * sizeof p->lane->stripes[0],
                        &p->lane->out_stripes, sizeof p->lane->out_stripes);
    return rc;
}

/* A line told how many of our signals were read by then. */
static void signal_acked(struct verbs_peer *p, uint32_t consumed)
{
    uint32_t more = consumed - (uint32_t)p->acked;

    if (more <= DTN_QUEUE_DEPTH)
        p->acked += more;
}

/* Has the peer room for one more?  When it looks as if not, every line that
 * came, read or not, may tell otherwise.
 */
static bool signal_room(struct verbs_peer *p)
{
    struct verbs_content said;
    uint64_t seq = p->consumed;

    if (p->sent - p->acked < DTN_QUEUE_DEPTH)
        return true;
    signal_acked(p, (uint32_t)atomic_load_explicit(&p->lane->acked,
                                                   memory_order_acquire));
    while (line_take(&p->lane->line[seq % DTN_QUEUE_DEPTH], seq + 1, p->plain,
                     &said)) {
        signal_acked(p, said.consumed);
        seq++;
    }
    return p->sent - p->acked < DTN_QUEUE_DEPTH;
}

bool verbs_has_room(struct dtn_transport *tp, int peer)
{
    return signal_room(verbs_peer(tp, peer));
}

int verbs_signal(struct dtn_transport *tp, int peer,
                        const struct dtn_signal *signal)
{
    struct verbs *verbs = verbs_of(tp);
    struct verbs_peer *p = verbs_peer(tp, peer);
    size_t at = p->sent % DTN_QUEUE_DEPTH;
    union verbs_line *line = &p->lane->out_line[at];
    struct verbs_content say;
    int rc = 0;

    if (p->error)
        return DTENSOR_EPEER;
    if (!signal_room(p) || verbs_room(verbs, &p->queue[0]) < 1)
        return DTENSOR_EAGAIN;
    if (p->striped)
        rc = signal_stripes(verbs, p);
    if (rc != 0)
        return rc;
    memcpy(say.body, signal, sizeof say.body);
    say.consumed = (uint32_t)p->consumed;
    say.stripes = p->stripes;
    line_fill(line, &say, p->sent + 1, p->plain);
    rc = verbs_lane_write(verbs, p, 0, offsetof(struct verbs_lane, line)
                    + at * sizeof *line, line, p->plain ? sizeof line->plain
                    : sizeof line->word);
    if (rc != 0)
        return rc;
    p->sent++;
    p->told = p->consumed;
    return 0;
}

/* Do all other queues show what the signal asks for? */
static bool stripes_shown(const struct verbs_peer *p, uint32_t stripes)
{
    for (int q = 1; q < p->nqueues; q++)
        if ((int32_t)((uint32_t)atomic_load_explicit(
                &p->lane->stripes[q], memory_order_acquire) - stripes) < 0)
            return false;
    return true;
}

const struct dtn_signal *verbs_peek(struct dtn_transport *tp, int peer)
{
    struct verbs_peer *p = verbs_peer(tp, peer);
    struct verbs_content said;

    if (p->arrived)
        return &p->incoming;
    if (!line_take(&p->lane->line[p->consumed % DTN_QUEUE_DEPTH],
                   p->consumed + 1, p->plain, &said)
        || !stripes_shown(p, said.stripes))
        return NULL;
    memcpy(&p->incoming, said.body, sizeof said.body);
    signal_acked(p, said.consumed);
    p->arrived = true;
    return &p->incoming;
}

/* Tell the peer how many of its signals were read, once `least` are new. */
void verbs_acknowledge(struct verbs *verbs, struct verbs_peer *p,
                              uint64_t least)
{
    if (p->consumed - p->told < least)
        return;
    p->lane->out_acked = p->consumed;
    if (verbs_lane_write(verbs, p, 0, offsetof(struct verbs_lane, acked),
                   &p->lane->out_acked, sizeof p->lane->out_acked) == 0)
        p->told = p->consumed;
}

void verbs_consume(struct dtn_transport *tp, int peer)
{
    struct verbs_peer *p = verbs_peer(tp, peer);

    p->arrived = false;
    p->consumed++;
    verbs_acknowledge(verbs_of(tp), p, ACK_EVERY);
}
