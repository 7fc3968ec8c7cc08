/* watch.c - news of ranks that are gone, sent over the tree
 *
 * The sockets of the tree stay open after all ranks have joined.  When a
 * process ends in any way, the kernel closes its sockets, and its neighbours
 * forward the news.  If the rank reported the cause itself, they also forward
 * the rank at fault.  Example: rank 2 of a tree 1 - 0 - 2 is killed before it
 * has connected to rank 1.  Rank 0 sees the end of the stream and sends rank 1
 * a frame of 36 bytes, so rank 1 does not wait for rank 2.  Ranks of one host
 * also see each other's beats in their page (pulse.c).
 *
 * A host that loses power closes nothing.  So the leaders of hosts send each
 * other a beat every `heartbeat`, a frame of 20 bytes.  A neighbour without a
 * beat for `dead_after` is lost.  If its kernel has acknowledged ours, only its
 * leader is stopped; else its host is dead or the link is lost (silence.c).
 *
 * A rank that leaves normally reports code 0.  This is no failure for ranks
 * that do not need it any more.  If a call had just failed on it alone, it also
 * reports the code of that call: others may have the same error to print.
 *
 * Before a rank reports that it gives up for a mismatch, it sends its call the
 * same way.  So each rank can describe both calls.
 */
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/bypass.h"
#include "boot/delivery.h"
#include "boot/fail.h"
#include "boot/late.h"
#include "boot/frame.h"
#include "boot/news.h"
#include "boot/pulse.h"
#include "boot/record.h"
#include "boot/repair.h"
#include "boot/silence.h"
#include "boot/state.h"
#include "boot/status.h"
#include "boot/verdict.h"
#include "boot/watch.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EVERY_NS (5 * DTN_BOOT_MS)
#define HURRY_NS DTN_BOOT_MS      /* after a loss, while a connection is made */

/* Is it a connection to another host? */
static bool watch_remote(const struct dtn_boot_link *link)
{
    return link->io.fd >= 0 && !link->io.local;
}

void dtn_watch_accept(struct dtn_boot *boot)
{
    boot->up.link.io.accepts |= DTN_FRAMES_WATCHED;
    boot->bridges = watch_remote(&boot->up.link);
    for (int i = 0; i < boot->nchildren; i++) {
        boot->children[i].io.accepts |= DTN_FRAMES_WATCHED;
        boot->bridges = boot->bridges || watch_remote(&boot->children[i]);
    }
}

/* What all have sent to join has come; after a loss it may still come. */
static void watch_only(struct dtn_boot *boot)
{
    boot->up.link.io.accepts = DTN_FRAMES_WATCHED;
    for (int i = 0; i < boot->nchildren; i++)
        boot->children[i].io.accepts = DTN_FRAMES_WATCHED;
}

void dtn_boot_watch_start(struct dtn_boot *boot)
{
    dtn_boot_hold(boot);
    dtn_bypass_open(boot);
    dtn_watch_accept(boot);
    if (boot->failure.code == 0)
        watch_only(boot);
    boot->watching = true;
    dtn_boot_release(boot);
}

/* ------------------------------------------------------------ listening --- */

static void watch_said(struct dtn_boot *boot, const struct dtn_boot_link *link,
                       const struct dtn_frame *frame)
{
    const unsigned char *body = frame->body;
    char text[DTN_RECORD_TEXT] = "";
    struct dtn_call_record record;
    uint32_t length;
    int rank;

    if (frame->size < DTN_FRAME_CALL_BYTES
        || frame->size - DTN_FRAME_CALL_BYTES >= sizeof text)
        return;
    length = frame->size - DTN_FRAME_CALL_BYTES;
    memcpy(text, body + DTN_FRAME_CALL_BYTES, length);
    for (uint32_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    if (!dtn_boot_record_unpack(body, boot->cluster->world_size, &rank,
                                &record))
        return;
    record.text = length > 0 ? text : NULL;
    dtn_news_call(boot, link, rank, &record);
}

static void watch_gone(struct dtn_boot *boot, const struct dtn_boot_link *link,
                        const struct dtn_frame *frame)
{
    uint32_t world = (uint32_t)boot->cluster->world_size, rank, culprit;
    uint32_t odd, witness, why;
    struct dtn_peer_failure news;

    if (frame->size != DTN_FRAME_FAILURE_BYTES)
        return;
    rank = dtn_frame_get32(frame->body);
    culprit = dtn_frame_get32(frame->body + 4);
    why = dtn_frame_get32(frame->body + 8);
    odd = dtn_frame_get32(frame->body + 12);
    witness = dtn_frame_get32(frame->body + 16);
    if (rank >= world || culprit >= world || odd >= world || witness >= world)
        return;
    news = (struct dtn_peer_failure){
        .culprit = (int)culprit,
        .code = -(int)(why & 0xff),
        .failed = -(int)(why >> 16),
        .mismatch = { (int32_t)odd, (int32_t)witness,
                      dtn_frame_get64(frame->body + 20),
                      dtn_frame_get64(frame->body + 28) }
    };
    if (dtn_news_how(&news, why >> 8 & 0xff))
        dtn_news_note(boot, link, (int)rank, &news);
}

/* Whose fault is it that the connection has ended?  A program that closes what
 * it has not opened takes the descriptor away, or puts a file in its place.
 */
static int watch_culprit(const struct dtn_boot *boot,
                         const struct dtn_boot_link *link)
{
    const bool ours = errno == EBADF || errno == ENOTSOCK;

    return ours ? boot->rank : link->rank;
}

/* A neighbour that still joins has failed and says why. */
static void watch_failed(struct dtn_boot *boot,
                         const struct dtn_boot_link *link,
                         const struct dtn_frame *frame)
{
    struct dtn_peer_failure news = { .loss = DTN_LOSS_NONE };
    struct dtensor_error error;

    if (!dtn_boot_fail_parse(frame, &error))
        return;
    news.code = error.code;
    news.culprit = error.rank >= 0 && error.rank < boot->cluster->world_size
                 ? error.rank : link->rank;
    dtn_news_note(boot, link, link->rank, &news);
}

void dtn_watch_frame(struct dtn_boot *boot, struct dtn_boot_link *link,
                     const struct dtn_frame *frame)
{
    link->silent_ns = 0;
    if (frame->type == DTN_FRAME_CALL)
        watch_said(boot, link, frame);
    else if (frame->type == DTN_FRAME_FAILURE)
        watch_gone(boot, link, frame);
    else if (frame->type == DTN_FRAME_QUERY)
        dtn_status_queried(boot, link, frame);
    else if (frame->type == DTN_FRAME_STATUS)
        dtn_status_heard(boot, link, frame);
    else if (frame->type == DTN_FRAME_SILENT)
        dtn_silence_heard(boot, link, frame);
    else if (frame->type == DTN_FRAME_NAME)
        dtn_verdict_heard(boot, link, frame);
    else if (frame->type == DTN_FRAME_FAIL)
        watch_failed(boot, link, frame);
}

/* Was the rank at the other end lost?  One that has left closes the connection.
 * But a parent stays for this rank, unless a loss is known or op_timeout has
 * passed (leave.c): else it died while it stayed.
 */
static bool watch_lost(const struct dtn_boot *boot,
                       const struct dtn_boot_link *link, int culprit)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;
    const struct dtn_peer_failure *left = &boot->peer_failures[culprit];

    return !link->detour
        && (left->order == 0
            || (link == &boot->up.link && dtn_news_last_loss_ns(boot) == 0
                && dtn_now_ns() < left->heard_ns + conf->op_timeout_ns
                                  - conf->dead_after_ns));
}

static void watch_link(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    struct dtn_frame frame;
    enum dtn_frame_got got;
    int culprit;

    while (link->state == DTN_LINK_JOINED) {
        dtn_frame_flush(&link->io);
        errno = 0;
        got = dtn_frame_recv(&link->io, &frame);
        if (got == DTN_FRAME_MORE || got == DTN_FRAME_NOMEM)
            return;
        if (got == DTN_FRAME_READY) {
            dtn_watch_frame(boot, link, &frame);
            continue;
        }
        culprit = watch_culprit(boot, link);
        if (culprit == boot->rank)
            link->io.fd = -1;        /* it may be the program's by now       */
        dtn_frame_close(&link->io);
        link->state = DTN_LINK_IDLE;
        if (watch_lost(boot, link, culprit))
            dtn_news_lost(boot, link, culprit, DTN_LOSS_DIED);
    }
}

/* -------------------------------------------------------------- silence --- */

/* Of two hosts, only this one can find that packets pass one way only.  With
 * more hosts, a third one receives from both (bypass.c).
 */
static bool watch_one_way(const struct dtn_boot *boot,
                          const struct dtn_boot_link *link)
{
    return boot->nhosts == 2 && dtn_delivery_one_way(link);
}

/* Another host is silent.  If its kernel still answers, its leader is stopped;
 * else its host or the link to it is lost.
 */
static void watch_silent(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    const int64_t dead_ns = boot->cluster->transport.dead_after_ns;

    if (dtn_news_is_gone(boot, link->rank))
        return;
    if (dtn_delivery_answered(link, dead_ns / 4 * 3)) {
        dtn_news_lost(boot, NULL, link->rank, DTN_LOSS_STOPPED);
        return;
    }
    if (watch_one_way(boot, link))
        dtn_silence_note(boot, NULL, link->rank, boot->rank);
    dtn_bypass_silent(boot, link);
}

static void watch_neighbour(struct dtn_boot *boot, struct dtn_boot_link *link,
                            int64_t passed_ns)
{
    watch_link(boot, link);
    if (link->state != DTN_LINK_JOINED || !watch_remote(link))
        return;
    link->silent_ns += passed_ns;
    if (watch_one_way(boot, link))
        dtn_silence_one_way(boot, link->rank);
    if (link->silent_ns > boot->cluster->transport.dead_after_ns)
        watch_silent(boot, link);
}

/* A beat for another host.  A link that is still sending the last one has no
 * need of another.
 */
static void watch_beat_to(struct dtn_boot_link *link)
{
    if (!watch_remote(link))
        return;
    dtn_delivery_count(link);
    if (!link->io.out)
        dtn_news_send(link, DTN_FRAME_BEAT, NULL, 0);
}

void dtn_watch_beat(struct dtn_boot *boot, int64_t now)
{
    if (!boot->bridges || now < boot->beat_ns)
        return;
    boot->beat_ns = now + boot->cluster->transport.heartbeat_ns;
    watch_beat_to(&boot->up.link);
    for (int i = 0; i < boot->nchildren; i++)
        watch_beat_to(&boot->children[i]);
}

static int64_t watch_look(struct dtn_boot *boot, int64_t now)
{
    return dtn_pulse_look(&boot->pulse, now,
                          2 * boot->cluster->transport.heartbeat_ns);
}

/* Name the ranks of the host that are lost. */
static void watch_page(struct dtn_boot *boot)
{
    const int64_t dead_ns = boot->cluster->transport.dead_after_ns;
    const int first = boot->hosts[boot->host]->first_rank;

    for (int i = 0; i < boot->pulse.n; i++) {
        const enum dtn_loss loss = dtn_pulse_loss(&boot->pulse, i, dead_ns);

        if (loss != DTN_LOSS_NONE)
            dtn_news_lost(boot, NULL, first + i, loss);
    }
    dtn_news_read(boot);
    dtn_verdict_progress(boot);
}

/* What ranks said comes first: a rank may say that it gives up, and end. */
static void watch_all(struct dtn_boot *boot, int64_t now)
{
    const int64_t passed_ns = watch_look(boot, now);

    dtn_watch_beat(boot, now);
    watch_neighbour(boot, &boot->up.link, passed_ns);
    for (int i = 0; i < boot->nchildren; i++)
        watch_neighbour(boot, &boot->children[i], passed_ns);
    watch_page(boot);
    dtn_silence_answer(boot);
    dtn_repair_progress(boot);
    dtn_late_progress(boot, now);
    dtn_bypass_progress(boot, now);
}

/* Until the next look.  News of a loss crosses each rank of the tree before all
 * agree.
 */
static int64_t watch_pause_ns(const struct dtn_boot *boot)
{
    return boot->hurries || dtn_bypass_busy(boot) || dtn_late_busy(boot)
         ? HURRY_NS : EVERY_NS;
}

void dtn_boot_watch(struct dtn_boot *boot)
{
    int64_t now = dtn_now_ns();

    if (!boot->watching || now < boot->watch_ns)
        return;
    dtn_boot_hold(boot);
    boot->status.waited_ns = now;
    watch_all(boot, now);
    boot->watch_ns = now + watch_pause_ns(boot);
    dtn_status_answer(boot, true);
    dtn_boot_release(boot);
}

/* Is this neighbour silent?  What comes is read as part of the exchange. */
static bool watch_joining(const struct dtn_boot *boot,
                          struct dtn_boot_link *link, int64_t passed_ns)
{
    if (link->state != DTN_LINK_JOINED || !watch_remote(link))
        return false;
    link->silent_ns += passed_ns;
    return link->silent_ns > boot->cluster->transport.dead_after_ns;
}

int dtn_watch_joining(struct dtn_boot *boot, int64_t now)
{
    int64_t passed_ns;
    int silent = -1;

    if (now < boot->watch_ns)
        return -1;
    passed_ns = watch_look(boot, now);
    for (int i = 0; i < boot->nchildren; i++)
        if (watch_joining(boot, &boot->children[i], passed_ns))
            silent = boot->children[i].rank;
    if (watch_joining(boot, &boot->up.link, passed_ns))
        silent = boot->up.link.rank;
    watch_page(boot);
    dtn_late_progress(boot, now);
    boot->watch_ns = now + watch_pause_ns(boot);
    return silent;
}

void dtn_boot_tend(struct dtn_boot *boot)
{
    if (pthread_mutex_trylock(&boot->lock) != 0)
        return;
    if (boot->watching) {
        watch_all(boot, dtn_now_ns());
        dtn_status_answer(boot, false);
    } else {
        dtn_watch_beat(boot, dtn_now_ns());
    }
    dtn_boot_release(boot);
}
