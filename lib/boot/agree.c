/* agree.c - one name for a loss, whoever heard of which first
 *
 * A rank that gives up asks whom all name, and waits for the verdict
 * (verdict.c).  Within a host no message is needed: the first name in the page
 * is that of all its ranks.
 *
 * The rank that decides may be behind one that is lost, too, or silent and not
 * found yet.  Ranks 21 and 20, the leader of its host, are stopped, 20 last.
 * Rank 22 asks for rank 21, but rank 20 forwards nothing any more.  When it has
 * been silent for dead_after, rank 22 connects to the hosts around (repair.c),
 * and the verdict comes over that connection.  So a rank waits for as long as
 * such a silence takes; behind a rank that is known to be lost, for three
 * heartbeats.
 *
 * A rank does not wait for ever for one behind a lost rank: see
 * dtn_boot_lost_way().
 */
#include "boot/agree.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/news.h"
#include "boot/pulse.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/verdict.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { APART_BEATS = 3 };

#define STEP_NS (5 * DTN_BOOT_MS)

/* May another host have news of a loss at the same time?  Of two hosts, the one
 * that is left has heard all that there is.
 */
static bool agree_news_may_come(const struct dtn_boot *boot, enum dtn_loss loss)
{
    return boot->nhosts > 2 || (boot->nhosts == 2 && loss < DTN_LOSS_HOST);
}

/* Until when a verdict may come: from one that decides, unless a rank that is
 * silent by now is between the two; behind a lost rank, over a new connection
 * (repair.c).
 */
static int64_t agree_until_ns(const struct dtn_boot *boot)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;

    return dtn_news_last_loss_ns(boot) + boot->depth * STEP_NS
         + (dtn_verdict_apart(boot) ? APART_BEATS * conf->heartbeat_ns
            : conf->dead_after_ns + dtn_boot_decides_ns(boot));
}

bool dtn_boot_undecided(struct dtn_boot *boot, int rank)
{
    enum dtn_loss loss;
    bool undecided;

    if (!boot->watching || !dtn_news_is_lost(boot, rank)
        || !agree_news_may_come(boot, boot->peer_failures[rank].loss))
        return false;
    dtn_boot_hold(boot);
    dtn_verdict_ask(boot, rank);
    undecided = dtn_verdict(boot, &loss) < 0
             && dtn_now_ns() < agree_until_ns(boot);
    dtn_boot_release(boot);
    return undecided;
}

/* Ranks of one host agree in their page. */
int dtn_boot_agree(struct dtn_boot *boot, int rank, enum dtn_loss *loss)
{
    const struct timespec pause = { 0, 1000000 };
    int named;

    *loss = DTN_LOSS_NONE;
    if (!boot->watching)
        return rank;
    while (dtn_boot_undecided(boot, rank)) {
        nanosleep(&pause, NULL);
        dtn_boot_watch(boot);
    }
    dtn_boot_hold(boot);
    named = dtn_verdict(boot, loss);
    if (named < 0)
        named = dtn_verdict_alone(boot, rank, loss);
    named = dtn_pulse_agree(&boot->pulse, named, loss);
    dtn_boot_release(boot);
    return named;
}

/* -------------------------------------------------------------- joining --- */

static void agree_name(struct dtn_boot *boot, int rank, enum dtn_loss loss)
{
    char name[DTN_HOST_MAX + 32], how[DTN_HOST_MAX * 2 + 96];

    dtn_fail_rank(&boot->failure, DTENSOR_EPEER, rank,
                  "boot: while ranks joined, %s %s (see its output)",
                  dtn_boot_rank_name(boot, rank, name, sizeof name),
                  dtn_boot_loss_words(boot, loss, how, sizeof how));
}

/* A neighbour is silent: is it stopped, dead, or the link to it lost? */
static int agree_silent(struct dtn_boot *boot, int silent)
{
    const int64_t end = dtn_now_ns() + 2 * dtn_boot_decides_ns(boot);
    const struct timespec pause = { 0, 1000000 };

    while (dtn_boot_first_loss(boot) < 0 && dtn_now_ns() < end) {
        nanosleep(&pause, NULL);
        dtn_boot_watch(boot);
    }
    return dtn_boot_first_loss(boot) < 0 ? silent : dtn_boot_first_loss(boot);
}

bool dtn_agree_joining(struct dtn_boot *boot, int silent)
{
    int named, lost = dtn_boot_first_loss(boot);
    enum dtn_loss loss;

    if (lost < 0 && boot->npeer_failures > 0)
        lost = dtn_verdict(boot, &loss);
    if (lost < 0 && silent < 0)
        return false;
    agree_name(boot, lost < 0 ? silent : lost, DTN_LOSS_DIED);
    dtn_boot_watch_start(boot);
    if (lost < 0)
        lost = agree_silent(boot, silent);
    named = dtn_boot_agree(boot, lost, &loss);
    agree_name(boot, named, loss);
    dtn_boot_report_failure(boot, named, DTENSOR_EPEER,
                            &(struct dtn_mismatch){ .rank = 0 });
    boot->state = DTN_BOOT_OVER;
    return true;
}

/* ------------------------------------------------------------ lost ways --- */

/* Both ranks go up the tree until they meet. */
int dtn_boot_lost_way(const struct dtn_boot *boot, int peer)
{
    int a = boot->rank, b = peer;

    if (!boot->watching || boot->npeer_failures == 0
        || (boot->pulse.page && dtn_boot_tree_same_host(boot, a, b)))
        return -1;
    while (a != b) {
        int *lower = a > b ? &a : &b;

        if (*lower != boot->rank && *lower != peer
            && dtn_news_is_gone(boot, *lower))
            return *lower;
        *lower = dtn_boot_tree_parent(boot, *lower);
    }
    return a != boot->rank && a != peer && dtn_news_is_gone(boot, a) ? a : -1;
}
