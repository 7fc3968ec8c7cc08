/* tcp_stream.c - puts and signals as frames on a stream
 *
 * A stream keeps order, so a signal sent after a put is seen after it.  A
 * frame is 32 bytes of header and at most 64 KiB that follow; 1 MiB is 16
 * PUTs.  Nobody ever waits in a send: what the socket does not take of a
 * frame is copied aside, and as long as something lies there, put() says
 * EAGAIN.  Bytes that arrive are read straight into the memory they are for,
 * whatever this rank is trying to send at the time, so two ranks that put a
 * gigabyte at each other both get on.
 *
 * The queue of signals is bounded by credit: every frame says how many
 * signals its sender has consumed so far, and a sender never has more than
 * 16 beyond that in flight.  When nothing else goes that way a CREDIT frame
 * carries it, once 8 are owed or when this rank idles.
 */
#include "base/log.h"
#include "base/wait.h"
#include "transport/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CREDIT_OWED (DTN_QUEUE_DEPTH / 2)
#define CREDIT_IDLE_TURNS 64      /* turns of progress() with nothing to do   */
#define RECEIVE_TURNS 16          /* reads from one peer before the next      */
#define EVENTS 64
#define LINGER_NS INT64_C(1000000000)

static struct dtn_tcp *tcp_of(struct dtn_transport *tp)
{
    return (struct dtn_tcp *)tp;
}

/* ---------------------------------------------------------------- state --- */

/* Ask epoll for readable, and for writable only while something waits. */
static int stream_watch(struct dtn_tcp *tcp, struct dtn_tcp_peer *p, int op)
{
    struct epoll_event event = {
        .events = EPOLLIN | (p->wants_write ? (uint32_t)EPOLLOUT : 0),
        .data.ptr = p,
    };

    return epoll_ctl(tcp->epoll, op, p->fd, &event);
}

int dtn_tcp_stream_start(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    if (stream_watch(tcp, p, EPOLL_CTL_ADD) < 0)
        return DTENSOR_ESYS;
    p->state = DTN_TCP_UP;
    return 0;
}

void dtn_tcp_stream_kill(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    if (p->fd >= 0) {
        epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, p->fd, NULL);
        close(p->fd);
    }
    p->fd = -1;
    p->state = DTN_TCP_DEAD;
}

/* Can anything be sent to it? */
static bool stream_is_open(const struct dtn_tcp_peer *p)
{
    return p->state == DTN_TCP_UP && !p->send_failed;
}

static void stream_want_write(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                              bool want)
{
    if (want == p->wants_write)
        return;
    p->wants_write = want;
    if (stream_watch(tcp, p, EPOLL_CTL_MOD) < 0)
        dtn_tcp_stream_kill(tcp, p);
}

/* -------------------------------------------------------------- sending --- */

/* The connection broke under a send.  It may still hold what the peer said
 * before it went, why it gave up for one: read that first.
 */
static int stream_send_failed(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    p->send_failed = true;
    p->out_begin = p->out_end = 0;
    dtn_tcp_stream_receive(tcp, p);
    return DTENSOR_EPEER;
}

/* Send from iov what the socket takes: bytes, or EAGAIN or EPEER. */
static ssize_t stream_send(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                           struct iovec *iov, size_t niov, int flags)
{
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = niov };
    ssize_t n;

    do
        n = sendmsg(p->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    if (dtn_tcp_later())
        return DTENSOR_EAGAIN;
    return stream_send_failed(tcp, p);
}

int dtn_tcp_stream_push(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    struct iovec iov;
    ssize_t n;

    while (p->out_begin < p->out_end) {
        iov.iov_base = p->out + p->out_begin;
        iov.iov_len = p->out_end - p->out_begin;
        n = stream_send(tcp, p, &iov, 1, 0);
        if (n == DTENSOR_EAGAIN)
            stream_want_write(tcp, p, true);
        if (n < 0)
            return (int)n;
        p->out_begin += (size_t)n;
    }
    p->out_begin = p->out_end = 0;
    stream_want_write(tcp, p, false);
    return p->state == DTN_TCP_UP ? 0 : DTENSOR_EPEER;
}

/* Lay `size` bytes aside to be sent later.  There is room: see tcp.h. */
static void stream_keep(struct dtn_tcp_peer *p, const void *bytes, size_t size)
{
    if (p->out_end + size > DTN_TCP_OUT_BYTES) {
        memmove(p->out, p->out + p->out_begin, p->out_end - p->out_begin);
        p->out_end -= p->out_begin;
        p->out_begin = 0;
    }
    memcpy(p->out + p->out_end, bytes, size);
    p->out_end += size;
}

static struct dtn_tcp_frame stream_frame(const struct dtn_tcp_peer *p,
                                         enum dtn_tcp_kind kind, size_t size)
{
    return (struct dtn_tcp_frame){
        .kind = kind, .size = (uint32_t)size, .consumed = p->consumed
    };
}

/* Send a frame as far as the socket takes it and keep the rest, behind what
 * is kept already.  0: taken, now or later.  A PUT that the socket takes
 * nothing of is not kept: EAGAIN.
 */
static int stream_send_frame(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                             const struct dtn_tcp_frame *frame,
                             const void *body)
{
    struct iovec iov[2] = {
        { (void *)(uintptr_t)frame, sizeof *frame },
        { (void *)(uintptr_t)body, frame->size },
    };
    bool is_put = frame->kind == DTN_TCP_PUT;
    ssize_t n = 0;
    size_t skip;

    if (p->out_begin == p->out_end) {
        /* MSG_MORE: the signal that makes it known comes soon. */
        n = stream_send(tcp, p, iov, 2, is_put ? MSG_MORE : 0);
        if (n == DTENSOR_EPEER || (n == DTENSOR_EAGAIN && is_put))
            return (int)n;
        n = n < 0 ? 0 : n;
    }
    p->credited = frame->consumed;
    for (int i = 0; i < 2; i++) {
        skip = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;
        n -= (ssize_t)skip;
        if (skip < iov[i].iov_len)
            stream_keep(p, (char *)iov[i].iov_base + skip,
                        iov[i].iov_len - skip);
    }
    if (p->out_begin < p->out_end)
        stream_want_write(tcp, p, true);
    return 0;
}

int dtn_tcp_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                const void *src, size_t size, size_t *done)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];
    struct dtn_tcp_frame frame;
    size_t moved = 0, n;
    int rc = 0;

    if (!stream_is_open(p))
        return DTENSOR_EPEER;
    if (dst.key == 0 || dst.key & DTN_KEY_DEVICE)
        return DTENSOR_EINVAL;
    while (moved < size) {
        if (p->out_begin < p->out_end && (rc = dtn_tcp_stream_push(tcp, p)) < 0)
            break;
        n = size - moved < DTN_TCP_PUT_MAX ? size - moved : DTN_TCP_PUT_MAX;
        frame = stream_frame(p, DTN_TCP_PUT, n);
        frame.addr = dst.addr + moved;
        frame.key = dst.key;
        rc = stream_send_frame(tcp, p, &frame, (const char *)src + moved);
        if (rc < 0)
            break;
        moved += n;
    }
    if (rc == DTENSOR_EPEER || (rc < 0 && moved == 0))
        return rc;
    *done = moved;
    return 0;
}

int dtn_tcp_flush(struct dtn_transport *tp, int peer)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];

    /* A peer that has everything may have finished and left. */
    if (p->out_begin == p->out_end)
        return 0;
    return stream_is_open(p) ? dtn_tcp_stream_push(tcp, p) : DTENSOR_EPEER;
}

bool dtn_tcp_room(struct dtn_transport *tp, int peer)
{
    const struct dtn_tcp_peer *p = tcp_of(tp)->peers[peer];

    return p->sent - p->acked < DTN_QUEUE_DEPTH;
}

int dtn_tcp_signal(struct dtn_transport *tp, int peer,
                   const struct dtn_signal *signal)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];
    struct dtn_tcp_frame frame;
    int rc;

    if (!stream_is_open(p))
        return DTENSOR_EPEER;
    if (p->sent - p->acked >= DTN_QUEUE_DEPTH)
        return DTENSOR_EAGAIN;
    frame = stream_frame(p, DTN_TCP_SIGNAL, DTN_TCP_SIGNAL_BYTES);
    rc = stream_send_frame(tcp, p, &frame, signal);
    if (rc == 0)
        p->sent++;
    return rc;
}

void dtn_tcp_stream_abort(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                          int culprit, int code)
{
    struct dtn_tcp_frame frame;

    if (p->fd < 0 || p->send_failed || p->abort_sent)
        return;
    p->abort_sent = true;
    frame = stream_frame(p, DTN_TCP_ABORT, 0);
    frame.addr = (uint64_t)(int64_t)culprit;
    frame.key = (uint64_t)-code;
    stream_send_frame(tcp, p, &frame, NULL);
}

/* ------------------------------------------------------------ receiving --- */

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

/* Carry out the frame at the front of what was read ahead: the bytes it
 * takes there, 0 if it is not all there, -1 if it makes no sense.
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

/* Go through what was read ahead; false: the peer talks nonsense. */
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

/* One read: the rest of a PUT to where it belongs, and ahead what follows.
 * Bytes, 0 at the end of the stream, -1 with errno; *fullp: there may be more.
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

/* Read once and carry it out; true: there may be more. */
static bool stream_receive(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    bool full = false;
    ssize_t n;

    /* Memory that was unregistered under a put is not ours to write. */
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
    const struct dtn_tcp_peer *p = tcp_of(tp)->peers[peer];

    return p->consumed < p->received ? &p->queue[p->consumed % DTN_QUEUE_DEPTH]
                                     : NULL;
}

/* --------------------------------------------------------------- credit --- */

static void stream_credit(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    struct dtn_tcp_frame frame;

    if (p->credited == p->consumed || !stream_is_open(p) ||
        p->out_begin < p->out_end)
        return;
    frame = stream_frame(p, DTN_TCP_CREDIT, 0);
    stream_send_frame(tcp, p, &frame, NULL);
}

void dtn_tcp_consume(struct dtn_transport *tp, int peer)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];

    p->consumed++;
    if (p->consumed - p->credited >= CREDIT_OWED)
        stream_credit(tcp, p);
    if (p->credited == p->consumed || p->owed)
        return;
    p->owed = true;
    p->next_owed = tcp->owed;
    tcp->owed = p;
}

/* Tell everyone what it may not know yet; who cannot be told stays listed. */
static void stream_credit_all(struct dtn_tcp *tcp)
{
    struct dtn_tcp_peer *p = tcp->owed, *next;

    tcp->owed = NULL;
    for (; p; p = next) {
        next = p->next_owed;
        stream_credit(tcp, p);
        p->owed = p->state == DTN_TCP_UP && p->credited != p->consumed;
        if (p->owed) {
            p->next_owed = tcp->owed;
            tcp->owed = p;
        }
    }
}

int dtn_tcp_progress(struct dtn_transport *tp)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct epoll_event events[EVENTS];
    int n = epoll_wait(tcp->epoll, events, EVENTS, 0);

    for (int i = 0; i < n; i++) {
        struct dtn_tcp_peer *p = events[i].data.ptr;

        if (p->state == DTN_TCP_UP && (events[i].events & EPOLLOUT))
            dtn_tcp_stream_push(tcp, p);
        if (p->state == DTN_TCP_UP && (events[i].events & ~(uint32_t)EPOLLOUT))
            dtn_tcp_stream_receive(tcp, p);
    }
    tcp->idle_turns = n > 0 ? 0 : tcp->idle_turns + 1;
    if (tcp->owed && tcp->idle_turns >= CREDIT_IDLE_TURNS) {
        tcp->idle_turns = 0;
        stream_credit_all(tcp);
    }
    return n < 0 && errno != EINTR ? DTENSOR_ESYS : 0;
}

/* -------------------------------------------------------------- closing --- */

/* Is there something that this living peer's system has not taken yet? */
static bool stream_unsent(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    int left = 0;

    if (!p || p->state != DTN_TCP_UP)
        return false;
    if (dtn_tcp_stream_push(tcp, p) == DTENSOR_EAGAIN)
        return true;
    /* The end of the stream makes the peer close, and so acknowledge now. */
    return p->state == DTN_TCP_UP && shutdown(p->fd, SHUT_WR) == 0 &&
           ioctl(p->fd, SIOCOUTQ, &left) == 0 && left > 0;
}

/* See the last words off.  A closed socket answers whatever still comes from
 * the peer, a CREDIT for one, with a reset, and then forgets what it has not
 * sent.  Most often there is nothing left and no time is spent.
 */
void dtn_tcp_stream_linger(struct dtn_tcp *tcp)
{
    static const struct timespec tick = { 0, 100000 };
    int64_t end = dtn_now_ns() + LINGER_NS;

    for (int r = 0; r < tcp->nranks; r++)
        while (stream_unsent(tcp, tcp->peers[r]) && dtn_now_ns() < end) {
            dtn_tcp_progress(&tcp->base);
            nanosleep(&tick, NULL);
        }
}
