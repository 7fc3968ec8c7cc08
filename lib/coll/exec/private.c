/* private.c - the steps of a schedule for private memory
 *
 * A schedule may have steps for the case that OUT of some rank is memory of
 * malloc() (dtn_sched_private()).  A rank that has such an OUT gives no address
 * of it in its READY.  So after the last READY all ranks know whether one of
 * them does, and run these steps instead of the rest.  It costs no signal.
 */
#include "coll/exec/private.h"
#include "coll/exec/exec.h"
#include "coll/exec/run.h"
#include "coll/exec/step.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "job/poison.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stddef.h>

static int private_take(struct dtn_exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;
    const size_t bytes = run->exec->sched.bytes[DTN_TMP];
    const int mine = (run->exposed.bounce[DTN_IN] != NULL)
                   + (run->exposed.bounce[DTN_OUT] != NULL);

    run->lent = dtn_bounce_take(ctx, DTN_BOUNCE_TERMS, run->memory, bytes);
    if (run->lent)
        return 0;
    if (run->polls && ctx->bounces.ntaken > mine)
        return DTENSOR_EAGAIN;
    return dtn_poison(ctx, DTENSOR_ENOMEM, ctx->world.rank, "no room to stage "
                      "%zu bytes of sums of private memory (use dtensor_alloc, "
                      "or raise [transport] arena)", bytes);
}

int dtn_private_run(struct dtn_exec_run *run)
{
    const struct dtn_sched *sched = &run->exec->sched;
    int rc = run->lent ? 0 : private_take(run);

    if (rc != 0)
        return rc;
    if (run->progress.end <= sched->nsteps) {
        run->exec->base[DTN_TMP] = run->lent->mem;
        run->progress.step = sched->nsteps;
        run->progress.end = dtn_sched_all(sched);
    }
    return dtn_run_steps(run);
}

int dtn_private_warm(struct dtn_exec_run *run)
{
    const int rc = private_take(run);

    if (run->lent)
        dtn_bounce_give(run->ctx, run->lent);
    run->lent = NULL;
    return rc;
}
