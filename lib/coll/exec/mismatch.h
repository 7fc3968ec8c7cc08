/* mismatch.h - the report of an unexpected signal */
#ifndef DTN_EXEC_MISMATCH_H
#define DTN_EXEC_MISMATCH_H

struct dtn_exec_run;
struct dtn_signal;
struct dtn_step;

int dtn_run_mismatch(const struct dtn_exec_run *run,
                     const struct dtn_step *step,
                     const struct dtn_signal *signal);

#endif
