/* apart.h - the second queue of a device, for a started run */
#ifndef DTN_EXEC_APART_H
#define DTN_EXEC_APART_H

#include "coll/exec/run.h"
#include "device/memory.h"

#include <stdbool.h>

/* Take the second queue for a started run that is about to begin, if its device
 * may signal and no other run has the queue.
 */
void dtn_apart_take(struct dtn_exec_run *run);

/* Go to the first queue after all. */
int dtn_apart_leave(struct dtn_exec_run *run);

/* Give the second queue back. */
void dtn_apart_end(struct dtn_exec_run *run);

/* Operations of the device go to the queue of the started run, or to the first
 * one.
 */
static inline void dtn_apart_turn(const struct dtn_exec_run *run, bool started)
{
    if (run->device.apart)
        run->memory->ops->turn(run->memory, started);
}

#endif
