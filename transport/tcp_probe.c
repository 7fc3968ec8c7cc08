/* tcp_probe.c - is the peer that is to connect to us still there?
 *
 * Of two ranks the higher connects, when it comes to it; the lower waits, and
 * if the higher is gone there is no connection to tell.  But the higher has a
 * listener too, which it closes when it gives up or leaves, and its kernel
 * when it dies: knocking there is refused at once.  Whoever waits knocks after
 * 1 ms, 20, 40, ... then once a second, and hangs up: of a peer that computes
 * for ten minutes 600 dead connections wait to be swept, of a dead one the
 * rank knows within a second.
 */
#include "transport/tcp.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define PROBE_FIRST_NS INT64_C(20000000)
#define PROBE_LAST_NS INT64_C(1000000000)

/* Knock; the answer if there is one already: 0 or an errno. */
static int probe_start(struct tcp_peer *p)
{
    p->probe_pause_ns = p->probe_pause_ns ? 2 * p->probe_pause_ns
                                          : PROBE_FIRST_NS;
    if (p->probe_pause_ns > PROBE_LAST_NS)
        p->probe_pause_ns = PROBE_LAST_NS;
    p->probe = socket(p->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC |
                                       SOCK_NONBLOCK, 0);
    if (p->probe < 0)
        return 0;                 /* another time                             */
    if (connect(p->probe, (const struct sockaddr *)&p->at, p->at_size) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return 0;
    return errno;
}

void tcp_probe_close(struct tcp_peer *p)
{
    if (p->probe >= 0)
        close(p->probe);
    p->probe = -1;
}

bool tcp_probe_refused(struct tcp_peer *p)
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
    tcp_probe_close(p);
    p->probe_next_ns = now + p->probe_pause_ns;
    return failed == ECONNREFUSED;
}
