/* fault.h - faults injected into a transport */
#ifndef DTN_TRANSPORT_FAULT_H
#define DTN_TRANSPORT_FAULT_H

#include "dtensor.h"

struct dtn_transport;

/* Which faults.  Calls are counted from 1; 0: never. */
struct dtn_fault_plan {
    unsigned long fail_put;       /* number of the put that fails with `code` */
    unsigned long fail_signal;    /* number of the signal that fails          */
    unsigned long fail_connect;   /* number of the connect() that fails       */
    unsigned long drop_put;       /* number of the put that returns 0 and     */
                                  /* moves nothing                            */
    unsigned long drop_signal;    /* number of the signal that returns 0 and  */
                                  /* is not sent, nor its data                */
    unsigned long kill_signal;    /* number of the signal that kills this     */
                                  /* process with SIGKILL                     */
    unsigned long again_every;    /* of puts and signals together, one in so  */
                                  /* many returns EAGAIN                      */
    unsigned long delay_us;       /* sleep before each put and signal         */
    int code;                     /* DTENSOR_E... of those that fail          */
};

/* From now on the open transport has these faults.   Errors: ENOMEM */
int dtn_fault_inject(struct dtn_transport *tp,
                     const struct dtn_fault_plan *plan,
                     struct dtensor_error *err);

/* Parse a plan such as "kill_signal=3,delay_us=10", the text of DTN_FAULT. */
int dtn_fault_parse(const char *text, struct dtn_fault_plan *plan,
                    struct dtensor_error *err);

#endif
