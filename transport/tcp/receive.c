/* receive.c - frames from a peer
 *
 * Bytes that arrive are read directly into their destination, even while this
 * rank waits to send.  So two ranks that put a gigabyte to each other both make
 * progress.
 *
 * The beginning of a new frame, and all that has arrived behind it, is read
 * into the stage by one call.  A second call would get the rest of 32 KiB only
 * after the first part was acknowledged, which takes 3 us.  The data of a
 * signal are copied from the stage to the buffer in which the caller awaits
 * them, or into the ring if the caller does not wait yet.
 */
#include "base/log.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <sys/uio.h>

#define RECEIVE_TURNS 16          /* reads from one peer before the next      */
#define HEADS_BYTES ((size_t)1 << 10) /* read after the rest of a PUT         */

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

/* The next signal is complete: show it. */
static void signal_show(struct dtn_tcp_peer *p)
{
    struct dtn_signal *line = &p->queue[p->received % DTN_QUEUE_DEPTH];

    p->arriving = false;
    atomic_store_explicit(&line->seq, ++p->received, memory_order_relaxed);
}

/* Is the next signal the one that is awaited? */
static bool signal_wanted(const struct dtn_tcp_peer *p,
                          const struct dtn_signal *line)
{
    const struct dtn_tcp_wanted *wanted = &p->wanted;

    return wanted->dst && p->received == p->consumed
        && line->len == wanted->len && line->tag == wanted->tag
        && line->fingerprint == wanted->fingerprint;
}

/* A place for the data of the next signal, which then arrive there.  A peer
 * that keeps to the window finds room.
 */
static bool signal_keep(struct dtn_tcp_peer *p, size_t size)
{
    struct dtn_tcp_kept *data = &p->data[p->received % DTN_QUEUE_DEPTH];

    if (size > DTN_KEPT_MAX || size > DTN_TCP_WINDOW - p->kept_used)
        return false;
    if (p->kept_used == 0 || size > DTN_TCP_KEPT_BYTES - p->kept_end)
        p->kept_end = 0;
    *data = (struct dtn_tcp_kept){ (uint32_t)p->kept_end, (uint32_t)size };
    p->put_to = p->kept + p->kept_end;
    if (signal_wanted(p, &p->queue[p->received % DTN_QUEUE_DEPTH])) {
        p->wanted.found = true;
        p->put_to = p->wanted.dst;
    }
    p->put_left = size;
    p->arriving = true;
    p->kept_end += size;
    p->kept_used += size;
    return true;
}

static bool frame_signal(struct dtn_tcp_peer *p,
                         const struct dtn_tcp_frame *frame,
                         const unsigned char *body)
{
    struct dtn_signal *line = &p->queue[p->received % DTN_QUEUE_DEPTH];
    size_t size;

    if (frame->size < DTN_TCP_SIGNAL_BYTES ||
        p->received - p->consumed >= DTN_QUEUE_DEPTH)
        return false;
    size = frame->size - DTN_TCP_SIGNAL_BYTES;
    memcpy(line, body, DTN_TCP_SIGNAL_BYTES);
    if (size > 0 ? line->len != size : line->len > DTN_EAGER_MAX)
        return false;
    if (size > 0)
        return signal_keep(p, size);
    p->data[p->received % DTN_QUEUE_DEPTH].size = 0;
    signal_show(p);
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

/* Execute the next frame of `have` bytes.  Returns how many of them it takes;
 * 0: it is not complete; -1: it is invalid.
 */
static int stream_take_frame(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                             const unsigned char *at, size_t have)
{
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
    for (; p->acked < frame.consumed; p->acked++)
        p->window_used -= p->sent_data[p->acked % DTN_QUEUE_DEPTH];
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

/* The bytes that are next belong to a PUT, or to the data of a signal. */
static size_t stream_take_body(struct dtn_tcp_peer *p, const unsigned char *at,
                               size_t have)
{
    const size_t n = have < p->put_left ? have : p->put_left;

    memcpy(p->put_to, at, n);
    p->put_to += n;
    p->put_left -= n;
    return n;
}

/* Take the first `have` staged bytes; what is left is the begin of a frame.
 * false: a frame is invalid.
 */
static bool stream_take(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                        size_t have)
{
    const unsigned char *at = tcp->stage;
    int taken = 1;

    while (taken > 0) {
        if (p->put_left > 0) {
            taken = (int)stream_take_body(p, at, have);
        } else if (p->arriving) {
            signal_show(p);
            continue;
        } else {
            taken = stream_take_frame(tcp, p, at, have);
        }
        at += taken > 0 ? taken : 0;
        have -= taken > 0 ? (size_t)taken : 0;
    }
    if (taken == 0) {
        memcpy(p->frame, at, have);
        p->begun = have;
    }
    return taken == 0;
}

/* One call of readv(): the rest of a PUT, or of a signal's data, goes to its
 * place, what follows to the stage, after the begin of a frame.  In the middle
 * of many PUTs the stage takes only heads, since their bytes would be copied.
 * Returns the bytes; 0: end of the stream; -1 with errno.  *stagedp: bytes of
 * the stage.  *fullp: there may be more.
 */
static ssize_t stream_read(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                           size_t *stagedp, bool *fullp)
{
    const int first = p->put_left == 0;
    struct iovec iov[2] = {
        { p->put_to, p->put_left },
        { tcp->stage + p->begun,
          first ? DTN_TCP_STAGE_BYTES - p->begun : HEADS_BYTES },
    };
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
    memcpy(tcp->stage, p->frame, p->begun);
    *stagedp = p->begun + (size_t)n - to_put;
    return n;
}

/* Read once and execute it; true: there may be more. */
static bool stream_receive(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    size_t staged = 0;
    bool full = false;
    ssize_t n;

    /* The memory may have been unregistered in the middle of a PUT. */
    if (p->put_left > 0 && !p->arriving && !stream_region(tcp, p->put_key)) {
        dtn_tcp_stream_kill(tcp, p);
        return false;
    }
    n = stream_read(tcp, p, &staged, &full);
    if (n > 0 && stream_take(tcp, p, staged))
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

const void *dtn_tcp_kept(struct dtn_transport *tp, int peer)
{
    const struct dtn_tcp_peer *p = dtn_tcp_of(tp)->peers[peer];

    return p->wanted.found ? p->wanted.dst
                           : p->kept + p->data[p->consumed
                                               % DTN_QUEUE_DEPTH].at;
}

/* Nobody wants the data at `dst` any more: the ring has room for them. */
static void signal_unwanted(struct dtn_tcp_peer *p)
{
    const struct dtn_tcp_kept *data = &p->data[p->consumed % DTN_QUEUE_DEPTH];
    const bool half = p->arriving && p->received == p->consumed;
    const size_t have = data->size - (half ? p->put_left : 0);

    if (p->wanted.found)
        memcpy(p->kept + data->at, p->wanted.dst, have);
    if (p->wanted.found && half)
        p->put_to = p->kept + data->at + have;
    p->wanted.found = false;
    p->wanted.dst = NULL;
}

void dtn_tcp_expect(struct dtn_transport *tp, int peer,
                    const struct dtn_signal *signal, void *dst)
{
    struct dtn_tcp_peer *p = dtn_tcp_of(tp)->peers[peer];

    signal_unwanted(p);
    if (signal)
        p->wanted = (struct dtn_tcp_wanted){
            .dst = dst, .fingerprint = signal->fingerprint,
            .tag = signal->tag, .len = signal->len
        };
}
