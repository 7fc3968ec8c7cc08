/* tcp.c - ranks that share nothing but a network
 *
 * Each rank listens on its host's address, at a port that the system chooses,
 * and tells the others.  Connections are made when they are first needed
 * (tcp/connect.c).  Puts and signals are frames on a stream (tcp/send.c,
 * tcp/receive.c).
 */
#include "transport/tcp/tcp.h"
#include "base/error.h"
#include "base/log.h"
#include "base/seal.h"
#include "base/sparse.h"
#include "cluster/cluster.h"
#include "transport/keepalive.h"
#include "transport/loopback.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ------------------------------------------------------- open and close --- */

/* The first address of this host, if it can be one that others reach. */
static int tcp_resolve(struct dtn_tcp *tcp, const char *host,
                       struct dtensor_error *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found, *best;
    int rc = getaddrinfo(host, NULL, &hints, &found);

    if (rc != 0)
        return dtn_fail(err, DTENSOR_ESYS, "tcp: cannot resolve %s, the "
                        "address of rank %d: %s (see /etc/hosts, or give an "
                        "IP address in the cluster file)", host, tcp->rank,
                        gai_strerror(rc));
    for (best = found; best && dtn_is_loopback(best->ai_addr);)
        best = best->ai_next;
    best = best ? best : found;
    memcpy(&tcp->address, best->ai_addr, best->ai_addrlen);
    tcp->address_size = best->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* Listen at any free port of that address. */
static int tcp_listen(struct dtn_tcp *tcp, const char *host,
                      struct dtensor_error *err)
{
    struct sockaddr *at = (struct sockaddr *)&tcp->address;
    char name[DTN_TCP_NAME_MAX];

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
                            dtn_tcp_address_name(&tcp->address, name), host);
    dtn_log(tcp->log, DTN_LOG_DEBUG, "tcp: listening at %s",
            dtn_tcp_address_name(&tcp->address, name));
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
    if (!dtn_secret_random(tcp->key, sizeof tcp->key))
        return dtn_fail_sys(err, errno, "tcp: getrandom: %m");
    return 0;
}

static void tcp_close(struct dtn_transport *tp)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);

    dtn_tcp_stream_linger(tcp);
    dtn_tcp_deafen(tcp);
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
    dtn_sparse_free(tcp->peers, (size_t)tcp->nranks, sizeof tcp->peers[0]);
    free(tcp);
}

static int tcp_open(const struct dtn_open_args *args,
                    struct dtn_transport **tpp, struct dtensor_error *err)
{
    struct dtn_tcp *tcp = calloc(1, sizeof *tcp);
    int rc;

    if (tcp)
        tcp->peers = dtn_sparse_new((size_t)args->nranks,
                                    sizeof tcp->peers[0]);
    if (!tcp || !tcp->peers) {
        free(tcp);
        return dtn_fail_nomem(err, "tcp", sizeof *tcp);
    }
    tcp->base.ops = &dtn_tcp_ops;
    tcp->base.row_bytes = DTN_TCP_ROW_BYTES;
    tcp->log = args->log;
    tcp->nranks = args->nranks;
    tcp->rank = args->rank;
    tcp->listener = tcp->epoll = -1;
    tcp->first_free = -1;
    tcp->conf = args->conf;
    tcp->dead_after_ms = args->conf->dead_after_ns / 1000000;
    rc = dtn_tcp_regions_make(tcp)
       ? tcp_prepare(tcp, args->address, err)
       : dtn_fail_nomem(err, "tcp", sizeof *tcp->regions);
    if (rc < 0) {
        tcp_close(&tcp->base);
        return rc;
    }
    *tpp = &tcp->base;
    return 0;
}

static void tcp_address(const struct dtn_transport *tp, struct dtn_blob *blob)
{
    const struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct dtn_tcp_address address = {
        .magic = DTN_TCP_MAGIC, .size = tcp->address_size, .at = tcp->address
    };

    memcpy(address.key, tcp->key, sizeof address.key);
    memcpy(blob->bytes, &address, sizeof address);
    blob->size = sizeof address;
    blob->fd = -1;
}

/* ------------------------------------------------------ death and abort --- */

static int tcp_health(struct dtn_transport *tp, int peer, int *culprit,
                      int *code)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
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
    struct dtn_tcp *tcp = dtn_tcp_of(tp);

    for (int r = 0; r < tcp->nranks; r++)
        if (tcp->peers[r] && tcp->peers[r]->state < DTN_TCP_GREETED)
            dtn_tcp_stream_kill(tcp, tcp->peers[r]);
        else if (tcp->peers[r])
            dtn_tcp_stream_abort(tcp, tcp->peers[r], culprit, code);
    dtn_tcp_deafen(tcp);
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
        snprintf(buf, size, "its host answers nothing for %lld ms",
                 (long long)tcp->dead_after_ms);
    else
        snprintf(buf, size, p->sent > 0 || p->received > 0
                            ? "its connection closed"
                            : "it closed before it was connected");
}

const struct dtn_transport_ops dtn_tcp_ops = {
    .name = "tcp",
    .open = tcp_open,
    .close = tcp_close,
    .address = tcp_address,
    .connect = dtn_tcp_connect,
    .reg = dtn_tcp_reg,
    .unreg = dtn_tcp_unreg,
    .put = dtn_tcp_put,
    .flush = dtn_tcp_flush,
    .signal = dtn_tcp_signal,
    .peek = dtn_tcp_peek,
    .kept_max = DTN_KEPT_MAX,
    .kept = dtn_tcp_kept,
    .expect = dtn_tcp_expect,
    .consume = dtn_tcp_consume,
    .progress = dtn_tcp_progress,
    .health = tcp_health,
    .abort = tcp_abort,
    .why = tcp_why,
};
