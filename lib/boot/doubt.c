/* doubt.c - ranks that may soon be found silent
 *
 * Ranks 2 and 5 of three hosts are stopped at once.  Their last beats were up
 * to a heartbeat apart, so rank 2 is found silent up to a heartbeat, and a look
 * of a leader that computes, before rank 5.  All must name the same one.  To
 * wait for two heartbeats after each silence would do, but nearly always only
 * one rank is silent.
 *
 * So who finds that a rank has made no beat for 3/4 of dead_after tells all
 * others that it is in doubt, and they forward that once.  A rank that is found
 * silent is named soon if no other one is in doubt.  A doubt that comes to
 * nothing ends no job: at most an error of another rank comes a little later.
 */
#include "boot/doubt.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/news.h"
#include "boot/pulse.h"
#include "boot/silence.h"
#include "boot/state.h"
#include "cluster/cluster.h"

#include <stdbool.h>
#include <stdint.h>

/* Without a beat for so long a rank is in doubt. */
static int64_t doubt_after_ns(const struct dtn_boot *boot)
{
    return boot->cluster->transport.dead_after_ns
         - dtn_silence_patience_ns(boot);
}

/* Is there time to doubt?  A rank that runs may be late by two heartbeats. */
static bool doubt_useful(const struct dtn_boot *boot)
{
    return boot->nhosts > 1
        && doubt_after_ns(boot) > 2 * boot->cluster->transport.heartbeat_ns;
}

/* Until it beats again, or is found silent and its loss is judged. */
static int64_t doubt_lasts_ns(const struct dtn_boot *boot)
{
    return dtn_silence_patience_ns(boot) + dtn_boot_decides_ns(boot);
}

static bool doubt_fresh(const struct dtn_boot *boot, int rank)
{
    const int64_t at_ns = boot->peer_failures[rank].doubted_ns;

    return at_ns > 0 && dtn_now_ns() < at_ns + doubt_lasts_ns(boot);
}

static void doubt_note(struct dtn_boot *boot, const struct dtn_boot_link *from,
                       int rank)
{
    unsigned char body[DTN_FRAME_DOUBT_BYTES];

    if (boot->peer_failures[rank].order > 0 || doubt_fresh(boot, rank))
        return;
    boot->peer_failures[rank].doubted_ns = dtn_now_ns();
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_news_spread(boot, from, DTN_FRAME_DOUBT, body, sizeof body);
}

static void doubt_link(struct dtn_boot *boot, const struct dtn_boot_link *link)
{
    if (link->state == DTN_LINK_JOINED && !link->io.local
        && link->silent_ns > doubt_after_ns(boot))
        doubt_note(boot, NULL, link->rank);
}

void dtn_doubt_look(struct dtn_boot *boot)
{
    const int first = boot->hosts[boot->host]->first_rank;

    if (!doubt_useful(boot))
        return;
    doubt_link(boot, &boot->up.link);
    for (int i = 0; i < boot->nchildren; i++)
        doubt_link(boot, &boot->children[i]);
    for (int i = 0; i < boot->pulse.n; i++)
        if (dtn_pulse_loss(&boot->pulse, i, doubt_after_ns(boot))
            == DTN_LOSS_STOPPED)
            doubt_note(boot, NULL, first + i);
}

void dtn_doubt_heard(struct dtn_boot *boot, const struct dtn_boot_link *link,
                     const struct dtn_frame *frame)
{
    uint32_t rank;

    if (frame->size != DTN_FRAME_DOUBT_BYTES)
        return;
    rank = dtn_frame_get32(frame->body);
    if (rank < (uint32_t)boot->cluster->world_size)
        doubt_note(boot, link, (int)rank);
}

bool dtn_doubted(const struct dtn_boot *boot, int rank)
{
    return !doubt_useful(boot) || doubt_fresh(boot, rank);
}
