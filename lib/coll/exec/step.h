/* step.h - the steps of a run, one after the other */
#ifndef DTN_EXEC_STEP_H
#define DTN_EXEC_STEP_H

#include "coll/exec/bind.h"

#include <stdbool.h>

/* The function of a bound step, whose other fields are set. */
dtn_exec_step_f *dtn_step_function(const struct dtn_exec_step *bound);

/* Does it send or receive data that go with a signal, of at most 4 KiB? */
bool dtn_step_is_short(const struct dtn_exec_step *bound);

/* Run the first exec->nfirst steps: 0, or what the transport returned for the
 * next one.  EAGAIN: it has to wait.  The context is not poisoned.
 */
int dtn_run_first(struct dtn_exec_run *run);

/* Run the steps from the next one to the end.  EAGAIN: a signal has not
 * arrived, and the run does not wait.  Any other code: the context is poisoned.
 */
int dtn_run_steps(struct dtn_exec_run *run);

#endif
