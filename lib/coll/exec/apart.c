/* apart.c - a second queue of the device, for one started run
 *
 * Two started runs may begin in one order here and in another order at a peer.
 * With one queue per device, the first run here could block the run for which
 * the first run there waits.  So a started run whose device signals has a queue
 * of its own.  Only one run has it at a time.  In all other started runs the
 * hosts signal, and nothing in the first queue waits for a peer.
 */
#include "coll/exec/apart.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/run.h"
#include "coll/exec/watch.h"
#include "coll/state.h"
#include "coll/words.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdbool.h>

void dtn_apart_take(struct dtn_exec_run *run)
{
    struct dtn_coll_state *coll = dtn_coll_of(run->ctx);
    const struct dtn_memory_ops *ops = run->memory->ops;

    if (!run->polls || !run->exec->sched.streams || coll->apart || !ops->turn
        || !ops->signals(run->memory))
        return;
    coll->apart = run;
    run->device.apart = true;
    ops->turn(run->memory, true);
    dtn_words_of(run->ctx);       /* before the queue waits for the program   */
}

/* What the run has launched stays before what it will launch. */
int dtn_apart_leave(struct dtn_exec_run *run)
{
    dtn_apart_end(run);
    return dtn_run_done(run, run->memory->ops->join(run->memory));
}

void dtn_apart_end(struct dtn_exec_run *run)
{
    if (!run->device.apart)
        return;
    run->memory->ops->turn(run->memory, false);
    run->device.apart = false;
    dtn_coll_of(run->ctx)->apart = NULL;
}

/* A context that has ended is poisoned for the peers: what the device of this
 * rank tells them from now on is not true.
 */
void dtn_exec_give_up(struct dtensor_ctx *ctx)
{
    struct dtn_exec_run *run = dtn_coll_of(ctx)->apart;
    const struct dtensor_error ended = ctx->failure.err;

    if (!run)
        return;
    if (ctx->finished) {
        ctx->failure.err.code = 0;
        dtn_poison(ctx, DTENSOR_EINVAL, ctx->world.rank, "dtensor_fini() before "
                   "a started call has ended (dtensor_wait() for it)");
        ctx->failure.err = ended;
    }
    dtn_apart_turn(run, true);
    if (run->device.streams)
        dtn_watch_give_up(run);
    dtn_run_settle(run, true);
    dtn_apart_end(run);
}
