/* exec.h - private to the executor: an executable, and one run of it
 *
 *     exec.c      makes a schedule ready to run
 *     bind.c      binds its steps to what a run needs
 *     run.c       runs its steps
 *     ready.c     READY: the address and size of memory
 *     expose.c    how peers access the buffers of a run
 *     direct.c    the same for buffers of a device, in place
 *     window.c    the same for private memory, through a small window
 *     signals.c   signals that devices send each other
 *     graph.c     what a device does in a persistent call, recorded
 *     apart.c     the second queue of a device, for a started run
 *     watch.c     waiting for a device that waits for others
 *     launch.c    operations in host or device memory
 *     put.c       the step that puts
 *     move.c      the steps that copy and reduce
 *     cma.c       the same with private memory of peers
 *     mismatch.c  the report of an unexpected signal
 *     report.c    what a run reports to a watcher
 */
#ifndef DTN_EXEC_H
#define DTN_EXEC_H

#include "base/box.h"
#include "base/error.h"
#include "base/reduce.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "coll/state.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/watcher.h"
#include "sched/call.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_exec_graph;
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
    struct dtn_transport *tp;     /* NULL: this rank itself                   */
    int transport;                /* its index in ctx->transports             */
    int rank;                     /* in the world                             */
    uint64_t turn[2];             /* hash of the last message's number, by    */
                                  /* direction: part of the match bits        */
    struct dtn_remote remote[DTN_EXEC_NNAMES];     /* its spaces, as its      */
                                                   /* READY said              */
    unsigned char *words;         /* where this rank's device signals to the  */
                                  /* peer's; NULL: the hosts signal           */
    bool again;                   /* it sends READY once more, when its       */
                                  /* memory is ready                          */
    bool meets;                   /* its READY came, and this rank has yet to */
                                  /* answer                                   */
};

/* exec->base: the addresses of this rank's spaces; of the exposed OUT; and of
 * the mapped spaces of each peer.
 */
enum { DTN_EXEC_OUT_EXPOSED = DTN_NSPACES, DTN_EXEC_PEERS };

static inline int dtn_exec_peer_base(int position, int name)
{
    return DTN_EXEC_PEERS + position * DTN_EXEC_NNAMES + name;
}

/* The place of a span of memory. */
struct dtn_exec_at {
    int base;                     /* index in exec->base                      */
    size_t offset;                /* bytes from there                         */
};

/* A bound step, with all that running it needs. */
struct dtn_exec_step {
    const struct dtn_step *step;  /* the step of the schedule                 */
    struct dtn_exec_peer *peer;       /* of PUT, FLUSH, SIGNAL, WAIT          */
    struct dtn_exec_at dst, src;  /* destination and source                   */
    size_t bytes;                 /* of memory, at this rank's end            */
    size_t count;                 /* elements                                 */
    const struct dtn_exec_at *terms;  /* [nterms] of a reduction              */
    dtn_fold_f *fold;             /* of a reduction that is this loop over    */
                                  /* two terms in host memory; or NULL        */
    int nterms;                   /* number of terms                          */
    uint16_t partial;             /* bit set: which are partial results, see  */
                                  /* dtn_fold()                               */
    uint16_t nputs;               /* of a FOLD: as many puts of its result    */
                                  /* follow                                   */
};

/* How far the steps of this rank access a peer's spaces between two of its
 * READY.
 */
struct dtn_exec_access {
    size_t bytes[DTN_EXEC_NNAMES];  /* from the start of each space           */
};

/* The methods to expose private memory, and the results of their trials. */
enum { DTN_EXEC_WINDOW = 4, DTN_EXEC_NMETHODS };
struct dtn_exec_trials {
    int runs;                     /* runs with private memory since the last  */
                                  /* trials began                             */
    int best;                     /* fastest method; -1: not known yet        */
    int64_t took_ns[DTN_EXEC_NMETHODS];    /* fastest run of each method      */
};

/* The call of an executable, and what runs it if some rank's memory is private.
 */
struct dtn_exec_window {
    struct dtn_call call;         /* all of it that the emitter needs         */
    struct dtn_exec *exec;        /* NULL: not needed yet                     */
};

/* One run. */
struct dtn_exec_run {
    struct dtn_exec *exec;        /* what it runs                             */
    struct dtensor_ctx *ctx;      /* the executable's context                 */
    const struct dtn_memory *memory;       /* kind of memory whose functions  */
                                           /* do the operations               */
    bool launched;                /* some operations have not completed       */
    unsigned char *staged[DTN_NSPACES];    /* the staged copy that peers      */
                                           /* access, or NULL                 */
    struct dtn_bounce *bounce[DTN_OUT + 1];        /* bounce buffers of IN    */
                                                   /* and OUT, or NULL        */
    struct dtn_remote name[DTN_MAX_TRANSPORTS][DTN_EXEC_NNAMES];
    size_t behind[DTN_EXEC_NNAMES];   /* size of each named space, bytes      */
    uint64_t fingerprint;         /* of the call of this run                  */
    int method;                   /* method to expose private memory          */
    bool is_private;              /* some exposed buffer is private memory    */
    int64_t timed_ns;             /* start time of a trial; 0: not timed      */
    int64_t left_ns;              /* end of the last start or poll, if timed  */
    bool streams;                 /* its device may signal: see signals.c     */
    struct dtn_remote words;      /* if so, name of the words for it          */
    bool apart;                   /* its operations go to the second queue    */
    bool defers;                  /* its device says READY to all peers at    */
                                  /* once: it may be in a graph               */
    bool records;                 /* its operations are recorded: graph.c     */
    bool spoilt;                  /* one could not be                         */
    bool refused;                 /* a transport refused to register a space  */
    int step;                     /* index of the next step                   */
    int end;                      /* index after the last one                 */
    bool windowed;                /* some rank wants the window: the steps    */
                                  /* after READY are left out                 */
    struct dtn_bounce *window;    /* memory of the window; NULL: not begun    */
    struct dtn_exec_rows {            /* a put of a box in progress           */
        bool begun;               /* some rows were put                       */
        struct dtn_box box;       /* box without the dimensions of a row      */
        struct dtn_walk walk;     /* the next row                             */
        size_t bytes;             /* of a row                                 */
    } rows;
    size_t moved;                 /* bytes already put of the put or row in   */
                                  /* progress                                 */
    int nready;                   /* READY received so far                    */
    bool polls;                   /* returns EAGAIN instead of waiting        */
    struct dtn_wait wait;         /* wait state of the step that it polls for */
};

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
    unsigned char **base;         /* [dtn_exec_peer_base(n, 0)] sparse; set   */
                                  /* by a run and by READY; NULL: not mapped, */
                                  /* or no bytes                              */
    struct dtn_exec_step *steps;      /* [sched.nsteps]                       */
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

/* launch.c.  launched: turn the result of an operation of run->memory into the
 * result of a step; an operation that was launched goes on.  finish: wait until
 * the operations have completed; 0, or EAGAIN if it does not wait.  download:
 * copy device memory for the CPU.  Any other code: the context is poisoned.
 */
int dtn_run_launched(struct dtn_exec_run *run, int rc);
int dtn_run_finish(struct dtn_exec_run *run, bool waits);
int dtn_run_download(struct dtn_exec_run *run, void *to, const void *from,
                     size_t bytes);

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

static inline int dtn_run_done(struct dtn_exec_run *run, int rc)
{
    return rc == 0 ? 0 : dtn_run_launched(run, rc);
}

static inline int dtn_run_settle(struct dtn_exec_run *run, bool waits)
{
    return run->launched ? dtn_run_finish(run, waits) : 0;
}

/* Is it device memory, which neither the CPU nor peers access? */
static inline bool dtn_run_is_device(const struct dtn_exec_run *run,
                                     const void *mem)
{
    return run->memory != &dtn_host
        && run->memory->ops->holds(run->memory, mem);
}

/* Send a signal with signal->len bytes of host memory. */
static inline int dtn_run_send(struct dtn_exec_run *run, int rank,
                               struct dtn_signal *signal, const void *data)
{
    return run->polls
         ? dtn_poll_signal(run->ctx, rank, &run->wait, signal, data)
         : dtn_signal(run->ctx, rank, signal, data);
}

/* Make the exposed buffers of a run accessible for peers.  EAGAIN: the arena is
 * full, and other runs will give bounce buffers back.  Any other code: the
 * context is poisoned.  unexpose: undo it; if `rc` is 0, copy staged results to
 * OUT first.
 */
int dtn_expose(struct dtn_exec_run *run);
int dtn_unexpose(struct dtn_exec_run *run, int rc);

/* direct.c, for runs on a device.  expose: name a space in place; false: it has
 * to be staged.  scratch: put TMP and ACC on the device if peers can reach them
 * there.  missed: something is staged, and may not be.  say: log the way of the
 * buffers, once for an executable.  end: undo all of it.
 * put_at: where a put goes, if the device of this rank copies there itself; or
 * NULL.  adopt: a run on the host got a pointer to a peer's device memory, so
 * that from here on the device does its operations.
 */
bool dtn_direct_expose(struct dtn_exec_run *run, enum dtn_space space);
void dtn_direct_scratch(struct dtn_exec_run *run);
bool dtn_direct_missed(const struct dtn_exec_run *run);
void dtn_direct_say(struct dtn_exec_run *run);
unsigned char *dtn_direct_put_at(const struct dtn_exec_run *run,
                                 const struct dtn_exec_step *bound);
/* A put to or from device memory, where the peer's is mapped: a copy by the
 * device.
 */
int dtn_direct_put(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                   unsigned char *there);
void dtn_direct_adopt(struct dtn_exec_run *run);
void dtn_direct_end(struct dtn_exec_run *run);

/* Bind the steps of an executable, whose peers and scale are known.  Errors:
 * ENOMEM
 */
int dtn_exec_bind(struct dtn_exec *exec, struct dtensor_error *err);

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
/* say: send READY.  take: read one; false if steps access more than its memory.
 * reach: compute once how much they access (ENOMEM).
 */
int dtn_ready_send(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                   struct dtn_signal *signal);
bool dtn_ready_receive(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                       const struct dtn_signal *signal);
int dtn_ready_access(struct dtn_exec *exec, struct dtensor_error *err);

/* The name in READY that is no space: words for signals of devices. */
enum { DTN_EXEC_WORDS = DTN_EXEC_NNAMES };

/* signals.c, for runs whose schedule allows it.  begin: may this run signal by
 * its device?  meet: READY came from a peer.  post: DATA or DONE to a peer;
 * hold: from it.
 */
int dtn_signals_begin(struct dtn_exec_run *run);
int dtn_signals_meet(struct dtn_exec_run *run,
                     const struct dtn_exec_step *bound);
int dtn_signals_post(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                     enum dtn_tag tag);
int dtn_signals_hold(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                     enum dtn_tag tag);

/* graph.c.  meet: all READY came; launch what was recorded, or record the rest
 * of the run.  note: a word while recording; the last one launches.
 * DTN_UNRECORDED: there is no graph, go on after run->step without.
 */
enum { DTN_UNRECORDED = 1 };
int dtn_graph_meet(struct dtn_exec_run *run);
int dtn_graph_note(struct dtn_exec_run *run, const struct dtn_exec_peer *peer,
                   enum dtn_tag tag, bool posts);
bool dtn_graph_wanted(const struct dtn_exec *exec);
void dtn_graph_end(struct dtn_exec_run *run);
void dtn_graph_destroy(struct dtn_exec *exec);

/* apart.c.  take: the second queue for a started run that is about to begin, if
 * its device may signal and no other run has it.  turn: use it, or the first
 * one.  leave: go to the first one after all.  end: give it back.
 */
void dtn_apart_take(struct dtn_exec_run *run);
int dtn_apart_leave(struct dtn_exec_run *run);
void dtn_apart_end(struct dtn_exec_run *run);

static inline void dtn_apart_turn(const struct dtn_exec_run *run, bool started)
{
    if (run->apart)
        run->memory->ops->turn(run->memory, started);
}

/* watch.c.  settle: wait until the device, which may wait for peers, is done;
 * 0, or a code, then the context is poisoned.  poll: the same without waiting,
 * EAGAIN.  give_up: the run failed, let the device go on.
 */
int dtn_watch_settle(struct dtn_exec_run *run);
int dtn_watch_poll(struct dtn_exec_run *run);
void dtn_watch_give_up(struct dtn_exec_run *run);

/* Number the messages of a new run. */
void dtn_exec_count_messages(struct dtn_exec *exec);

/* report.c.  begin: report that a run begins, or continues.  end: that it has
 * ended, or paused; `done`: all its steps were run.
 */
void dtn_exec_tell_begin(const struct dtn_exec *exec, bool continues);
void dtn_exec_tell_end(const struct dtn_exec *exec, bool done);
void dtn_exec_tell_start(struct dtn_exec *exec);

/* window.c.  take: make the executable, unless it was made, and lend it memory
 * for a run.  EAGAIN: other runs will give bounce buffers back; any other code:
 * the context is poisoned.  give: take the memory back.  warm: allocate what it
 * needs.
 */
int dtn_window_take(struct dtn_exec_run *run);
void dtn_window_give(struct dtn_exec_run *run);
int dtn_window_warm(struct dtn_exec_run *run);

/* Report an unexpected signal: mismatch.c */
int dtn_run_mismatch(const struct dtn_exec_run *run,
                     const struct dtn_step *step,
                     const struct dtn_signal *signal);

/* The step that puts: put.c */
int dtn_run_put(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

/* The steps that copy and reduce: move.c */
int dtn_run_copy(struct dtn_exec_run *run, const struct dtn_exec_step *bound);
int dtn_run_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

/* The same where a source is private memory of a peer: cma.c.  warm: allocate
 * what the reductions of an executable need for that.
 */
int dtn_cma_warm(struct dtn_exec_run *run);
int dtn_cma_copy(struct dtn_exec_run *run, void *dst,
                 const struct dtn_exec_step *bound);
int dtn_cma_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

#endif
