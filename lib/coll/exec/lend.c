/* lend.c - how memory that peers do not map is lent to them
 *
 * It is staged, that is copied to where they do; or they fetch it from this
 * process by a system call.  Which is faster differs with the distance of the
 * cores, and on a virtual machine that changes while a program runs.  A store
 * to a line that a peer has read must take it back first: 64 KiB take 6 us
 * between cores that share a cache and 40 between others, where storing past
 * the caches takes 8, and a fetch 8 and 13 in all.
 *
 * So the first runs of a plan try one after the other, and the one whose best
 * try was fastest is kept for a while.  Peers try the same in the same run; but
 * nothing needs them to agree, nor is the order of a sum concerned.
 *
 * Of a run that is started and polled for counts what its caller spends on it: the
 * start, the polls, and the time that dtensor_wait() lasts.
 */
#include "base/copy.h"
#include "base/wait.h"
#include "coll/exec/exec.h"
#include "sched/sched.h"
#include "transport/arena.h"

#include <stdbool.h>
#include <string.h>

enum {
    TRIES = 2,                    /* of each                                   */
    PERIOD = 128                  /* runs, and then again                      */
};
#define STAGED_MAX_BYTES ((size_t)4 << 20)       /* it is as much memory again */

/* Tried in this order, beginning with the one that the schedule asks for. */
static const struct exec_lending {
    bool fetched[2];              /* IN, OUT; else they are staged             */
    bool past;                    /* IN past the caches                        */
} lendings[EXEC_NLENDINGS] = {
    { .fetched = { false, false } },
    { .fetched = { true, true } },
    { .fetched = { false, false }, .past = true },
    { .fetched = { false, true }, .past = true },
};

/* Does it lend anything, or do peers map all that they touch? */
static bool run_lends(const struct exec_run *run)
{
    const struct dtn_sched *sched = &run->plan->sched;
    bool lends = false;

    for (int s = DTN_IN; s <= DTN_OUT && run->plan->lends; s++)
        lends |= sched->exposed[s] && sched->bytes[s] > 0
              && !dtn_arena_contains(&run->ctx->arena, run->base[s],
                                     sched->bytes[s]);
    return lends;
}

void dtn_lend_begin(struct exec_run *run)
{
    const struct exec_trials *trials = &run->plan->trials;
    const int first = run->plan->sched.lend == DTN_LEND_FETCHED;

    run->tried_ns = 0;
    run->lending = trials->best >= 0 ? trials->best : first;
    run->lends = run_lends(run);
    if (run->lends && trials->runs < TRIES * EXEC_NLENDINGS) {
        run->lending = (first + trials->runs) % EXEC_NLENDINGS;
        run->tried_ns = dtn_now_ns();
    }
}

void dtn_lend_leave(struct exec_run *run)
{
    if (run->tried_ns != 0)
        run->left_ns = dtn_now_ns();
}

/* As if it had begun so much later. */
void dtn_lend_return(struct exec_run *run)
{
    if (run->tried_ns != 0 && !run->ctx->waiting)
        run->tried_ns += dtn_now_ns() - run->left_ns;
}

void dtn_lend_end(struct exec_run *run)
{
    struct exec_trials *trials = &run->plan->trials;
    const int tried = trials->runs;
    int64_t took;

    if (!run->lends)
        return;
    trials->runs = (trials->runs + 1) % PERIOD;
    if (run->tried_ns == 0)
        return;
    took = dtn_now_ns() - run->tried_ns;
    if (tried < EXEC_NLENDINGS || took < trials->took_ns[run->lending])
        trials->took_ns[run->lending] = took;
    if (tried < TRIES * EXEC_NLENDINGS - 1)
        return;
    trials->best = 0;
    for (int i = 1; i < EXEC_NLENDINGS; i++)
        if (trials->took_ns[i] < trials->took_ns[trials->best])
            trials->best = i;
}

bool dtn_lend_fetched(const struct exec_run *run, enum dtn_space space)
{
    const struct dtn_sched *sched = &run->plan->sched;

    if (sched->lend == DTN_LEND_NEVER || space > DTN_OUT)
        return false;
    return sched->bytes[space] >= STAGED_MAX_BYTES
        || lendings[run->lending].fetched[space];
}

void dtn_lend_stage(struct exec_run *run, struct dtn_range shown)
{
    unsigned char *to = run->staged[DTN_IN] + shown.offset;
    const unsigned char *from = run->base[DTN_IN] + shown.offset;

    if (lendings[run->lending].past) {
        dtn_copy_past(to, from, shown.bytes);
        dtn_copy_fence();
    } else {
        memcpy(to, from, shown.bytes);
    }
    run->ctx->copied_bytes += shown.bytes;
}
