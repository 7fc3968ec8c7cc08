/* run.h - one run of an executable */
#ifndef DTN_EXEC_RUN_H
#define DTN_EXEC_RUN_H

#include "base/box.h"
#include "base/error.h"
#include "base/wait.h"
#include "coll/exec/peer.h"
#include "coll/exec/trials.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_bounce;
struct dtn_exec;
struct dtn_memory;

/* The buffers of a run as its peers reach them: expose.c, direct.c. */
struct dtn_run_exposed {
    unsigned char *staged[DTN_NSPACES];    /* the staged copy that peers      */
                                           /* access, or NULL                 */
    struct dtn_bounce *bounce[DTN_OUT + 1];        /* bounce buffers of IN    */
                                                   /* and OUT, or NULL        */
    /* the name of each exposed space, for the peers of each transport */
    struct dtn_remote name[DTN_MAX_TRANSPORTS][DTN_EXEC_NNAMES];
    size_t behind[DTN_EXEC_NNAMES];   /* size of each named space, bytes      */
    bool refused;                 /* a transport refused to register a space  */
};

/* How a run exposes private memory, and how long it takes: trials.c. */
struct dtn_run_trial {
    bool is_private;              /* some exposed buffer is private memory    */
    enum dtn_exec_method method;  /* how it is exposed                        */
    bool counts;                  /* its time is compared                     */
    int64_t timed_ns;             /* start time of a trial; 0: not timed      */
    int64_t left_ns;              /* end of the last start or poll, if timed  */
};

/* What a device does of a run. */
struct dtn_run_device {
    bool launched;                /* some operations have not completed       */
    bool streams;                 /* it may signal: signals.c                 */
    struct dtn_remote words;      /* if so, name of the words for it          */
    bool apart;                   /* operations go to the second queue        */
    bool defers;                  /* it says READY to all peers at once: it   */
                                  /* may be in a graph                        */
    bool records;                 /* operations are recorded: graph.c         */
    bool spoilt;                  /* one could not be                         */
};

/* How far a run is. */
struct dtn_run_progress {
    int step;                     /* index of the next step                   */
    int end;                      /* index after the last one                 */
    int nready;                   /* READY received so far                    */
    struct dtn_exec_rows {            /* a put of a box in progress           */
        bool begun;               /* some rows were put                       */
        bool singly;              /* the transport takes them one by one      */
        struct dtn_box box;       /* without the last two dimensions          */
        struct dtn_walk walk;     /* the next rows at one distance            */
        struct dtn_strided strided;  /* these rows; src is not set            */
        size_t at;                /* of these rows already put                */
    } rows;
    size_t moved;                 /* bytes already put of the put or row in   */
                                  /* progress                                 */
};

/* One run. */
struct dtn_exec_run {
    struct dtn_exec *exec;        /* what it runs                             */
    struct dtensor_ctx *ctx;      /* the executable's context                 */
    const struct dtn_memory *memory;       /* kind of memory whose functions  */
                                           /* do the operations               */
    uint64_t fingerprint;         /* of the call of this run                  */
    bool polls;                   /* returns EAGAIN instead of waiting        */
    struct dtn_wait wait;         /* wait state of the step that it polls for */
    bool hidden;                  /* OUT of some rank is private: after READY */
                                  /* the private steps are run, private.c     */
    bool windowed;                /* some rank wants the window: the steps    */
                                  /* after READY are left out                 */
    struct dtn_bounce *lent;      /* TMP of those steps or of the window;     */
                                  /* NULL: they have not begun                */
    struct dtn_run_progress progress;      /* how far it is                   */
    struct dtn_run_exposed exposed;        /* its buffers                     */
    struct dtn_run_trial trial;   /* of private memory                        */
    struct dtn_run_device device; /* what a device does                       */
};

/* This run is under way; NULL: none.  A call that another thread makes
 * meanwhile is refused: the steps of both would mix.
 */
static inline void dtn_run_now(const struct dtensor_ctx *ctx,
                               const struct dtn_exec_run *run)
{
    atomic_store_explicit(&dtn_coll_of(ctx)->run, run, memory_order_relaxed);
}

static inline int dtn_run_alone(const struct dtensor_ctx *ctx,
                                struct dtensor_error *err)
{
    return !atomic_load_explicit(&dtn_coll_of(ctx)->run, memory_order_relaxed)
         ? 0 : dtn_fail(err, DTENSOR_EINVAL, "context: a call of this rank is "
                        "under way, in another thread or in a function of a "
                        "reduction (one call at a time)");
}

/* Send a signal with signal->len bytes of host memory. */
static inline int dtn_run_send(struct dtn_exec_run *run, int rank,
                               struct dtn_signal *signal, const void *data)
{
    return run->polls
         ? dtn_poll_signal(run->ctx, rank, &run->wait, signal, data)
         : dtn_signal(run->ctx, rank, signal, data);
}

#endif
