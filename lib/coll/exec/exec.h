/* exec.h - private to the executor: a plan, and one run of it
 *
 * plan.c      a schedule made ready to run
 * bind.c      its steps, bound to what a run of them needs
 * run.c       its steps, one after the other
 * ready.c     READY: where memory is, and how much
 * expose.c    how peers reach the buffers of a run
 * launch.c    operations in memory of either kind
 * move.c      the steps that copy and reduce
 * cma.c       the same with private memory of peers
 * said.c      a signal that was not expected, in words
 */
#ifndef DTN_EXEC_H
#define DTN_EXEC_H

#include "base/box.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_span;
struct dtn_step;
struct dtn_transport;

/* The spaces that READY names: IN, OUT, and TMP or ACC, whichever is exposed.
 */
enum { DTN_EXEC_NNAMES = 3 };

static inline int dtn_exec_name(enum dtn_space space)
{
    return space == DTN_ACC ? DTN_TMP : space;
}

/* What is known of a peer during one run. */
struct dtn_exec_peer {
    struct dtn_transport *tp;     /* NULL: this rank itself                    */
    int transport;                /* its index in ctx->transports              */
    int rank;                     /* in the world                              */
    uint64_t turn[2];             /* hash of the last message's number, by     */
                                  /* direction: part of the salts of its steps */
    struct dtn_remote remote[DTN_EXEC_NNAMES];     /* its spaces, by its READY     */
};

/* plan->base: addresses of this rank's spaces; of OUT where peers see it; and of
 * the mapped spaces of each peer.
 */
enum { DTN_EXEC_OUT_EXPOSED = DTN_NSPACES, DTN_EXEC_PEERS };

static inline int dtn_exec_peer_base(int position, int name)
{
    return DTN_EXEC_PEERS + position * DTN_EXEC_NNAMES + name;
}

/* Where a span of memory is. */
struct dtn_exec_at {
    int base;                     /* index in plan->base                       */
    size_t offset;                /* from there, bytes                         */
};

/* A step with all that running it needs. */
struct dtn_exec_step {
    const struct dtn_step *step;
    struct dtn_exec_peer *peer;       /* of PUT, FLUSH, SIGNAL, WAIT               */
    struct dtn_exec_at dst, src;
    size_t bytes;                 /* of memory, at the end that is own         */
    size_t count;                 /* elements                                  */
    const struct dtn_exec_at *terms;  /* [nterms] of a reduction                   */
    int nterms;
    unsigned partial;             /* which are partial results: dtn_fold()     */
};

/* How far the steps of this rank reach into a peer's spaces, between two of its
 * READY.
 */
struct dtn_exec_reach {
    size_t bytes[DTN_EXEC_NNAMES];
};

/* The methods to expose private memory, and what trying each has shown. */
enum { DTN_EXEC_NMETHODS = 4 };
struct dtn_exec_trials {
    int runs;                     /* with private memory, since the trials     */
                                  /* began last                                */
    int best;                     /* method, -1: not known yet                 */
    int64_t took_ns[DTN_EXEC_NMETHODS];    /* its fastest run                      */
};

/* One run. */
struct dtn_exec_run {
    struct dtn_plan *plan;
    struct dtensor_ctx *ctx;
    const struct dtn_memory *memory;       /* kind that does the operations    */
    bool launched;                /* some that are not settled                 */
    unsigned char *staged[DTN_NSPACES];    /* what peers see in its stead, or  */
                                           /* NULL                             */
    unsigned char *bounce[DTN_NSPACES];    /* for IN or OUT of a device: where */
                                           /* puts read it, or NULL            */
    struct dtn_remote name[DTN_MAX_TRANSPORTS][DTN_EXEC_NNAMES];
    size_t behind[DTN_EXEC_NNAMES];   /* bytes                                     */
    uint64_t fingerprint;
    int method;                   /* to expose private memory                  */
    bool is_private;              /* some exposed buffer is private memory     */
    int64_t timed_ns;             /* start, of a trial; 0: not timed           */
    int64_t left_ns;              /* end of the last start or poll, if timed   */
    bool refused;                 /* a transport would not register a space    */
    int step;                     /* the next                                  */
    struct dtn_exec_rows {            /* a put of a box in progress                */
        bool begun;
        struct dtn_box box;       /* rest of the box, without the row dims     */
        struct dtn_walk walk;
        size_t bytes;             /* of a row                                  */
    } rows;
    size_t moved;                 /* bytes of the put, or row, under way       */
    int nready;                   /* READY that were waited for                */
    bool polls;                   /* gives EAGAIN instead of waiting           */
    struct dtn_wait wait;         /* of the step it polls for                  */
};

struct dtn_plan {
    struct dtn_group group;
    struct dtn_sched sched;
    struct dtn_call_record record; /* what running it means                    */
    bool messages;                /* sends and receives                        */
    bool named;                   /* it names spaces to peers                  */
    bool puts[DTN_NSPACES];       /* some step puts from there                 */
    bool tries;                   /* methods, if some buffer is private memory */
    struct dtn_exec_trials trials;
    size_t scale[DTN_NSPACES];    /* bytes for each byte of a step: 1, of ACC  */
                                  /* dtn_reduction_ratio()                     */
    unsigned char *tmp;           /* one piece of memory: TMP, then            */
    unsigned char *acc;
    const void **terms;           /* [n + 1] sources of a reduction            */
    struct dtn_exec_peer *peers;      /* [n]                                       */
    unsigned char **base;         /* [dtn_exec_peer_base(n, 0)] set by a run and   */
                                  /* by READY; NULL: not mapped, or no bytes   */
    struct dtn_exec_step *steps;      /* [sched.nsteps]                            */
    int *unmet;                   /* world ranks to connect to before it runs; */
    int nunmet;                   /* NULL: it is connected to all              */
    struct dtn_wait meeting;      /* polling for them                          */
    struct dtn_exec_reach *reach;     /* of each wait for READY, in order          */
    struct dtn_exec_run started;      /* by dtn_plan_start()                       */
};

/* launch.c: what an operation of run->memory returned, as the result of a step:
 * one that was launched goes on.  Settle them: 0, or EAGAIN if it does not wait.
 * Copy memory of a device for the CPU.  Any other code: the context is poisoned.
 */
int dtn_run_launched(struct dtn_exec_run *run, int rc);
int dtn_run_finish(struct dtn_exec_run *run, bool waits);
int dtn_run_download(struct dtn_exec_run *run, void *to, const void *from,
                     size_t bytes);

static inline int dtn_run_done(struct dtn_exec_run *run, int rc)
{
    return rc == 0 ? 0 : dtn_run_launched(run, rc);
}

static inline int dtn_run_settle(struct dtn_exec_run *run, bool waits)
{
    return run->launched ? dtn_run_finish(run, waits) : 0;
}

/* Is it memory of a device, which neither the CPU nor peers access? */
static inline bool dtn_run_is_device(const struct dtn_exec_run *run,
                                     const void *mem)
{
    return run->memory != &dtn_host && run->memory->ops->holds(run->memory, mem);
}

/* Make the exposed buffers of a run reachable for peers.  EAGAIN: another run has
 * the bounce buffer; any other code: the context is poisoned.  And undo it; if
 * `rc` is 0 copy staged results to OUT first.
 */
int dtn_expose(struct dtn_exec_run *run);
int dtn_unexpose(struct dtn_exec_run *run, int rc);

/* Bind the steps of a plan, whose peers and scale are known.   Errors: ENOMEM */
int dtn_plan_bind(struct dtn_plan *plan, struct dtensor_error *err);

/* Is it of this rank, or mapped? */
static inline bool dtn_run_maps(const struct dtn_exec_run *run, struct dtn_exec_at at)
{
    return at.base < DTN_EXEC_PEERS || run->plan->base[at.base];
}

/* Its address then, or NULL. */
static inline unsigned char *dtn_run_at(const struct dtn_exec_run *run,
                                        struct dtn_exec_at at)
{
    unsigned char *base = run->plan->base[at.base];

    return base ? base + at.offset : NULL;        /* a barrier has no bytes    */
}

/* Work toward a connection to all that it names, without waiting: 0 or EAGAIN. */
int dtn_plan_meet(struct dtn_plan *plan, struct dtensor_error *err);
/* Send READY.  Read one: false if steps reach further than its memory.  Compute
 * once how far they reach (ENOMEM).
 */
int dtn_ready_say(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                  struct dtn_signal *signal);
bool dtn_ready_take(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                    const struct dtn_signal *signal);
int dtn_ready_reach(struct dtn_plan *plan, struct dtensor_error *err);

/* Number the messages of a run that begins. */
void dtn_plan_turn(struct dtn_plan *plan);

/* What went wrong, in words: said.c */
int dtn_run_mismatch(const struct dtn_exec_run *run, const struct dtn_step *step,
                     const struct dtn_signal *signal);

/* The steps that copy and reduce: move.c */
int dtn_run_copy(struct dtn_exec_run *run, const struct dtn_exec_step *bound);
int dtn_run_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

/* The same where a source is private memory of a peer: cma.c */
int dtn_cma_copy(struct dtn_exec_run *run, void *dst,
                 const struct dtn_exec_step *bound);
int dtn_cma_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

#endif
