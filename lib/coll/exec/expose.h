/* expose.h - how peers access the buffers of a run */
#ifndef DTN_EXEC_EXPOSE_H
#define DTN_EXEC_EXPOSE_H

struct dtn_exec_run;

/* Make the exposed buffers of a run accessible for peers.  EAGAIN: the arena is
 * full, and other runs will give bounce buffers back.  Any other code: the
 * context is poisoned.
 */
int dtn_expose(struct dtn_exec_run *run);

/* Undo it; if `rc` is 0, copy staged results to OUT first. */
int dtn_unexpose(struct dtn_exec_run *run, int rc);

#endif
