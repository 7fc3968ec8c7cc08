/* report.c - what a run reports to a watcher
 *
 * The bytes that a run will move follow from its schedule: the bytes of its
 * puts, of its eager messages, and of its loads from memory of peers.  An
 * allreduce of 8 bytes on two ranks has one eager message of 8 bytes.
 */
#include "coll/exec/report.h"
#include "coll/exec/exec.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"

#include <limits.h>
#include <stdbool.h>

/* Bytes that a step puts or sends. */
static uint64_t step_sends(const struct dtn_exec *exec, int s)
{
    const struct dtn_sched *sched = &exec->sched;
    const struct dtn_step *step = &sched->steps[s];

    if (step->op == DTN_OP_SIGNAL && step->tag == DTN_TAG_EAGER)
        return exec->steps[s].bytes;
    if (step->op != DTN_OP_PUT)
        return 0;
    return step->box < 0 ? exec->steps[s].bytes : dtn_step_bytes(sched, step);
}

/* Bytes that it loads from memory of peers, or reads there. */
static uint64_t step_loads(const struct dtn_exec *exec, int s)
{
    const struct dtn_sched *sched = &exec->sched;
    const struct dtn_step *step = &sched->steps[s];

    if (step->op != DTN_OP_COPY && step->op != DTN_OP_REDUCE
        && step->op != DTN_OP_FOLD)
        return 0;
    if (step->src.rank == sched->me)
        return 0;
    return dtn_step_bytes(sched, step)
         * (uint64_t)(step->src.rank < 0 ? dtn_sched_nterms(sched) - 1 : 1);
}

void dtn_exec_tell_begin(const struct dtn_exec *exec, bool continues)
{
    struct dtn_watcher *watcher = exec->group.ctx->watcher;
    struct dtn_activity call = {
        .kind = DTN_WATCHED_CALL, .name = exec->sched.name,
        .coll = exec->record.base == 0 ? DTN_COLL_EXCHANGE
              : (int)dtn_fingerprint_coll(exec->record.base),
        .ns = exec->predicted_ns, .continues = continues };

    for (int s = 0; !continues && s < exec->sched.nsteps; s++)
        call.bytes += step_sends(exec, s) + step_loads(exec, s);
    watcher->begin(watcher, &call);
}

void dtn_exec_tell_end(const struct dtn_exec *exec, bool done)
{
    struct dtn_watcher *watcher = exec->group.ctx->watcher;

    for (int s = 0; done && s < exec->sched.nsteps; s++)
        watcher->mapped += step_loads(exec, s);
    watcher->end(watcher);
}

/* It was started, and takes no time of its own; dtn_exec_warm() only tries. */
void dtn_exec_tell_start(struct dtn_exec *exec)
{
    if (!exec->group.ctx->watcher || exec->trials.runs == INT_MAX)
        return;
    dtn_exec_tell_begin(exec, false);
    dtn_exec_tell_end(exec, false);
    exec->flight = exec->group.ctx->watcher->flight;
}
