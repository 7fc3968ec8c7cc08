/* expose.h - how peers access the buffers of a run */
#ifndef DTN_EXEC_EXPOSE_H
#define DTN_EXEC_EXPOSE_H

#include <stdint.h>

struct dtn_exec_run;

/* The methods to expose private memory, and the results of their trials. */
enum { DTN_EXEC_WINDOW = 4, DTN_EXEC_NMETHODS };
struct dtn_exec_trials {
    int runs;                     /* runs with private memory since the last  */
                                  /* trials began                             */
    int best;                     /* fastest method; -1: not known yet        */
    int64_t took_ns[DTN_EXEC_NMETHODS];    /* fastest run of each method      */
};

/* Make the exposed buffers of a run accessible for peers.  EAGAIN: the arena is
 * full, and other runs will give bounce buffers back.  Any other code: the
 * context is poisoned.
 */
int dtn_expose(struct dtn_exec_run *run);

/* Undo it; if `rc` is 0, copy staged results to OUT first. */
int dtn_unexpose(struct dtn_exec_run *run, int rc);

#endif
