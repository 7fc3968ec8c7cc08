/* probe.c - is the peer still there?
 *
 * No packet reports that a host lost power.  The kernel's keep-alive detects
 * this on an idle connection.  But while bytes are unacknowledged the kernel
 * only sends them again, for 15 minutes.  So a rank that waits asks the kernel
 * how long ago the peer's last acknowledgement arrived.  If the peer's process
 * is only stopped, its kernel still acknowledges.
 *
 * There may be no connection yet: of two ranks the higher one connects, when it
 * first needs the other.  But the higher rank has a listener, which is closed
 * when it gives up, leaves or dies; then its host refuses connections at once.
 * So a rank that waits tries to connect after 1 ms, 20, 40, ... then once a
 * second, and closes each such connection at once.  A dead peer is known within
 * a second.  A peer that computes for ten minutes finds 600 connections to
 * drop.
 */
#include "base/wait.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#define PROBE_FIRST_NS INT64_C(20000000)
#define PROBE_LAST_NS INT64_C(1000000000)

/* Begin an attempt.  Returns 0, or an errno if it failed at once. */
static int probe_start(struct dtn_tcp_peer *p)
{
    p->probe_pause_ns = p->probe_pause_ns ? 2 * p->probe_pause_ns
                                          : PROBE_FIRST_NS;
    if (p->probe_pause_ns > PROBE_LAST_NS)
        p->probe_pause_ns = PROBE_LAST_NS;
    p->probe = socket(p->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC |
                                       SOCK_NONBLOCK, 0);
    if (p->probe < 0)
        return 0;                 /* try again later                          */
    if (connect(p->probe, (const struct sockaddr *)&p->at, p->at_size) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return 0;
    return errno;
}

void dtn_tcp_probe_close(struct dtn_tcp_peer *p)
{
    if (p->probe >= 0)
        close(p->probe);
    p->probe = -1;
}

bool dtn_tcp_probe_refused(struct dtn_tcp_peer *p)
{
    struct pollfd answer = { .events = POLLOUT };
    int64_t now = dtn_now_ns();
    int failed = 0;
    socklen_t size = sizeof failed;

    if (p->at_size == 0 || (p->probe < 0 && now < p->probe_next_ns))
        return false;
    if (p->probe < 0) {
        failed = probe_start(p);
        if (failed == 0)
            return false;
    } else {
        answer.fd = p->probe;
        if (poll(&answer, 1, 0) <= 0)
            return false;
        getsockopt(p->probe, SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    dtn_tcp_probe_close(p);
    p->probe_next_ns = now + p->probe_pause_ns;
    return failed == ECONNREFUSED;
}

bool dtn_tcp_probe_silent(const struct dtn_tcp *tcp,
                          const struct dtn_tcp_peer *p)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    return getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0
        && info.tcpi_unacked > 0 && info.tcpi_retransmits > 0
        && info.tcpi_last_ack_recv > tcp->dead_after_ms;
}
