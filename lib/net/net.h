/* net.h - L2: how the ranks of a job find each other, and the context
 *
 * frame.c   length-prefixed frames on a stream socket
 * boot.c    the bootstrap: an allgather of blobs over a tree of sockets; its
 *           parts are listed in boot.h
 * ctx.c     the context: cluster, arena, transports, peers
 * wire.c    opening the transports and connecting to peers
 * settle.c  which wire between hosts, when the file leaves it open
 * await.c   waiting for a peer without hanging; poisoning
 * poll.c    the same without waiting, for started calls
 * mismatch.c    two ranks called what is not the same: the words
 * report.c  choose the rank that prints an error
 * carry.c   bytes that go with a signal
 * memory.c  dtensor_alloc(), dtensor_register() and staging
 * query.c   dtensor_rank() and its kin
 * devices.c dtensor_devices_show()
 * fabric.c  dtensor_fabric_show(): what every rank sees of the RDMA fabric;
 *           fabric.h lists its parts
 */
#ifndef DTN_NET_H
#define DTN_NET_H

#include "transport/transport.h"

#include <sched.h>

/* ----------------------------------------------------------- bootstrap --- */

/* The ranks of a host connect to its first rank (its leader) by AF_UNIX, and
 * leaders to each other in a binary tree by TCP: an allgather takes
 * 2 (1 + log2 hosts) rounds.  Everyone says who it is before anything else;
 * whatever is wrong, every rank gets the same words, naming the odd rank.
 */
struct dtn_boot;

struct dtn_boot_args {
    const struct dtensor_cluster *cluster;
    const struct dtn_self *self;
    const char *identity;         /* "[section] key = value\n" lines that all  */
                                  /* ranks must agree on: canonical text, and  */
                                  /* version, world size, auth                 */
    struct dtn_log *log;
    const struct dtensor_error *failure;   /* code != 0: this rank cannot take */
                                  /* part, for that reason; NULL: it can       */
};

/* Connect, compare identities, agree that everyone is there.  With a failure
 * among the arguments: tell it to the others, so that all fail with its words,
 * rather than wait for this rank.
 *
 * Collective: yes, the world.   Blocks: at most connect_timeout, and a second.
 * Owns:   *bootp is the caller's, for dtn_boot_close().  args is not kept, but
 *         its cluster and log must last until then.
 * Errors: ETIME      names the missing ranks and their hosts
 *         EMISMATCH  names the odd rank and the key
 *         EPEER      a rank closed its connection
 *         ESYS       an address or port cannot be had: says which
 *         other      a rank cannot take part: its words
 */
int dtn_boot_open(const struct dtn_boot_args *args, struct dtn_boot **bootp,
                  struct dtensor_error *err);

/* all[r] = *mine of rank r.  File descriptors in all[] (of ranks on this host;
 * -1 elsewhere and for the own entry) are the caller's to close.
 *
 * Collective: yes, the world.   Blocks: at most connect_timeout, and a second.
 * Errors: as dtn_boot_open
 */
int dtn_boot_allgather(struct dtn_boot *boot, const struct dtn_blob *mine,
                       struct dtn_blob all[], struct dtensor_error *err);

/* This rank cannot continue, for that reason: all others receive it in their
 * next allgather, which fails.  *error becomes the error of all ranks: the same
 * words, with rank and host.  A no-op if the bootstrap itself has failed.
 *
 * Blocks: three seconds at most
 */
void dtn_boot_refuse(struct dtn_boot *boot, struct dtensor_error *error);

/* What a rank called, in numbers that coll knows how to word. */
enum dtn_said_kind {
    DTN_SAID_NOTHING,
    DTN_SAID_CALL,                /* `count` elements                          */
    DTN_SAID_LISTED,              /* a count for each rank, `count` in all     */
    DTN_SAID_WORDED,              /* `text` says it: a redistribute            */
    DTN_SAID_SENT,                /* `count` elements that go to `other`       */
    DTN_SAID_RECEIVED,            /* that come from there                      */
    DTN_SAID_JUDGED,              /* no call: whom to name for a mismatch      */
    DTN_NSAID
};
struct dtn_said {
    enum dtn_said_kind kind;
    uint64_t fingerprint;
    uint64_t base;                /* local: the same without number            */
    uint64_t group;               /* hash of the ranks, 0: message             */
    uint32_t number;              /* among the calls over them, 0: unknown     */
    uint32_t n;                   /* number of these ranks                     */
    int32_t other;                /* the root, or a rank                       */
    uint64_t count;
    const char *text;             /* NULL: made from the other fields          */
};
#define DTN_SAID_TEXT 240
#define DTN_SAID_MAX 16           /* calls that a rank remembers               */

/* A rank told that it called that, or others that it did. */
struct dtn_told {
    int rank;
    struct dtn_said said;
    char text[DTN_SAID_TEXT];     /* of it, or ""                              */
};

/* Two ranks called what is not the same. */
struct dtn_mismatch {
    int32_t rank;                 /* the odd one                               */
    int32_t witness;              /* that found out; the same: nothing known   */
    uint64_t called;              /* by `rank`                                 */
    uint64_t expected;            /* by the witness                            */
};

/* What is known of a rank that is gone. */
struct dtn_gone {
    uint32_t order;               /* 1 for the first heard of; 0: nothing     */
    int culprit;                  /* on whose account; its own: by itself     */
    int code;                     /* EPEER it died, 0 it left, else gave up   */
    int64_t heard_ns;             /* when this rank heard of it               */
    struct dtn_mismatch mismatch; /* it gave up for that, EMISMATCH           */
};

/* There will be no allgather any more: from now on the tree watches. */
void dtn_boot_watch_start(struct dtn_boot *boot);

/* Hear, and pass on, who is gone; a few system calls, at most every 5 ms. */
void dtn_boot_watch(struct dtn_boot *boot);
const struct dtn_gone *dtn_boot_gone(const struct dtn_boot *boot, int rank);

/* The first rank known to have died or given up, -1: none. */
int dtn_boot_failed(const struct dtn_boot *boot);

/* Tell the tree that this rank gives up, and for what mismatch if it was one.
 * Best effort, never blocks.
 */
void dtn_boot_blame(struct dtn_boot *boot, int culprit, int code,
                    const struct dtn_mismatch *mismatch);

/* Tell the tree what a rank called, unless it knows.  Best effort, never blocks.
 */
void dtn_boot_say(struct dtn_boot *boot, int rank, const struct dtn_said *said);

/* The record that a rank sent of its call with that fingerprint, NULL: none; of
 * several similar messages that to or from `other`.  The second function: any
 * record, i before the last one, NULL: no more.
 */
const struct dtn_said *dtn_boot_said(const struct dtn_boot *boot, int rank,
                                     uint64_t fingerprint, int other);
const struct dtn_told *dtn_boot_told(const struct dtn_boot *boot, uint32_t i);

/* Never blocks; NULL is a no-op. */
void dtn_boot_close(struct dtn_boot *boot);

/* ------------------------------------------------------------- context --- */

#define DTN_MAX_TRANSPORTS 3

struct dtn_peer {
    struct dtn_transport *tp;     /* NULL for this rank itself                 */
    struct dtn_blob address;      /* fd owned by the context                   */
    bool connected;
    bool busy;                    /* coll: a request under way names it        */
    int edge;                     /* coll: index in the last group of messages */
    uint32_t messages[2];         /* coll: sends to it, receives from it       */
    uint64_t sent;                /* signals, ever                             */
    uint64_t consumed;
    struct dtn_box_pair {         /* for what signals carry: carry.c           */
        unsigned char *in;        /* the peer puts here                        */
        unsigned char *out;       /* leaves from here; NULL where mapped       */
        unsigned char *mapped;    /* the peer's `in`, if loads and stores do   */
        struct dtn_remote remote; /* the peer's `in` otherwise                 */
        struct dtn_remote name;   /* ours                                      */
        bool told;                /* the peer knows our name                   */
        bool known;               /* and we its                                */
    } carry;
};

/* Functions of coll that word a mismatch.  describe: a record as text.  recall,
 * numbered: a call of this rank by its fingerprint, or by its number among
 * those over the same ranks.  For the current run: message: the step to or from
 * `peer` with that fingerprint; waits: the step in which this rank waits; edge:
 * the step for data from or to `peer`.
 */
struct dtn_coll_words {
    char *(*describe)(const struct dtn_said *said, char *buf, size_t size);
    bool (*recall)(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                   struct dtn_said *said);
    bool (*numbered)(const struct dtensor_ctx *ctx, uint64_t group,
                     uint32_t number, struct dtn_said *said);
    bool (*message)(const struct dtensor_ctx *ctx, int peer,
                    uint64_t fingerprint, struct dtn_said *said);
    bool (*waits)(const struct dtensor_ctx *ctx, struct dtn_said *said);
    bool (*edge)(const struct dtensor_ctx *ctx, int peer, bool comes,
                 struct dtn_said *said);
};

struct dtensor_ctx {
    struct dtensor_cluster *cluster;
    struct dtn_self self;
    struct dtn_log log;
    struct dtn_boot *boot;
    struct dtn_arena arena;
    int ntransports;
    struct dtn_transport *transports[DTN_MAX_TRANSPORTS];
    struct dtn_peer *peers;       /* [world_size]                              */
    int holders;                  /* the program until dtensor_fini(), and     */
                                  /* whatever it made and did not destroy      */
    void (*end)(struct dtensor_ctx *ctx);  /* frees the upper rooms' parts     */
    bool finished;                /* by dtensor_fini(); its failure says so    */
    bool planning;                /* it has no peers: see dtn_ctx_plan()       */
    bool crowded;                 /* more ranks here than CPUs they may use    */
    double crowding;              /* ranks for each CPU, of the fullest host   */
    bool sharing;                 /* learned by waits: a peer is on our CPU    */
    bool stirred;                 /* a signal was found that was polled for    */
    bool waiting;                 /* requests are polled for without a break   */
    const struct dtn_coll_words *words;   /* what was called: coll's           */
    struct dtn_said said[DTN_SAID_MAX];   /* the last calls: `calls` modulo    */
    const struct dtn_said *making;        /* the call that ranks meet for      */
    const void *run;              /* coll: the run that is waiting             */
    struct dtensor_error failure; /* code != 0: poisoned; the first cause      */
    int64_t failed_ns;            /* when                                      */
    unsigned char *mine;          /* a page: 1, 0 after fork(); or NULL        */
    struct dtn_mismatch mismatch; /* that was it                               */
    uint64_t calls;               /* collective calls made, for messages       */
    uint64_t copied_bytes;        /* dtensor_copied_bytes() without transports */
    char plan_text[160];          /* dtensor_last_plan()                       */
    struct dtn_bounce {           /* staging of memory peers cannot reach      */
        void *mem;
        size_t size;
        const void *user;         /* coll: the run that has it, or NULL        */
    } bounce[3];                  /* of IN, of OUT, for terms that are fetched */
    struct dtensor_request *pending;   /* coll: started, not yet over          */
    struct dtensor_request *pending_last;   /* of them, while there are any    */
    struct dtn_registered {       /* dtensor_register(): sorted, apart         */
        unsigned char *mem;
        size_t size;
    } *registered;
    int nregistered, registered_capacity;
    uint64_t registered_bytes;
    struct dtn_redops *redops;    /* coll: reductions made at run time         */
    struct dtn_plans *plans;      /* coll: schedules by call                   */
    struct dtn_models *models;    /* coll: what calls over each group cost     */
    struct dtn_recorded *recorded;     /* coll: calls of an open group         */
    int *everyone;                /* coll: 0, 1, 2, ..., when needed           */
    struct dtn_meshes *meshes;    /* spec: every mesh there is                 */
    struct dtn_redists *redists;  /* spec: redistribute plans by spec pair     */
    struct dtensor_generator *generator;   /* random: the default one          */
    struct dtn_lengths *lengths;  /* spec: shard lengths that users chose      */
    cpu_set_t cpus_before;        /* of the thread that opened it, when bound  */
    bool cpus_bound;
};

/* Find the cluster and bootstrap, no more: blobs can be exchanged, bytes not.
 * Errors: those of dtn_whoami() and dtn_boot_open()
 */
int dtn_ctx_join(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* Find the cluster, bootstrap, open the transports, exchange addresses.  The
 * upper rooms' parts (plans, meshes, redists) are NULL; they are freed by
 * their rooms before dtn_ctx_close().
 */
int dtn_ctx_open(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* A context of rank 0 that has no peers, arena or transports, and as its failure
 * that it only plans.  Arguments as of dtensor_init_plan().
 */
int dtn_ctx_plan(const char *path, int nranks, int per_host,
                 struct dtensor_ctx **ctxp, struct dtensor_error *err);
void dtn_ctx_close(struct dtensor_ctx *ctx);

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

/* 0, or EINVAL with words for a context that cannot give memory: one that only
 * plans, or is finished.
 */
int dtn_ctx_gives(const struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Bind this thread as [nodes] cpus says, within what it may use now, and undo
 * that.   Errors: ECONF, ENODEV, ESYS, ENOMEM
 */
int dtn_cpus_bind(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_cpus_unbind(struct dtensor_ctx *ctx);

/* Was this process forked from the one that made the context? */
bool dtn_ctx_forked(const struct dtensor_ctx *ctx);

/* Be connected to all of these world ranks (itself among them is fine).  Both
 * sides of every pair must call.   Blocks: until connected.
 * Errors: EPEER, ETIME, ESYS
 */
int dtn_ctx_connect(struct dtensor_ctx *ctx, const int ranks[], int n,
                    struct dtensor_error *err);

/* Work toward it without waiting: 0 when it is so, EAGAIN: call again.  `wait`
 * as of dtn_poll().
 */
int dtn_poll_connect(struct dtensor_ctx *ctx, const int ranks[], int n,
                     struct dtn_wait *wait, struct dtensor_error *err);

/* A staging buffer of at least `size` bytes in the arena, `which` 0, 1 or 2;
 * NULL when memory is exhausted.  Valid until the next call for `which`.
 */
void *dtn_ctx_bounce(struct dtensor_ctx *ctx, int which, size_t size);

/* Those of this user are free for others, and given back if all together exceed
 * [redistribute] max_scratch.
 */
void dtn_ctx_bounced(struct dtensor_ctx *ctx, const void *user);

/* Index in cluster->hosts of the host of a world rank. */
int dtn_ctx_host(const struct dtensor_ctx *ctx, int rank);

/* "rank 3 on n1": for messages. */
char *dtn_ctx_rank_name(const struct dtensor_ctx *ctx, int rank, char *buf,
                        size_t size);

/* ------------------------------------------------ waiting and poisoning --- */

/* Data-plane calls that wait: 0 or a code, and then the context is poisoned
 * with the words in ctx->failure.  No allocation.
 */
int dtn_put(struct dtensor_ctx *ctx, int peer, struct dtn_remote dst,
            const void *src, size_t size);
int dtn_flush(struct dtensor_ctx *ctx, int peer);
int dtn_fetch(struct dtensor_ctx *ctx, int peer, void *dst,
              struct dtn_remote src, size_t size);

/* 0: what was fetched from the peer until now was its own.  To be asked before
 * anybody is given it; a system call.
 */
int dtn_fetched(struct dtensor_ctx *ctx, int peer);
int dtn_signal(struct dtensor_ctx *ctx, int peer,
               const struct dtn_signal *signal);

/* Begin to wait for another rank. */
void dtn_ctx_wait(struct dtensor_ctx *ctx, struct dtn_wait *wait);

/* One turn of waiting for `peer`: let the transports move, pause, look around
 * when it is time.  0: go on waiting.
 */
int dtn_turn(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);

/* A signal with signal->len bytes of `data`, at most DTN_CARRY_MAX: in the
 * line if it has room for them, else beside it.  `wait` NULL: wait until it is
 * sent; else there is room for it (dtn_poll_room()), and EAGAIN: call again.
 * *moved is 0 at first, and again when it is sent.
 */
int dtn_carry(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
              size_t *moved, struct dtn_signal *signal, const void *data);

/* The data of the signal that dtn_await() gave.  Valid until dtn_consume(). */
const void *dtn_carried(const struct dtensor_ctx *ctx, int peer,
                        const struct dtn_signal *signal);

/* The next signal from peer; consume it with dtn_consume(). */
int dtn_await(struct dtensor_ctx *ctx, int peer,
              const struct dtn_signal **signalp);
void dtn_consume(struct dtensor_ctx *ctx, int peer);

/* The same without waiting: EAGAIN when there is none yet.  `wait` was set to
 * zero when the caller began to ask; the deadline counts from then.
 */
int dtn_poll(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
             const struct dtn_signal **signalp);

/* The same for a place in the peer's queue of signals: 0 when there is one. */
int dtn_poll_room(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);

/* dtn_put(), dtn_flush() and dtn_signal() without waiting: EAGAIN: call again.
 * *moved, 0 at first, counts the bytes of the put that were taken.
 */
int dtn_poll_put(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                 struct dtn_remote dst, const void *src, size_t size,
                 size_t *moved);
int dtn_poll_flush(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait);
int dtn_poll_signal(struct dtensor_ctx *ctx, int peer, struct dtn_wait *wait,
                    const struct dtn_signal *signal);

/* Record the first failure, tell the peers, return `code`.  Later calls keep
 * the first words.
 */
int dtn_poison(struct dtensor_ctx *ctx, int code, int culprit,
               const char *fmt, ...) DTN_PRINTF(4, 5);

/* Poison with EMISMATCH and the words of both sides; all others, who may have
 * been in neither call, get to know them and say the same.   Blocks: at most two
 * seconds, for the other side to say what it called.
 */
int dtn_poison_mismatch(struct dtensor_ctx *ctx,
                        const struct dtn_mismatch *mismatch);

/* Is the signal a peer's news of one?  Such a one ends its queue. */
bool dtn_signal_mismatch(const struct dtn_signal *signal,
                         struct dtn_mismatch *mismatch);

/* 0, or the code of the recorded failure with its words in *err: for a call in
 * which the failure occurs.
 */
int dtn_ctx_check(const struct dtensor_ctx *ctx, struct dtensor_error *err);

/* The same for a call that begins: the words say that an earlier call failed.
 *
 * Errors: EINVAL  this process was forked after the context was made
 */
int dtn_ctx_ready(const struct dtensor_ctx *ctx, struct dtensor_error *err);

/* --------------------------------------------------------------- groups --- */

/* The ranks of one collective, in order. */
struct dtn_group {
    struct dtensor_ctx *ctx;
    int n;
    int me;                       /* own position, -1: outside                 */
    const int *ranks;             /* [n] world ranks                           */
    uint64_t hash;                /* of n and ranks                            */
    uint32_t *calls;              /* collectives called over them, also those  */
                                  /* refused: the same on all when they call   */
};

#endif
