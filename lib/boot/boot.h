/* boot.h - joining a job: connect, compare, exchange; then watch the ranks */
#ifndef DTN_BOOT_BOOT_H
#define DTN_BOOT_BOOT_H

#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_log;
struct dtn_table;
struct dtn_world;

/* The ranks of a host connect to its first rank (its leader) by AF_UNIX.  The
 * leaders connect to each other by TCP, in a binary tree: an allgather takes 2
 * (1 + log2 hosts) hops.  First each rank sends its identity.  If something is
 * wrong, every rank gets the same error text, which names the rank that
 * differs.
 */
struct dtn_boot;

struct dtn_boot_args {
    const struct dtn_world *world; /* the job, and this rank's place in it    */
    const char *identity;         /* "[section] key = value\n" lines that all */
                                  /* ranks must agree on: canonical text, and */
                                  /* version, world size, auth                */
    struct dtn_log *log;          /* where messages go                        */
    const struct dtensor_error *failure; /* code != 0: this rank cannot take  */
                                  /* part, for that reason; NULL: it can      */
};

/* Connect, compare identities, and wait until all ranks have joined.  If the
 * arguments have a failure, send it to the other ranks, so that all return it
 * and none waits for this rank.
 *
 * Collective: yes, the world.   Blocks: at most connect_timeout, and a second.
 * Owns:   *bootp is the caller's, for dtn_boot_close().  args is not kept, but
 *         its world and log must last until then.
 * Errors: ETIME      names the missing ranks and their hosts
 *         EMISMATCH  names the odd rank and the key
 *         EPEER      a rank closed its connection
 *         ESYS       an address or port is not available: says which
 *         other      a rank cannot take part: its error text
 */
int dtn_boot_open(const struct dtn_boot_args *args, struct dtn_boot **bootp,
                  struct dtensor_error *err);

/* A table with the *mine of every rank, the caller's for dtn_table_free().  The
 * ranks of a host share it, where they can.  File descriptors go to the other
 * ranks of the host.
 *
 * Collective: yes, the world.   Blocks: at most connect_timeout, and a second.
 * Errors: as dtn_boot_open
 */
int dtn_boot_allgather(struct dtn_boot *boot, const struct dtn_blob *mine,
                       struct dtn_table **tablep, struct dtensor_error *err);

/* This rank cannot continue, for the reason *error.  The next allgather of all
 * other ranks fails with it.  *error becomes the error of all ranks: the same
 * text, with rank and host.  Does nothing if the bootstrap itself has failed.
 *
 * Blocks: three seconds at most
 */
void dtn_boot_give_up(struct dtn_boot *boot, struct dtensor_error *error);

/* The call of a rank, as numbers that coll can describe in words. */
enum dtn_call_kind {
    DTN_RECORD_NOTHING,
    DTN_RECORD_CALL,              /* `count` elements                         */
    DTN_RECORD_LISTED,            /* a count for each rank, `count` in all    */
    DTN_RECORD_WORDED,            /* `text` says it: a redistribute           */
    DTN_RECORD_SENT,              /* `count` elements that go to `other`      */
    DTN_RECORD_RECEIVED,          /* that come from there                     */
    DTN_RECORD_BLOCKS,            /* `count` that go there, `back` that come  */
    DTN_RECORD_JUDGED,            /* no call: whom to name for a mismatch     */
    DTN_NRECORDS
};
struct dtn_call_record {
    enum dtn_call_kind kind;      /* what the other fields mean               */
    uint64_t fingerprint;         /* of the call, with its number             */
    uint64_t base;                /* local: the same without number           */
    uint64_t group;               /* hash of the ranks, 0: message            */
    uint32_t number;              /* among the calls over them, 0: unknown    */
    uint32_t n;                   /* number of these ranks                    */
    int32_t other;                /* the root, or a rank                      */
    uint64_t count;               /* elements: see the kind                   */
    uint64_t back;                /* the same                                 */
    const char *text;             /* NULL: made from the other fields         */
};
#define DTN_RECORD_TEXT 240
#define DTN_RECORD_MAX 16         /* calls that a rank remembers              */

/* A report of a rank's call, sent by the rank itself or by another one. */
struct dtn_peer_call_report {
    int rank;                     /* that made the call                       */
    struct dtn_call_record record; /* its call                                */
    char text[DTN_RECORD_TEXT];   /* of it, or ""                             */
};

/* Two ranks made different calls. */
struct dtn_mismatch {
    int32_t rank;                 /* the odd one                              */
    int32_t witness;              /* that found out; the same: nothing known  */
    uint64_t called;              /* by `rank`                                */
    uint64_t expected;            /* by the witness                           */
};

/* How a rank was lost. */
enum dtn_loss {
    DTN_LOSS_NONE,                /* it left or gave up, and said so          */
    DTN_LOSS_DIED,                /* its process has ended                    */
    DTN_LOSS_STOPPED,             /* its process exists and does not run      */
    DTN_LOSS_HOST,                /* its host is dead, or cut off from all    */
    DTN_LOSS_LINK,                /* a link between two hosts that run        */
    DTN_LOSS_CUT,                 /* the own host hears no other              */
    DTN_NLOSSES
};

/* What is known of a rank that has died, left or failed.  The other fields are
 * valid and constant once `order` is not 0.  But a rank that has left may be
 * lost after that, in dtensor_fini(); then `order` changes last.
 */
struct dtn_peer_failure {
    _Atomic uint32_t order;       /* 1 for the first report; 0: none yet      */
    _Atomic enum dtn_loss loss;   /* what happened to it                      */
    _Atomic int culprit;          /* on whose account; its own: by itself     */
    enum dtn_loss told;           /* how the culprit was lost, as it has said */
                                  /* without the tree                         */
    _Atomic int code;             /* EPEER it died, 0 it left, else gave up   */
    int failed;                   /* it left: the code of its last call, if   */
                                  /* that had just failed on it alone; or 0   */
    _Atomic int64_t heard_ns;     /* time of the report                       */
    struct dtn_mismatch mismatch; /* it gave up for that, EMISMATCH           */
};

/* Share a page with the ranks of this host, and make heartbeats there.  open:
 * *fd is the page, in the first rank of a host with several, else -1.  start:
 * `fd` is that of the first rank, or -1 there; it is the caller's.  A thread
 * then makes a beat every `heartbeat` until dtn_boot_close().  await: until it
 * runs; the others take a rank that is killed before for a stopped one.
 * Errors: ESYS, ENOMEM
 */
int dtn_boot_beat_open(struct dtn_boot *boot, int *fd,
                       struct dtensor_error *err);
int dtn_boot_beat_start(struct dtn_boot *boot, int fd,
                        struct dtensor_error *err);
void dtn_boot_beat_await(const struct dtn_boot *boot);

/* Listen for ranks of other hosts that lose their way to the rest of the job,
 * from dtn_boot_beat_start() on.
 * The port; 0: this rank need not, or cannot.  ports: those of all ranks, 2
 * bytes each, are at this place of their blobs, where these are so long.
 */
uint16_t dtn_boot_late_open(struct dtn_boot *boot);
void dtn_boot_late_ports(struct dtn_boot *boot, const struct dtn_table *all,
                         size_t at);

/* Use the tree to watch the ranks from now on.  No allgather may follow. */
void dtn_boot_watch_start(struct dtn_boot *boot);

/* Receive and forward news of ranks that are gone.  It costs a few system
 * calls, at most every 5 ms.
 */
void dtn_boot_watch(struct dtn_boot *boot);
const struct dtn_peer_failure *dtn_boot_peer_failure(
    const struct dtn_boot *boot, int rank);

/* This rank gives up because `rank` is lost.  Which rank all name, and how that
 * one was lost?  Of ranks lost at the same time it is the same for all.
 * undecided: the rank that decides is asked, and has not answered yet.
 * Blocks: until it has; at most dead_after and decides (below) after a loss
 */
int dtn_boot_agree(struct dtn_boot *boot, int rank, enum dtn_loss *loss);
bool dtn_boot_undecided(struct dtn_boot *boot, int rank);

/* A rank over which news of `peer` would come and which forwards none any more:
 * it is lost, or has given up.  -1: none.
 */
int dtn_boot_lost_way(const struct dtn_boot *boot, int peer);

/* A connection to this rank has failed, and the tree says that it lives: the
 * link to its host may be lost.  False: it is on this host.  decides: after so
 * much time a silence between hosts has a culprit.  lost_link: the leaders of
 * the two hosts whose link is lost, if one is.
 */
bool dtn_boot_unheard(struct dtn_boot *boot, int rank);
int64_t dtn_boot_decides_ns(const struct dtn_boot *boot);
bool dtn_boot_lost_link(const struct dtn_boot *boot, int ends[2]);

/* How a rank was lost: "died or left", "is out of reach: ...". */
char *dtn_boot_loss_words(const struct dtn_boot *boot, enum dtn_loss loss,
                          char *buf, size_t size);

/* Keep the records below as they are until dtn_boot_release(): the beating
 * thread may receive others.  Both calls may be nested.
 */
void dtn_boot_hold(struct dtn_boot *boot);
void dtn_boot_release(struct dtn_boot *boot);

/* The first rank known to have died or given up, -1: none. */
int dtn_boot_first_failure(const struct dtn_boot *boot);

/* The first rank known to be lost: dead, stopped or out of reach; -1: none. */
int dtn_boot_first_loss(const struct dtn_boot *boot);

/* Send over the tree that a peer gives up, as it has told this rank without the
 * tree, with how the culprit was lost.  Best effort, never blocks.
 */
void dtn_boot_report_peer(struct dtn_boot *boot, int peer, int culprit,
                          int code, enum dtn_loss loss);

/* Send over the tree that this rank gives up, and the mismatch if that is the
 * cause.  Best effort, never blocks.
 */
void dtn_boot_report_failure(struct dtn_boot *boot, int culprit, int code,
                             const struct dtn_mismatch *mismatch);

/* The status of a rank, by its own account. */
struct dtn_rank_status {
    int rank;                     /* which                                    */
    bool waits;                   /* it waits for others, in its last call    */
    int64_t queried_ns;           /* time of the last query; 0: none          */
    int64_t heard_ns;             /* time of the last answer; 0: none         */
    struct dtn_call_record call;  /* its last call, without text; fingerprint */
                                  /* 0: it has made none                      */
};

/* This function gives the status of this rank.  waits: the program's thread
 * calls it, in a wait; else the beating thread, while the program may make
 * calls.  To be set before dtn_boot_watch_start().
 */
typedef void dtn_boot_status_f(void *arg, bool waits,
                             struct dtn_call_record *call);
void dtn_boot_status_by(struct dtn_boot *boot, dtn_boot_status_f *call,
                        void *arg);

/* Query the status of a rank, unless somebody has just done so.  Best effort,
 * never blocks.  status: its answer, if one came since that time.
 */
void dtn_boot_query(struct dtn_boot *boot, int rank);
bool dtn_boot_status(struct dtn_boot *boot, int rank, int64_t since_ns,
                    struct dtn_rank_status *status);

/* Send over the tree what a rank called, unless this was sent before.  Best
 * effort, never blocks.
 */
void dtn_boot_report_call(struct dtn_boot *boot, int rank,
                          const struct dtn_call_record *record);

/* The record that a rank sent of its call with this fingerprint; NULL: none.
 * Of messages and blocks it is the one whose other end is `other`.  The second
 * function returns any record, i before the last; NULL: none.
 */
const struct dtn_call_record *dtn_boot_call_record(const struct dtn_boot *boot,
                                                   int rank,
                                                   uint64_t fingerprint,
                                                   int other);
const struct dtn_peer_call_report *dtn_boot_call_report(
    const struct dtn_boot *boot, uint32_t i);

/* A call has failed on this rank alone.  If it leaves within half a second, it
 * says so.
 */
void dtn_boot_call_failed(struct dtn_boot *boot, int code);

/* NULL is a no-op.
 * Blocks: while a rank below in the tree still needs this one, see leave.h
 */
void dtn_boot_close(struct dtn_boot *boot);

#endif
