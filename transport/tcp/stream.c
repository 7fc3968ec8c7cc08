/* stream.c - the socket of a connected peer: watched, closed */
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

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
    dtn_tcp_stream_release(tcp, p);
}

bool dtn_tcp_stream_is_open(const struct dtn_tcp_peer *p)
{
    return p->state == DTN_TCP_UP && !p->send_failed;
}

void dtn_tcp_stream_want_write(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                               bool want)
{
    if (want == p->wants_write)
        return;
    p->wants_write = want;
    if (stream_watch(tcp, p, EPOLL_CTL_MOD) < 0)
        dtn_tcp_stream_kill(tcp, p);
}
