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
 * the leader sends heartbeats and forwards news; if it is lost, it is found as
 * any other rank.  A rank need not stay if it has failed itself, because it has
 * told the ranks below it.  A rank that hears nothing from a host below it
 * waits for the verdict.
 *
 * A rank that knows who is lost stays until the leaders next to it have given
 * up or left, and 50 ms after a loss, but for four heartbeats at most.  One of
 * them may be dead without its kernel having said so.  The ranks behind it
 * connect when they know (repair.c), and hear from this one whom all name.
 *
 * It stays for longer, up to dead_after, while it is in doubt of a leader: one
 * whose heartbeats are late, or whose parent is lost and that would have
 * connected to this host by now.  Ranks 1 and 3 of eight hosts are killed, and
 * the kernel of rank 3 is late to say so.  All but rank 7 name rank 1.  Rank 7
 * has no way to them but rank 3; when it knows, it connects to rank 0, which is
 * there because rank 3 has not connected.
 */
#include "boot/leave.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/bypass.h"
#include "boot/late.h"
#include "boot/news.h"
#include "boot/pulse.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/verdict.h"
#include "boot/watch.h"
#include "cluster/cluster.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NAP_FIRST_NS 50000
#define NAP_LAST_NS 5000000
#define CALLS_NS (50 * DTN_BOOT_MS)
#define FAILED_NS (500 * DTN_BOOT_MS)
enum { LAST_BEATS = 4, LATE_BEATS = 2 };

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

/* For all that this rank knows: does the leader run, and has not given up?  It
 * may have left, and stay for others.
 */
static bool leave_runs(const struct dtn_boot *boot, int leader)
{
    return !dtn_news_is_gone(boot, leader);
}

/* Does a neighbour not know yet that a rank is lost, or a rank not know whom to
 * name?  A neighbour may be lost itself, and who is behind it connects when it
 * knows.
 */
static bool leave_unknown(const struct dtn_boot *boot)
{
    bool waits = dtn_late_busy(boot) || dtn_verdict_awaited(boot)
              || leave_untold(boot, &boot->up.link)
              || dtn_now_ns() < dtn_news_last_loss_ns(boot) + CALLS_NS;

    for (int i = 0; i < boot->nchildren; i++)
        waits = waits || leave_untold(boot, &boot->children[i]);
    return waits;
}

/* ---------------------------------------------------------------- doubt --- */

/* Would this leader connect to this host, if it ran?  It has lost its parent,
 * has not given up, and is not connected.
 */
static bool leave_awaits(const struct dtn_boot *boot, int leader)
{
    const int up = dtn_boot_tree_parent(boot, leader);
    const int other = dtn_boot_tree_other(boot, leader);

    return dtn_news_is_lost(boot, up)
        && boot->peer_failures[leader].order == 0
        && dtn_late_port(boot, boot->rank) > 0
        && !dtn_late_linked(boot, leader)
        && (dtn_boot_tree_same_host(boot, boot->rank, up)
            || (other >= 0
                && dtn_boot_tree_same_host(boot, boot->rank, other)));
}

/* Is this leader, next to this rank, late with its heartbeats? */
static bool leave_late(const struct dtn_boot *boot,
                       const struct dtn_boot_link *link)
{
    return link->state == DTN_LINK_JOINED && !link->io.local
        && leave_runs(boot, link->rank)
        && link->silent_ns > LATE_BEATS * boot->cluster->transport.heartbeat_ns;
}

static bool leave_doubts(const struct dtn_boot *boot)
{
    const int64_t late_ns = LATE_BEATS
                          * boot->cluster->transport.heartbeat_ns;
    const int leader = dtn_boot_tree_leader(boot, boot->rank);
    bool doubts = dtn_bypass_undecided(boot)
               || leave_late(boot, &boot->up.link)
               || (leave_runs(boot, leader)
                   && dtn_pulse_loss(&boot->pulse, 0, late_ns)
                      != DTN_LOSS_NONE);

    for (int i = 0; i < boot->nchildren; i++)
        doubts = doubts || leave_late(boot, &boot->children[i]);
    for (int h = 1; h < boot->nhosts; h++)
        doubts = doubts || leave_awaits(boot, boot->hosts[h]->first_rank);
    return doubts;
}

/* This rank knows of a loss. */
static bool leave_waits(const struct dtn_boot *boot)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;
    const int64_t loss_ns = dtn_news_last_loss_ns(boot);
    const int64_t gave_up_ns = boot->peer_failures[boot->rank].heard_ns;
    const int64_t beats_ns = (loss_ns > gave_up_ns ? loss_ns : gave_up_ns)
                           + LAST_BEATS * conf->heartbeat_ns;

    return dtn_now_ns() < beats_ns
        ? leave_unknown(boot) || leave_doubts(boot)
        : dtn_now_ns() < beats_ns + conf->dead_after_ns && leave_doubts(boot);
}

static bool leave_stays(struct dtn_boot *boot)
{
    bool stays;

    dtn_boot_tend(boot);
    dtn_boot_hold(boot);
    if (dtn_boot_first_loss(boot) >= 0)
        stays = boot->nhosts > 1 && leave_waits(boot);
    else
        stays = boot->peer_failures[boot->rank].code == 0
             && (leave_below(boot) || dtn_bypass_undecided(boot));
    dtn_boot_release(boot);
    return stays;
}

void dtn_boot_call_failed(struct dtn_boot *boot, int code)
{
    boot->failed = code;
    boot->failed_ns = dtn_now_ns();
}

static void leave_tell(struct dtn_boot *boot)
{
    const bool recent = dtn_now_ns() < boot->failed_ns + FAILED_NS;
    const struct dtn_peer_failure news = { .culprit = boot->rank,
                                           .failed = recent ? boot->failed
                                                            : 0 };

    dtn_boot_hold(boot);
    dtn_news_note(boot, NULL, boot->rank, &news);
    dtn_boot_release(boot);
}

void dtn_boot_leave(struct dtn_boot *boot)
{
    const int64_t end = dtn_now_ns()
                      + boot->cluster->transport.op_timeout_ns;
    struct timespec nap = { 0, NAP_FIRST_NS };

    if (!boot->watching)
        return;
    leave_tell(boot);
    while (leave_stays(boot) && dtn_now_ns() < end) {
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < NAP_LAST_NS)
            nap.tv_nsec *= 2;
    }
}
