/* silence.c - who hears nothing of whom
 *
 * Host 0 hears nothing of host 2 for dead_after.  If host 2 is dead, all ranks
 * must name it.  If only the link between the two is lost, host 2 hears nothing
 * of host 0 either, and both must name the same.  So each says of whom it hears
 * nothing, over what is left of the tree and around the link (bypass.c):
 *
 *     SILENT 0 2     rank 0 hears nothing of rank 2
 *     SILENT 2 0     said by rank 2, which therefore runs
 *
 * Whoever has heard both knows that the link is lost and that both hosts run.
 * If the other side is not heard within a quarter of dead_after, its host is
 * dead, or cut off from all.  A host that hears nobody then is cut off itself;
 * it names itself, as all others do.
 *
 * If packets pass one way only, the host that still receives finds by itself
 * that the other host runs and receives nothing from it (delivery.c).
 *
 * A connection of the transport that fails although the tree is whole is told
 * the same way.  It may have failed because a rank of the other host is
 * stopped.  So a leader does not answer while a rank of its host is late with a
 * beat: the rank beats again, or is found stopped, and named.
 */
#include "boot/silence.h"
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

/* How long the other side of a silence is waited for. */
int64_t dtn_silence_patience_ns(const struct dtn_boot *boot)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;

    return conf->dead_after_ns / 4 > 2 * conf->heartbeat_ns
         ? conf->dead_after_ns / 4 : 2 * conf->heartbeat_ns;
}

/* ------------------------------------------------------------- verdicts --- */

static void silence_lost(struct dtn_boot *boot, int leader, int culprit,
                        enum dtn_loss loss)
{
    const struct dtn_host *host =
        boot->hosts[dtn_boot_tree_host(boot, leader)];
    const struct dtn_peer_failure news = { .culprit = culprit, .loss = loss,
                                           .code = DTENSOR_EPEER };

    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++)
        dtn_news_note(boot, NULL, r, &news);
}

static void silence_host_lost(struct dtn_boot *boot, int leader)
{
    const struct dtn_host *host =
        boot->hosts[dtn_boot_tree_host(boot, leader)];

    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++)
        dtn_news_lost(boot, NULL, r, DTN_LOSS_HOST);
}

/* Both hosts run.  All ranks name the one that is farther from rank 0. */
static void silence_link_lost(struct dtn_boot *boot, int a, int b)
{
    const int culprit = a > b ? a : b;

    silence_lost(boot, a, culprit, DTN_LOSS_LINK);
    silence_lost(boot, b, culprit, DTN_LOSS_LINK);
}

/* Is the leader of another host heard, or has it left or died? */
static bool silence_heard(const struct dtn_boot *boot,
                          const struct dtn_boot_link *link)
{
    const struct dtn_peer_failure *failure;

    if (link->io.local || link->rank < 0)
        return false;
    failure = &boot->peer_failures[link->rank];
    return link->state == DTN_LINK_JOINED
        || (failure->order > 0 && failure->loss <= DTN_LOSS_DIED
            && link->silent_ns <= boot->cluster->transport.dead_after_ns);
}

/* Does this host hear any other, or did the kernel of one answer just now? */
static bool silence_hears(const struct dtn_boot *boot)
{
    bool hears = boot->answered || silence_heard(boot, &boot->up.link);

    for (int i = 0; i < boot->nchildren; i++)
        hears = hears || silence_heard(boot, &boot->children[i]);
    return hears;
}

void dtn_silence_judge(struct dtn_boot *boot, int rank)
{
    if (dtn_news_is_gone(boot, rank))
        return;
    if (boot->nhosts == 2 || silence_hears(boot)) {
        silence_host_lost(boot, rank);
        return;
    }
    for (int h = 0; h < boot->nhosts; h++)
        silence_lost(boot, boot->hosts[h]->first_rank, boot->rank,
                    DTN_LOSS_CUT);
}

/* --------------------------------------------------------------- saying --- */

static bool silence_told(const struct dtn_boot *boot, int from, int of)
{
    for (int i = 0; i < boot->nsilences; i++)
        if (boot->silences[i].from == from && boot->silences[i].of == of)
            return true;
    return false;
}

static void silence_frame(const struct dtn_silence *silence,
                         unsigned char body[DTN_FRAME_SILENT_BYTES])
{
    dtn_frame_put32(body, (uint32_t)silence->from);
    dtn_frame_put32(body + 4, (uint32_t)silence->of);
}

void dtn_silence_note(struct dtn_boot *boot, const struct dtn_boot_link *link,
                      int from, int of)
{
    unsigned char body[DTN_FRAME_SILENT_BYTES];
    struct dtn_silence *silence = &boot->silences[boot->nsilences];

    if (boot->nsilences == DTN_BOOT_SILENCES || silence_told(boot, from, of))
        return;
    *silence = (struct dtn_silence){ from, of };
    boot->nsilences++;
    silence_frame(silence, body);
    dtn_news_spread(boot, link, DTN_FRAME_SILENT, body, sizeof body);
    if (silence_told(boot, of, from))
        silence_link_lost(boot, from, of);
    dtn_silence_answer(boot);
}

/* Has a rank of that leader's host reported a rank of this host as lost? */
static bool silence_given_up(const struct dtn_boot *boot, int leader)
{
    const struct dtn_host *host =
        boot->hosts[dtn_boot_tree_host(boot, leader)];

    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++) {
        const struct dtn_peer_failure *told = &boot->peer_failures[r];

        if (told->order > 0 && told->code == DTENSOR_EPEER
            && dtn_boot_tree_leader(boot, told->culprit) == boot->rank)
            return true;
    }
    return false;
}

void dtn_silence_one_way(struct dtn_boot *boot, int rank)
{
    if (silence_told(boot, boot->rank, rank) || silence_given_up(boot, rank))
        dtn_silence_note(boot, NULL, rank, boot->rank);
}

void dtn_silence_answer(struct dtn_boot *boot)
{
    const int64_t due_ns = 2 * boot->cluster->transport.heartbeat_ns;

    if (!dtn_pulse_beats(&boot->pulse, due_ns))
        return;
    for (int i = 0; i < boot->nsilences; i++)
        if (boot->silences[i].of == boot->rank)
            dtn_silence_note(boot, NULL, boot->rank, boot->silences[i].from);
}

void dtn_silence_heard(struct dtn_boot *boot, const struct dtn_boot_link *link,
                      const struct dtn_frame *frame)
{
    const uint32_t world = (uint32_t)boot->cluster->world_size;
    uint32_t from, of;

    if (frame->size != DTN_FRAME_SILENT_BYTES)
        return;
    from = dtn_frame_get32(frame->body);
    of = dtn_frame_get32(frame->body + 4);
    if (from < world && of < world && from != of)
        dtn_silence_note(boot, link, (int)from, (int)of);
}

bool dtn_boot_unheard(struct dtn_boot *boot, int rank)
{
    const int from = dtn_boot_tree_leader(boot, boot->rank);
    const int of = dtn_boot_tree_leader(boot, rank);

    if (!boot->watching || from == of)
        return false;
    dtn_boot_hold(boot);
    dtn_silence_note(boot, NULL, from, of);
    dtn_boot_release(boot);
    return true;
}

void dtn_silence_repeat(const struct dtn_boot *boot, struct dtn_boot_link *link)
{
    unsigned char body[DTN_FRAME_SILENT_BYTES];

    for (int i = 0; i < boot->nsilences; i++) {
        silence_frame(&boot->silences[i], body);
        dtn_news_send(link, DTN_FRAME_SILENT, body, sizeof body);
    }
}

int64_t dtn_boot_decides_ns(const struct dtn_boot *boot)
{
    return dtn_silence_patience_ns(boot)
         + 2 * boot->cluster->transport.heartbeat_ns;
}

bool dtn_boot_lost_link(const struct dtn_boot *boot, int ends[2])
{
    for (int i = 0; i < boot->nsilences; i++) {
        const struct dtn_silence *silence = &boot->silences[i];

        if (silence->from > silence->of
            || !silence_told(boot, silence->of, silence->from))
            continue;
        ends[0] = silence->from;
        ends[1] = silence->of;
        return true;
    }
    return false;
}

