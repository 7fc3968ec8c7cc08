/* doing.c - asking a rank what it does
 *
 * Rank 0 has waited for rank 3 for five seconds.  It asks over the tree.  If
 * the program of rank 3 waits too, its next look at the tree answers, after 5
 * ms at most.  If it computes, the thread that makes the heartbeats answers
 * for it, after 100 ms, with the last call that the program made.
 *
 * All ranks keep the last answers, and a rank that is asked by many at once is
 * asked once: a question that is younger than a second is not forwarded again.
 */
#include "boot/doing.h"
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

#define JUST_NS INT64_C(1000000000)       /* a question counts so long        */
#define WAITED_NS INT64_C(500000000)      /* a wait looks every 5 ms          */

/* What is kept of that rank; make: in the place of the oldest, if nothing is.
 */
static struct dtn_rank_doing *doing_of(struct dtn_boot *boot, int rank,
                                       bool make)
{
    struct dtn_rank_doing *last = boot->doing.last, *oldest = last;

    for (size_t i = 0; i < DTN_COUNT(boot->doing.last); i++) {
        if (last[i].asked_ns > 0 && last[i].rank == rank)
            return &last[i];
        if (last[i].asked_ns < oldest->asked_ns)
            oldest = &last[i];
    }
    if (!make)
        return NULL;
    *oldest = (struct dtn_rank_doing){ .rank = rank };
    return oldest;
}

/* Ask, or forward the question, unless that was just done. */
static void doing_ask(struct dtn_boot *boot, const struct dtn_boot_link *from,
                      int rank)
{
    struct dtn_rank_doing *doing = doing_of(boot, rank, true);
    const int64_t now = dtn_now_ns();
    unsigned char body[DTN_FRAME_DOING_BYTES];

    if (doing->asked_ns > 0 && now - doing->asked_ns < JUST_NS)
        return;
    doing->asked_ns = now;
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_news_spread(boot, from, DTN_FRAME_DOING, body, sizeof body);
}

void dtn_doing_asked(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame)
{
    uint32_t rank;

    if (frame->size != DTN_FRAME_DOING_BYTES)
        return;
    rank = dtn_frame_get32(frame->body);
    if (rank == (uint32_t)boot->rank)
        boot->doing.asked = true;
    else if (rank < (uint32_t)boot->cluster->world_size)
        doing_ask(boot, from, (int)rank);
}

void dtn_doing_heard(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame)
{
    struct dtn_call_record call;
    struct dtn_rank_doing *doing;
    int rank;

    if (frame->size != DTN_FRAME_DOES_BYTES
        || !dtn_boot_record_unpack(frame->body, boot->cluster->world_size,
                                   &rank, &call))
        return;
    doing = doing_of(boot, rank, true);
    doing->heard_ns = dtn_now_ns();
    if (doing->asked_ns == 0)
        doing->asked_ns = doing->heard_ns;
    doing->waits = dtn_frame_get32(frame->body + DTN_FRAME_CALL_BYTES) != 0;
    doing->call = call;
    dtn_news_spread(boot, from, DTN_FRAME_DOES, frame->body, frame->size);
}

void dtn_doing_answer(struct dtn_boot *boot, bool waits)
{
    unsigned char body[DTN_FRAME_DOES_BYTES];
    struct dtn_call_record call = { .kind = DTN_RECORD_NOTHING };

    if (!boot->doing.asked || !boot->doing.tell
        || (!waits && dtn_now_ns() - boot->doing.waited_ns < WAITED_NS))
        return;
    boot->doing.asked = false;
    boot->doing.tell(boot->doing.arg, waits, &call);
    dtn_boot_record_pack(body, boot->rank, &call);
    dtn_frame_put32(body + DTN_FRAME_CALL_BYTES, waits);
    dtn_news_spread(boot, NULL, DTN_FRAME_DOES, body, sizeof body);
}

/* ------------------------------------------------------ for other rooms --- */

void dtn_boot_tell_by(struct dtn_boot *boot, dtn_boot_tell_f *tell, void *arg)
{
    dtn_boot_hold(boot);
    boot->doing.tell = tell;
    boot->doing.arg = arg;
    dtn_boot_release(boot);
}

void dtn_boot_ask(struct dtn_boot *boot, int rank)
{
    dtn_boot_hold(boot);
    if (boot->watching && rank != boot->rank)
        doing_ask(boot, NULL, rank);
    dtn_boot_release(boot);
}

bool dtn_boot_doing(struct dtn_boot *boot, int rank, int64_t since_ns,
                    struct dtn_rank_doing *doing)
{
    const struct dtn_rank_doing *kept;
    bool known;

    dtn_boot_hold(boot);
    kept = doing_of(boot, rank, false);
    known = kept && kept->heard_ns >= since_ns;
    if (known)
        *doing = *kept;
    dtn_boot_release(boot);
    return known;
}
