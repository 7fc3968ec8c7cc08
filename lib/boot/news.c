/* news.c - news of ranks, kept and sent over the tree
 *
 * Of each rank the first news counts: it died, it left, or it gave up because
 * of another.  One that has left stays for those that hear through it
 * (leave.c), and may be lost then: this counts, too.  Of calls, which ranks
 * report when they differ, the last are kept.  What is new is forwarded to all
 * neighbours but the one that sent it.  Losses, and who gave up for them, also
 * go to the page of the host: its ranks are no neighbours any more if their
 * leader is lost.
 */
#include "boot/news.h"
#include "base/sparse.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/pulse.h"
#include "boot/record.h"
#include "boot/state.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dtn_boot_hold(struct dtn_boot *boot)
{
    pthread_mutex_lock(&boot->lock);
}

void dtn_boot_release(struct dtn_boot *boot)
{
    pthread_mutex_unlock(&boot->lock);
}

bool dtn_news_init(struct dtn_boot *boot)
{
    boot->peer_failures = dtn_sparse_new((size_t)boot->cluster->world_size,
                                         sizeof *boot->peer_failures);
    return boot->peer_failures != NULL;
}

void dtn_news_fini(struct dtn_boot *boot)
{
    dtn_sparse_free(boot->peer_failures, (size_t)boot->cluster->world_size,
                    sizeof *boot->peer_failures);
    free(boot->reports);
}

/* -------------------------------------------------------------- telling --- */

void dtn_news_send(struct dtn_boot_link *link, enum dtn_frame_type type,
                   const unsigned char *body, uint32_t size)
{
    const struct dtn_frame frame = { .type = type, .size = size, .body = body };

    if (link->state != DTN_LINK_JOINED)
        return;
    dtn_frame_post(&link->io, &frame, false);   /* or they learn it later    */
    dtn_frame_flush(&link->io);
}

void dtn_news_spread(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     enum dtn_frame_type type, const unsigned char *body,
                     uint32_t size)
{
    if (&boot->up.link != from)
        dtn_news_send(&boot->up.link, type, body, size);
    for (int i = 0; i < boot->nchildren; i++)
        if (&boot->children[i] != from)
            dtn_news_send(&boot->children[i], type, body, size);
}

/* How the rank was lost, and how its culprit was. */
static unsigned news_how(const struct dtn_peer_failure *failure)
{
    return (unsigned)failure->loss | (unsigned)failure->told << 4;
}

bool dtn_news_how(struct dtn_peer_failure *failure, unsigned how)
{
    failure->loss = (enum dtn_loss)(how & 0xf);
    failure->told = (enum dtn_loss)(how >> 4);
    return (how & 0xf) < DTN_NLOSSES && how >> 4 < DTN_NLOSSES;
}

static void news_pack(unsigned char body[DTN_FRAME_FAILURE_BYTES], int rank,
                      const struct dtn_peer_failure *failure)
{
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_frame_put32(body + 4, (uint32_t)failure->culprit);
    dtn_frame_put32(body + 8, (uint32_t)-failure->code
                              | news_how(failure) << 8
                              | (uint32_t)-failure->failed << 16);
    dtn_frame_put32(body + 12, (uint32_t)failure->mismatch.rank);
    dtn_frame_put32(body + 16, (uint32_t)failure->mismatch.witness);
    dtn_frame_put64(body + 20, failure->mismatch.called);
    dtn_frame_put64(body + 28, failure->mismatch.expected);
}

static void news_tell(struct dtn_boot *boot, const struct dtn_boot_link *from,
                      int rank, const struct dtn_peer_failure *failure)
{
    unsigned char body[DTN_FRAME_FAILURE_BYTES];

    news_pack(body, rank, failure);
    dtn_news_spread(boot, from, DTN_FRAME_FAILURE, body, sizeof body);
}

void dtn_news_repeat(const struct dtn_boot *boot, struct dtn_boot_link *link)
{
    unsigned char body[DTN_FRAME_FAILURE_BYTES];

    for (int r = 0; r < boot->cluster->world_size; r++) {
        if (boot->peer_failures[r].order == 0)
            continue;
        news_pack(body, r, &boot->peer_failures[r]);
        dtn_news_send(link, DTN_FRAME_FAILURE, body, sizeof body);
    }
}

/* Is it the first news of the rank?  One that has left may be lost later. */
static bool news_counts(const struct dtn_peer_failure *known,
                        const struct dtn_peer_failure *news)
{
    return known->order == 0
        || (known->code == 0 && news->loss != DTN_LOSS_NONE);
}

/* Keep news of a rank that counts, and forward it. */
void dtn_news_note(struct dtn_boot *boot, const struct dtn_boot_link *from,
                   int rank, const struct dtn_peer_failure *news)
{
    struct dtn_peer_failure *failure = &boot->peer_failures[rank];

    if (!news_counts(failure, news))
        return;
    failure->culprit = news->culprit;
    failure->loss = news->loss;
    failure->told = news->told;
    failure->failed = news->failed;
    failure->mismatch = news->mismatch;
    failure->heard_ns = dtn_now_ns();
    failure->code = news->code;
    failure->order = ++boot->npeer_failures;    /* the rest is read after it  */
    boot->hurries = boot->hurries || news->loss != DTN_LOSS_NONE;
    news_tell(boot, from, rank, failure);
    if (news->code == DTENSOR_EPEER)
        dtn_pulse_post(&boot->pulse, rank, news->culprit, news_how(news));
}

void dtn_news_read(struct dtn_boot *boot)
{
    struct dtn_peer_failure news = { .code = DTENSOR_EPEER };
    const uint32_t world = (uint32_t)boot->cluster->world_size;
    int rank, culprit;
    unsigned how;

    while (dtn_pulse_read(&boot->pulse, &rank, &culprit, &how)) {
        news.culprit = culprit;
        if ((uint32_t)rank < world && (uint32_t)culprit < world
            && dtn_news_how(&news, how) && rank != boot->rank)
            dtn_news_note(boot, NULL, rank, &news);
    }
}

void dtn_boot_report_failure(struct dtn_boot *boot, int culprit, int code,
                             const struct dtn_mismatch *mismatch)
{
    const struct dtn_peer_failure news = { .culprit = culprit, .code = code,
                                           .mismatch = *mismatch };

    if (!boot || !boot->watching)
        return;
    dtn_boot_hold(boot);
    dtn_news_note(boot, NULL, boot->rank, &news);
    dtn_boot_release(boot);
}

void dtn_boot_report_peer(struct dtn_boot *boot, int peer, int culprit,
                          int code, enum dtn_loss loss)
{
    const struct dtn_peer_failure news = { .culprit = culprit, .told = loss,
                                           .code = code };

    if (!boot->watching || culprit < 0
        || culprit >= boot->cluster->world_size)
        return;
    dtn_boot_hold(boot);
    dtn_news_note(boot, NULL, peer, &news);
    dtn_boot_release(boot);
}

static bool news_knows(const struct dtn_boot *boot, int rank,
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
static uint32_t news_told_max(const struct dtn_boot *boot)
{
    const uint32_t world = (uint32_t)boot->cluster->world_size;

    return 64 + 2 * (world < 1024 ? world : 1024);
}

/* Grow the ring of records when it is full for the first time.  A record has
 * 320 bytes, and a job without a mismatch has none.
 */
static void news_grow(struct dtn_boot *boot)
{
    const uint32_t most = news_told_max(boot), n = boot->report_capacity;
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

void dtn_news_call(struct dtn_boot *boot, const struct dtn_boot_link *from,
                   int rank, const struct dtn_call_record *record)
{
    unsigned char body[DTN_FRAME_CALL_BYTES + DTN_RECORD_TEXT];
    struct dtn_peer_call_report *report;
    size_t length;

    if (news_knows(boot, rank, record))
        return;
    news_grow(boot);
    if (boot->report_capacity == 0)
        return;                   /* no memory: the error text is shorter     */
    report = &boot->reports[boot->nreports++ % boot->report_capacity];
    *report = (struct dtn_peer_call_report){ .rank = rank, .record = *record };
    if (record->text)
        snprintf(report->text, sizeof report->text, "%s", record->text);
    report->record.text = record->text ? report->text : NULL;
    length = strlen(report->text);
    dtn_boot_record_pack(body, rank, record);
    memcpy(body + DTN_FRAME_CALL_BYTES, report->text, length);
    dtn_news_spread(boot, from, DTN_FRAME_CALL, body,
                    (uint32_t)(DTN_FRAME_CALL_BYTES + length));
}

void dtn_boot_report_call(struct dtn_boot *boot, int rank,
                          const struct dtn_call_record *record)
{
    if (!boot || !boot->watching)
        return;
    dtn_boot_hold(boot);
    dtn_news_call(boot, NULL, rank, record);
    dtn_boot_release(boot);
}

void dtn_news_lost(struct dtn_boot *boot, const struct dtn_boot_link *from,
                   int rank, enum dtn_loss loss)
{
    dtn_news_note(boot, from, rank,
                  &(struct dtn_peer_failure){ .culprit = rank, .loss = loss,
                                              .code = DTENSOR_EPEER });
}

/* -------------------------------------------------------- what is known --- */

/* The first rank of which a failure is known, or only a loss; -1: none. */
static int news_first(const struct dtn_boot *boot, bool lost)
{
    uint32_t earliest = UINT32_MAX;
    int failed = -1;

    for (int r = 0; boot->npeer_failures > 0 && r < boot->cluster->world_size;
         r++) {
        const struct dtn_peer_failure *failure = &boot->peer_failures[r];

        if (failure->order > 0 && failure->order < earliest
            && failure->code != 0 && r != boot->rank
            && (!lost || failure->loss != DTN_LOSS_NONE)) {
            earliest = failure->order;
            failed = r;
        }
    }
    return failed;
}

bool dtn_news_is_gone(const struct dtn_boot *boot, int rank)
{
    return boot->peer_failures[rank].order > 0
        && boot->peer_failures[rank].code != 0;
}

bool dtn_news_is_lost(const struct dtn_boot *boot, int rank)
{
    return rank >= 0 && boot->peer_failures[rank].order > 0
        && boot->peer_failures[rank].loss != DTN_LOSS_NONE;
}

int64_t dtn_news_last_loss_ns(const struct dtn_boot *boot)
{
    int64_t last_ns = 0;

    for (int r = 0; r < boot->cluster->world_size; r++)
        if (dtn_news_is_lost(boot, r)
            && boot->peer_failures[r].heard_ns > last_ns)
            last_ns = boot->peer_failures[r].heard_ns;
    return last_ns;
}

int dtn_boot_first_failure(const struct dtn_boot *boot)
{
    return news_first(boot, false);
}

int dtn_boot_first_loss(const struct dtn_boot *boot)
{
    return news_first(boot, true);
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
    const struct dtn_peer_call_report *report;

    for (uint32_t i = 0; (report = dtn_boot_call_report(boot, i)); i++)
        if (report->record.fingerprint == fingerprint && report->rank == rank
            && (report->record.kind < DTN_RECORD_SENT
                || (report->record.kind < DTN_RECORD_JUDGED
                    && report->record.other == other)))
            return &report->record;
    return NULL;
}

const struct dtn_peer_failure *dtn_boot_peer_failure(
    const struct dtn_boot *boot, int rank)
{
    return &boot->peer_failures[rank];
}
