/* boot_watch.c - who is gone, told along the tree
 *
 * The sockets of the tree stay open when all have joined, and a process that
 * ends closes its own, however it ends.  Its neighbours pass on that it is
 * gone, and on whose account when it said so itself: with rank 2 of a tree
 * 1 - 0 - 2 killed before it ever met rank 1, rank 0 sees the end of a stream,
 * rank 1 gets a frame of 36 bytes from rank 0, and need not wait for a meeting
 * that never comes.  A host without power closes nothing: keep-alive notices
 * that within dead_after, and where something was sent meanwhile, which keep-alive
 * then waits for, TCP_USER_TIMEOUT does.
 *
 * To be gone is no failure: who leaves says so, with code 0, and who needs the
 * rank no more does not care.
 *
 * What a rank called goes the same way, in front of the news that it gave up for
 * a mismatch: whoever hears of that can word both sides.
 */
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "cluster/cluster.h"
#include "transport/keepalive.h"
#include "dtensor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { EVERY_NS = 5000000 };

/* ------------------------------------------------------------ keep-alive --- */

static void watch_tune(const struct dtn_boot *boot, const struct boot_link *link)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;
    const int dead_ms = 1000 * dtn_whole_seconds(conf->dead_after_ns);

    if (link->io.fd < 0 || link->io.local)
        return;
    dtn_keepalive(link->io.fd, conf, 0);
    setsockopt(link->io.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms,
               sizeof dead_ms);
}

void dtn_boot_watch_start(struct dtn_boot *boot)
{
    const unsigned accepts = FRAME_BIT(FRAME_GONE) | FRAME_BIT(FRAME_SAID);

    boot->up.link.io.accepts = accepts;
    watch_tune(boot, &boot->up.link);
    for (int i = 0; i < boot->nchildren; i++) {
        boot->children[i].io.accepts = accepts;
        watch_tune(boot, &boot->children[i]);
    }
    boot->watching = true;
}

/* --------------------------------------------------------------- telling --- */

static void watch_send(struct boot_link *link, enum frame_type type,
                       const unsigned char *body, uint32_t size)
{
    const struct frame frame = { .type = type, .size = size, .body = body };

    if (link->state != LINK_JOINED)
        return;
    frame_post(&link->io, &frame, false);       /* or they learn it later    */
    frame_flush(&link->io);
}

/* To all but who told it. */
static void watch_spread(struct dtn_boot *boot, const struct boot_link *from,
                         enum frame_type type, const unsigned char *body,
                         uint32_t size)
{
    if (&boot->up.link != from)
        watch_send(&boot->up.link, type, body, size);
    for (int i = 0; i < boot->nchildren; i++)
        if (&boot->children[i] != from)
            watch_send(&boot->children[i], type, body, size);
}

static void watch_tell(struct dtn_boot *boot, const struct boot_link *from,
                       int rank, const struct dtn_gone *gone)
{
    unsigned char body[FRAME_GONE_BYTES];

    frame_put32(body, (uint32_t)rank);
    frame_put32(body + 4, (uint32_t)gone->culprit);
    frame_put32(body + 8, (uint32_t)-gone->code);
    frame_put32(body + 12, (uint32_t)gone->mismatch.rank);
    frame_put32(body + 16, (uint32_t)gone->mismatch.witness);
    frame_put64(body + 20, gone->mismatch.called);
    frame_put64(body + 28, gone->mismatch.expected);
    watch_spread(boot, from, FRAME_GONE, body, sizeof body);
}

/* The first news of a rank is kept, and told to all but who told it. */
static void watch_note(struct dtn_boot *boot, const struct boot_link *from,
                       int rank, const struct dtn_gone *news)
{
    struct dtn_gone *gone = &boot->gone[rank];

    if (gone->order > 0)
        return;
    *gone = *news;
    gone->order = ++boot->ngone;
    gone->heard_ns = dtn_now_ns();
    watch_tell(boot, from, rank, gone);
}

void dtn_boot_blame(struct dtn_boot *boot, int culprit, int code,
                    const struct dtn_mismatch *mismatch)
{
    const struct dtn_gone news = { .culprit = culprit, .code = code,
                                   .mismatch = *mismatch };

    if (boot && boot->watching)
        watch_note(boot, NULL, boot->rank, &news);
}

static bool watch_knows(const struct dtn_boot *boot, int rank,
                        const struct dtn_said *said)
{
    const struct dtn_told *told;

    for (uint32_t i = 0; (told = dtn_boot_told(boot, i)); i++)
        if (told->rank == rank && told->said.fingerprint == said->fingerprint
            && told->said.kind == said->kind
            && told->said.other == said->other)
            return true;
    return false;
}

/* Most records that are kept: two for each rank, in a large job fewer. */
static uint32_t watch_told_max(const struct dtn_boot *boot)
{
    const uint32_t world = (uint32_t)boot->cluster->world_size;

    return 64 + 2 * (world < 1024 ? world : 1024);
}

/* Room for more records, when all there is has been used for the first time.
 * Records are 320 bytes each, and a job without a mismatch has none.
 */
static void watch_grow(struct dtn_boot *boot)
{
    const uint32_t most = watch_told_max(boot), n = boot->told_capacity;
    const uint32_t more = n == 0 ? 64 : 2 * n < most ? 2 * n : most;
    struct dtn_told *told;

    if (boot->ntold != n || n == most)
        return;
    told = realloc(boot->told, more * sizeof *told);
    if (!told)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (told[i].said.text)
            told[i].said.text = told[i].text;
    boot->told = told;
    boot->told_capacity = more;
}

static void watch_say(struct dtn_boot *boot, const struct boot_link *from,
                      int rank, const struct dtn_said *said)
{
    unsigned char body[FRAME_SAID_BYTES + DTN_SAID_TEXT];
    struct dtn_told *told;
    size_t length;

    if (watch_knows(boot, rank, said))
        return;
    watch_grow(boot);
    if (boot->told_capacity == 0)
        return;                   /* out of memory: the words will be shorter  */
    told = &boot->told[boot->ntold++ % boot->told_capacity];
    *told = (struct dtn_told){ .rank = rank, .said = *said };
    if (said->text)
        snprintf(told->text, sizeof told->text, "%s", said->text);
    told->said.text = said->text ? told->text : NULL;
    length = strlen(told->text);
    frame_put32(body, (uint32_t)rank);
    frame_put32(body + 4, said->kind);
    frame_put64(body + 8, said->fingerprint);
    frame_put64(body + 16, said->group);
    frame_put32(body + 24, said->number);
    frame_put32(body + 28, said->n);
    frame_put32(body + 32, (uint32_t)said->other);
    frame_put64(body + 36, said->count);
    memcpy(body + FRAME_SAID_BYTES, told->text, length);
    watch_spread(boot, from, FRAME_SAID, body,
                 (uint32_t)(FRAME_SAID_BYTES + length));
}

void dtn_boot_say(struct dtn_boot *boot, int rank, const struct dtn_said *said)
{
    if (boot && boot->watching)
        watch_say(boot, NULL, rank, said);
}

/* ------------------------------------------------------------- listening --- */

static void watch_said(struct dtn_boot *boot, const struct boot_link *link,
                       const struct frame *frame)
{
    const unsigned char *body = frame->body;
    const uint32_t world = (uint32_t)boot->cluster->world_size;
    char text[DTN_SAID_TEXT] = "";
    struct dtn_said said;
    uint32_t rank, length;

    if (frame->size < FRAME_SAID_BYTES
        || frame->size - FRAME_SAID_BYTES >= sizeof text)
        return;
    length = frame->size - FRAME_SAID_BYTES;
    memcpy(text, body + FRAME_SAID_BYTES, length);
    for (uint32_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    rank = frame_get32(body);
    said = (struct dtn_said){
        .kind = (enum dtn_said_kind)frame_get32(body + 4),
        .fingerprint = frame_get64(body + 8),
        .group = frame_get64(body + 16),
        .number = frame_get32(body + 24),
        .n = frame_get32(body + 28),
        .other = (int32_t)frame_get32(body + 32),
        .count = frame_get64(body + 36),
        .text = length > 0 ? text : NULL
    };
    if (rank < world && (unsigned)said.kind < DTN_NSAID)
        watch_say(boot, link, (int)rank, &said);
}

static void watch_gone(struct dtn_boot *boot, const struct boot_link *link,
                        const struct frame *frame)
{
    uint32_t world = (uint32_t)boot->cluster->world_size, rank, culprit;
    uint32_t odd, witness;
    struct dtn_gone news;

    if (frame->size != FRAME_GONE_BYTES)
        return;
    rank = frame_get32(frame->body);
    culprit = frame_get32(frame->body + 4);
    odd = frame_get32(frame->body + 12);
    witness = frame_get32(frame->body + 16);
    if (rank >= world || culprit >= world || odd >= world || witness >= world)
        return;
    news = (struct dtn_gone){
        .culprit = (int)culprit,
        .code = -(int)(frame_get32(frame->body + 8) & 0xff),
        .mismatch = { (int32_t)odd, (int32_t)witness,
                      frame_get64(frame->body + 20),
                      frame_get64(frame->body + 28) }
    };
    watch_note(boot, link, (int)rank, &news);
}

static void watch_link(struct dtn_boot *boot, struct boot_link *link)
{
    struct frame frame;
    enum frame_got got;

    while (link->state == LINK_JOINED) {
        frame_flush(&link->io);
        got = frame_recv(&link->io, &frame);
        if (got == FRAME_MORE || got == FRAME_NOMEM)
            return;
        if (got == FRAME_READY) {
            if (frame.type == FRAME_SAID)
                watch_said(boot, link, &frame);
            else
                watch_gone(boot, link, &frame);
            continue;
        }
        frame_close(&link->io);
        link->state = LINK_IDLE;
        watch_note(boot, link, link->rank,
                   &(struct dtn_gone){ .culprit = link->rank,
                                       .code = DTENSOR_EPEER });
    }
}

void dtn_boot_watch(struct dtn_boot *boot)
{
    int64_t now = dtn_now_ns();

    if (!boot->watching || now < boot->watch_ns)
        return;
    boot->watch_ns = now + EVERY_NS;
    watch_link(boot, &boot->up.link);
    for (int i = 0; i < boot->nchildren; i++)
        watch_link(boot, &boot->children[i]);
}

int dtn_boot_failed(const struct dtn_boot *boot)
{
    uint32_t earliest = UINT32_MAX;
    int failed = -1;

    for (int r = 0; r < boot->cluster->world_size; r++)
        if (boot->gone[r].order > 0 && boot->gone[r].order < earliest
            && boot->gone[r].code != 0 && r != boot->rank) {
            earliest = boot->gone[r].order;
            failed = r;
        }
    return failed;
}

const struct dtn_told *dtn_boot_told(const struct dtn_boot *boot, uint32_t i)
{
    return i < boot->ntold && i < boot->told_capacity
         ? &boot->told[(boot->ntold - 1 - i) % boot->told_capacity] : NULL;
}

const struct dtn_said *dtn_boot_said(const struct dtn_boot *boot, int rank,
                                     uint64_t fingerprint, int other)
{
    const struct dtn_said *said = NULL;
    const struct dtn_told *told;

    for (uint32_t i = 0; (told = dtn_boot_told(boot, i)); i++) {
        if (told->said.fingerprint != fingerprint || told->rank != rank
            || told->said.kind == DTN_SAID_JUDGED)
            continue;
        if (told->said.kind < DTN_SAID_SENT)
            return &told->said;
        if (!said || told->said.other == other)
            said = &told->said;
    }
    return said;
}

const struct dtn_gone *dtn_boot_gone(const struct dtn_boot *boot, int rank)
{
    return &boot->gone[rank];
}
