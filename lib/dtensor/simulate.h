/* dtensor/simulate.h - calls and plans on machines that are only described
 *
 * dtensor_call_ways() predicts by a formula what one call costs.  A simulation
 * runs the schedules of all ranks, step by step, on ports, switches and links:
 * 65,536 ranks take seconds.  It knows what a formula does not: messages that
 * meet on a link, slow ranks, noise, a link that is down, several calls at
 * once.
 */
#ifndef DTENSOR_SIMULATE_H
#define DTENSOR_SIMULATE_H

#include "collective.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the cluster file does not say about the machine.  NULL and 0: none. */
struct dtensor_machine {
    const char *topology;      /* links between hosts: "flat", or as          */
                               /* dtensor-plan(1) says                        */
    const char *noise;         /* "LENGTH/EVERY": interruptions of a CPU,     */
                               /* exponential, with these means; or           */
                               /* "file:PATH", a trace of them                */
    const char *slow;          /* "RANK:FACTOR,...": CPUs that are slower     */
    const char *failed;        /* "KIND:NUMBER,...": links that are down      */
    double gap_ns;             /* g: least time between two messages that a   */
                               /* network device sends, or that it receives   */
    double notice_ns;          /* o of the receiver, for each signal          */
};

/* One of the calls and redistributes that run together. */
struct dtensor_simulated {
    const struct dtensor_mesh *mesh;    /* its ranks; all of one context      */
    const struct dtensor_call *call;    /* the call                           */
    const char *algorithm;     /* NULL: the one that the call takes           */
    double start_ns;           /* when the ranks make it                      */
    const struct dtensor_plan *plan;    /* a redistribute, or NULL: then mesh */
                               /* and call; both, or neither: EINVAL          */
};

/* A message, or work of a CPU. */
struct dtensor_simulated_event {
    enum dtensor_step_kind kind;        /* what it is                         */
    int rank;                  /* that does it                                */
    int peer;                  /* that receives it; LOAD: whose memory it     */
                               /* comes from; LOCAL, WAIT: rank               */
    int call;                  /* of the calls and plans, from 0              */
    int step;                  /* of its schedule, from 0                     */
    int reduces;               /* 1: terms are combined                       */
    double start_ns, end_ns;   /* from its start to its end, or arrival       */
    uint64_t bytes;            /* moved                                       */
};
typedef void dtensor_simulated_f(const struct dtensor_simulated_event *event,
                                 void *arg);

/* How much a link had to do. */
struct dtensor_link_load {
    const char *kind;          /* "out of port"; static storage               */
    int number;                /* among its kind                              */
    double busy_ns;            /* while bytes were on it                      */
};

#define DTENSOR_LINK_LOADS 16

struct dtensor_simulation {
    double ns;                 /* until the last rank is done                 */
    int ranks;                 /* played; less than all if ranks do the same  */
    uint64_t steps, messages;  /* of those                                    */
    int nlinks;                /* links in `link`                             */
    struct dtensor_link_load link[DTENSOR_LINK_LOADS]; /* the busiest of each */
                               /* kind                                        */
    int npath;                 /* entries of `path`                           */
    struct dtensor_simulated_event *path; /* the critical path, from start to */
                               /* end: what the last rank waited for          */
    int ncalls;                /* entries of `call_ns`                        */
    double *call_ns;           /* when the last rank of each call is done     */
};

/* Simulate the calls and plans together.  `visit` (may be NULL) is called for
 * each event, by end; then all ranks are played.  Without it, without noise,
 * slow ranks and failed links, only one host is played if all do the same.
 *
 * Collective: no.   Blocks: no, and needs no peers: see dtensor_init_offline().
 * Owns:   *result is the caller's, for dtensor_simulation_fini().
 * Errors: EINVAL  a call is not valid, or has a plan beside it, or no algorithm
 *                 of that name runs it; no
 *                 such topology, rank or link, or a topology with too few
 *                 hosts; a bandwidth of 0; a trace that is shorter than the
 *                 run; more than 2^28 steps;
 *         ESYS    the trace cannot be read;  ENOMEM
 * Semantics: its own.
 */
int dtensor_simulate(const struct dtensor_machine *machine,
                     const struct dtensor_simulated calls[], int ncalls,
                     dtensor_simulated_f *visit, void *arg,
                     struct dtensor_simulation *result,
                     struct dtensor_error *err);

/* NULL is a no-op. */
void dtensor_simulation_fini(struct dtensor_simulation *result);

#ifdef __cplusplus
}
#endif

#endif
