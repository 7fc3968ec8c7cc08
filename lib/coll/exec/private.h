/* private.h - the steps of a schedule for private memory */
#ifndef DTN_EXEC_PRIVATE_H
#define DTN_EXEC_PRIVATE_H

struct dtn_exec_run;

/* After the last READY: lend TMP to these steps, and run them.  EAGAIN: other
 * runs will give bounce buffers back; any other code: the context is poisoned.
 */
int dtn_private_run(struct dtn_exec_run *run);

/* Allocate what they need. */
int dtn_private_warm(struct dtn_exec_run *run);

#endif
