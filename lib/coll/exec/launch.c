/* launch.c - operations of a run in the memory of its buffers
 *
 * An operation on host memory is complete when it returns.  An operation on
 * device memory is launched, and the run goes on; puts, signals of the host and
 * the end of the run wait until it has completed.
 */
#include "coll/exec/launch.h"
#include "coll/exec/exec.h"
#include "coll/exec/run.h"
#include "coll/exec/watch.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdbool.h>

int dtn_run_launched(struct dtn_exec_run *run, int rc)
{
    if (rc != DTN_LAUNCHED && run->device.records) {
        run->device.spoilt = true;    /* the run goes on without a graph      */
        return 0;
    }
    if (rc != DTN_LAUNCHED)
        return dtn_poison(run->ctx, rc, run->ctx->world.rank, "%s in %s "
                          "memory: %s", run->exec->sched.name,
                          run->memory->ops->name,
                          run->memory->ops->why(run->memory));
    run->device.launched = true;
    return 0;
}

int dtn_run_finish(struct dtn_exec_run *run, bool waits)
{
    int rc = !run->device.streams ? run->memory->ops->settle(run->memory, waits)
           : waits ? dtn_watch_settle(run) : dtn_watch_poll(run);

    if (rc == 0)
        run->device.launched = false;
    return rc == 0 || rc == DTENSOR_EAGAIN ? rc : dtn_run_launched(run, rc);
}

int dtn_run_download(struct dtn_exec_run *run, void *to, const void *from,
                     size_t bytes)
{
    int rc = dtn_run_done(run, run->memory->ops->copy(run->memory, to, from,
                                                      bytes));

    return rc == 0 ? dtn_run_settle(run, true) : rc;
}
