/* watch.c - news of ranks that are gone, sent over the tree
 *
 * The sockets of the tree stay open after all ranks have joined.  When a
 * process ends in any way, the kernel closes its sockets, and its neighbours
 * forward the news.  If the rank reported the cause itself, they also forward
 * the rank at fault.  Example: rank 2 of a tree 1 - 0 - 2 is killed before it
 * has connected to rank 1.  Rank 0 sees the end of the stream and sends rank 1
 * a frame of 36 bytes, so rank 1 does not wait for rank 2.  A host that loses
 * power closes nothing.  TCP keep-alive detects this within dead_after.  If
 * unacknowledged data is in flight, keep-alive does not run, and
 * TCP_USER_TIMEOUT detects it.
 *
 * A rank that leaves normally reports code 0.  This is no failure for ranks
 * that do not need it any more.
 *
 * Before a rank reports that it gives up for a mismatch, it sends its call the
 * same way.  So each rank can describe both calls.
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

/* ----------------------------------------------------------- keep-alive --- */

static void watch_tune(const struct dtn_boot *boot,
                       const struct dtn_boot_link *link)
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
    const unsigned accepts =
        DTN_FRAME_BIT(DTN_FRAME_FAILURE) | DTN_FRAME_BIT(DTN_FRAME_CALL);

    boot->up.link.io.accepts = accepts;
    watch_tune(boot, &boot->up.link);
    for (int i = 0; i < boot->nchildren; i++) {
        boot->children[i].io.accepts = accepts;
        watch_tune(boot, &boot->children[i]);
    }
    boot->watching = true;
}

/* -------------------------------------------------------------- telling --- */

static void watch_send(struct dtn_boot_link *link, enum dtn_frame_type type,
                       const unsigned char *body, uint32_t size)
{
    const struct dtn_frame frame = { .type = type, .size = size, .body = body };

    if (link->state != DTN_LINK_JOINED)
        return;
    dtn_frame_post(&link->io, &frame, false);   /* or they learn it later    */
    dtn_frame_flush(&link->io);
}

/* Forward a frame to all neighbours but the one that sent it. */
static void watch_spread(struct dtn_boot *boot,
                         const struct dtn_boot_link *from,
                         enum dtn_frame_type type, const unsigned char *body,
                         uint32_t size)
{
    if (&boot->up.link != from)
        watch_send(&boot->up.link, type, body, size);
    for (int i = 0; i < boot->nchildren; i++)
        if (&boot->children[i] != from)
            watch_send(&boot->children[i], type, body, size);
}

static void watch_tell(struct dtn_boot *boot, const struct dtn_boot_link *from,
                       int rank, const struct dtn_peer_failure *failure)
{
    unsigned char body[DTN_FRAME_FAILURE_BYTES];

    dtn_frame_put32(body, (uint32_t)rank);
    dtn_frame_put32(body + 4, (uint32_t)failure->culprit);
    dtn_frame_put32(body + 8, (uint32_t)-failure->code);
    dtn_frame_put32(body + 12, (uint32_t)failure->mismatch.rank);
    dtn_frame_put32(body + 16, (uint32_t)failure->mismatch.witness);
    dtn_frame_put64(body + 20, failure->mismatch.called);
    dtn_frame_put64(body + 28, failure->mismatch.expected);
    watch_spread(boot, from, DTN_FRAME_FAILURE, body, sizeof body);
}

/* Keep the first news of a rank, and forward it. */
static void watch_note(struct dtn_boot *boot, const struct dtn_boot_link *from,
                       int rank, const struct dtn_peer_failure *news)
{
    struct dtn_peer_failure *failure = &boot->peer_failures[rank];

    if (failure->order > 0)
        return;
    *failure = *news;
    failure->order = ++boot->npeer_failures;
    failure->heard_ns = dtn_now_ns();
    watch_tell(boot, from, rank, failure);
}

void dtn_boot_report_failure(struct dtn_boot *boot, int culprit, int code,
                             const struct dtn_mismatch *mismatch)
{
    const struct dtn_peer_failure news = { .culprit = culprit, .code = code,
                                           .mismatch = *mismatch };

    if (boot && boot->watching)
        watch_note(boot, NULL, boot->rank, &news);
}

static bool watch_knows(const struct dtn_boot *boot, int rank,
                        const struct dtn_call_record *record)
{
    const struct dtn_peer_call_report *report;

    for (uint32_t i = 0; (report = dtn_boot_call_report(boot, i)); i++)
        if (report->rank == rank
            && report->record.fingerprint == record->fingerprint
            && report->record.kind == record->kind
            && report->record.other == record->other)
            return true;
    return false;
}

/* The most records that are kept: two for each rank; in a large job fewer. */
static uint32_t watch_told_max(const struct dtn_boot *boot)
{
    const uint32_t world = (uint32_t)boot->cluster->world_size;

    return 64 + 2 * (world < 1024 ? world : 1024);
}

/* Grow the ring of records when it is full for the first time.  A record has
 * 320 bytes, and a job without a mismatch has none.
 */
static void watch_grow(struct dtn_boot *boot)
{
    const uint32_t most = watch_told_max(boot), n = boot->report_capacity;
    const uint32_t more = n == 0 ? 64 : 2 * n < most ? 2 * n : most;
    struct dtn_peer_call_report *report;

    if (boot->nreports != n || n == most)
        return;
    report = realloc(boot->reports, more * sizeof *report);
    if (!report)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (report[i].record.text)
            report[i].record.text = report[i].text;
    boot->reports = report;
    boot->report_capacity = more;
}

static void watch_say(struct dtn_boot *boot, const struct dtn_boot_link *from,
                      int rank, const struct dtn_call_record *record)
{
    unsigned char body[DTN_FRAME_CALL_BYTES + DTN_RECORD_TEXT];
    struct dtn_peer_call_report *report;
    size_t length;

    if (watch_knows(boot, rank, record))
        return;
    watch_grow(boot);
    if (boot->report_capacity == 0)
        return;                   /* no memory: the error text is shorter     */
    report = &boot->reports[boot->nreports++ % boot->report_capacity];
    *report = (struct dtn_peer_call_report){ .rank = rank, .record = *record };
    if (record->text)
        snprintf(report->text, sizeof report->text, "%s", record->text);
    report->record.text = record->text ? report->text : NULL;
    length = strlen(report->text);
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_frame_put32(body + 4, record->kind);
    dtn_frame_put64(body + 8, record->fingerprint);
    dtn_frame_put64(body + 16, record->group);
    dtn_frame_put32(body + 24, record->number);
    dtn_frame_put32(body + 28, record->n);
    dtn_frame_put32(body + 32, (uint32_t)record->other);
    dtn_frame_put64(body + 36, record->count);
    memcpy(body + DTN_FRAME_CALL_BYTES, report->text, length);
    watch_spread(boot, from, DTN_FRAME_CALL, body,
                 (uint32_t)(DTN_FRAME_CALL_BYTES + length));
}

void dtn_boot_report_call(struct dtn_boot *boot, int rank,
                          const struct dtn_call_record *record)
{
    if (boot && boot->watching)
        watch_say(boot, NULL, rank, record);
}

/* ------------------------------------------------------------ listening --- */

static void watch_said(struct dtn_boot *boot, const struct dtn_boot_link *link,
                       const struct dtn_frame *frame)
{
    const unsigned char *body = frame->body;
    const uint32_t world = (uint32_t)boot->cluster->world_size;
    char text[DTN_RECORD_TEXT] = "";
    struct dtn_call_record record;
    uint32_t rank, length;

    if (frame->size < DTN_FRAME_CALL_BYTES
        || frame->size - DTN_FRAME_CALL_BYTES >= sizeof text)
        return;
    length = frame->size - DTN_FRAME_CALL_BYTES;
    memcpy(text, body + DTN_FRAME_CALL_BYTES, length);
    for (uint32_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    rank = dtn_frame_get32(body);
    record = (struct dtn_call_record){
        .kind = (enum dtn_call_kind)dtn_frame_get32(body + 4),
        .fingerprint = dtn_frame_get64(body + 8),
        .group = dtn_frame_get64(body + 16),
        .number = dtn_frame_get32(body + 24),
        .n = dtn_frame_get32(body + 28),
        .other = (int32_t)dtn_frame_get32(body + 32),
        .count = dtn_frame_get64(body + 36),
        .text = length > 0 ? text : NULL
    };
    if (rank < world && (unsigned)record.kind < DTN_NRECORDS)
        watch_say(boot, link, (int)rank, &record);
}

static void watch_gone(struct dtn_boot *boot, const struct dtn_boot_link *link,
                        const struct dtn_frame *frame)
{
    uint32_t world = (uint32_t)boot->cluster->world_size, rank, culprit;
    uint32_t odd, witness;
    struct dtn_peer_failure news;

    if (frame->size != DTN_FRAME_FAILURE_BYTES)
        return;
    rank = dtn_frame_get32(frame->body);
    culprit = dtn_frame_get32(frame->body + 4);
    odd = dtn_frame_get32(frame->body + 12);
    witness = dtn_frame_get32(frame->body + 16);
    if (rank >= world || culprit >= world || odd >= world || witness >= world)
        return;
    news = (struct dtn_peer_failure){
        .culprit = (int)culprit,
        .code = -(int)(dtn_frame_get32(frame->body + 8) & 0xff),
        .mismatch = { (int32_t)odd, (int32_t)witness,
                      dtn_frame_get64(frame->body + 20),
                      dtn_frame_get64(frame->body + 28) }
    };
    watch_note(boot, link, (int)rank, &news);
}

static void watch_link(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    struct dtn_frame frame;
    enum dtn_frame_got got;

    while (link->state == DTN_LINK_JOINED) {
        dtn_frame_flush(&link->io);
        got = dtn_frame_recv(&link->io, &frame);
        if (got == DTN_FRAME_MORE || got == DTN_FRAME_NOMEM)
            return;
        if (got == DTN_FRAME_READY) {
            if (frame.type == DTN_FRAME_CALL)
                watch_said(boot, link, &frame);
            else
                watch_gone(boot, link, &frame);
            continue;
        }
        dtn_frame_close(&link->io);
        link->state = DTN_LINK_IDLE;
        watch_note(boot, link, link->rank,
                   &(struct dtn_peer_failure){ .culprit = link->rank,
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

int dtn_boot_first_failure(const struct dtn_boot *boot)
{
    uint32_t earliest = UINT32_MAX;
    int failed = -1;

    for (int r = 0; r < boot->cluster->world_size; r++)
        if (boot->peer_failures[r].order > 0
            && boot->peer_failures[r].order < earliest
            && boot->peer_failures[r].code != 0 && r != boot->rank) {
            earliest = boot->peer_failures[r].order;
            failed = r;
        }
    return failed;
}

const struct dtn_peer_call_report *dtn_boot_call_report(
    const struct dtn_boot *boot, uint32_t i)
{
    return i < boot->nreports && i < boot->report_capacity
               ? &boot->reports[(boot->nreports - 1 - i)
                                % boot->report_capacity]
               : NULL;
}

const struct dtn_call_record *dtn_boot_call_record(const struct dtn_boot *boot,
                                                   int rank,
                                                   uint64_t fingerprint,
                                                   int other)
{
    const struct dtn_call_record *record = NULL;
    const struct dtn_peer_call_report *report;

    for (uint32_t i = 0; (report = dtn_boot_call_report(boot, i)); i++) {
        if (report->record.fingerprint != fingerprint || report->rank != rank
            || report->record.kind == DTN_RECORD_JUDGED)
            continue;
        if (report->record.kind < DTN_RECORD_SENT)
            return &report->record;
        if (!record || report->record.other == other)
            record = &report->record;
    }
    return record;
}

const struct dtn_peer_failure *dtn_boot_peer_failure(
    const struct dtn_boot *boot, int rank)
{
    return &boot->peer_failures[rank];
}
