/* window.h - private memory, through a small window */
#ifndef DTN_EXEC_WINDOW_H
#define DTN_EXEC_WINDOW_H

#include "sched/call.h"

struct dtn_exec;
struct dtn_exec_run;

/* The call of an executable, and what runs it if some rank's memory is private.
 */
struct dtn_exec_window {
    struct dtn_call call;         /* all of it that the emitter needs         */
    struct dtn_exec *exec;        /* NULL: not needed yet                     */
};

/* Make the executable of the window, unless it was made, and lend it memory for
 * a run.  EAGAIN: other runs will give bounce buffers back; any other code: the
 * context is poisoned.
 */
int dtn_window_take(struct dtn_exec_run *run);

/* Allocate what a run with a window needs. */
int dtn_window_warm(struct dtn_exec_run *run);

#endif
