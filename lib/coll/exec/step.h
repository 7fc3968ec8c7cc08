/* step.h - the steps of a run, one after the other */
#ifndef DTN_EXEC_STEP_H
#define DTN_EXEC_STEP_H

struct dtn_exec_run;

/* Run the steps from the next one to the end.  EAGAIN: a signal has not
 * arrived, and the run does not wait.  Any other code: the context is poisoned.
 */
int dtn_run_steps(struct dtn_exec_run *run);

#endif
