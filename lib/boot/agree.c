/* agree.c - one name for a loss, whoever heard of which first
 *
 * All ranks name one lost rank, also when two are lost at once.  Who is the
 * first to give up tells it over the tree and over its connections, and all
 * others take that name.  Until then each rank waits for 50 ms after the loss,
 * so that those who give up at the same time know the same losses, and name the
 * same one of them: the lowest leader of a host, else the lowest rank.
 *
 * A leader comes first because the ranks behind it may hear of no other loss.
 * Ranks 2 (a leader) and 1 of two hosts of two are killed: rank 3 sees the loss
 * of rank 2 in the page of the host, and connects to rank 0 (repair.c), which
 * knows of rank 1.  Until the name has come over that connection, rank 3 waits,
 * for three heartbeats at most.
 *
 * A rank whose way to the others is lost hears no name.  If that loss is older
 * than the one that it waits for, the others have named it since.  And it does
 * not wait for ever for a rank behind such a loss: see dtn_boot_lost_way().
 */
#include "boot/agree.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/doubt.h"
#include "boot/news.h"
#include "boot/pulse.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { APART_BEATS = 3 };

#define TOGETHER_NS (50 * DTN_BOOT_MS)
#define QUIET_NS (10 * DTN_BOOT_MS)
#define STEP_NS (5 * DTN_BOOT_MS)

static bool agree_lost(const struct dtn_peer_failure *failure)
{
    return failure->order > 0 && failure->loss != DTN_LOSS_NONE;
}

/* Losses that are heard of so soon one after the other count as one.  A death
 * is seen and told at once; a silence is found by looks, once a heartbeat.
 */
static int64_t agree_together_ns(const struct dtn_boot *boot,
                                 enum dtn_loss loss)
{
    const int64_t beats_ns = 2 * boot->cluster->transport.heartbeat_ns;

    return loss > DTN_LOSS_DIED && beats_ns > TOGETHER_NS ? beats_ns
                                                          : TOGETHER_NS;
}

/* Another silence is waited for only if a rank is in doubt. */
static int64_t agree_wait_ns(const struct dtn_boot *boot, enum dtn_loss loss)
{
    for (int r = 0; loss > DTN_LOSS_DIED && r < boot->cluster->world_size; r++)
        if (r != boot->rank && boot->peer_failures[r].order == 0
            && dtn_doubted(boot, r))
            return agree_together_ns(boot, loss);
    return TOGETHER_NS;
}

/* The lost rank that the first rank to give up has named; -1: none has.  A rank
 * that waits for another, which is lost a second later, takes it from there.
 */
static int agree_named(const struct dtn_boot *boot)
{
    uint32_t earliest = UINT32_MAX;
    int named = -1;

    for (int r = 0; r < boot->cluster->world_size; r++) {
        const struct dtn_peer_failure *told = &boot->peer_failures[r];

        if (told->order > 0 && told->order < earliest
            && told->code == DTENSOR_EPEER && told->loss == DTN_LOSS_NONE) {
            earliest = told->order;
            named = told->culprit;
        }
    }
    return named;
}

/* The loss that has cut this rank's way to rank 0, if it is older than that of
 * `rank`; -1: none is.
 */
static int agree_cut(const struct dtn_boot *boot, int rank)
{
    const struct dtn_peer_failure *mine = &boot->peer_failures[rank];
    const int64_t before_ns = mine->heard_ns
                            - agree_together_ns(boot, mine->loss);

    for (int r = dtn_boot_tree_parent(boot, boot->rank); r >= 0;
         r = dtn_boot_tree_parent(boot, r))
        if (agree_lost(&boot->peer_failures[r])
            && boot->peer_failures[r].heard_ns <= before_ns)
            return boot->peer_failures[r].culprit;
    return -1;
}

/* Is this rank on a host at one end of a lost link? */
static bool agree_at_lost_link(const struct dtn_boot *boot, int rank)
{
    const int leader = dtn_boot_tree_leader(boot, rank);
    int ends[2];

    return dtn_boot_lost_link(boot, ends)
        && (leader == ends[0] || leader == ends[1]);
}

/* How this culprit was lost.  Of a lost link the other end is lost too, on its
 * account; the first rank that gave up may have named either end.
 */
static enum dtn_loss agree_loss_of(const struct dtn_boot *boot, int culprit)
{
    enum dtn_loss told = DTN_LOSS_NONE;

    for (int r = 0; r < boot->cluster->world_size; r++) {
        const struct dtn_peer_failure *failure = &boot->peer_failures[r];

        if (agree_lost(failure) && failure->culprit == culprit)
            return failure->loss;
        if (failure->order > 0 && failure->culprit == culprit
            && failure->told != DTN_LOSS_NONE)
            told = failure->told;
    }
    return agree_at_lost_link(boot, culprit) ? DTN_LOSS_LINK : told;
}

/* May another host have news of a loss at the same time?  Of two hosts, the one
 * that is left has heard all that there is.
 */
static bool agree_news_may_come(const struct dtn_boot *boot, enum dtn_loss loss)
{
    return boot->nhosts > 2 || (boot->nhosts == 2 && loss < DTN_LOSS_HOST);
}

/* Ranks that give up at the edge of the time know different losses.  So who has
 * just heard of one waits until a name would have come.
 */
static int64_t agree_quiet_ns(const struct dtn_boot *boot)
{
    int64_t last_ns = 0;

    for (int r = 0; r < boot->cluster->world_size; r++)
        if (agree_lost(&boot->peer_failures[r])
            && boot->peer_failures[r].heard_ns > last_ns)
            last_ns = boot->peer_failures[r].heard_ns;
    return last_ns + QUIET_NS;
}

/* The highest rank over which news comes to this one: up the tree until a loss,
 * whose host hears of each other in its page.
 */
static int agree_top(const struct dtn_boot *boot, int rank)
{
    int up = dtn_boot_tree_parent(boot, rank);

    while (up >= 0 && !agree_lost(&boot->peer_failures[up])) {
        rank = up;
        up = dtn_boot_tree_parent(boot, rank);
    }
    if (up >= 0 && dtn_boot_tree_same_host(boot, up, rank))
        while (++up < rank)
            if (!agree_lost(&boot->peer_failures[up]))
                return up;
    return rank;
}

/* Is this rank cut off from the lowest one that is left? */
static bool agree_apart(const struct dtn_boot *boot)
{
    int lowest = 0;

    while (lowest < boot->rank && agree_lost(&boot->peer_failures[lowest]))
        lowest++;
    return agree_top(boot, boot->rank) != agree_top(boot, lowest);
}

/* May it be named instead of `rank`?  It was lost with it or before, and nobody
 * has named it.  It also may if it was lost later, unless this rank is cut off:
 * then the others have named one by now.
 */
static bool agree_counts(const struct dtn_boot *boot, int r, int rank)
{
    const struct dtn_peer_failure *mine = &boot->peer_failures[rank];
    const struct dtn_peer_failure *other = &boot->peer_failures[r];
    const int64_t together_ns = agree_together_ns(boot, mine->loss);
    const int64_t before_ns = boot->cluster->transport.dead_after_ns;

    return agree_lost(other)
        && other->heard_ns > mine->heard_ns
                             - (before_ns > together_ns ? before_ns
                                                        : together_ns)
        && (other->heard_ns < mine->heard_ns + together_ns
            || !agree_apart(boot));
}

/* Of the ranks that were lost when this one was: the lowest leader of a host,
 * else the lowest.
 */
static int agree_lowest(const struct dtn_boot *boot, int rank)
{
    int lowest = -1;

    for (int r = 0; r < boot->cluster->world_size; r++) {
        const bool leads = dtn_boot_tree_leader(boot, r) == r;

        if (!agree_counts(boot, r, rank))
            continue;
        if (leads)
            return r;
        lowest = lowest < 0 ? r : lowest;
    }
    return lowest < 0 ? rank : lowest;
}

/* A part of the tree that is cut off leaves it to the others to name a rank,
 * until it is connected again (repair.c) and the name has come.
 */
static int64_t agree_apart_ns(const struct dtn_boot *boot)
{
    return boot->nhosts > 1 && agree_apart(boot)
         ? APART_BEATS * boot->cluster->transport.heartbeat_ns : 0;
}

/* The deeper a rank is in the tree, the later it names one: what its parent has
 * named comes first.
 */
static int64_t agree_turn_ns(const struct dtn_boot *boot)
{
    return boot->depth * STEP_NS;
}

bool dtn_boot_undecided(const struct dtn_boot *boot, int rank)
{
    const struct dtn_peer_failure *failure = &boot->peer_failures[rank];
    const int64_t now = dtn_now_ns();
    const int64_t turn_ns = agree_turn_ns(boot);
    int named;
    bool soon;

    if (!boot->watching || !agree_lost(failure)
        || !agree_news_may_come(boot, failure->loss))
        return false;
    named = agree_named(boot);
    soon = now < failure->heard_ns + agree_wait_ns(boot, failure->loss)
               + turn_ns;
    return named < 0 ? soon || now < agree_quiet_ns(boot) + turn_ns
                       || now < failure->heard_ns + agree_apart_ns(boot)
         : soon && agree_loss_of(boot, named) == DTN_LOSS_NONE;
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
    named = agree_named(boot);
    if (named < 0 && agree_lost(&boot->peer_failures[rank]))
        named = agree_cut(boot, rank);
    if (named < 0 && agree_lost(&boot->peer_failures[rank]))
        named = boot->peer_failures[agree_lowest(boot, rank)].culprit;
    if (named >= 0)
        *loss = agree_loss_of(boot, named);
    return dtn_pulse_agree(&boot->pulse, named >= 0 ? named : rank, loss);
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
        lost = agree_named(boot);
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

/* Is news of others no longer forwarded by this rank? */
static bool agree_failed(const struct dtn_boot *boot, int rank)
{
    return boot->peer_failures[rank].order > 0
        && boot->peer_failures[rank].code != 0;
}

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
            && agree_failed(boot, *lower))
            return *lower;
        *lower = dtn_boot_tree_parent(boot, *lower);
    }
    return a != boot->rank && a != peer && agree_failed(boot, a) ? a : -1;
}
