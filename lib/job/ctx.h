/* ctx.h - the context: one rank's membership of a job */
#ifndef DTN_JOB_CTX_H
#define DTN_JOB_CTX_H

#include "base/log.h"
#include "boot/boot.h"
#include "cluster/world.h"
#include "job/bounce.h"
#include "job/cpus.h"
#include "job/failure.h"
#include "job/last_plan.h"
#include "job/path.h"
#include "job/registered.h"
#include "job/slot.h"
#include "job/stall.h"
#include "job/wiring.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_boot;
struct dtn_memory;
struct dtn_recorder;
struct dtn_table;
struct dtn_transport;
struct dtn_wait;
struct dtn_watcher;

struct dtn_peer {
    struct dtn_transport *tp;     /* NULL: not met yet, or this rank itself   */
    bool connected;               /* both sides know their eager boxes        */
    uint64_t sent;                /* signals sent to it, ever                 */
    uint64_t consumed;            /* signals consumed from it, ever           */
    struct dtn_eager_boxes {      /* for messages of up to 4 KiB: eager.c     */
        unsigned char *in;        /* the peer writes here; NULL: its data are */
                                  /* kept by the transport                    */
        struct dtn_remote name;   /* of `in`, for the peer                    */
        struct dtn_remote remote; /* the peer's `in`                          */
        bool name_sent;           /* the peer knows our name                  */
        bool remote_known;        /* this rank knows the name of the peer     */
    } eager;                      /* one box for each direction               */
    uint64_t unused[6];           /* to 128 bytes: an index is a shift        */
};
_Static_assert(sizeof(struct dtn_peer) == 128, "a power of two");

/* Functions of coll that look up and describe calls, for messages about a
 * mismatch.  They return whether there is such a record, in *record.
 */
struct dtn_call_describer {
    /* The record as text, in buf. */
    char *(*describe)(const struct dtn_call_record *record, char *buf,
                      size_t size);

    /* A call of this rank, by its fingerprint. */
    bool (*recall)(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                   struct dtn_call_record *record);

    /* A call of this rank, by its number among those over the same ranks. */
    bool (*numbered)(const struct dtensor_ctx *ctx, uint64_t group,
                     uint32_t number, struct dtn_call_record *record);

    /* The step of the current run to or from `peer` with that fingerprint. */
    bool (*message)(const struct dtensor_ctx *ctx, int peer,
                    uint64_t fingerprint, struct dtn_call_record *record);

    /* The step of the current run in which this rank waits. */
    bool (*waits)(const struct dtensor_ctx *ctx,
                  struct dtn_call_record *record);

    /* The step of the current run for data from (comes) or to `peer`. */
    bool (*edge)(const struct dtensor_ctx *ctx, int peer, bool comes,
                 struct dtn_call_record *record);
};

struct dtensor_ctx {
    struct dtn_world world;       /* job and rank; it owns the cluster        */
    struct dtn_log log;           /* where messages go                        */
    struct dtn_boot *boot;        /* the tree of sockets; NULL: left it       */
    int seat_fd;                  /* keeps the place of this rank, or -1      */
    struct dtn_arena arena;       /* memory that peers reach                  */
    struct dtn_memory *device;    /* memory of a device that this rank uses;  */
                                  /* NULL: none is open                       */
    bool all_on_device;           /* so are all tensors and allocations       */
    bool asks;                    /* an address may be a GPU's: a device is   */
                                  /* open, or the program has loaded CUDA     */
    int ntransports;              /* open ones                                */
    struct dtn_transport *transports[DTN_MAX_TRANSPORTS]; /* [ntransports]    */
    struct dtn_wiring wiring;     /* which of them leads to which rank        */
    struct dtn_peer *peers;       /* [world_size] sparse: those met take      */
                                  /* memory                                   */
    int holders;                  /* the program until dtensor_fini(), and    */
                                  /* whatever it made and did not destroy     */
    struct dtn_slot slots[DTN_ROOMS]; /* what the rooms above keep            */
    struct dtn_recorder *recorder; /* is told of calls on tensors; or NULL    */
    struct dtn_watcher *watcher;  /* is told what this rank does; or NULL     */
    uint64_t contents;            /* contents that tensors have had           */
    bool finished;                /* by dtensor_fini(); its failure says so   */
    bool planning;                /* it has no peers: see dtn_ctx_plan()      */
    bool made_progress;           /* polling found a signal, or moved bytes   */
    bool in_blocking_wait;        /* requests are polled without a pause      */
    struct dtn_cpus cpus;         /* of this rank, and who shares them        */
    const struct dtn_call_describer *describer; /* set by coll                */
    struct dtn_call_record recent_calls[DTN_RECORD_MAX]; /* at `calls` modulo */
    const struct dtn_call_record *connecting_call; /* or NULL                 */
    struct dtn_failure failure;   /* the first one, which poisons             */
    unsigned char *mine;          /* a page: 1; 0 after fork(); or NULL       */
    _Atomic uint64_t calls;       /* collective calls made, for messages      */
    struct dtn_stall stall;       /* the wait that lasts long                 */
    uint64_t copied_bytes;       /* dtensor_copied_bytes() without transports */
    struct dtn_last_plan last_plan; /* dtensor_last_plan()                    */
    struct dtn_path path;         /* of buffers of a device                   */
    struct dtn_bounces bounces;   /* staging of memory peers cannot reach     */
    struct dtn_registrations registered; /* of dtensor_register()             */
};

/* Find the cluster and bootstrap only.  The ranks can then exchange blobs but
 * have no transports.   Errors: those of dtn_whoami() and dtn_boot_open()
 */
int dtn_ctx_join(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* Find the cluster, bootstrap, open the transports, exchange addresses.  All
 * slots are empty.
 */
int dtn_ctx_open(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* A context of rank 0 without peers, arena and transports.  Its recorded
 * failure says that it only plans.  Arguments as of dtensor_init_offline().
 */
int dtn_ctx_plan(const char *path, int nranks, int per_host,
                 struct dtensor_ctx **ctxp, struct dtensor_error *err);
void dtn_ctx_close(struct dtensor_ctx *ctx);     /* slots, then the rest      */

/* Make progress on all transports.  True: one received or sent something. */
static inline bool dtn_ctx_progress(struct dtensor_ctx *ctx)
{
    bool did = false;

    for (int t = 0; t < ctx->ntransports; t++)
        did |= ctx->transports[t]->ops->progress(ctx->transports[t]) > 0;
    return did;
}

/* wire.c: the transport to a rank; NULL: it is this rank. */
struct dtn_transport *dtn_wire_to(const struct dtensor_ctx *ctx, int rank);

/* wire.c: the longest eager message over this wire, in bytes. */
size_t dtn_wire_eager_bytes(enum dtn_wire wire);

/* An object that needs the context when it is destroyed, such as a tensor,
 * holds it: the last release ends and closes the context.  Objects that the
 * context itself destroys when it is finished do not hold it, unless they did
 * before.
 */
void dtn_ctx_hold(struct dtensor_ctx *ctx);
void dtn_ctx_release(struct dtensor_ctx *ctx);

/* Finish the context: record the failure that later calls return, then close
 * the connections.  Memory, cluster and meshes stay until nothing holds it.
 */
void dtn_ctx_finish(struct dtensor_ctx *ctx);
void dtn_ctx_leave(struct dtensor_ctx *ctx);

/* 0, or EINVAL if the context cannot allocate memory: it only plans, or is
 * finished.
 */
int dtn_ctx_can_allocate(const struct dtensor_ctx *ctx,
                         struct dtensor_error *err);

/* Was this process forked from the one that made the context? */
static inline bool dtn_ctx_forked(const struct dtensor_ctx *ctx)
{
    return ctx->mine && *ctx->mine == 0;
}

/* Is there nothing that dtn_ctx_ready() would report? */
static inline bool dtn_ctx_works(const struct dtensor_ctx *ctx)
{
    return ctx->failure.err.code == 0 && !ctx->planning && !ctx->finished
        && !dtn_ctx_forked(ctx);
}

/* Connect to all of these world ranks; this rank may be among them.  Both sides
 * of every pair must call.   Blocks: until connected.
 * Errors: EPEER, ETIME, ESYS
 */
int dtn_ctx_connect(struct dtensor_ctx *ctx, const int ranks[], int n,
                    struct dtensor_error *err);

/* The same without waiting.  0: connected.  EAGAIN: call again.  `wait` is as
 * in dtn_poll().
 */
int dtn_poll_connect(struct dtensor_ctx *ctx, const int ranks[], int n,
                     struct dtn_wait *wait, struct dtensor_error *err);

/* Use this device for all tensors and allocations, wherever their mesh wants
 * them.  To be called before the first of them.  The context owns `memory`,
 * which has an arena, and closes it.
 */
void dtn_ctx_place(struct dtensor_ctx *ctx, struct dtn_memory *memory);

/* device.c: open the device of this rank, if it is not open, else do nothing.
 * Errors: ENODEV, ENOMEM, ECONF
 */
int dtn_ctx_open_device(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Let this transport reach the memory of the device, if one is open. */
void dtn_ctx_attach_device(struct dtensor_ctx *ctx, struct dtn_transport *tp);

/* Set ctx->asks if the program has loaded CUDA. */
void dtn_ctx_look_out(struct dtensor_ctx *ctx);

/* May the program use the buffer?  `what` begins the words of an error.  If it
 * is the first on a GPU, the device of this rank is opened.  Looks out first.
 * Errors: EINVAL, ENODEV, ENOMEM
 */
int dtn_ctx_check_buffer(struct dtensor_ctx *ctx, const char *what,
                         const void *mem, size_t bytes,
                         struct dtensor_error *err);

/* `size` bytes for the program, in such memory; and free them.  free: false if
 * `mem` is of neither arena.   Errors: ENOMEM
 */
int dtn_ctx_alloc(struct dtensor_ctx *ctx, enum dtensor_memory memory,
                  const char *what, size_t size, void **memp,
                  struct dtensor_error *err);
void dtn_ctx_free(struct dtensor_ctx *ctx, void *mem);

#endif
