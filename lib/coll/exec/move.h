/* move.h - the steps that copy and reduce */
#ifndef DTN_EXEC_MOVE_H
#define DTN_EXEC_MOVE_H

struct dtn_exec_run;
struct dtn_exec_step;

int dtn_run_copy(struct dtn_exec_run *run, const struct dtn_exec_step *bound);
int dtn_run_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

#endif
