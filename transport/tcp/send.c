/* send.c - puts, signals and credit as frames on a stream
 *
 * A stream keeps its order, so a signal that is sent after a put is seen after
 * it.  A frame has a header of 32 bytes and a body of at most 8 MiB; 20 MiB are
 * three PUTs.  Each frame ends a packet, so short ones cost much: with frames
 * of 64 KiB 2 MiB took twice as long.  No send waits.  If the socket does not
 * take a whole frame, the rest is copied.  The exception is the body of a PUT,
 * which is not copied: put() returns EAGAIN until all of it was sent.
 *
 * The last PUT is held until the next signal, put, flush or turn of progress,
 * so a put and its signal are one system call.  With two calls, and MSG_MORE
 * for the first, 8 to 32 KiB took 30 us more: the kernel held bytes back until
 * earlier bytes had been acknowledged.
 *
 * Credit bounds the queue of signals.  Every frame carries the number of
 * signals that its sender has consumed.  A sender is never ahead of that by
 * more than 16 signals, or by more than 384 KiB of their data.  If no other
 * frame is sent, a CREDIT frame carries the number: after 8 signals or 192 KiB
 * were consumed, in the next turn in which nothing arrives; after 12 signals or
 * 288 KiB at once, at the cost of the call that consumed them; and when this
 * rank has been idle for some milliseconds.
 */
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The connection broke in a send.  What the peer sent before may still be
 * there, such as why it gave up: read that first.
 */
static int stream_send_failed(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    p->send_failed = true;
    p->out_begin = p->out_end = 0;
    dtn_tcp_stream_release(tcp, p);
    dtn_tcp_stream_receive(tcp, p);
    return DTENSOR_EPEER;
}

/* Send what the socket takes.  Returns the bytes, or EAGAIN or EPEER. */
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

static bool stream_is_sent(const struct dtn_tcp_peer *p)
{
    return p->out_begin == p->out_end && p->rest_left == 0 &&
           p->after_begin == p->after_end;
}

static struct iovec stream_piece(const void *bytes, size_t size)
{
    return (struct iovec){ (void *)(uintptr_t)bytes, size };
}

/* Of the first *n bytes that were sent `left` are these; returns how many. */
static size_t stream_took(size_t *n, size_t left)
{
    const size_t taken = *n < left ? *n : left;

    *n -= taken;
    return taken;
}

/* Send out[], the rest of a PUT, and after[]: 0, EAGAIN or EPEER. */
static int stream_push_kept(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    while (!stream_is_sent(p)) {
        struct iovec piece[3] = {
            stream_piece(p->out + p->out_begin, p->out_end - p->out_begin),
            stream_piece(p->rest, p->rest_left),
            stream_piece(p->after + p->after_begin,
                         p->after_end - p->after_begin)
        };
        const ssize_t sent = stream_send(tcp, p, piece, 3, 0);
        size_t n = (size_t)sent, rest;

        if (sent < 0)
            return (int)sent;
        p->out_begin += stream_took(&n, piece[0].iov_len);
        rest = stream_took(&n, p->rest_left);
        if (rest > 0)             /* NULL until a first PUT waits             */
            p->rest += rest;
        p->rest_left -= rest;
        p->after_begin += n;
    }
    p->out_begin = p->out_end = p->after_begin = p->after_end = 0;
    return 0;
}

/* Append to unsent bytes of a buffer.  There is room: see DTN_TCP_OUT_BYTES. */
static void stream_append(unsigned char buf[], size_t capacity, size_t *begin,
                          size_t *end, const void *bytes, size_t size)
{
    if (*end + size > capacity) {
        memmove(buf, buf + *begin, *end - *begin);
        *end -= *begin;
        *begin = 0;
    }
    memcpy(buf + *end, bytes, size);
    *end += size;
}

/* Keep bytes that are sent later, after all that waits. */
static void stream_keep(struct dtn_tcp_peer *p, const void *bytes, size_t size)
{
    if (p->rest_left > 0 || p->after_begin < p->after_end)
        stream_append(p->after, sizeof p->after, &p->after_begin,
                      &p->after_end, bytes, size);
    else
        stream_append(p->out, sizeof p->out, &p->out_begin, &p->out_end, bytes,
                      size);
}

static void stream_keep_in_place(struct dtn_tcp_peer *p, const void *bytes,
                                 size_t size)
{
    p->rest = bytes;
    p->rest_left = size;
}

static struct dtn_tcp_frame stream_frame(const struct dtn_tcp_peer *p,
                                         enum dtn_tcp_kind kind, size_t size)
{
    return (struct dtn_tcp_frame){
        .kind = kind, .size = (uint32_t)size, .consumed = p->consumed
    };
}

/* What the pieces are that stream_send_pieces() sends. */
enum stream_what {
    STREAM_CONTROL,               /* a frame that always can be kept          */
    STREAM_DATA,                  /* with data that may change                */
    STREAM_PUT                    /* a head, bytes that stay where they are,  */
                                  /* perhaps the frame of a signal            */
};

/* Send the pieces as far as the socket takes them and keep the rest, after what
 * is kept already.  0: taken, now or later.  If the socket takes nothing of
 * data, nothing is kept: EAGAIN.
 */
static int stream_send_pieces(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                              struct iovec piece[], size_t npieces,
                              enum stream_what what, int flags)
{
    ssize_t sent = 0;
    size_t n, skip;

    if (stream_is_sent(p)) {
        sent = stream_send(tcp, p, piece, npieces, flags);
        if (sent == DTENSOR_EPEER ||
            (sent == DTENSOR_EAGAIN && what != STREAM_CONTROL))
            return (int)sent;
    }
    n = sent < 0 ? 0 : (size_t)sent;
    p->credited = p->consumed;    /* all frames say it                        */
    p->kept_owed = 0;
    for (size_t i = 0; i < npieces; i++) {
        skip = stream_took(&n, piece[i].iov_len);
        if (skip == piece[i].iov_len)
            continue;
        if (what == STREAM_PUT && i == 1)
            stream_keep_in_place(p, (char *)piece[i].iov_base + skip,
                                 piece[i].iov_len - skip);
        else
            stream_keep(p, (char *)piece[i].iov_base + skip,
                        piece[i].iov_len - skip);
    }
    if (!stream_is_sent(p))
        dtn_tcp_stream_want_write(tcp, p, true);
    return 0;
}

/* Send a frame, which may be kept and sent later. */
static int stream_send_frame(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                             const struct dtn_tcp_frame *frame,
                             const void *body)
{
    struct iovec piece[2] = { stream_piece(frame, sizeof *frame),
                              stream_piece(body, frame->size) };

    return stream_send_pieces(tcp, p, piece, 2, STREAM_CONTROL, 0);
}

static struct dtn_tcp_frame stream_put_frame(const struct dtn_tcp_peer *p,
                                             struct dtn_remote dst, size_t size)
{
    struct dtn_tcp_frame frame = stream_frame(p, DTN_TCP_PUT, size);

    frame.addr = dst.addr;
    frame.key = dst.key;
    return frame;
}

/* ------------------------------------------------------------- held put --- */

/* Send the held PUT, and after it the frame of a signal, if there is one. */
static int stream_send_held(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                            const struct dtn_tcp_frame *frame,
                            const struct dtn_signal *signal, int flags)
{
    const struct dtn_tcp_held *held = &tcp->held;
    const struct dtn_tcp_frame put = stream_put_frame(p, held->dst, held->size);
    struct iovec piece[4] = { stream_piece(&put, sizeof put),
                              stream_piece(held->src, held->size) };
    int rc;

    if (frame) {
        piece[2] = stream_piece(frame, sizeof *frame);
        piece[3] = stream_piece(signal, frame->size);
    }
    rc = stream_send_pieces(tcp, p, piece, frame ? 4 : 2, STREAM_PUT, flags);
    if (rc == 0)
        tcp->held.peer = NULL;
    return rc;
}

int dtn_tcp_stream_push(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    int rc = stream_push_kept(tcp, p);

    if (rc == 0 && tcp->held.peer == p)
        rc = stream_send_held(tcp, p, NULL, NULL, 0);
    if (rc == DTENSOR_EAGAIN)
        dtn_tcp_stream_want_write(tcp, p, true);
    if (rc != 0)
        return rc;
    if (stream_is_sent(p))
        dtn_tcp_stream_want_write(tcp, p, false);
    return p->state != DTN_TCP_UP ? DTENSOR_EPEER
         : stream_is_sent(p) ? 0 : DTENSOR_EAGAIN;
}

/* ----------------------------------------------------- puts and signals --- */

/* May a PUT or kept data begin?  Only one of them waits at a time; EAGAIN: one
 * waits.  The held PUT is sent first, with MSG_MORE, because this one follows.
 */
static int stream_ready(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    int rc = 0;

    if (stream_is_sent(p) && tcp->held.peer == p)
        rc = stream_send_held(tcp, p, NULL, NULL, MSG_MORE);
    if (rc == 0 && !stream_is_sent(p))
        rc = dtn_tcp_stream_push(tcp, p);
    return rc;
}

static int stream_put_ready(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                            struct dtn_remote dst)
{
    if (!dtn_tcp_stream_is_open(p))
        return DTENSOR_EPEER;
    if (dst.key == 0 || dst.key & DTN_KEY_DEVICE)
        return DTENSOR_EINVAL;
    return stream_ready(tcp, p);
}

/* Send the beginning of a PUT that is longer than a frame; *done: its bytes.
 * MSG_MORE: the rest follows.
 */
static int stream_put_long(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                           struct dtn_remote dst, const char *src, size_t size,
                           size_t *done)
{
    int rc = 0;

    while (rc == 0 && size - *done > DTN_TCP_PUT_MAX) {
        const struct dtn_tcp_frame frame = stream_put_frame(p, dst,
                                                            DTN_TCP_PUT_MAX);
        struct iovec piece[2] = { stream_piece(&frame, sizeof frame),
                                  stream_piece(src + *done, DTN_TCP_PUT_MAX) };

        rc = stream_send_pieces(tcp, p, piece, 2, STREAM_PUT, MSG_MORE);
        if (rc != 0)
            break;
        *done += DTN_TCP_PUT_MAX;
        dst.addr += DTN_TCP_PUT_MAX;
        rc = stream_put_ready(tcp, p, dst);
    }
    return rc;
}

int dtn_tcp_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                const void *src, size_t size, size_t *done)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];
    size_t moved = 0;
    int rc = stream_put_ready(tcp, p, dst);

    if (rc == 0 && tcp->held.peer)                /* of another peer          */
        dtn_tcp_stream_push(tcp, tcp->held.peer);
    if (rc == 0)
        rc = stream_put_long(tcp, p, dst, src, size, &moved);
    if (rc == 0 && size > 0 && !tcp->held.peer) {
        dst.addr += moved;
        tcp->held = (struct dtn_tcp_held){ p, dst, (const char *)src + moved,
                                           size - moved };
        moved = size;
    } else if (rc == 0 && moved == 0 && size > 0) {
        rc = DTENSOR_EAGAIN;
    }
    if (rc == DTENSOR_EPEER || (rc < 0 && moved == 0))
        return rc;
    *done = moved;
    return 0;
}

int dtn_tcp_flush(struct dtn_transport *tp, int peer)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];

    /* A peer that has everything may have finished and left. */
    if (stream_is_sent(p) && tcp->held.peer != p)
        return 0;
    return dtn_tcp_stream_is_open(p) ? dtn_tcp_stream_push(tcp, p)
                                     : DTENSOR_EPEER;
}

/* A PUT and a SIGNAL in one call of the system. */
static int stream_send_eager(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                             const struct dtn_tcp_frame *frame,
                             const struct dtn_signal *signal,
                             const struct dtn_eager *data)
{
    const struct dtn_tcp_frame put = stream_put_frame(p, data->dst, data->size);
    struct iovec piece[4] = { stream_piece(&put, sizeof put),
                              stream_piece(data->src, data->size),
                              stream_piece(frame, sizeof *frame),
                              stream_piece(signal, frame->size) };
    int rc = stream_put_ready(tcp, p, data->dst);

    return rc == 0 ? stream_send_pieces(tcp, p, piece, 4, STREAM_DATA, 0)
                   : rc;
}

/* A SIGNAL with data that the peer's transport keeps. */
static int stream_send_kept(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                            struct dtn_tcp_frame *frame,
                            const struct dtn_signal *signal,
                            const struct dtn_eager *data)
{
    struct iovec piece[3] = { stream_piece(frame, sizeof *frame),
                              stream_piece(signal, DTN_TCP_SIGNAL_BYTES),
                              stream_piece(data->src, data->size) };
    int rc;

    if (data->size > DTN_TCP_WINDOW - p->window_used)
        return DTENSOR_EAGAIN;
    frame->size += (uint32_t)data->size;
    rc = stream_ready(tcp, p);
    if (rc == 0)
        rc = stream_send_pieces(tcp, p, piece, 3, STREAM_DATA, 0);
    if (rc != 0)
        return rc;
    p->window_used += data->size;
    p->sent_data[p->sent % DTN_QUEUE_DEPTH] = (uint32_t)data->size;
    return 0;
}

/* The held PUT and a SIGNAL in one call of the system. */
static int stream_send_with_put(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                                const struct dtn_tcp_frame *frame,
                                const struct dtn_signal *signal)
{
    int rc = stream_push_kept(tcp, p);

    if (rc == DTENSOR_EAGAIN)
        dtn_tcp_stream_want_write(tcp, p, true);
    return rc == 0 ? stream_send_held(tcp, p, frame, signal, 0) : rc;
}

int dtn_tcp_signal(struct dtn_transport *tp, int peer,
                   const struct dtn_signal *signal,
                   const struct dtn_eager *data)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];
    struct dtn_tcp_frame frame;
    int rc;

    if (!dtn_tcp_stream_is_open(p))
        return DTENSOR_EPEER;
    if (p->sent - p->acked >= DTN_QUEUE_DEPTH)
        return DTENSOR_EAGAIN;
    frame = stream_frame(p, DTN_TCP_SIGNAL, DTN_TCP_SIGNAL_BYTES);
    p->sent_data[p->sent % DTN_QUEUE_DEPTH] = 0;
    rc = data && data->dst.key == 0
       ? stream_send_kept(tcp, p, &frame, signal, data)
       : data ? stream_send_eager(tcp, p, &frame, signal, data)
       : tcp->held.peer == p ? stream_send_with_put(tcp, p, &frame, signal)
       : stream_send_frame(tcp, p, &frame, signal);
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

/* --------------------------------------------------------------- credit --- */

/* Has this rank consumed so many quarters of what may be on its way to it from
 * this peer, and not said so?
 */
static bool stream_owes(const struct dtn_tcp_peer *p, unsigned quarters)
{
    return p->consumed - p->credited >= DTN_QUEUE_DEPTH / 4 * quarters ||
           p->kept_owed >= DTN_TCP_WINDOW / 4 * quarters;
}

static void stream_credit(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    struct dtn_tcp_frame frame;

    if (p->credited == p->consumed || !dtn_tcp_stream_is_open(p) ||
        !stream_is_sent(p))
        return;
    frame = stream_frame(p, DTN_TCP_CREDIT, 0);
    stream_send_frame(tcp, p, &frame, NULL);
}

void dtn_tcp_consume(struct dtn_transport *tp, int peer)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];
    const size_t kept = p->data[p->consumed % DTN_QUEUE_DEPTH].size;

    p->wanted.dst = NULL;
    p->wanted.found = false;
    p->kept_used -= kept;
    p->kept_owed += kept;
    p->consumed++;
    if (stream_owes(p, 3))
        stream_credit(tcp, p);
    tcp->owes_half |= stream_owes(p, 2);
    if (p->credited == p->consumed || p->owed)
        return;
    p->owed = true;
    p->next_owed = tcp->owed;
    tcp->owed = p;
}

void dtn_tcp_credit_all(struct dtn_tcp *tcp, unsigned quarters)
{
    struct dtn_tcp_peer *p = tcp->owed, *next;

    tcp->owed = NULL;
    tcp->owes_half = false;
    for (; p; p = next) {
        next = p->next_owed;
        if (stream_owes(p, quarters))
            stream_credit(tcp, p);
        p->owed = p->state == DTN_TCP_UP && p->credited != p->consumed;
        if (p->owed) {
            p->next_owed = tcp->owed;
            tcp->owed = p;
        }
        tcp->owes_half |= p->owed && stream_owes(p, 2);
    }
}
