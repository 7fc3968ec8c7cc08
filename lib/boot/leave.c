/* leave.c - a rank leaves the job after the ranks below it in the tree
 *
 * Ranks 0, 1 and 2 are on three hosts.  Rank 0 was the root of the last
 * broadcast and is done.  Rank 1 still waits for rank 2, whose host loses power
 * now.  Only rank 0 receives rank 2's heartbeats; rank 1 hears of rank 2 only
 * through rank 0. If rank 0 had left, rank 1 would wait until op_timeout.
 *
 * So the leader of a host stays until the ranks of its host and the leaders
 * below it have left.  Those leaders wait for the ranks below them in the same
 * way.  If all ranks make the same calls, this takes a millisecond.  Meanwhile
 * the leader sends heartbeats and forwards news.  A rank need not stay if it
 * has failed itself, because it has told the ranks below it.  A rank that hears
 * nothing from a host below it waits for the verdict.
 *
 * A rank that knows who is lost stays until the leaders next to it have given
 * up or left, and 50 ms after a loss, but for four heartbeats at most.  One of
 * them may be dead without its kernel having said so.  The ranks behind it
 * connect when they know (repair.c), and hear from this one whom all name.
 */
#include "boot/leave.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/bypass.h"
#include "boot/late.h"
#include "boot/state.h"
#include "boot/watch.h"
#include "cluster/cluster.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NAP_FIRST_NS 50000
#define NAP_LAST_NS 5000000
#define CALLS_NS (50 * DTN_BOOT_MS)
enum { LAST_BEATS = 4 };

/* Does a rank that runs hear through this one? */
static bool leave_below(const struct dtn_boot *boot)
{
    for (int i = 0; i < boot->nchildren; i++) {
        const struct dtn_boot_link *link = &boot->children[i];

        if (link->state == DTN_LINK_JOINED
            && boot->peer_failures[link->rank].loss == DTN_LOSS_NONE)
            return true;
    }
    return false;
}

/* Is a leader connected that may not know yet who is lost? */
static bool leave_untold(const struct dtn_boot *boot,
                         const struct dtn_boot_link *link)
{
    return link->state == DTN_LINK_JOINED && !link->io.local
        && boot->peer_failures[link->rank].order == 0;
}

/* Does a neighbour not know yet that a rank is lost?  It may be lost itself,
 * and who is behind it connects when it knows.
 */
static bool leave_unknown(const struct dtn_boot *boot)
{
    const int64_t now = dtn_now_ns();
    const int64_t end = boot->peer_failures[boot->rank].heard_ns
        + LAST_BEATS * boot->cluster->transport.heartbeat_ns;
    bool waits = dtn_late_busy(boot) || leave_untold(boot, &boot->up.link);

    for (int i = 0; i < boot->nchildren; i++)
        waits = waits || leave_untold(boot, &boot->children[i]);
    for (int r = 0; r < boot->cluster->world_size; r++)
        waits = waits
            || (boot->peer_failures[r].loss != DTN_LOSS_NONE
                && now < boot->peer_failures[r].heard_ns + CALLS_NS);
    return waits && now < end;
}

static bool leave_stays(struct dtn_boot *boot)
{
    bool stays;

    dtn_boot_tend(boot);
    dtn_boot_hold(boot);
    if (dtn_boot_first_loss(boot) >= 0)
        stays = boot->nhosts > 1 && leave_unknown(boot);
    else
        stays = boot->peer_failures[boot->rank].code == 0
             && (leave_below(boot) || dtn_bypass_undecided(boot));
    dtn_boot_release(boot);
    return stays;
}

void dtn_boot_leave(struct dtn_boot *boot)
{
    const int64_t end = dtn_now_ns()
                      + boot->cluster->transport.op_timeout_ns;
    struct timespec nap = { 0, NAP_FIRST_NS };

    dtn_boot_report_failure(boot, boot->rank, 0,
                            &(struct dtn_mismatch) { .rank = 0 });
    while (boot->watching && leave_stays(boot) && dtn_now_ns() < end) {
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < NAP_LAST_NS)
            nap.tv_nsec *= 2;
    }
}
