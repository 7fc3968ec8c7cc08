/* delivery.c - whether packets pass between two hosts, by the kernel's counters
 *
 * All packets of node2 are lost, and those of node1 arrive.  node1 reports that
 * it receives nothing, but node2 does not get the report: without
 * acknowledgements the kernel of node1 sends no new data, only its oldest
 * packet again.  The kernel of node2 drops each copy, and counts it
 * (tcpi_segs_in):
 *
 *     node1 --- beat 7, beat 7, beat 7 ---> node2      segments in: 31, 32, 33
 *           x-------- acknowledgements ----            retransmits: 2, 3, 3
 *
 * So node2 knows that node1 runs and receives nothing from node2.
 */
#include "boot/delivery.h"
#include "boot/state.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define MS INT64_C(1000000)

/* So many retransmissions of one packet without an acknowledgement: after the
 * first, the acknowledgement may still be under way.
 */
enum { UNANSWERED = 2 };

/* Counters that an old kernel does not have are 0. */
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

    if (!delivery_info(link, &info) || info.tcpi_retransmits < UNANSWERED)
        link->segments_first = link->segments = 0;
    else if (link->segments_first == 0)
        link->segments_first = link->segments = info.tcpi_segs_in;
    else
        link->segments = info.tcpi_segs_in;
}

bool dtn_delivery_one_way(const struct dtn_boot_link *link)
{
    return link->segments != link->segments_first;
}
