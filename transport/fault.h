/* fault.h - a transport that goes wrong on purpose */
#ifndef DTN_TRANSPORT_FAULT_H
#define DTN_TRANSPORT_FAULT_H

#include "dtensor.h"

struct dtn_transport;

/* What the fault transport does to the one it wraps.  Counts are of calls on
 * it, from 1; 0 never.
 */
struct dtn_fault_plan {
    unsigned long fail_put;       /* this put fails with `code`                */
    unsigned long fail_signal;
    unsigned long fail_connect;
    unsigned long drop_put;       /* this put says done and moves nothing      */
    unsigned long drop_signal;
    unsigned long kill_signal;    /* raise SIGKILL in this process instead     */
    unsigned long again_every;    /* each n-th put and signal gives EAGAIN     */
    unsigned long delay_us;       /* sleep before each put and signal          */
    int code;
};

/* Wrap an open transport: the result closes it.  Plan text such as
 * "kill_signal=3,delay_us=10" is also taken from DTN_FAULT by the context.
 */
int dtn_fault_wrap(struct dtn_transport *inner,
                   const struct dtn_fault_plan *plan,
                   struct dtn_transport **tpp, struct dtensor_error *err);
int dtn_fault_parse(const char *text, struct dtn_fault_plan *plan,
                    struct dtensor_error *err);

#endif
