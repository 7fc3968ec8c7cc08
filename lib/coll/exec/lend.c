/* lend.c - memory that a run has for TMP, for as long as it needs it
 *
 * Steps that are run only if some rank has private memory have no TMP of their
 * own, so calls on memory of dtensor_alloc() pay nothing for it.
 */
#include "coll/exec/lend.h"
#include "coll/exec/run.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "job/poison.h"
#include "dtensor.h"

int dtn_lend(struct dtn_exec_run *run, enum dtn_bounce_use use, size_t bytes,
             const char *what)
{
    struct dtensor_ctx *ctx = run->ctx;
    const int mine = (run->exposed.bounce[DTN_IN] != NULL)
                   + (run->exposed.bounce[DTN_OUT] != NULL);

    run->lent = dtn_bounce_take(ctx, use, run->memory, bytes);
    if (run->lent)
        return 0;
    if (run->polls && ctx->bounces.ntaken > mine)
        return DTENSOR_EAGAIN;
    return dtn_poison(ctx, DTENSOR_ENOMEM, ctx->world.rank, "no room to stage "
                      "%zu bytes for %s private memory (use dtensor_alloc, or "
                      "raise [transport] arena)", bytes, what);
}

void dtn_lend_end(struct dtn_exec_run *run)
{
    if (run->lent)
        dtn_bounce_give(run->ctx, run->lent);
    run->lent = NULL;
}
