/* private.c - the steps of a schedule for private memory
 *
 * A schedule may have steps for the case that OUT of some rank is memory of
 * malloc() (dtn_sched_private()).  A rank that has such an OUT gives no address
 * of it in its READY.  So after the last READY all ranks know whether one of
 * them does, and run these steps instead of the rest.  It costs no signal.
 */
#include "coll/exec/private.h"
#include "coll/exec/exec.h"
#include "coll/exec/lend.h"
#include "coll/exec/run.h"
#include "coll/exec/step.h"
#include "job/bounce.h"
#include "sched/sched.h"

static int private_take(struct dtn_exec_run *run)
{
    return dtn_lend(run, DTN_BOUNCE_TERMS, run->exec->sched.bytes[DTN_TMP],
                    "sums of");
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

    dtn_lend_end(run);
    return rc;
}
