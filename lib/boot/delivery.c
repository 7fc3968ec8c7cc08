/* delivery.c - whether packets pass, by the kernel's counters
 *
 * A host whose packets are all lost still hears the other host.  What the other
 * has to say does not reach it, though: without acknowledgements a kernel sends
 * nothing new, only its oldest packet again.  The receiving kernel drops that
 * as a duplicate, but it counts it (tcpi_segs_in):
 *
 *     node1 --- beat 7, beat 7, beat 7 ---> node2      segments in: 31, 32, 33
 *           x-------- acknowledgements ----            retransmits: 2, 3, 3
 *
 * So node2 knows that node1 runs and does not hear it.
 */
#include "boot/delivery.h"
#include "boot/state.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define MS INT64_C(1000000)

/* The first packet that is sent again may only have been lost. */
enum { SENT_AGAIN = 2 };

/* What an old kernel does not count is 0. */
static bool delivery_info(const struct dtn_boot_link *link,
                          struct tcp_info *info)
{
    socklen_t size = sizeof *info;

    *info = (struct tcp_info){ 0 };
    return getsockopt(link->io.fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

bool dtn_delivery_answered(const struct dtn_boot_link *link, int64_t within_ns)
{
    struct tcp_info info;

    return delivery_info(link, &info) && info.tcpi_retransmits == 0
        && info.tcpi_last_ack_recv * MS < within_ns;
}

void dtn_delivery_count(struct dtn_boot_link *link)
{
    struct tcp_info info;

    if (!delivery_info(link, &info) || info.tcpi_retransmits < SENT_AGAIN)
        link->came_before = link->came = 0;
    else if (link->came_before == 0)
        link->came_before = link->came = info.tcpi_segs_in;
    else
        link->came = info.tcpi_segs_in;
}

bool dtn_delivery_one_way(const struct dtn_boot_link *link)
{
    return link->came != link->came_before;
}
