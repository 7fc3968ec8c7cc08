/* watch.h - waiting for a device that waits for others */
#ifndef DTN_EXEC_WATCH_H
#define DTN_EXEC_WATCH_H

struct dtn_exec_run;

/* Wait until the device, which may wait for peers, is done.  Not 0: the context
 * is poisoned.
 */
int dtn_watch_settle(struct dtn_exec_run *run);

/* The same without waiting: also EAGAIN. */
int dtn_watch_poll(struct dtn_exec_run *run);

/* The run failed: let the device go on. */
void dtn_watch_give_up(struct dtn_exec_run *run);

#endif
