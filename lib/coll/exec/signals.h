/* signals.h - signals that devices send each other
 *
 * For runs whose schedule allows it.
 */
#ifndef DTN_EXEC_SIGNALS_H
#define DTN_EXEC_SIGNALS_H

#include "sched/sched.h"

struct dtn_exec_peer;
struct dtn_exec_run;
struct dtn_exec_step;

/* Set run->device.streams: may this run signal by its device? */
int dtn_signals_begin(struct dtn_exec_run *run);

/* READY came from a peer. */
int dtn_signals_meet(struct dtn_exec_run *run,
                     const struct dtn_exec_step *bound);

/* Send DATA or DONE to a peer. */
int dtn_signals_post(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                     enum dtn_tag tag);

/* Let the device wait for DATA or DONE from a peer. */
int dtn_signals_hold(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                     enum dtn_tag tag);

#endif
