/* direct.h - how peers access buffers of a device, in place */
#ifndef DTN_EXEC_DIRECT_H
#define DTN_EXEC_DIRECT_H

#include "sched/sched.h"

#include <stdbool.h>

struct dtn_exec_run;
struct dtn_exec_step;

/* Name a space in place for the peers.  False: it has to be staged. */
bool dtn_direct_expose(struct dtn_exec_run *run, enum dtn_space space);

/* Take the name of a space back, see dtn_exec_name(). */
void dtn_direct_hide(struct dtn_exec_run *run, int name);

/* Put TMP and ACC on the device if peers can reach them there. */
void dtn_direct_scratch(struct dtn_exec_run *run);

/* Is a space staged that may not be? */
bool dtn_direct_missed(const struct dtn_exec_run *run);

/* Log how the buffers reach the peers, once for an executable. */
void dtn_direct_say(struct dtn_exec_run *run);

/* Where a put goes, if the device of this rank copies there itself; or NULL. */
unsigned char *dtn_direct_put_at(const struct dtn_exec_run *run,
                                 const struct dtn_exec_step *bound);

/* A put to or from device memory, where the peer's is mapped: a copy by the
 * device.
 */
int dtn_direct_put(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                   unsigned char *there);

/* A run on the host got a pointer to a peer's device memory: from here on the
 * device does its operations.
 */
void dtn_direct_adopt(struct dtn_exec_run *run);

/* Undo what this file did for the run. */
void dtn_direct_end(struct dtn_exec_run *run);

#endif
