/* status.c - the status of another rank
 *
 * Rank 0 has waited for rank 3 for five seconds.  It sends a query over the
 * tree.  If the program of rank 3 waits too, its next look at the tree answers,
 * after 5 ms at most.  If it computes, the thread that makes the heartbeats
 * answers for it, after 100 ms.  The status is the last call that the program
 * made, and whether it waits in it.
 *
 * All ranks keep the last answers.  A query that is younger than a second is
 * not forwarded again, so a rank that many wait for is asked once.
 */
#include "boot/status.h"
#include "base/compiler.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/news.h"
#include "boot/record.h"
#include "boot/state.h"
#include "cluster/cluster.h"

#include <stdbool.h>
#include <stddef.h>

#define JUST_NS INT64_C(1000000000)       /* a query counts so long         */
#define WAITED_NS INT64_C(500000000)      /* a wait looks every 5 ms          */

/* What is kept of that rank; make: in the place of the oldest, if nothing is.
 */
static struct dtn_rank_status *status_of(struct dtn_boot *boot, int rank,
                                       bool make)
{
    struct dtn_rank_status *last = boot->status.last, *oldest = last;

    for (size_t i = 0; i < DTN_COUNT(boot->status.last); i++) {
        if (last[i].queried_ns > 0 && last[i].rank == rank)
            return &last[i];
        if (last[i].queried_ns < oldest->queried_ns)
            oldest = &last[i];
    }
    if (!make)
        return NULL;
    *oldest = (struct dtn_rank_status){ .rank = rank };
    return oldest;
}

/* Send or forward a query, unless that was just done. */
static void status_query(struct dtn_boot *boot,
                         const struct dtn_boot_link *from, int rank)
{
    struct dtn_rank_status *status = status_of(boot, rank, true);
    const int64_t now = dtn_now_ns();
    unsigned char body[DTN_FRAME_QUERY_BYTES];

    if (status->queried_ns > 0 && now - status->queried_ns < JUST_NS)
        return;
    status->queried_ns = now;
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_news_spread(boot, from, DTN_FRAME_QUERY, body, sizeof body);
}

void dtn_status_queried(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame)
{
    uint32_t rank;

    if (frame->size != DTN_FRAME_QUERY_BYTES)
        return;
    rank = dtn_frame_get32(frame->body);
    if (rank == (uint32_t)boot->rank)
        boot->status.queried = true;
    else if (rank < (uint32_t)boot->cluster->world_size)
        status_query(boot, from, (int)rank);
}

void dtn_status_heard(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame)
{
    struct dtn_call_record call;
    struct dtn_rank_status *status;
    int rank;

    if (frame->size != DTN_FRAME_STATUS_BYTES
        || !dtn_boot_record_unpack(frame->body, boot->cluster->world_size,
                                   &rank, &call))
        return;
    status = status_of(boot, rank, true);
    status->heard_ns = dtn_now_ns();
    if (status->queried_ns == 0)
        status->queried_ns = status->heard_ns;
    status->waits = dtn_frame_get32(frame->body + DTN_FRAME_CALL_BYTES) != 0;
    status->call = call;
    dtn_news_spread(boot, from, DTN_FRAME_STATUS, frame->body, frame->size);
}

void dtn_status_answer(struct dtn_boot *boot, bool waits)
{
    unsigned char body[DTN_FRAME_STATUS_BYTES];
    struct dtn_call_record call = { .kind = DTN_RECORD_NOTHING };

    if (!boot->status.queried || !boot->status.tell
        || (!waits && dtn_now_ns() - boot->status.waited_ns < WAITED_NS))
        return;
    boot->status.queried = false;
    boot->status.tell(boot->status.arg, waits, &call);
    dtn_boot_record_pack(body, boot->rank, &call);
    dtn_frame_put32(body + DTN_FRAME_CALL_BYTES, waits);
    dtn_news_spread(boot, NULL, DTN_FRAME_STATUS, body, sizeof body);
}

/* ------------------------------------------------------ for other rooms --- */

void dtn_boot_status_by(struct dtn_boot *boot, dtn_boot_status_f *tell,
                        void *arg)
{
    dtn_boot_hold(boot);
    boot->status.tell = tell;
    boot->status.arg = arg;
    dtn_boot_release(boot);
}

void dtn_boot_query(struct dtn_boot *boot, int rank)
{
    dtn_boot_hold(boot);
    if (boot->watching && rank != boot->rank)
        status_query(boot, NULL, rank);
    dtn_boot_release(boot);
}

bool dtn_boot_status(struct dtn_boot *boot, int rank, int64_t since_ns,
                    struct dtn_rank_status *status)
{
    const struct dtn_rank_status *kept;
    bool known;

    dtn_boot_hold(boot);
    kept = status_of(boot, rank, false);
    known = kept && kept->heard_ns >= since_ns;
    if (known)
        *status = *kept;
    dtn_boot_release(boot);
    return known;
}
