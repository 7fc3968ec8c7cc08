/* launch.h - operations in host or device memory */
#ifndef DTN_EXEC_LAUNCH_H
#define DTN_EXEC_LAUNCH_H

#include "coll/exec/run.h"
#include "device/memory.h"

#include <stdbool.h>
#include <stddef.h>

/* Turn the result of an operation of run->memory into the result of a step; an
 * operation that was launched goes on.  Not 0: the context is poisoned.
 */
int dtn_run_launched(struct dtn_exec_run *run, int rc);

/* Wait until the operations have completed.  0, or EAGAIN if it does not wait;
 * any other code: the context is poisoned.
 */
int dtn_run_finish(struct dtn_exec_run *run, bool waits);

/* Copy device memory for the CPU.  Not 0: the context is poisoned. */
int dtn_run_download(struct dtn_exec_run *run, void *to, const void *from,
                     size_t bytes);

/* The same as dtn_run_launched() and dtn_run_finish(), without a call if there
 * is nothing to do.
 */
static inline int dtn_run_done(struct dtn_exec_run *run, int rc)
{
    return rc == 0 ? 0 : dtn_run_launched(run, rc);
}

static inline int dtn_run_settle(struct dtn_exec_run *run, bool waits)
{
    return run->device.launched ? dtn_run_finish(run, waits) : 0;
}

/* Is it device memory, which neither the CPU nor peers access? */
static inline bool dtn_run_is_device(const struct dtn_exec_run *run,
                                     const void *mem)
{
    return run->memory != &dtn_host
        && run->memory->ops->holds(run->memory, mem);
}

#endif
