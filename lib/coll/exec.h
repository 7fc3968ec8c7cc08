/* exec.h - private to the coll room: a plan, and one run of it */
#ifndef DTN_EXEC_H
#define DTN_EXEC_H

#include "coll/coll.h"

/* What is known of a peer during one run. */
struct exec_peer {
    struct dtn_transport *tp;     /* NULL: this rank itself                    */
    int rank;                     /* in the world                              */
    struct dtn_remote remote[DTN_NSPACES];
    unsigned char *mapped[DTN_NSPACES];
};

/* One run. */
struct exec_run {
    struct dtn_plan *plan;
    struct dtensor_ctx *ctx;
    unsigned char *base[DTN_NSPACES];
    struct dtn_remote name[DTN_MAX_TRANSPORTS][DTN_NSPACES];
    uint32_t fingerprint;
    bool refused;                 /* a transport would not register a space    */
    void *out;                    /* the caller's; base[] may be a copy of it  */
    int step;                     /* the next                                  */
    bool polls;                   /* gives EAGAIN instead of waiting           */
    struct dtn_wait wait;         /* of the step it polls for                  */
};

struct dtn_plan {
    struct dtn_group group;
    struct dtn_sched sched;
    unsigned char *tmp;
    const void **terms;           /* [n] sources of a FOLD                     */
    struct exec_peer *peers;      /* [n]                                       */
    struct exec_run started;      /* by dtn_plan_start()                       */
};

#endif
