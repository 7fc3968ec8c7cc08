/* cpus.h - the CPUs that a rank runs on */
#ifndef DTN_JOB_CPUS_H
#define DTN_JOB_CPUS_H

#include "dtensor.h"

#include <sched.h>
#include <stdbool.h>

/* A cpu_set_t has 1,024 CPUs; Linux can have 8 times as many. */
enum { DTN_CPU_SETS = 8, DTN_CPU_BYTES = DTN_CPU_SETS * sizeof(cpu_set_t) };

struct dtn_cpus {
    bool oversubscribed;          /* more ranks here than CPUs they may use   */
    bool shared;                  /* a wait found another rank on its CPU     */
    double ranks_per_cpu;         /* ranks for each CPU, of the fullest host  */
    bool bound;                   /* dtn_cpus_unbind() restores `before`      */
    cpu_set_t before[DTN_CPU_SETS]; /* of the thread that opened the context, */
                                  /* when it was bound                        */
};

/* The CPUs that this thread may use, CPU n as n modulo 1,024: enough to compare
 * their number with that of the ranks of a host, which is not larger.
 */
cpu_set_t dtn_cpus_folded(void);

/* Bind this thread to the CPUs of [nodes] cpus that it may use now.
 * Errors: ECONF, ENODEV, ESYS, ENOMEM
 */
int dtn_cpus_bind(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Restore the CPUs of this thread, if it was bound. */
void dtn_cpus_unbind(struct dtensor_ctx *ctx);

#endif
