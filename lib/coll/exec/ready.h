/* ready.h - READY: the address and size of memory */
#ifndef DTN_EXEC_READY_H
#define DTN_EXEC_READY_H

#include "coll/exec/peer.h"

#include <stdbool.h>
#include <stddef.h>

struct dtensor_error;
struct dtn_exec;
struct dtn_exec_run;
struct dtn_exec_step;
struct dtn_signal;

/* The name in READY that is no space: words for signals of devices. */
enum { DTN_EXEC_WORDS = DTN_EXEC_NNAMES };

/* How far the steps of this rank access a peer's spaces between two of its
 * READY.
 */
struct dtn_exec_access {
    size_t bytes[DTN_EXEC_NNAMES];  /* from the start of each space           */
};

/* Compute, once, exec->reach: how far the steps access.   Errors: ENOMEM */
int dtn_ready_access(struct dtn_exec *exec, struct dtensor_error *err);

int dtn_ready_send(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                   struct dtn_signal *signal);

/* False: steps access more than the peer's memory. */
bool dtn_ready_receive(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                       const struct dtn_signal *signal);

#endif
