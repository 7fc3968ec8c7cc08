/* cpus.h - the CPUs that a rank runs on */
#ifndef DTN_JOB_CPUS_H
#define DTN_JOB_CPUS_H

#include "dtensor.h"

#include <sched.h>
#include <stdbool.h>

struct dtn_cpus {
    bool oversubscribed;          /* more ranks here than CPUs they may use   */
    bool shared;                  /* a wait found another rank on its CPU     */
    double ranks_per_cpu;         /* ranks for each CPU, of the fullest host  */
    bool bound;                   /* dtn_cpus_unbind() restores `before`      */
    cpu_set_t before;             /* of the thread that opened the context,   */
                                  /* when it was bound                        */
};

/* Bind this thread to the CPUs of [nodes] cpus that it may use now.
 * Errors: ECONF, ENODEV, ESYS, ENOMEM
 */
int dtn_cpus_bind(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Restore the CPUs of this thread, if it was bound. */
void dtn_cpus_unbind(struct dtensor_ctx *ctx);

#endif
