/* put.h - the steps that put and flush */
#ifndef DTN_EXEC_PUT_H
#define DTN_EXEC_PUT_H

struct dtn_exec_run;
struct dtn_exec_step;

int dtn_run_put(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

/* Wait until the sources of the puts to a peer may change. */
int dtn_run_flush(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

#endif
