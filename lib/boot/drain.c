/* drain.c - sends the outcome of a round to the children
 *
 * A rank that knows the outcome of a round ends the round when the sockets of
 * its children have taken the outcome.  In a job of 4,096 ranks the outcome has
 * 900 KB for each child, more than a socket buffer holds.
 *
 * A child may be stopped at this time, or its host may be off.  The other
 * children, which have the outcome, may have joined and expect heartbeats from
 * this rank.  So this rank waits for a child that takes nothing for at most
 * dead_after.  Then it sends it nothing more and goes on.  In the next round
 * this child is missing; after the last round it is found stopped, like any
 * other process (watch.c).
 */
#include "boot/drain.h"
#include "base/error.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

bool dtn_boot_drain_waits(const struct dtn_boot *boot)
{
    return boot->failure.code != 0 && boot->seq == 0 && !boot->expired
        && boot->narrived < boot->nexpected;
}

/* The first rank of a host may look for other hosts for some time, and then
 * print the error.  A launcher ends all ranks when one has ended, so the others
 * of the host must not be earlier.
 */
bool dtn_boot_drain_follows(const struct dtn_boot *boot)
{
    struct pollfd up = { boot->up.link.io.fd, 0, 0 };

    return boot->state == DTN_BOOT_DRAINING && boot->unfit && boot->seq == 0
        && dtn_boot_tree_leader(boot, boot->rank) != boot->rank && up.fd >= 0
        && poll(&up, 1, 0) == 0;
}

/* A child has not read its answer, long after the deadline. */
static void drain_late(struct dtn_boot *boot)
{
    char name[DTN_HOST_MAX + 32];

    for (int i = 0; i < boot->nchildren && boot->failure.code == 0; i++)
        if (boot->children[i].io.out)
            dtn_fail_rank(&boot->failure, DTENSOR_ETIME,
                          boot->children[i].rank, "boot: %s does not read what "
                          "is sent to it (is it stuck or stopped?)",
                          dtn_boot_rank_name(boot, boot->children[i].rank,
                                             name, sizeof name));
}

/* Do the children take more of the answer? */
static bool drain_moves(struct dtn_boot *boot, int64_t now)
{
    uint64_t sent = 0;

    for (int i = 0; i < boot->nchildren; i++)
        sent += boot->children[i].io.sent;
    if (sent != boot->drained) {
        boot->drained = sent;
        boot->drained_ns = now;
    }
    return now - boot->drained_ns < boot->cluster->transport.dead_after_ns;
}

/* After the end of the stream the next flush drops what is not sent. */
static void drain_drop(struct dtn_boot *boot)
{
    for (int i = 0; i < boot->nchildren; i++)
        if (boot->children[i].io.out)
            shutdown(boot->children[i].io.fd, SHUT_WR);
}

void dtn_boot_drain_look(struct dtn_boot *boot, bool sent, int64_t now)
{
    if (sent && !dtn_boot_drain_waits(boot) && !dtn_boot_drain_follows(boot)) {
        boot->state = DTN_BOOT_OVER;
    } else if (now >= boot->until_ns) {
        drain_late(boot);
        boot->state = DTN_BOOT_OVER;
    } else if (boot->failure.code == 0 && !drain_moves(boot, now)) {
        drain_drop(boot);
    }
}

int64_t dtn_boot_drain_wake(const struct dtn_boot *boot)
{
    return boot->state == DTN_BOOT_DRAINING && boot->failure.code == 0
         ? boot->drained_ns + boot->cluster->transport.dead_after_ns
         : INT64_MAX;
}
