/* boot_watch.c - who is gone, told along the tree
 *
 * The sockets of the tree stay open when all have joined, and a process that
 * ends closes its own, however it ends.  Its neighbours pass on that it is
 * gone, and on whose account when it said so itself: with rank 2 of a tree
 * 1 - 0 - 2 killed before it ever met rank 1, rank 0 sees the end of a stream,
 * rank 1 gets a frame of 28 bytes from rank 0, and need not wait for a meeting
 * that never comes.  A host without power closes nothing: keep-alive notices
 * that within dead_after.
 *
 * To be gone is no failure: who leaves says so, with code 0, and who needs the
 * rank no more does not care.
 */
#include "net/boot.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { EVERY_NS = 5000000 };

/* ------------------------------------------------------------ keep-alive --- */

static void watch_tune(const struct dtn_boot *boot, const struct boot_link *link)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;
    int idle = (int)(conf->heartbeat_ns / 1000000000), count;
    const int on = 1;

    if (link->io.fd < 0 || link->io.local)
        return;
    idle = idle < 1 ? 1 : idle < 32767 ? idle : 32767;
    count = (int)(conf->dead_after_ns / 1000000000 / idle);
    count = count < 1 ? 1 : count < 127 ? count : 127;
    setsockopt(link->io.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(link->io.fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(link->io.fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(link->io.fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

void dtn_boot_watch_start(struct dtn_boot *boot)
{
    boot->up.link.io.accepts = FRAME_BIT(FRAME_GONE);
    watch_tune(boot, &boot->up.link);
    for (int i = 0; i < boot->nchildren; i++) {
        boot->children[i].io.accepts = FRAME_BIT(FRAME_GONE);
        watch_tune(boot, &boot->children[i]);
    }
    boot->watching = true;
}

/* --------------------------------------------------------------- telling --- */

static void watch_post(struct boot_link *link, int rank,
                       const struct dtn_gone *gone)
{
    unsigned char body[FRAME_GONE_BYTES];
    const struct frame frame = { .type = FRAME_GONE, .size = sizeof body,
                                 .body = body };

    if (link->state != LINK_JOINED)
        return;
    frame_put32(body, (uint32_t)rank);
    frame_put32(body + 4, (uint32_t)gone->culprit);
    frame_put32(body + 8, (uint32_t)-gone->code);
    frame_put32(body + 12, (uint32_t)gone->mismatch.rank);
    frame_put32(body + 16, (uint32_t)gone->mismatch.witness);
    frame_put32(body + 20, gone->mismatch.called);
    frame_put32(body + 24, gone->mismatch.expected);
    frame_post(&link->io, &frame, false);       /* or they learn it later    */
    frame_flush(&link->io);
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
    if (&boot->up.link != from)
        watch_post(&boot->up.link, rank, gone);
    for (int i = 0; i < boot->nchildren; i++)
        if (&boot->children[i] != from)
            watch_post(&boot->children[i], rank, gone);
}

void dtn_boot_blame(struct dtn_boot *boot, int culprit, int code,
                    const struct dtn_mismatch *mismatch)
{
    const struct dtn_gone news = { .culprit = culprit, .code = code,
                                   .mismatch = *mismatch };

    if (boot && boot->watching)
        watch_note(boot, NULL, boot->rank, &news);
}

/* ------------------------------------------------------------- listening --- */

static void watch_frame(struct dtn_boot *boot, const struct boot_link *link,
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
                      frame_get32(frame->body + 20),
                      frame_get32(frame->body + 24) }
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
            watch_frame(boot, link, &frame);
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

const struct dtn_gone *dtn_boot_gone(const struct dtn_boot *boot, int rank)
{
    return &boot->gone[rank];
}
