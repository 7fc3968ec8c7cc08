/* report.h - what a run reports to a watcher */
#ifndef DTN_EXEC_REPORT_H
#define DTN_EXEC_REPORT_H

#include <stdbool.h>

struct dtn_exec;

/* Report that a run begins, or continues. */
void dtn_exec_tell_begin(const struct dtn_exec *exec, bool continues);

/* Report that it has ended, or pauses; `done`: all its steps were run. */
void dtn_exec_tell_end(const struct dtn_exec *exec, bool done);

/* Report a run that was only started, if there is a watcher. */
void dtn_exec_tell_start(struct dtn_exec *exec);

#endif
