/* verdict.c - the one lost rank that all name
 *
 * Ranks 20 and 21 are lost at once, and each rank hears of them in another
 * order.  So one rank decides: the lowest that is left.  Who gives up asks it,
 * and waits for the verdict:
 *
 *     NAME 21 -          rank 21 is lost: whom do all name?
 *     NAME 21 STOPPED    rank 21, which is stopped
 *
 * Both cross the tree, and the connections that replace those of a lost rank
 * (repair.c).  Each rank forwards the first question and the first verdict, so
 * there is one verdict for as long as the job lasts: the loss for which a rank
 * asked first.  The ranks of a host also have both in their page.  If the rank
 * that decides is lost too, the next one knows the question, and decides.
 *
 * A rank that gave up for another one had a verdict.  Who hears that it gave up
 * has the verdict, too: a connection of the transport may tell it where no news
 * of the tree comes.
 *
 * A part of the tree that stays cut off from the one that decides chooses
 * alone: the first loss on its way to rank 0, for the others have named that.
 */
#include "boot/verdict.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/news.h"
#include "boot/pulse.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* So that all know how a rank was lost when they name it. */
#define TELL_NS (50 * DTN_BOOT_MS)

/* -------------------------------------------------------------- cut off --- */

/* The highest rank over which news comes to this one: up the tree until a loss,
 * whose host hears of each other in its page.
 */
static int verdict_top(const struct dtn_boot *boot, int rank)
{
    int up = dtn_boot_tree_parent(boot, rank);

    while (up >= 0 && !dtn_news_is_lost(boot, up)) {
        rank = up;
        up = dtn_boot_tree_parent(boot, rank);
    }
    if (up >= 0 && dtn_boot_tree_same_host(boot, up, rank))
        while (++up < rank)
            if (!dtn_news_is_lost(boot, up))
                return up;
    return rank;
}

bool dtn_verdict_apart(const struct dtn_boot *boot)
{
    int lowest = 0;

    while (lowest < boot->rank && dtn_news_is_lost(boot, lowest))
        lowest++;
    return verdict_top(boot, boot->rank) != verdict_top(boot, lowest);
}

int dtn_verdict_alone(const struct dtn_boot *boot, int rank,
                      enum dtn_loss *loss)
{
    const struct dtn_peer_failure *failure = &boot->peer_failures[rank];

    *loss = DTN_LOSS_NONE;
    if (!dtn_news_is_lost(boot, rank))
        return rank;
    for (int r = dtn_boot_tree_parent(boot, boot->rank); r >= 0;
         r = dtn_boot_tree_parent(boot, r))
        if (dtn_news_is_lost(boot, r)
            && boot->peer_failures[r].heard_ns < failure->heard_ns)
            failure = &boot->peer_failures[r];
    *loss = failure->loss;
    return failure->culprit;
}

/* ---------------------------------------------------------- the verdict --- */

static void verdict_pack(unsigned char body[DTN_FRAME_NAME_BYTES], int rank,
                         enum dtn_loss loss)
{
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_frame_put32(body + 4, (uint32_t)loss);
}

static void verdict_tell(struct dtn_boot *boot,
                         const struct dtn_boot_link *from, int rank,
                         enum dtn_loss loss)
{
    unsigned char body[DTN_FRAME_NAME_BYTES];

    verdict_pack(body, rank, loss);
    dtn_news_spread(boot, from, DTN_FRAME_NAME, body, sizeof body);
}

static void verdict_asked(struct dtn_boot *boot,
                          const struct dtn_boot_link *from, int rank)
{
    if (boot->asked_for > 0)
        return;
    boot->asked_for = rank + 1;
    dtn_pulse_ask(&boot->pulse, rank);
    verdict_tell(boot, from, rank, DTN_LOSS_NONE);
}

/* The page may have another name already: its ranks chose alone. */
static void verdict_note(struct dtn_boot *boot,
                         const struct dtn_boot_link *from, int rank,
                         enum dtn_loss loss)
{
    if (boot->verdict > 0)
        return;
    rank = dtn_pulse_agree(&boot->pulse, rank, &loss);
    boot->verdict_loss = loss;
    boot->verdict = rank + 1;
    verdict_tell(boot, from, rank, loss);
}

void dtn_verdict_ask(struct dtn_boot *boot, int rank)
{
    verdict_asked(boot, NULL, rank);
}

void dtn_verdict_heard(struct dtn_boot *boot, const struct dtn_boot_link *link,
                       const struct dtn_frame *frame)
{
    uint32_t rank, loss;

    if (frame->size != DTN_FRAME_NAME_BYTES)
        return;
    rank = dtn_frame_get32(frame->body);
    loss = dtn_frame_get32(frame->body + 4);
    if (rank >= (uint32_t)boot->cluster->world_size || loss >= DTN_NLOSSES)
        return;
    if (loss == DTN_LOSS_NONE)
        verdict_asked(boot, link, (int)rank);
    else
        verdict_note(boot, link, (int)rank, (enum dtn_loss)loss);
}

void dtn_verdict_repeat(const struct dtn_boot *boot, struct dtn_boot_link *link)
{
    unsigned char body[DTN_FRAME_NAME_BYTES];

    if (boot->asked_for > 0) {
        verdict_pack(body, boot->asked_for - 1, DTN_LOSS_NONE);
        dtn_news_send(link, DTN_FRAME_NAME, body, sizeof body);
    }
    if (boot->verdict > 0) {
        verdict_pack(body, boot->verdict - 1, boot->verdict_loss);
        dtn_news_send(link, DTN_FRAME_NAME, body, sizeof body);
    }
}

/* The first rank that gave up for a lost one. */
static const struct dtn_peer_failure *verdict_told(const struct dtn_boot *boot)
{
    const struct dtn_peer_failure *first = NULL;

    for (int r = 0; r < boot->cluster->world_size; r++) {
        const struct dtn_peer_failure *told = &boot->peer_failures[r];

        if (told->order > 0 && told->code == DTENSOR_EPEER
            && told->loss == DTN_LOSS_NONE
            && (!first || told->order < first->order))
            first = told;
    }
    return first;
}

/* Is this rank on a host at one end of a lost link? */
static bool verdict_at_lost_link(const struct dtn_boot *boot, int rank)
{
    const int leader = dtn_boot_tree_leader(boot, rank);
    int ends[2];

    return dtn_boot_lost_link(boot, ends)
        && (leader == ends[0] || leader == ends[1]);
}

/* How this culprit was lost.  Of a lost link the other end is lost too, on its
 * account; the first rank that gave up may have named either end.
 */
static enum dtn_loss verdict_loss_of(const struct dtn_boot *boot, int culprit)
{
    enum dtn_loss told = DTN_LOSS_NONE;

    for (int r = 0; r < boot->cluster->world_size; r++) {
        const struct dtn_peer_failure *failure = &boot->peer_failures[r];

        if (dtn_news_is_lost(boot, r) && failure->culprit == culprit)
            return failure->loss;
        if (failure->order > 0 && failure->culprit == culprit
            && failure->told != DTN_LOSS_NONE)
            told = failure->told;
    }
    return verdict_at_lost_link(boot, culprit) ? DTN_LOSS_LINK : told;
}

int dtn_verdict(const struct dtn_boot *boot, enum dtn_loss *loss)
{
    const struct dtn_peer_failure *told;

    *loss = boot->verdict_loss;
    if (boot->verdict > 0)
        return boot->verdict - 1;
    told = verdict_told(boot);
    if (!told)
        return -1;
    *loss = verdict_loss_of(boot, told->culprit);
    return told->culprit;
}

/* Is this rank the lowest that has not left, given up or been lost? */
static bool verdict_mine(const struct dtn_boot *boot)
{
    for (int r = 0; r < boot->rank; r++)
        if (boot->peer_failures[r].order == 0)
            return false;
    return true;
}

/* What ranks of the host have asked and heard. */
static void verdict_read(struct dtn_boot *boot)
{
    enum dtn_loss loss;
    int rank = dtn_pulse_asked(&boot->pulse);

    if (rank >= 0)
        verdict_asked(boot, NULL, rank);
    rank = dtn_pulse_agreed(&boot->pulse, &loss);
    if (rank >= 0 && loss != DTN_LOSS_NONE)
        verdict_note(boot, NULL, rank, loss);
}

void dtn_verdict_progress(struct dtn_boot *boot)
{
    const struct dtn_peer_failure *asked;
    enum dtn_loss loss;
    int rank;

    if (boot->npeer_failures == 0 || boot->nhosts == 1 || boot->verdict > 0)
        return;
    verdict_read(boot);
    rank = dtn_verdict(boot, &loss);
    if (rank < 0 && boot->asked_for > 0 && verdict_mine(boot)) {
        asked = &boot->peer_failures[boot->asked_for - 1];
        if (asked->order == 0 || dtn_now_ns() < asked->heard_ns + TELL_NS)
            return;
        rank = asked->culprit;
        loss = asked->loss;
    }
    if (rank >= 0 && loss != DTN_LOSS_NONE)
        verdict_note(boot, NULL, rank, loss);
}

bool dtn_verdict_awaited(const struct dtn_boot *boot)
{
    return boot->asked_for > 0 && boot->verdict == 0;
}
