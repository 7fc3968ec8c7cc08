/* connect.c - connections between ranks
 *
 * Of two ranks the higher one connects and the lower one accepts, so each pair
 * has exactly one connection: 8 ranks that all talk to each other have 28, each
 * rank 7.
 *
 * The address of a rank includes a random key.  Only the ranks of this job know
 * it, because addresses are sealed when they are exchanged at the start.  The
 * rank that connects sends its number, random bytes, and a proof that it knows
 * the key of the other rank.  The answer proves the same for the connecting
 * rank's key and these random bytes.  A key is valid for one context, and each
 * rank connects with it once, so a recorded hello is useless.
 *
 * A port scanner, or a rank of an earlier job, has no proof.  Its connection is
 * closed after 2 s, or as soon as 64 newer ones wait without a proof.  A rank
 * whose connection is closed for that reason connects again.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/seal.h"
#include "base/wait.h"
#include "transport/keepalive.h"
#include "transport/loopback.h"
#include "transport/tcp/tcp.h"
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
#define GUESTS_AT_ONCE 4096       /* connections taken in one turn            */
#define ATTEMPTS 1000             /* to connect, if the other side closes     */

/* The first bytes on a connection, both ways. */
struct tcp_hello {
    uint64_t magic;
    uint32_t rank;                /* who speaks                               */
    uint32_t nranks;
    unsigned char nonce[DTN_SECRET_BYTES]; /* random, of who connects         */
    unsigned char proof[DTN_SECRET_BYTES]; /* of the fields before it         */
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

/* One keep-alive probe more than dead_after needs.  So if something was sent,
 * dtn_tcp_probe_silent() sees the silence first, and it has a better message.
 */
static void tcp_tune(const struct dtn_tcp *tcp, int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    dtn_keepalive(fd, tcp->conf, 1);
}

/* The side that connects proves that it has the key of the other side; the
 * answer proves that this side has its own key.
 */
static void hello_prove(const struct tcp_hello *hello, bool answer,
                        const unsigned char key[DTN_SECRET_BYTES],
                        unsigned char proof[DTN_SECRET_BYTES])
{
    dtn_secret_prove(proof, key, answer ? "tcp answer" : "tcp hello", hello,
                     offsetof(struct tcp_hello, proof));
}

/* 0, EAGAIN or EPEER.  A new connection takes these few bytes in one call,
 * unless it is broken.
 */
static int hello_send(const struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                      const struct dtn_tcp_address *to)
{
    const bool answer = p->rank > tcp->rank;
    struct tcp_hello hello = {
        .magic = DTN_TCP_MAGIC, .rank = (uint32_t)tcp->rank,
        .nranks = (uint32_t)tcp->nranks
    };
    ssize_t n;

    if (!answer && !dtn_secret_random(p->nonce, sizeof p->nonce))
        return DTENSOR_EAGAIN;
    memcpy(hello.nonce, p->nonce, sizeof hello.nonce);
    hello_prove(&hello, answer, answer ? tcp->key : to->key, hello.proof);
    n = send(p->fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && dtn_tcp_later())
        return DTENSOR_EAGAIN;
    return n == (ssize_t)sizeof hello ? 0 : DTENSOR_EPEER;
}

/* Read a hello and nothing after it, with a proof of this key.  Returns 0;
 * EAGAIN: it is not complete yet; EPEER: closed; EMISMATCH: no such hello.
 */
static int hello_receive(const struct dtn_tcp *tcp, int fd, bool answer,
                         const unsigned char key[DTN_SECRET_BYTES],
                         struct tcp_hello *hello)
{
    unsigned char proof[DTN_SECRET_BYTES];
    ssize_t n = recv(fd, hello, sizeof *hello, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && dtn_tcp_later())
        return DTENSOR_EAGAIN;
    if (n <= 0)
        return DTENSOR_EPEER;
    if (n < (ssize_t)sizeof *hello)
        return DTENSOR_EAGAIN;
    hello_prove(hello, answer, key, proof);
    if (hello->magic != DTN_TCP_MAGIC ||
        hello->nranks != (uint32_t)tcp->nranks ||
        hello->rank >= (uint32_t)tcp->nranks ||
        !dtn_secret_same(proof, hello->proof, sizeof proof))
        return DTENSOR_EMISMATCH;
    if (recv(fd, hello, sizeof *hello, MSG_DONTWAIT) < 0)
        return dtn_tcp_later() ? DTENSOR_EAGAIN : DTENSOR_EPEER;
    return 0;
}

static void guest_drop(struct dtn_tcp *tcp, int i)
{
    close(tcp->guests[i].fd);
    tcp->guests[i] = tcp->guests[--tcp->nguests];
}

/* Guest i has proved that it is of this job: it becomes the peer, unless that
 * has connected already.
 */
static void guest_settle(struct dtn_tcp *tcp, int i,
                         const struct tcp_hello *hello)
{
    const int rank = (int)hello->rank;
    struct dtn_tcp_peer *p = rank > tcp->rank ? tcp_peer_get(tcp, rank) : NULL;

    if (!p || p->state != DTN_TCP_NEW || p->fd >= 0) {
        dtn_log(tcp->log, DTN_LOG_DEBUG, "tcp: dropped a hello of rank %d, "
                "which has connected", rank);
        guest_drop(tcp, i);
        return;
    }
    p->fd = tcp->guests[i].fd;
    memcpy(p->nonce, hello->nonce, sizeof p->nonce);
    tcp_tune(tcp, p->fd);
    tcp->guests[i] = tcp->guests[--tcp->nguests];
}

/* Read the hello of guest i. */
static void guest_hear(struct dtn_tcp *tcp, int i, int64_t now)
{
    struct tcp_hello hello;
    int rc = hello_receive(tcp, tcp->guests[i].fd, false, tcp->key, &hello);

    if (rc == 0) {
        guest_settle(tcp, i, &hello);
    } else if (rc != DTENSOR_EAGAIN
               || now - tcp->guests[i].since_ns >= HELLO_NS) {
        dtn_log(tcp->log, DTN_LOG_DEBUG, "tcp: dropped a connection %s",
                rc == DTENSOR_EMISMATCH ? "without a proof of this job"
                                        : "that said nothing");
        guest_drop(tcp, i);
    }
}

/* Make room for one more guest: the one that has been silent longest goes. */
static void guest_evict(struct dtn_tcp *tcp)
{
    int oldest = 0;

    if (tcp->nguests < DTN_TCP_GUESTS)
        return;
    for (int i = 1; i < tcp->nguests; i++)
        if (tcp->guests[i].since_ns < tcp->guests[oldest].since_ns)
            oldest = i;
    guest_drop(tcp, oldest);
}

/* Take all connections that wait, and read what they say.  False, with errno:
 * there is no descriptor for one more, and no guest that may free one.
 */
static bool guests_accept(struct dtn_tcp *tcp)
{
    int64_t now = dtn_now_ns();
    int fd = -1;

    for (int i = tcp->nguests - 1; i >= 0; i--)
        guest_hear(tcp, i, now);
    for (int n = 0; n < GUESTS_AT_ONCE; n++) {
        fd = accept4(tcp->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        guest_evict(tcp);
        tcp->guests[tcp->nguests++] =
            (struct dtn_tcp_guest){ fd, dtn_now_ns() };
        guest_hear(tcp, tcp->nguests - 1, now);
    }
    return fd >= 0 || tcp->nguests > 0 || (errno != EMFILE && errno != ENFILE);
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
    char name[DTN_TCP_NAME_MAX];

    if (dtn_is_loopback((const struct sockaddr *)&address->at) &&
        !dtn_is_loopback((const struct sockaddr *)&tcp->address))
        return dtn_fail_rank(err, DTENSOR_ESYS, p->rank, "tcp: rank %d listens "
                             "at %s, which only its own host reaches (take the "
                             "name of that host out of that line of /etc/hosts "
                             "there)", p->rank,
                             dtn_tcp_address_name(&address->at, name));
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

/* The other side closed before it answered: it has died, and the next attempt
 * is refused; or this connection was among too many strangers.
 */
static int connect_again(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                         const struct dtn_tcp_address *address,
                         struct dtensor_error *err)
{
    if (++p->attempts >= ATTEMPTS)
        return connect_failed(tcp, p, address, 0, err);
    close(p->fd);
    p->fd = -1;
    p->state = DTN_TCP_NEW;
    return DTENSOR_EAGAIN;
}

/* The answer is of nobody who knows the key of the rank. */
static int connect_unproved(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                            const struct dtn_tcp_address *address,
                            struct dtensor_error *err)
{
    char name[DTN_TCP_NAME_MAX];

    dtn_tcp_stream_kill(tcp, p);
    return dtn_fail_rank(err, DTENSOR_EPEER, p->rank, "tcp: what answers at %s "
                         "does not prove that it is rank %d (did another "
                         "process take its port?)",
                         dtn_tcp_address_name(&address->at, name), p->rank);
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
    rc = hello_send(tcp, p, address);
    if (rc == DTENSOR_EAGAIN)
        return rc;
    if (rc != 0)
        return connect_again(tcp, p, address, err);
    p->state = DTN_TCP_GREETED;
    return 0;
}

/* Read the answer. */
static int connect_hear(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                        const struct dtn_tcp_address *address,
                        struct dtensor_error *err)
{
    struct tcp_hello hello;
    int rc = hello_receive(tcp, p->fd, true, address->key, &hello);

    if (rc == DTENSOR_EPEER)
        return connect_again(tcp, p, address, err);
    if (rc == 0 && (hello.rank != (uint32_t)p->rank ||
                    !dtn_secret_same(hello.nonce, p->nonce,
                                     sizeof hello.nonce)))
        rc = DTENSOR_EMISMATCH;
    return rc == DTENSOR_EMISMATCH ? connect_unproved(tcp, p, address, err)
                                   : rc;
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
        if (!guests_accept(tcp) && p->fd < 0)
            return dtn_fail_sys(err, errno, "tcp: cannot accept the connection "
                                "of rank %d: %m (see ulimit -n)", p->rank);
        if (p->fd < 0)
            return DTENSOR_EAGAIN;
        rc = hello_send(tcp, p, address);
        if (rc == DTENSOR_EPEER)
            return connect_failed(tcp, p, address, 0, err);
    } else {
        rc = connect_hear(tcp, p, address, err);
    }
    if (rc != 0)
        return rc;
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
