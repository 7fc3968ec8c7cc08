/* sockets.c - connected pairs of sockets in memory, for the fuzzer
 *
 * As AF_UNIX streams that do not block: a send takes what there is room for; a
 * receive gets what has been sent, then EAGAIN or, when the other end is
 * closed, ECONNRESET once if that had bytes it had not read, and the end.
 * Descriptors sent along are not passed.  A descriptor that a run leaves open
 * ends the fuzzer some runs later, when there are no more.
 */
#include "tests/fuzz/kernel.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ENDS = 8, DESCRIPTORS = 32, CAPACITY = 208 << 10 };

struct end {
    struct end *peer;             /* NULL: closed                             */
    size_t from, to;              /* of the bytes that were sent to it        */
    int refs;                     /* descriptors; 0: free                     */
    bool reset;                   /* the peer was closed with bytes unread    */
    bool watched;                 /* epoll has it                             */
    unsigned char bytes[CAPACITY];
};

struct descriptor {
    struct end *end;              /* NULL: not a socket                       */
    bool epoll;
};

static struct end ends[ENDS];
static struct descriptor descriptors[DESCRIPTORS];

static struct descriptor *descriptor_of(int fd)
{
    return fd >= FUZZ_SOCKET_FD && fd < FUZZ_SOCKET_FD + DESCRIPTORS
         ? &descriptors[fd - FUZZ_SOCKET_FD] : NULL;
}

static struct end *end_of(int fd)
{
    const struct descriptor *d = descriptor_of(fd);

    return d ? d->end : NULL;
}

static int descriptor_make(struct descriptor is)
{
    for (int i = 0; i < DESCRIPTORS; i++)
        if (!descriptors[i].end && !descriptors[i].epoll) {
            descriptors[i] = is;
            if (is.end)
                is.end->refs++;
            return FUZZ_SOCKET_FD + i;
        }
    abort();
}

/* ------------------------------------------------------- open and close --- */

int __wrap_socketpair(int family, int type, int protocol, int fds[2]);
int __wrap_socketpair(int family, int type, int protocol, int fds[2])
{
    struct end *pair = ends;

    (void)family, (void)type, (void)protocol;
    while (pair->refs > 0 || pair[1].refs > 0)
        if ((pair += 2) == ends + ENDS)
            abort();
    for (int i = 0; i < 2; i++) {
        pair[i].from = pair[i].to = 0;
        pair[i].reset = pair[i].watched = false;
        pair[i].peer = &pair[1 - i];
        fds[i] = descriptor_make((struct descriptor){ .end = &pair[i] });
    }
    return 0;
}

int __real_dup(int fd);
int __wrap_dup(int fd);
int __wrap_dup(int fd)
{
    struct end *end = end_of(fd);

    return end ? descriptor_make((struct descriptor){ .end = end })
               : __real_dup(fd);
}

static void end_release(struct end *end)
{
    if (--end->refs > 0 || !end->peer)
        return;
    end->peer->reset = end->from < end->to;
    end->peer->peer = NULL;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    struct descriptor *d = descriptor_of(fd);

    if (!d)
        return fuzz_file_close(fd) ? 0 : __real_close(fd);
    if (!d->end && !d->epoll)
        abort();                  /* closed twice                             */
    if (d->end)
        end_release(d->end);
    *d = (struct descriptor){ .end = NULL };
    return 0;
}

/* ---------------------------------------------------------------- bytes --- */

static ssize_t fail(int code)
{
    errno = code;
    return -1;
}

static ssize_t end_send(struct end *end, const struct iovec *iov, size_t n)
{
    struct end *peer = end->peer;
    size_t sent = 0;

    if (!peer)
        return fail(EPIPE);
    if (peer->from > 0) {
        memmove(peer->bytes, peer->bytes + peer->from, peer->to - peer->from);
        peer->to -= peer->from;
        peer->from = 0;
    }
    if (peer->to == CAPACITY)
        return fail(EAGAIN);
    for (size_t i = 0; i < n; i++) {
        const size_t room = CAPACITY - peer->to, size = iov[i].iov_len;
        const size_t part = size < room ? size : room;

        if (part > 0)
            memcpy(peer->bytes + peer->to, iov[i].iov_base, part);
        peer->to += part;
        sent += part;
    }
    return (ssize_t)sent;
}

static ssize_t end_receive(struct end *end, const struct iovec *iov, size_t n)
{
    size_t got = 0;

    if (end->from == end->to) {
        if (end->reset) {
            end->reset = false;
            return fail(ECONNRESET);
        }
        return end->peer ? fail(EAGAIN) : 0;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t have = end->to - end->from, size = iov[i].iov_len;
        const size_t part = size < have ? size : have;

        if (part > 0)
            memcpy(iov[i].iov_base, end->bytes + end->from, part);
        end->from += part;
        got += part;
    }
    return (ssize_t)got;
}

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    struct end *end = end_of(fd);
    const struct iovec iov = { (void *)(uintptr_t)bytes, size };

    return end ? end_send(end, &iov, 1) : __real_send(fd, bytes, size, flags);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct end *end = end_of(fd);

    return end ? end_send(end, msg->msg_iov, msg->msg_iovlen)
               : __real_sendmsg(fd, msg, flags);
}

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
    struct end *end = end_of(fd);

    if (!end)
        return __real_recvmsg(fd, msg, flags);
    msg->msg_controllen = 0;
    msg->msg_flags = 0;
    return end_receive(end, msg->msg_iov, msg->msg_iovlen);
}

ssize_t __real_readv(int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
    struct end *end = end_of(fd);

    return end ? end_receive(end, iov, (size_t)n) : __real_readv(fd, iov, n);
}

/* ---------------------------------------------------------------- state --- */

int __real_poll(struct pollfd *polls, nfds_t n, int ms);
int __wrap_poll(struct pollfd *polls, nfds_t n, int ms);
int __wrap_poll(struct pollfd *polls, nfds_t n, int ms)
{
    const struct end *end = n == 1 ? end_of(polls->fd) : NULL;
    int is;

    if (!end)
        return __real_poll(polls, n, ms);
    is = (end->from < end->to || !end->peer ? POLLIN | POLLRDNORM : 0)
       | (!end->peer || end->peer->to - end->peer->from < CAPACITY ? POLLOUT
                                                                   : 0);
    polls->revents = (short)((is & polls->events)
                             | (end->peer ? 0 : POLLHUP)
                             | (end->reset ? POLLERR : 0));
    return polls->revents != 0;
}

int __real_getsockopt(int fd, int level, int name, void *value,
                      socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value,
                      socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value,
                      socklen_t *size)
{
    const struct ucred self = { getpid(), geteuid(), getegid() };

    if (!end_of(fd))
        return __real_getsockopt(fd, level, name, value, size);
    if (level != SOL_SOCKET || name != SO_PEERCRED || *size < sizeof self)
        return (int)fail(EOPNOTSUPP);
    memcpy(value, &self, sizeof self);
    return 0;
}

int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    (void)flags;
    return descriptor_make((struct descriptor){ .epoll = true });
}

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    struct end *end = end_of(fd);

    if (!end)
        return __real_epoll_ctl(epoll, op, fd, event);
    if (end->watched == (op == EPOLL_CTL_ADD))
        return (int)fail(end->watched ? EEXIST : ENOENT);
    end->watched = op != EPOLL_CTL_DEL;
    return 0;
}
