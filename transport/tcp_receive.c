/* tcp_receive.c - frames from a peer
 *
 * Bytes that arrive are read straight into the memory that they are for, even
 * while this rank waits to send.  So two ranks that put a gigabyte to each
 * other both make progress.
 */
#include "base/log.h"
#include "transport/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <sys/uio.h>

#define RECEIVE_TURNS 16          /* reads from one peer before the next      */

/* The region of that key, if it is registered. */
static const struct dtn_tcp_region *stream_region(const struct dtn_tcp *tcp,
                                                  uint64_t key)
{
    uint64_t index = key & UINT32_MAX;
    const struct dtn_tcp_region *region;

    if (index >= (uint64_t)tcp->nregions)
        return NULL;
    region = &tcp->regions[index];
    return region->uses == key >> 32 && region->uses % 2 == 1 ? region : NULL;
}

static bool frame_put(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                      const struct dtn_tcp_frame *frame)
{
    const struct dtn_tcp_region *region = stream_region(tcp, frame->key);
    uint64_t offset;

    if (!region)
        return false;
    offset = frame->addr - (uintptr_t)region->mem;
    if (frame->addr < (uintptr_t)region->mem || offset > region->size ||
        frame->size > region->size - offset)
        return false;
    p->put_key = frame->key;
    p->put_to = region->mem + offset;
    p->put_left = frame->size;
    return true;
}

static bool frame_signal(struct dtn_tcp_peer *p,
                         const struct dtn_tcp_frame *frame,
                         const unsigned char *body)
{
    struct dtn_signal *line = &p->queue[p->received % DTN_QUEUE_DEPTH];

    if (frame->size != DTN_TCP_SIGNAL_BYTES ||
        p->received - p->consumed >= DTN_QUEUE_DEPTH)
        return false;
    memcpy(line, body, DTN_TCP_SIGNAL_BYTES);
    if (line->len > DTN_EAGER_MAX)
        return false;
    atomic_store_explicit(&line->seq, ++p->received, memory_order_relaxed);
    return true;
}

static bool frame_abort(const struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                        const struct dtn_tcp_frame *frame)
{
    int64_t culprit = (int64_t)frame->addr;

    if (frame->size != 0 || frame->key > 0xff || culprit < -1 ||
        culprit >= tcp->nranks)
        return false;
    p->aborted = true;
    p->abort_culprit = (int)culprit;
    p->abort_code = -(int)frame->key;
    return true;
}

/* Execute the next frame of the staged bytes.  Returns how many of them it
 * takes; 0: it is not complete; -1: it is invalid.
 */
static int stream_take_frame(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    const unsigned char *at = p->stage + p->stage_begin;
    size_t have = p->stage_end - p->stage_begin;
    size_t need = sizeof(struct dtn_tcp_frame);
    struct dtn_tcp_frame frame;
    bool good;

    if (have < need)
        return 0;
    memcpy(&frame, at, sizeof frame);
    if (frame.kind == DTN_TCP_SIGNAL)
        need += DTN_TCP_SIGNAL_BYTES;
    if (have < need)
        return 0;
    if (frame.consumed < p->acked || frame.consumed > p->sent)
        return -1;
    p->acked = frame.consumed;
    switch (frame.kind) {
    case DTN_TCP_PUT:    good = frame_put(tcp, p, &frame); break;
    case DTN_TCP_SIGNAL:
        good = frame_signal(p, &frame, at + sizeof frame);
        break;
    case DTN_TCP_CREDIT: good = frame.size == 0; break;
    case DTN_TCP_ABORT:  good = frame_abort(tcp, p, &frame); break;
    default:         good = false;
    }
    return good ? (int)need : -1;
}

/* Take the staged bytes; false: a frame is invalid. */
static bool stream_take(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    size_t n;
    int taken;

    for (;;) {
        n = p->stage_end - p->stage_begin;
        if (p->put_left > 0) {
            n = n < p->put_left ? n : p->put_left;
            memcpy(p->put_to, p->stage + p->stage_begin, n);
            p->put_to += n;
            p->put_left -= n;
            taken = (int)n;
        } else {
            taken = stream_take_frame(tcp, p);
        }
        if (taken <= 0)
            break;
        p->stage_begin += (size_t)taken;
    }
    memmove(p->stage, p->stage + p->stage_begin,
            p->stage_end - p->stage_begin);
    p->stage_end -= p->stage_begin;
    p->stage_begin = 0;
    return taken == 0;
}

/* One call of readv(): the rest of a PUT goes to its place, what follows to the
 * stage.  Returns the bytes; 0: end of the stream; -1 with errno.  *fullp:
 * there may be more.
 */
static ssize_t stream_read(struct dtn_tcp_peer *p, bool *fullp)
{
    struct iovec iov[2] = {
        { p->put_to, p->put_left },
        { p->stage + p->stage_end, DTN_TCP_STAGE_BYTES - p->stage_end },
    };
    int first = p->put_left == 0;
    ssize_t n;
    size_t to_put;

    do
        n = readv(p->fd, iov + first, 2 - first);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n;
    *fullp = (size_t)n == p->put_left + iov[1].iov_len;
    to_put = (size_t)n < p->put_left ? (size_t)n : p->put_left;
    if (to_put > 0)               /* put_to is NULL until a first put */
        p->put_to += to_put;
    p->put_left -= to_put;
    p->stage_end += (size_t)n - to_put;
    return n;
}

/* Read once and execute it; true: there may be more. */
static bool stream_receive(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    bool full = false;
    ssize_t n;

    /* The memory may have been unregistered in the middle of a PUT. */
    if (p->put_left > 0 && !stream_region(tcp, p->put_key)) {
        dtn_tcp_stream_kill(tcp, p);
        return false;
    }
    n = stream_read(p, &full);
    if (n > 0 && stream_take(tcp, p))
        return full;
    if (n < 0 && dtn_tcp_later())
        return false;
    if (n > 0)
        dtn_log(tcp->log, DTN_LOG_WARN, "tcp: rank %d sent nonsense, or a put "
                "outside of registered memory: disconnected", p->rank);
    dtn_tcp_stream_kill(tcp, p);
    return false;
}

void dtn_tcp_stream_receive(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    for (int turn = 0; turn < RECEIVE_TURNS || p->send_failed; turn++)
        if (!stream_receive(tcp, p))
            break;
    if (p->send_failed)
        dtn_tcp_stream_kill(tcp, p);
}

const struct dtn_signal *dtn_tcp_peek(struct dtn_transport *tp, int peer)
{
    const struct dtn_tcp_peer *p = dtn_tcp_of(tp)->peers[peer];

    return p->consumed < p->received ? &p->queue[p->consumed % DTN_QUEUE_DEPTH]
                                     : NULL;
}
