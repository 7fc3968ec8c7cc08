/* repair.c - new connections in place of those of a lost rank
 *
 * A lost leader cuts the tree into parts: the other ranks of its host, each
 * child host with all behind it, and the rest.  Of four hosts of two ranks,
 *
 *     rank 0 --- 2 (host 1) --- 6 (host 3)        ranks 0, 1, 4, 5
 *      |          |                          2:   rank 3
 *      4          3                               ranks 6, 7
 *
 * rank 2 is lost.  Rank 3, the next of its host, connects to the late
 * listeners of the hosts above and below: to rank 0 and to rank 6.  It knows
 * first, since it sees the death in the page of the host.  When rank 6 knows,
 * it also connects around: to rank 3, and to the host above that of rank 2.
 * These connections only carry news.  They may form circles, for news is
 * forwarded once.
 *
 * The ranks of a host have no other way than the page to hear of each other
 * then, so what one of them hears goes there, too (news.c).
 */
#include "boot/repair.h"
#include "boot/boot.h"
#include "boot/bypass.h"
#include "boot/late.h"
#include "boot/news.h"
#include "boot/state.h"
#include "boot/tree.h"

#include <stdbool.h>

/* Connect to the late listeners of a host, but those that it is connected to.
 * False: all ranks that have one are lost.
 */
static bool repair_host(struct dtn_boot *boot, int leader)
{
    bool left = false;

    for (int i = 0; leader >= 0 && i < DTN_LATE_MAX; i++) {
        const int rank = dtn_late_rank(boot, leader, i);

        if (rank < 0 || dtn_news_is_lost(boot, rank))
            continue;
        left = true;
        if (!dtn_late_linked(boot, rank))
            dtn_bypass_call(boot, rank);
    }
    return left;
}

/* Is this rank here no more?  One that has given up may still connect. */
static bool repair_gone(const struct dtn_boot *boot, int rank)
{
    const struct dtn_peer_failure *failure = &boot->peer_failures[rank];

    return dtn_news_is_lost(boot, rank)
        || (failure->order > 0 && failure->code == 0);
}

/* A leader does it for its parent, the lowest rank that is left for the leader.
 */
static bool repair_due(const struct dtn_boot *boot, int leader, int up)
{
    for (int r = leader + 1; r < boot->rank; r++)
        if (!repair_gone(boot, r))
            return false;
    return dtn_news_is_lost(boot, boot->rank > leader ? leader : up);
}

void dtn_repair_progress(struct dtn_boot *boot)
{
    const int leader = dtn_boot_tree_leader(boot, boot->rank);
    const int up = dtn_boot_tree_parent(boot, leader);
    const int other = dtn_boot_tree_other(boot, boot->rank);
    bool above;

    if (!boot->bypass || boot->repaired == boot->npeer_failures)
        return;
    boot->repaired = boot->npeer_failures;
    if (!repair_due(boot, leader, up))
        return;
    above = repair_host(boot, up);
    repair_host(boot, other);
    for (int i = 0; i < 2 && !above; i++)
        repair_host(boot, dtn_boot_tree_witness(boot, i));
    for (int i = 0; boot->rank != leader && i < dtn_boot_tree_child_hosts(boot);
         i++)
        dtn_bypass_call(boot, dtn_boot_tree_child(boot, i));
}
