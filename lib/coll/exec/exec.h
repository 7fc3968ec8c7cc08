/* exec.h - private to the executor: an executable, made of these files
 *
 *     exec.c      makes a schedule ready to run
 *     bind.c      binds its steps to what a run needs
 *     run.c       begins and ends a run
 *     step.c      runs its steps
 *     ready.c     READY: the address and size of memory
 *     expose.c    how peers access the buffers of a run
 *     trials.c    which method gives them private memory
 *     direct.c    the same for buffers of a device, in place
 *     window.c    the same for private memory, through a small window
 *     private.c   or by other steps of the same schedule
 *     lend.c      memory for these two
 *     signals.c   signals that devices send each other
 *     graph.c     what a device does in a persistent call, recorded
 *     apart.c     the second queue of a device, for a started run
 *     watch.c     waiting for a device that waits for others
 *     launch.c    operations in host or device memory
 *     put.c       the steps that put and flush
 *     move.c      the steps that copy and reduce
 *     cma.c       the same with private memory of peers
 *     mismatch.c  the report of an unexpected signal
 *     report.c    what a run reports to a watcher
 */
#ifndef DTN_EXEC_EXEC_H
#define DTN_EXEC_EXEC_H

#include "base/wait.h"
#include "boot/boot.h"
#include "coll/exec/bind.h"
#include "coll/exec/trials.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "job/group.h"
#include "job/watcher.h"
#include "sched/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtensor_error;
struct dtn_exec_access;
struct dtn_exec_graph;
struct dtn_exec_window;

struct dtn_exec {
    struct dtn_group group;       /* ranks of the schedule                    */
    struct dtn_sched sched;       /* the schedule                             */
    struct dtn_call_record record;  /* the call it runs, for errors           */
    double predicted_ns;          /* time that the model says; 0: unknown     */
    struct dtn_flight flight;     /* of a started run, for who counts         */
    bool messages;                /* it is sends and receives                 */
    bool named;                   /* it sends READY with spaces               */
    enum dtn_space spaces[DTN_NSPACES];  /* that peers access, or IN and OUT  */
                                  /* if they are sources of puts              */
    int nspaces;                  /* their number                             */
    bool tries;                   /* it tries methods if some buffer is       */
                                  /* private memory                           */
    struct dtn_exec_trials trials;  /* results of the methods                 */
    size_t scale[DTN_NSPACES];    /* memory for each byte of a step: 1; in    */
                                  /* ACC dtn_reduction_ratio()                */
    unsigned char *tmp;           /* scratch, one piece of memory: TMP,       */
    unsigned char *acc;           /* then ACC                                 */
    const void **terms;           /* [most of a step] sources of a reduction  */
    void **places;                /* [most of a step] where a fold stores its */
                                  /* result                                   */
    int *met;                     /* [nmet] positions that steps name, in     */
                                  /* order, and that of this rank             */
    int nmet;                     /* their number                             */
    size_t npeers;                /* positions of the schedule, n             */
    struct dtn_exec_peer *peers;  /* [npeers] sparse: those of `met`          */
    unsigned char **base;         /* [dtn_exec_nbase()] sparse; set by a run  */
                                  /* and by READY; NULL: not mapped, or no    */
                                  /* bytes                                    */
    struct dtn_exec_step *steps;  /* [dtn_sched_all()]                        */
    int nfirst;                   /* short messages that they begin with      */
    int *unmet;                   /* [nunmet] world ranks to connect to       */
                                  /* before the first run; NULL: all are      */
                                  /* connected                                */
    int nunmet;                   /* their number                             */
    unsigned wires;               /* bit t: some step's peer is reached by    */
                                  /* transport t                              */
    bool said;                    /* how buffers of a device go is in the log */
    unsigned char *far;           /* scratch on the device, in place of tmp   */
                                  /* and acc; NULL: not needed yet            */
    struct dtn_wait meeting;      /* wait state of the connecting             */
    struct dtn_exec_access *reach;    /* one for each wait for READY, in      */
                                      /* order                                */
    int nready;                   /* waits for READY                          */
    struct dtn_exec_graph *graph; /* of a persistent call; NULL: none         */
    struct dtn_exec_window *window;   /* for private memory; NULL: none       */
    struct dtn_exec_run started;      /* the run of dtn_exec_start()          */
};

/* The entries of exec->base. */
static inline size_t dtn_exec_nbase(const struct dtn_exec *exec)
{
    return (size_t)dtn_exec_peer_base((int)exec->npeers, 0);
}

/* Is it memory of this rank, or mapped? */
static inline bool dtn_run_maps(const struct dtn_exec_run *run,
                                struct dtn_exec_at at)
{
    return at.base < DTN_EXEC_PEERS || run->exec->base[at.base];
}

/* Its address if so, or NULL. */
static inline unsigned char *dtn_run_at(const struct dtn_exec_run *run,
                                        struct dtn_exec_at at)
{
    unsigned char *base = run->exec->base[at.base];

    return base ? base + at.offset : NULL;        /* a barrier has no bytes   */
}

/* Make progress on the connections to all peers of the executable, without
 * waiting: 0 or EAGAIN.
 */
int dtn_exec_meet(struct dtn_exec *exec, struct dtensor_error *err);

/* Number the messages of a new run. */
void dtn_exec_count_messages(struct dtn_exec *exec);

#endif
