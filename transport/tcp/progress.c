/* progress.c - progress on the sockets of all peers */
#include "base/wait.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#define CREDIT_IDLE_TURNS 4096    /* turns without events, then CREDIT        */
#define EVENTS 64                 /* sockets in one turn                      */
#define LINGER_NS INT64_C(1000000000)

/* A turn without events.  If half is owed, the peer may soon have to wait, so
 * it gets the CREDIT now.  Else it gets it after 1 to 4 ms without events.
 * After 10 us the next message often arrived while the CREDIT was being sent,
 * and had to wait.
 */
static void progress_credit(struct dtn_tcp *tcp)
{
    if (++tcp->idle_turns >= CREDIT_IDLE_TURNS) {
        tcp->idle_turns = 0;
        dtn_tcp_credit_all(tcp, 0);
    } else if (tcp->owes_half) {
        dtn_tcp_credit_all(tcp, 2);
    }
}

int dtn_tcp_progress(struct dtn_transport *tp)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    struct epoll_event events[EVENTS];
    int n;

    if (tcp->held.peer)
        dtn_tcp_stream_push(tcp, tcp->held.peer);
    n = epoll_wait(tcp->epoll, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        struct dtn_tcp_peer *p = events[i].data.ptr;

        if (p->state == DTN_TCP_UP && (events[i].events & EPOLLOUT))
            dtn_tcp_stream_push(tcp, p);
        if (p->state == DTN_TCP_UP && (events[i].events & ~(uint32_t)EPOLLOUT))
            dtn_tcp_stream_receive(tcp, p);
    }
    if (n == 0 && tcp->owed)
        progress_credit(tcp);
    else
        tcp->idle_turns = 0;
    return n >= 0 ? n > 0 : errno == EINTR ? 0 : DTENSOR_ESYS;
}

/* -------------------------------------------------------------- closing --- */

/* Has the host of this living peer not yet acknowledged all bytes? */
static bool stream_unsent(struct dtn_tcp *tcp, struct dtn_tcp_peer *p)
{
    int left = 0;

    if (!p || p->state != DTN_TCP_UP)
        return false;
    if (dtn_tcp_stream_push(tcp, p) == DTENSOR_EAGAIN)
        return true;
    /* The peer closes at the end of the stream, and so acknowledges at once. */
    return p->state == DTN_TCP_UP && shutdown(p->fd, SHUT_WR) == 0 &&
           ioctl(p->fd, SIOCOUTQ, &left) == 0 && left > 0;
}

/* If a frame of the peer, such as a CREDIT, arrives at a closed socket, the
 * kernel resets the connection and drops what was not sent yet.  So wait until
 * all was sent; usually it was, and this takes no time.
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
