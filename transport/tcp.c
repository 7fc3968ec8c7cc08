/* tcp.c - ranks that share nothing but a network
 *
 * Each rank listens on its host's address, at a port the system picks, and
 * tells the others.  Connections are made when first needed: of two ranks the
 * higher connects and the lower accepts, so that each pair gets exactly one.
 * 8 ranks that all talk to each other have 28 connections, 7 per rank.
 *
 * Whoever connects first says which rank it is and repeats 16 random bytes
 * from our address, which only ranks of this job were told; the answer
 * repeats those of its own.  A port scanner, or a rank of yesterday's job,
 * knows neither and is dropped after 2 s at the latest.  What passes
 * afterwards is in tcp_stream.c.
 */
#include "transport/tcp.h"
#include "base/error.h"
#include "base/log.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "transport/keepalive.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define TCP_MAGIC UINT64_C(0x6474656e74637031)    /* "dtentcp1" */
#define TCP_HELLO_NS INT64_C(2000000000)
#define TCP_NAME_MAX (INET6_ADDRSTRLEN + 8)

/* The first bytes on a connection, both ways. */
struct tcp_hello {
    uint64_t magic;
    uint32_t rank;                /* who speaks                               */
    uint32_t nranks;
    unsigned char cookie[DTN_TCP_COOKIE_BYTES]; /* of who is spoken to */
};

struct tcp_address {
    uint64_t magic;
    unsigned char cookie[DTN_TCP_COOKIE_BYTES];
    uint32_t size;
    struct sockaddr_storage at;
};

static struct dtn_tcp *tcp_of(const struct dtn_transport *tp)
{
    return (struct dtn_tcp *)(uintptr_t)tp;
}

/* "10.0.0.1:4711" */
static const char *address_name(const struct sockaddr_storage *at, char *buf)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)at;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;
    char host[INET6_ADDRSTRLEN] = "?";

    if (at->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(buf, TCP_NAME_MAX, "[%s]:%d", host, ntohs(in6->sin6_port));
    } else {
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(buf, TCP_NAME_MAX, "%s:%d", host, ntohs(in->sin_port));
    }
    return buf;
}

/* ------------------------------------------------------- open and close --- */

static bool tcp_reaches(const struct dtn_place *a, const struct dtn_place *b)
{
    return true;
}

static int tcp_resolve(struct dtn_tcp *tcp, const char *host,
                       struct dtensor_error *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    int rc = getaddrinfo(host, NULL, &hints, &found);

    if (rc != 0)
        return dtn_fail(err, DTENSOR_ESYS, "tcp: cannot resolve %s, the "
                        "address of rank %d: %s (see /etc/hosts, or give an "
                        "IP address in the cluster file)", host, tcp->rank,
                        gai_strerror(rc));
    memcpy(&tcp->address, found->ai_addr, found->ai_addrlen);
    tcp->address_size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* Listen at any free port of that address. */
static int tcp_listen(struct dtn_tcp *tcp, const char *host,
                      struct dtensor_error *err)
{
    struct sockaddr *at = (struct sockaddr *)&tcp->address;
    char name[TCP_NAME_MAX];

    tcp->listener = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC |
                                          SOCK_NONBLOCK, 0);
    if (tcp->listener < 0)
        return dtn_fail_sys(err, errno, "tcp: cannot make a socket: %m "
                            "(see ulimit -n)");
    if (bind(tcp->listener, at, tcp->address_size) < 0 ||
        listen(tcp->listener, SOMAXCONN) < 0 ||
        getsockname(tcp->listener, at, &tcp->address_size) < 0)
        return dtn_fail_sys(err, errno, "tcp: rank %d cannot listen at %s: %m "
                            "(is this the host that the cluster file calls "
                            "%s? see ip addr)", tcp->rank,
                            address_name(&tcp->address, name), host);
    dtn_log(tcp->log, DTN_LOG_DEBUG, "tcp: listening at %s",
            address_name(&tcp->address, name));
    return 0;
}

static int tcp_prepare(struct dtn_tcp *tcp, const char *host,
                       struct dtensor_error *err)
{
    int rc = tcp_resolve(tcp, host, err);

    if (rc == 0)
        rc = tcp_listen(tcp, host, err);
    if (rc < 0)
        return rc;
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->epoll < 0)
        return dtn_fail_sys(err, errno, "tcp: cannot make an epoll: %m "
                            "(see ulimit -n)");
    if (getrandom(tcp->cookie, sizeof tcp->cookie, 0) !=
        (ssize_t)sizeof tcp->cookie)
        return dtn_fail_sys(err, errno, "tcp: getrandom: %m");
    return 0;
}

/* Whoever knocks from now on is refused, and knows. */
static void tcp_deafen(struct dtn_tcp *tcp)
{
    for (int i = 0; i < tcp->nguests; i++)
        close(tcp->guests[i].fd);
    tcp->nguests = 0;
    if (tcp->listener >= 0)
        close(tcp->listener);
    tcp->listener = -1;
}

static void tcp_close(struct dtn_transport *tp)
{
    struct dtn_tcp *tcp = tcp_of(tp);

    dtn_tcp_stream_linger(tcp);
    tcp_deafen(tcp);
    for (int r = 0; r < tcp->nranks; r++) {
        if (tcp->peers[r])
            dtn_tcp_probe_close(tcp->peers[r]);
        if (tcp->peers[r] && tcp->peers[r]->fd >= 0)
            close(tcp->peers[r]->fd);
        free(tcp->peers[r]);
    }
    if (tcp->epoll >= 0)
        close(tcp->epoll);
    free(tcp->regions);
    free(tcp);
}

static int tcp_open(const struct dtn_open_args *args,
                    struct dtn_transport **tpp, struct dtensor_error *err)
{
    size_t size = sizeof(struct dtn_tcp) +
                  (size_t)args->nranks * sizeof(struct dtn_tcp_peer *);
    struct dtn_tcp *tcp = calloc(1, size);
    int rc;

    if (!tcp)
        return dtn_fail_nomem(err, "tcp", size);
    tcp->base.ops = &dtn_tcp_ops;
    tcp->base.row_bytes = DTN_TCP_ROW_BYTES;
    tcp->log = args->log;
    tcp->nranks = args->nranks;
    tcp->rank = args->rank;
    tcp->listener = tcp->epoll = -1;
    tcp->first_free = -1;
    tcp->conf = args->conf;
    tcp->dead_after_s = dtn_whole_seconds(args->conf->dead_after_ns);
    rc = tcp_prepare(tcp, args->places[args->rank].address, err);
    if (rc < 0) {
        tcp_close(&tcp->base);
        return rc;
    }
    *tpp = &tcp->base;
    return 0;
}

static void tcp_address(const struct dtn_transport *tp, struct dtn_blob *blob)
{
    const struct dtn_tcp *tcp = tcp_of(tp);
    struct tcp_address address = {
        .magic = TCP_MAGIC, .size = tcp->address_size, .at = tcp->address
    };

    memcpy(address.cookie, tcp->cookie, sizeof address.cookie);
    memcpy(blob->bytes, &address, sizeof address);
    blob->size = sizeof address;
    blob->fd = -1;
}

/* -------------------------------------------------------------- connect --- */

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

/* One probe more than dead_after needs: data that was sent and not acknowledged
 * for that time is found sooner, with a better error (dtn_tcp_probe_silent()).
 */
static void tcp_tune(const struct dtn_tcp *tcp, int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    dtn_keepalive(fd, tcp->conf, 1);
}

/* 0, EAGAIN or EPEER: a connection this young takes that little at once, or is
 * broken.
 */
static int hello_send(const struct dtn_tcp *tcp, int fd,
                      const struct tcp_address *to)
{
    struct tcp_hello hello = {
        .magic = TCP_MAGIC, .rank = (uint32_t)tcp->rank,
        .nranks = (uint32_t)tcp->nranks
    };
    ssize_t n;

    memcpy(hello.cookie, to->cookie, sizeof hello.cookie);
    n = send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && dtn_tcp_later())
        return DTENSOR_EAGAIN;
    return n == (ssize_t)sizeof hello ? 0 : DTENSOR_EPEER;
}

/* Read a hello that is meant for us, and no byte more: the speaker's rank,
 * EAGAIN while it is not all there, EPEER if it is none.
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
    if (hello.magic != TCP_MAGIC || hello.nranks != (uint32_t)tcp->nranks ||
        hello.rank >= (uint32_t)tcp->nranks ||
        memcmp(hello.cookie, tcp->cookie, sizeof hello.cookie) != 0)
        return DTENSOR_EPEER;
    if (recv(fd, &hello, sizeof hello, MSG_DONTWAIT) < 0)
        return dtn_tcp_later() ? DTENSOR_EAGAIN : DTENSOR_EPEER;
    return (int)hello.rank;
}

/* Let guest i in as the peer it says it is, or throw it out. */
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

/* Hear what the guests say; strangers and the silent have to go. */
static void guests_hear(struct dtn_tcp *tcp)
{
    int64_t now = dtn_now_ns();
    int rank;

    for (int i = tcp->nguests - 1; i >= 0; i--) {
        rank = hello_receive(tcp, tcp->guests[i].fd);
        if (rank == DTENSOR_EAGAIN &&
            now - tcp->guests[i].since_ns < TCP_HELLO_NS)
            continue;
        if (rank < 0)
            dtn_log(tcp->log, DTN_LOG_DEBUG, "tcp: dropped a connection that "
                    "is of no rank of this job");
        guest_settle(tcp, i, rank);
    }
}

/* Who finds no chair waits in the listener's queue. */
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
                          const struct tcp_address *address, int sys_errno,
                          struct dtensor_error *err)
{
    char name[TCP_NAME_MAX];

    dtn_tcp_stream_kill(tcp, p);
    address_name(&address->at, name);
    if (sys_errno == 0 || sys_errno == ECONNREFUSED ||
        sys_errno == ECONNRESET || sys_errno == EPIPE)
        return dtn_fail_rank(err, DTENSOR_EPEER, p->rank, "tcp: rank %d at %s "
                             "closed before it was connected", p->rank, name);
    return dtn_fail_sys(err, sys_errno, "tcp: cannot connect to rank %d at %s:"
                        " %m (is a firewall in between?)", p->rank, name);
}

static int connect_begin(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                         const struct tcp_address *address,
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

/* The connection is there, or is not: greet. */
static int connect_greet(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                         const struct tcp_address *address,
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

/* One step of either side toward DTN_TCP_UP. */
static int connect_step(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                        const struct tcp_address *address,
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

static int tcp_connect(struct dtn_transport *tp, int peer,
                       const struct dtn_blob *blob, struct dtensor_error *err)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct dtn_tcp_peer *p = tcp_peer_get(tcp, peer);
    struct tcp_address address;
    int rc = 0;

    if (!p)
        return dtn_fail_nomem(err, "tcp", sizeof *p);
    memcpy(&address, blob->bytes, sizeof address);
    if (blob->size != sizeof address || address.magic != TCP_MAGIC ||
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

static void *tcp_map(struct dtn_transport *tp, int peer,
                     struct dtn_remote remote)
{
    return NULL;
}

/* ------------------------------------------------------ death and abort --- */

static int tcp_health(struct dtn_transport *tp, int peer, int *culprit,
                      int *code)
{
    struct dtn_tcp *tcp = tcp_of(tp);
    struct dtn_tcp_peer *p = tcp->peers[peer];

    if (!p)
        return 0;
    if (p->state == DTN_TCP_UP)
        dtn_tcp_stream_receive(tcp, p);
    else if (p->state == DTN_TCP_NEW && p->fd < 0 && dtn_tcp_probe_refused(p))
        dtn_tcp_stream_kill(tcp, p);
    if (p->state == DTN_TCP_UP && !p->aborted && dtn_tcp_probe_silent(tcp, p)) {
        p->silent = true;
        dtn_tcp_stream_kill(tcp, p);
    }
    if (p->aborted) {
        *culprit = p->abort_culprit;
        *code = p->abort_code;
        return DTENSOR_EABORT;
    }
    return p->state == DTN_TCP_DEAD ? DTENSOR_EPEER : 0;
}

static void tcp_abort(struct dtn_transport *tp, int culprit, int code)
{
    struct dtn_tcp *tcp = tcp_of(tp);

    for (int r = 0; r < tcp->nranks; r++)
        if (tcp->peers[r] && tcp->peers[r]->state < DTN_TCP_GREETED)
            dtn_tcp_stream_kill(tcp, tcp->peers[r]);
        else if (tcp->peers[r])
            dtn_tcp_stream_abort(tcp, tcp->peers[r], culprit, code);
    tcp_deafen(tcp);
}

static void tcp_why(const struct dtn_transport *tp, int peer, char *buf,
                    size_t size)
{
    const struct dtn_tcp *tcp = (const struct dtn_tcp *)tp;
    const struct dtn_tcp_peer *p = tcp->peers[peer];

    *buf = '\0';
    if (!p || p->state != DTN_TCP_DEAD)
        return;
    if (p->silent)
        snprintf(buf, size, "its host answers nothing for %d s",
                 tcp->dead_after_s);
    else
        snprintf(buf, size, p->sent > 0 || p->received > 0
                            ? "its connection closed"
                            : "it closed before it was connected");
}

const struct dtn_transport_ops dtn_tcp_ops = {
    .name = "tcp",
    .reaches = tcp_reaches,
    .open = tcp_open,
    .close = tcp_close,
    .address = tcp_address,
    .connect = tcp_connect,
    .reg = dtn_tcp_reg,
    .unreg = dtn_tcp_unreg,
    .adopt = dtn_adopt_any,
    .disown = dtn_disown_any,
    .map = tcp_map,
    .fetch = dtn_fetch_none,
    .put = dtn_tcp_put,
    .flush = dtn_tcp_flush,
    .signal = dtn_tcp_signal,
    .room = dtn_tcp_room,
    .peek = dtn_tcp_peek,
    .consume = dtn_tcp_consume,
    .progress = dtn_tcp_progress,
    .health = tcp_health,
    .abort = tcp_abort,
    .why = tcp_why,
};
