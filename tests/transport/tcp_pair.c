/* tcp_pair.c - a connection of the tcp transport whose peer is the test */
#include "tests/transport/tcp_pair.h"
#include "base/log.h"
#include "transport/tcp/tcp.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp_pair pair;

void pair_open(void)
{
    static struct dtn_tcp_peer *peers[2];
    static struct dtn_log quiet;
    struct dtn_tcp *tcp = calloc(1, sizeof *tcp);
    struct dtn_tcp_peer *peer = calloc(1, sizeof *peer);
    int fds[2];

    if (!tcp || !peer || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
                                    fds) < 0)
        exit(99);
    peers[1] = peer;
    tcp->peers = peers;
    tcp->nranks = 2;
    tcp->log = &quiet;
    tcp->listener = -1;
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    peer->rank = 1;
    peer->fd = fds[0];
    peer->probe = -1;
    if (dtn_tcp_stream_start(tcp, peer) != 0)
        exit(99);
    pair = (struct tcp_pair){ .tcp = tcp, .peer = peer, .far = fds[1] };
}

void pair_close(void)
{
    dtn_tcp_stream_kill(pair.tcp, pair.peer);
    close(pair.far);
    close(pair.tcp->epoll);
    free(pair.peer);
    free(pair.tcp);
}

void pair_arrive(const void *bytes, size_t size)
{
    if (send(pair.far, bytes, size, 0) != (ssize_t)size)
        exit(99);
    dtn_tcp_stream_receive(pair.tcp, pair.peer);
}
