/* frame.c - frames on a stream socket, as they come and go
 *
 * The head of a frame (head.c) is checked before memory is allocated for its
 * body.  What a stranger may send is read into the stream itself.  A read never
 * goes beyond the end of a frame, so the descriptors that come with its bytes
 * belong to it.  Linux passes at most 253 descriptors in one message: 1000 are
 * sent in four batches, and each batch but the last goes with one byte of the
 * frame.
 *
 * A sealed frame is the same head and body, each with 16 bytes more, so no
 * length is believed that the other side has not sealed.
 */
#include "boot/frame.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SCM_BATCH 250             /* descriptors in one message               */

struct dtn_frame_out {
    struct dtn_frame_out *next;
    size_t sent;
    size_t size;
    const unsigned char *body;
    int fds_sent;
    int nfds;
    int *fds;
    size_t head_size;
    unsigned char head[DTN_FRAME_HEAD_BYTES + DTN_SEAL_BYTES];
};

void dtn_frame_init(struct dtn_frame_stream *s, int fd, bool local)
{
    memset(s, 0, sizeof *s);
    s->fd = fd;
    s->local = local;
}

static void stream_drop_out(struct dtn_frame_stream *s)
{
    struct dtn_frame_out *out;

    while ((out = s->out)) {
        s->out = out->next;
        free(out);
    }
    s->out_last = NULL;
}

/* Drop the frame that was returned, and its parts that nobody has taken. */
static void stream_recycle(struct dtn_frame_stream *s)
{
    for (int i = 0; i < s->in.nfds; i++)
        close(s->fds[i]);
    free(s->fds);
    free(s->body);
    s->fds = NULL;
    s->body = NULL;
    s->in.nfds = 0;
    s->got = 0;
    s->whole = false;
}

void dtn_frame_close(struct dtn_frame_stream *s)
{
    stream_drop_out(s);
    stream_recycle(s);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->broken = s->stalled = false;
}

unsigned char *dtn_frame_take_body(struct dtn_frame_stream *s)
{
    unsigned char *body = s->body;

    s->body = NULL;
    return body;
}

void dtn_frame_take_fds(struct dtn_frame_stream *s)
{
    s->in.nfds = 0;
}

/* -------------------------------------------------------------- reading --- */

void dtn_frame_seal(struct dtn_frame_stream *s,
                    const unsigned char out_key[DTN_SECRET_BYTES],
                    const unsigned char in_key[DTN_SECRET_BYTES])
{
    memcpy(s->out_seal.key, out_key, DTN_SECRET_BYTES);
    memcpy(s->in_seal.key, in_key, DTN_SECRET_BYTES);
    s->sealed = true;
}

/* What sealing adds to so many bytes. */
static size_t stream_extra(const struct dtn_frame_stream *s, size_t size)
{
    return s->sealed && size > 0 ? DTN_SEAL_BYTES : 0;
}

static size_t stream_head_size(const struct dtn_frame_stream *s)
{
    return DTN_FRAME_HEAD_BYTES + stream_extra(s, DTN_FRAME_HEAD_BYTES);
}

bool dtn_frame_refused(const struct dtn_frame_stream *s, uint32_t *reason)
{
    const struct dtn_frame_stream plain = {
        .accepts = DTN_FRAME_BIT(DTN_FRAME_REFUSED) };
    struct dtn_frame frame;

    if (!s->sealed || s->got < sizeof s->raw ||
        dtn_frame_parse(&plain, s->raw, &frame) != DTN_FRAME_READY)
        return false;
    *reason = dtn_frame_get32(s->raw + DTN_FRAME_HEAD_BYTES);
    return true;
}

/* Keep the n descriptors of one message; in.nfds counts those of the frame so
 * far.  Descriptors above the limit are closed.
 */
static enum dtn_frame_got stream_keep_fds(struct dtn_frame_stream *s,
                                          const unsigned char *data, int n)
{
    int have = s->in.nfds;
    int *fds = NULL;

    if (n <= s->fds_max - have)
        fds = realloc(s->fds, (size_t)(have + n) * sizeof *fds);
    if (!fds) {
        for (int i = 0, fd; i < n; i++) {
            memcpy(&fd, data + (size_t)i * sizeof fd, sizeof fd);
            close(fd);
        }
        return n > s->fds_max - have ? DTN_FRAME_GARBAGE : DTN_FRAME_NOMEM;
    }
    memcpy(fds + have, data, (size_t)n * sizeof *fds);
    s->fds = fds;
    s->in.nfds = have + n;
    return DTN_FRAME_READY;
}

static enum dtn_frame_got stream_keep_control(struct dtn_frame_stream *s,
                                              struct msghdr *msg)
{
    enum dtn_frame_got got = DTN_FRAME_READY;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        enum dtn_frame_got one;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        one = stream_keep_fds(s, CMSG_DATA(c),
                              (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)));
        if (one != DTN_FRAME_READY)
            got = one;
    }
    return got == DTN_FRAME_READY && msg->msg_flags & MSG_CTRUNC
               ? DTN_FRAME_NOFDS
               : got;
}

/* Read until the frame has `want` bytes; `at` is where the next one goes. */
static enum dtn_frame_got stream_fill(struct dtn_frame_stream *s,
                                      unsigned char *at, size_t want)
{
    /* Room for more than the kernel passes at once, so that only the process's
     * own limit can cut the descriptors.
     */
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(256 * sizeof(int))];
    } control;

    while (s->got < want) {
        struct iovec iov = { at, want - s->got };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
        enum dtn_frame_got got;
        ssize_t n;

        if (s->local) {
            msg.msg_control = &control;
            msg.msg_controllen = sizeof control;
        }
        n = recvmsg(s->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return DTN_FRAME_MORE;
        if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
            return DTN_FRAME_NOMEM;
        if (n <= 0)
            return DTN_FRAME_CLOSED;
        s->got += (size_t)n;
        at += n;
        got = stream_keep_control(s, &msg);
        if (got != DTN_FRAME_READY)
            return got;
    }
    return DTN_FRAME_READY;
}

/* The types that a stranger may send. */
static bool frame_is_early(enum dtn_frame_type type)
{
    return type == DTN_FRAME_KNOCK || type == DTN_FRAME_PROOF ||
           type == DTN_FRAME_HELLO;
}

/* The head is complete: open and check it, and make room for the body. */
static enum dtn_frame_got stream_begin_body(struct dtn_frame_stream *s)
{
    enum dtn_frame_got got;
    struct dtn_frame in;

    if (!s->sealed)
        memcpy(s->head, s->raw, sizeof s->head);
    else if (!dtn_unseal(&s->in_seal, s->head, s->raw, sizeof s->head))
        return DTN_FRAME_GARBAGE;
    got = dtn_frame_parse(s, s->head, &in);
    if (got != DTN_FRAME_READY)
        return got;
    in.nfds = s->in.nfds;
    s->in = in;
    if (frame_is_early(in.type))
        return DTN_FRAME_READY;
    s->body = malloc(in.size + (size_t)DTN_SEAL_BYTES + 1);
    return s->body ? DTN_FRAME_READY : DTN_FRAME_NOMEM;
}

/* Read the body, and open it. */
static enum dtn_frame_got stream_fill_body(struct dtn_frame_stream *s)
{
    unsigned char *body = s->body ? s->body : s->early;
    size_t head = stream_head_size(s), size = s->in.size;
    enum dtn_frame_got got;

    got = stream_fill(s, body + (s->got - head),
                      head + size + stream_extra(s, size));
    if (got != DTN_FRAME_READY)
        return got;
    if (stream_extra(s, size) > 0 && !dtn_unseal(&s->in_seal, body, body, size))
        return DTN_FRAME_GARBAGE;
    s->in.body = body;
    return DTN_FRAME_READY;
}

enum dtn_frame_got dtn_frame_recv(struct dtn_frame_stream *s,
                                  struct dtn_frame *frame)
{
    enum dtn_frame_got got;

    if (s->fd < 0)
        return DTN_FRAME_MORE;
    if (s->whole)
        stream_recycle(s);
    if (s->got < stream_head_size(s)) {
        got = stream_fill(s, s->raw + s->got, stream_head_size(s));
        if (got == DTN_FRAME_READY)
            got = stream_begin_body(s);
        if (got != DTN_FRAME_READY)
            return got;
    }
    got = stream_fill_body(s);
    if (got != DTN_FRAME_READY)
        return got;
    if ((uint32_t)s->in.nfds != dtn_frame_get32(s->head + 12))
        return DTN_FRAME_GARBAGE;
    s->in.fds = s->fds;
    s->whole = true;
    *frame = s->in;
    return DTN_FRAME_READY;
}

/* -------------------------------------------------------------- writing --- */

/* Write the head; on a sealed stream seal it and the copy of the body. */
static void out_finish(struct dtn_frame_stream *s, struct dtn_frame_out *out,
                       const struct dtn_frame *frame, unsigned char *copy)
{
    dtn_frame_head(out->head, frame);
    out->head_size = stream_head_size(s);
    if (!s->sealed)
        return;
    dtn_seal(&s->out_seal, out->head, out->head, DTN_FRAME_HEAD_BYTES);
    if (frame->size > 0)
        dtn_seal(&s->out_seal, copy, copy, frame->size);
}

bool dtn_frame_post(struct dtn_frame_stream *s, const struct dtn_frame *frame,
                    bool borrow)
{
    size_t nfds = (size_t)frame->nfds;
    size_t size = frame->size + stream_extra(s, frame->size);
    size_t copied = borrow && !s->sealed ? 0 : size;
    struct dtn_frame_out *out;
    unsigned char *copy;

    if (s->fd < 0 || s->broken)
        return true;
    out = malloc(sizeof *out + nfds * sizeof(int) + copied);
    if (!out)
        return false;
    out->next = NULL;
    out->sent = 0;
    out->size = size;
    out->fds_sent = 0;
    out->nfds = frame->nfds;
    out->fds = (int *)(out + 1);
    copy = (unsigned char *)(out->fds + nfds);
    if (nfds > 0)
        memcpy(out->fds, frame->fds, nfds * sizeof(int));
    if (copied > 0)
        memcpy(copy, frame->body, frame->size);
    out->body = copied > 0 || size == 0 ? copy : frame->body;
    out_finish(s, out, frame, copy);
    if (s->out)
        s->out_last->next = out;
    else
        s->out = out;
    s->out_last = out;
    return true;
}

/* Put the next batch of descriptors into msg; returns their number. */
static int out_add_fds(const struct dtn_frame_out *out, struct msghdr *msg)
{
    int left = out->nfds - out->fds_sent;
    int n = left < SCM_BATCH ? left : SCM_BATCH;
    size_t bytes = (size_t)n * sizeof(int);
    struct cmsghdr *c;

    if (n == 0) {
        msg->msg_control = NULL;
        msg->msg_controllen = 0;
        return 0;
    }
    msg->msg_controllen = CMSG_SPACE(bytes);
    memset(msg->msg_control, 0, msg->msg_controllen);
    c = CMSG_FIRSTHDR(msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), out->fds + out->fds_sent, bytes);
    return n;
}

/* One sendmsg() of the oldest frame: bytes sent, or -1 with errno. */
static ssize_t out_send(struct dtn_frame_stream *s, struct dtn_frame_out *out)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SCM_BATCH * sizeof(int))];
    } control;
    size_t head = out->sent < out->head_size ? out->head_size - out->sent : 0;
    size_t skip = head ? 0 : out->sent - out->head_size;
    struct iovec iov[2] = {
        { out->head + out->head_size - head, head },
        { (void *)(uintptr_t)(out->body + skip), out->size - skip }
    };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2,
                          .msg_control = &control };
    int batch = out_add_fds(out, &msg);
    ssize_t n;

    if (out->fds_sent + batch < out->nfds) {
        if (head == 0)
            iov[0] = iov[1];
        iov[0].iov_len = 1;
        msg.msg_iovlen = 1;
    }
    n = sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        s->sent += (uint64_t)n;
        out->sent += (size_t)n;
        out->fds_sent += batch;
    }
    return n;
}

enum dtn_frame_got dtn_frame_flush(struct dtn_frame_stream *s)
{
    s->stalled = false;
    while (s->fd >= 0 && s->out) {
        struct dtn_frame_out *out = s->out;

        if (out_send(s, out) < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                return DTN_FRAME_MORE;
            s->stalled = errno == ETOOMANYREFS || errno == ENOBUFS;
            if (s->stalled)
                return DTN_FRAME_MORE;
            s->broken = true;
            stream_drop_out(s);
            return DTN_FRAME_CLOSED;
        }
        if (out->sent < out->head_size + out->size)
            continue;
        s->out = out->next;
        free(out);
    }
    return DTN_FRAME_READY;
}
