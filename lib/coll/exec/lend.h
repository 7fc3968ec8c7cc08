/* lend.h - memory that a run has for TMP, for as long as it needs it */
#ifndef DTN_EXEC_LEND_H
#define DTN_EXEC_LEND_H

#include "job/bounce.h"

#include <stddef.h>

struct dtn_exec_run;

/* Lend a run a bounce buffer, run->lent.  EAGAIN: other runs will give bounce
 * buffers back; any other code: the context is poisoned, with the words what
 * the memory is for.
 */
int dtn_lend(struct dtn_exec_run *run, enum dtn_bounce_use use, size_t bytes,
             const char *what);

/* Take it back, if some was lent. */
void dtn_lend_end(struct dtn_exec_run *run);

#endif
