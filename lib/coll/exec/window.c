/* window.c - calls with private memory, through a small window
 *
 * Ranks exchange READY before they move a byte.  A rank that wants the window
 * names no memory in its READY.  So after the last READY all ranks know whether
 * one of them wants it.  If so, all skip the other steps and run a second
 * schedule (sched/emit/window.c), in which only the owner accesses private
 * memory.  It begins with a READY of its own, which costs 0.1 us of the 100 us
 * that 2 MiB take.
 *
 * The second schedule is made when a rank first asks for it.  Its memory, 0.5
 * to 1 MiB for two ranks, is a bounce buffer of the run.  So calls on memory of
 * dtensor_alloc() pay nothing, and all calls use the same window, which stays
 * in the cache.
 */
#include "coll/exec/window.h"
#include "base/error.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "coll/exec/lend.h"
#include "coll/exec/run.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "job/poison.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdlib.h>

int dtn_exec_set_window(struct dtn_exec *exec, const struct dtn_call *call,
                        struct dtensor_error *err)
{
    if (!exec->tries)
        return 0;
    exec->window = calloc(1, sizeof *exec->window);
    if (!exec->window)
        return dtn_fail_nomem(err, exec->sched.name, sizeof *exec->window);
    exec->window->call = *call;
    return 0;
}

/* Its peers are those of `exec`, and are connected. */
static int window_make(struct dtn_exec *exec, struct dtensor_error *err)
{
    struct dtn_exec_window *window = exec->window;
    struct dtn_sched sched;
    int rc = dtn_window_emitters[window->call.coll](&window->call, &sched, err);

    if (rc != 0)
        return rc;
    sched.reduction = exec->sched.reduction;
    rc = dtn_exec_create(&exec->group, &sched, &window->exec, err);
    if (rc != 0) {
        dtn_sched_fini(&sched);
        return rc;
    }
    free(window->exec->unmet);
    window->exec->unmet = NULL;
    return 0;
}

int dtn_window_take(struct dtn_exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;
    struct dtn_exec_window *window = run->exec->window;
    struct dtensor_error err;
    int rc;

    if (!window->exec && window_make(run->exec, &err) != 0)
        return dtn_poison(ctx, err.code, ctx->world.rank, "%s", err.text);
    rc = dtn_lend(run, DTN_BOUNCE_WINDOW,
                  window->exec->sched.bytes[DTN_TMP], "a window to");
    if (rc == 0)
        window->exec->base[DTN_TMP] = run->lent->mem;
    return rc;
}

int dtn_window_warm(struct dtn_exec_run *run)
{
    const int rc = run->exec->window ? dtn_window_take(run) : 0;

    dtn_lend_end(run);
    return rc;
}
