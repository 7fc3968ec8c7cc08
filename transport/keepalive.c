/* keepalive.c - TCP keep-alive finds a host that is gone
 *
 * On an idle connection the kernel sends a probe every `heartbeat`, and gives
 * the peer up if it has not answered for `dead_after`.  With 1s and 10s the
 * first probe is sent after 1 s without data, and the peer is dead 10 probes
 * later.  The kernel counts whole seconds, so times are rounded up, and sends
 * at most 127 probes.  Heartbeats find such a host sooner (lib/boot).  The
 * peer's kernel answers the probes.  So they find a host without power or
 * network, but not a process that is stopped.
 */
#include "transport/keepalive.h"
#include "cluster/cluster.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>

enum { IDLE_MAX_S = 32767, PROBES_MAX = 127 };    /* of Linux                 */

/* The unit of keep-alive: rounded up, at least 1. */
static int whole_seconds(int64_t ns)
{
    const int64_t s = INT64_C(1000000000);

    return ns <= s ? 1 : ns > IDLE_MAX_S * s ? IDLE_MAX_S
                                             : (int)((ns + s - 1) / s);
}

void dtn_keepalive(int fd, const struct dtn_transport_conf *conf, int more)
{
    int dead_s = whole_seconds(conf->dead_after_ns);
    int idle_s = whole_seconds(conf->heartbeat_ns), count;
    const int most = PROBES_MAX - more;

    if (idle_s < (dead_s + most - 1) / most)
        idle_s = (dead_s + most - 1) / most;
    count = (dead_s + idle_s - 1) / idle_s + more;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}
