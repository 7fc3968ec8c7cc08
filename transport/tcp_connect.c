/* tcp_connect.c - connections between ranks
 *
 * Of two ranks the higher connects and the lower accepts, so each pair gets
 * exactly one connection: 8 ranks that all talk to each other have 28, each
 * rank 7.
 *
 * The rank that connects first sends which rank it is and 16 random bytes from
 * the address of the other, which only the ranks of this job know.  The answer
 * has those of its own address.  A port scanner, or a rank of an earlier job,
 * does not know them, and its connection is closed after 2 s at the latest.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/wait.h"
#include "transport/keepalive.h"
#include "transport/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO_NS INT64_C(2000000000)     /* time to send the first bytes     */

/* The first bytes on a connection, both ways. */
struct tcp_hello {
    uint64_t magic;
    uint32_t rank;                /* who speaks                               */
    uint32_t nranks;
    unsigned char cookie[DTN_TCP_COOKIE_BYTES]; /* of who is spoken to */
};

static struct dtn_tcp_peer *tcp_peer_get(struct dtn_tcp *tcp, int rank)
{
    struct dtn_tcp_peer *p = tcp->peers[rank];

    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (p) {
        p->rank = rank;
        p->fd = p->probe = -1;
        tcp->peers[rank] = p;
    }
    return p;
}

/* One keep-alive probe more than dead_after needs: dtn_tcp_probe_silent() sees
 * the silence first, if something was sent, and has a better message.
 */
static void tcp_tune(const struct dtn_tcp *tcp, int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    dtn_keepalive(fd, tcp->conf, 1);
}

/* 0, EAGAIN or EPEER.  A new connection takes so few bytes at once, or is
 * broken.
 */
static int hello_send(const struct dtn_tcp *tcp, int fd,
                      const struct dtn_tcp_address *to)
{
    struct tcp_hello hello = {
        .magic = DTN_TCP_MAGIC, .rank = (uint32_t)tcp->rank,
        .nranks = (uint32_t)tcp->nranks
    };
    ssize_t n;

    memcpy(hello.cookie, to->cookie, sizeof hello.cookie);
    n = send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && dtn_tcp_later())
        return DTENSOR_EAGAIN;
    return n == (ssize_t)sizeof hello ? 0 : DTENSOR_EPEER;
}

/* Read a hello for this rank and nothing after it.  Returns the rank of its
 * sender; EAGAIN: it is not complete yet; EPEER: it is not a hello for us.
 */
static int hello_receive(const struct dtn_tcp *tcp, int fd)
{
    struct tcp_hello hello;
    ssize_t n = recv(fd, &hello, sizeof hello, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && dtn_tcp_later())
        return DTENSOR_EAGAIN;
    if (n <= 0)
        return DTENSOR_EPEER;
    if (n < (ssize_t)sizeof hello)
        return DTENSOR_EAGAIN;
    if (hello.magic != DTN_TCP_MAGIC || hello.nranks != (uint32_t)tcp->nranks ||
        hello.rank >= (uint32_t)tcp->nranks ||
        memcmp(hello.cookie, tcp->cookie, sizeof hello.cookie) != 0)
        return DTENSOR_EPEER;
    if (recv(fd, &hello, sizeof hello, MSG_DONTWAIT) < 0)
        return dtn_tcp_later() ? DTENSOR_EAGAIN : DTENSOR_EPEER;
    return (int)hello.rank;
}

/* Guest i becomes the peer of that rank, or its connection is closed. */
static void guest_settle(struct dtn_tcp *tcp, int i, int rank)
{
    int fd = tcp->guests[i].fd;
    struct dtn_tcp_peer *p = rank > tcp->rank ? tcp_peer_get(tcp, rank) : NULL;

    tcp->guests[i] = tcp->guests[--tcp->nguests];
    if (!p || p->state != DTN_TCP_NEW || p->fd >= 0) {
        close(fd);
        return;
    }
    tcp_tune(tcp, fd);
    p->fd = fd;
}

/* Read the hellos of the guests.  Others are disconnected, and so are the
 * silent.
 */
static void guests_hear(struct dtn_tcp *tcp)
{
    int64_t now = dtn_now_ns();
    int rank;

    for (int i = tcp->nguests - 1; i >= 0; i--) {
        rank = hello_receive(tcp, tcp->guests[i].fd);
        if (rank == DTENSOR_EAGAIN &&
            now - tcp->guests[i].since_ns < HELLO_NS)
            continue;
        if (rank < 0)
            dtn_log(tcp->log, DTN_LOG_DEBUG, "tcp: dropped a connection that "
                    "is of no rank of this job");
        guest_settle(tcp, i, rank);
    }
}

/* Connections beyond DTN_TCP_GUESTS stay in the backlog of the listener. */
static void guests_accept(struct dtn_tcp *tcp)
{
    int fd;

    while (tcp->nguests < DTN_TCP_GUESTS) {
        fd = accept4(tcp->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        tcp->guests[tcp->nguests++] =
            (struct dtn_tcp_guest){ fd, dtn_now_ns() };
    }
    guests_hear(tcp);
}

static int connect_failed(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                          const struct dtn_tcp_address *address, int sys_errno,
                          struct dtensor_error *err)
{
    char name[DTN_TCP_NAME_MAX];

    dtn_tcp_stream_kill(tcp, p);
    dtn_tcp_address_name(&address->at, name);
    if (sys_errno == 0 || sys_errno == ECONNREFUSED ||
        sys_errno == ECONNRESET || sys_errno == EPIPE)
        return dtn_fail_rank(err, DTENSOR_EPEER, p->rank, "tcp: rank %d at %s "
                             "closed before it was connected", p->rank, name);
    return dtn_fail_sys(err, sys_errno, "tcp: cannot connect to rank %d at %s:"
                        " %m (is a firewall in between?)", p->rank, name);
}

static int connect_begin(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                         const struct dtn_tcp_address *address,
                         struct dtensor_error *err)
{
    p->fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC |
                                          SOCK_NONBLOCK, 0);
    if (p->fd < 0)
        return dtn_fail_sys(err, errno, "tcp: cannot make a socket for rank "
                            "%d: %m (see ulimit -n)", p->rank);
    tcp_tune(tcp, p->fd);
    if (connect(p->fd, (const struct sockaddr *)&address->at,
                address->size) < 0 && errno != EINPROGRESS && errno != EINTR)
        return connect_failed(tcp, p, address, errno, err);
    p->state = DTN_TCP_CONNECTING;
    return 0;
}

/* Send the hello, if the connection is made. */
static int connect_greet(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                         const struct dtn_tcp_address *address,
                         struct dtensor_error *err)
{
    struct pollfd poll_fd = { .fd = p->fd, .events = POLLOUT };
    int failed = 0, rc;
    socklen_t size = sizeof failed;

    if (poll(&poll_fd, 1, 0) <= 0)
        return DTENSOR_EAGAIN;
    if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0)
        failed = errno;
    if (failed != 0)
        return connect_failed(tcp, p, address, failed, err);
    rc = hello_send(tcp, p->fd, address);
    if (rc == DTENSOR_EAGAIN)
        return rc;
    if (rc != 0)
        return connect_failed(tcp, p, address, 0, err);
    p->state = DTN_TCP_GREETED;
    return 0;
}

/* One step towards DTN_TCP_UP, on either side. */
static int connect_step(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                        const struct dtn_tcp_address *address,
                        struct dtensor_error *err)
{
    int rc;

    if (p->state == DTN_TCP_CONNECTING)
        return connect_greet(tcp, p, address, err);
    if (p->state == DTN_TCP_NEW && p->rank < tcp->rank)
        return connect_begin(tcp, p, address, err);
    if (p->state == DTN_TCP_NEW) {
        guests_accept(tcp);
        if (p->fd < 0)
            return DTENSOR_EAGAIN;
        rc = hello_send(tcp, p->fd, address);
    } else {
        rc = hello_receive(tcp, p->fd);
        if (rc == p->rank)
            rc = 0;
        else if (rc >= 0)
            rc = DTENSOR_EPEER;
    }
    if (rc == DTENSOR_EAGAIN)
        return rc;
    if (rc != 0)
        return connect_failed(tcp, p, address, 0, err);
    if (dtn_tcp_stream_start(tcp, p) < 0)
        return connect_failed(tcp, p, address, errno, err);
    return 0;
}

int dtn_tcp_connect(struct dtn_transport *tp, int peer,
                       const struct dtn_blob *blob, struct dtensor_error *err)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct dtn_tcp_peer *p = tcp_peer_get(tcp, peer);
    struct dtn_tcp_address address;
    int rc = 0;

    if (!p)
        return dtn_fail_nomem(err, "tcp", sizeof *p);
    memcpy(&address, blob->bytes, sizeof address);
    if (blob->size != sizeof address || address.magic != DTN_TCP_MAGIC ||
        address.size > sizeof address.at)
        return dtn_fail_rank(err, DTENSOR_ESYS, peer, "tcp: the address of "
                             "rank %d makes no sense (is it of the same "
                             "version?)", peer);
    if (p->state == DTN_TCP_DEAD)
        return dtn_fail_rank(err, DTENSOR_EPEER, peer, "tcp: rank %d closed "
                             "its connection", peer);
    p->at = address.at;
    p->at_size = address.size;
    while (rc == 0 && p->state != DTN_TCP_UP)
        rc = connect_step(tcp, p, &address, err);
    if (rc == 0)
        dtn_tcp_probe_close(p);
    return rc;
}

void dtn_tcp_deafen(struct dtn_tcp *tcp)
{
    for (int i = 0; i < tcp->nguests; i++)
        close(tcp->guests[i].fd);
    tcp->nguests = 0;
    if (tcp->listener >= 0)
        close(tcp->listener);
    tcp->listener = -1;
}
