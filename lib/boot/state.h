/* state.h - the parts of the bootstrap; private to this room */
#ifndef DTN_BOOT_STATE_H
#define DTN_BOOT_STATE_H

#include "boot/frame.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_peer_failure;
struct dtn_host;
struct dtn_log;
struct dtn_peer_call_report;
struct frame;

#define BOOT_ENTRY_HEAD 8         /* rank, flags, size of the bytes behind    */
#define BOOT_WHO_BYTES 12         /* pid, digest: the entry of round 0        */
#define BOOT_MAX_ADDRS 4
#define BOOT_FIXED_POLLS 6        /* two listeners, four routes               */

/* Times, in ns. */
#define BOOT_MS INT64_C(1000000)
#define BOOT_RETRY_FIRST_NS (BOOT_MS / 2)
#define BOOT_RETRY_LAST_NS (20 * BOOT_MS)
#define BOOT_STALL_NS BOOT_MS
#define BOOT_HANDSHAKE_NS (2000 * BOOT_MS) /* to say HELLO, or answer a SYN    */
#define BOOT_SETTLE_NS (500 * BOOT_MS)     /* after the first difference       */
#define BOOT_VERDICT_NS (400 * BOOT_MS)    /* late: for a verdict to come down */
#define BOOT_STEP_NS (20 * BOOT_MS)        /* ... and more for each level      */
#define BOOT_PART_NS (150 * BOOT_MS)       /* late: to pass it on              */
#define BOOT_EARLY_NS (1000 * BOOT_MS)     /* either, before the deadline      */
#define BOOT_OWN_NS (2500 * BOOT_MS)       /* ... for a failure of this rank   */
#define BOOT_OWNER_NS (200 * BOOT_MS)      /* to say whose a port is           */
#define BOOT_OTHER_NS (1000 * BOOT_MS)     /* for another job to leave a port  */

enum link_state { LINK_IDLE, LINK_CONNECTING, LINK_GREETING, LINK_JOINED };

/* A connection to another rank. */
struct boot_link {
    struct frame_stream io;
    enum link_state state;        /* GREETING: HELLO is awaited, or WELCOME    */
    int rank;                     /* -1: not known yet                         */
    uint32_t pid;
    bool known;                   /* it has said HELLO: a FAIL is for it too   */
    bool counted;                 /* a child in the tree                       */
    bool detour;                  /* only while its parent is not to be had,   */
                                  /* or to tell that it cannot take part       */
    int64_t since_ns;             /* it has been in this state                 */
    size_t forwarded;             /* bytes of `gathered` given to it           */
};

struct boot_addrs {
    int n;
    struct boot_addr {
        unsigned len;
        int family;
        union {                   /* a sockaddr, aligned as one                */
            uint64_t align;
            unsigned char bytes[128];
        } u;
    } addr[BOOT_MAX_ADDRS];
};

/* The way to an ancestor. */
struct boot_route {
    struct boot_link link;
    int target;                   /* rank, -1: no such way                     */
    int resolved;                 /* rank `addrs` are of, -1: none             */
    struct boot_addrs addrs;
    unsigned turn;                /* attempts made: picks the address          */
    int64_t next_ns;              /* of the next attempt                       */
    int64_t pause_ns;             /* after that one                            */
};

/* What rank 0 knows of a rank. */
enum member_state { MEMBER_MISSING, MEMBER_SEEN, MEMBER_JOINED };
struct boot_member {
    enum member_state state;      /* in this round; SEEN: by a detour only     */
    uint32_t pid;
    uint64_t digest;
};

struct boot_bytes {
    unsigned char *mem;
    size_t size;
    size_t capacity;
};

enum boot_state {
    BOOT_GATHERING,
    BOOT_CONDEMNED,               /* a failure is proposed; awaiting rank 0    */
    BOOT_PARTING,                 /* the outcome is known; passing it on       */
    BOOT_OVER
};

struct dtn_boot {
    const struct dtensor_cluster *cluster;
    struct dtn_log *log;
    const char *identity;         /* valid while opening                       */
    uint64_t digest;              /* of it                                     */
    const struct dtn_host **hosts; /* those with ranks                         */
    int nhosts;
    int host;                     /* own index                                 */
    int rank;
    int depth;                    /* in the tree; rank 0 is at 0               */
    bool root;                    /* rank 0                                    */
    char job[FRAME_JOB_MAX];      /* what all ranks of the job have in common  */
    char name[108];               /* AF_UNIX, abstract: without the NUL byte   */

    int unix_fd;                  /* listening, or -1                          */
    int tcp_fd;
    int spare_fd;                 /* given up when there is no other left      */
    struct boot_route up;
    struct boot_route aside;
    struct boot_route down[2];    /* to child hosts, while this rank fails     */
    struct boot_link *children;
    int nchildren;
    int capacity;
    struct pollfd *polls;         /* [capacity + BOOT_FIXED_POLLS]             */
    int nexpected;                /* children in the tree                      */
    bool *arrived;                /* [ranks of this host + 2 child hosts]      */
    int narrived;
    unsigned strangers;           /* connections dropped                       */
    int64_t foreign_ns;           /* another job is where the parent should    */
                                  /* be, since then; 0: it is not              */

    uint32_t seq;                 /* of this round                             */
    enum boot_state state;
    int64_t deadline_ns;
    int64_t until_ns;             /* end of what follows it, or of the state   */
    bool expired;                 /* here or below                             */
    bool unfit;                   /* this rank cannot take part                */
    struct dtensor_error failure; /* code != 0: condemned, or lost             */
    struct boot_bytes gathered;   /* entries of this subtree; at last, of all  */
    int mine_fd;                  /* borrowed                                  */
    int *local_fds;               /* [ranks of this host] received, or -1      */

    bool watching;                /* the last round is over                    */
    int64_t watch_ns;             /* of the next look                          */
    struct dtn_peer_failure *peer_failures; /* [world]                         */
    uint32_t npeer_failures;
    struct dtn_peer_call_report *reports; /* ring of the last ones received    */
    uint32_t report_capacity;     /* size of the ring                          */
    uint32_t nreports;            /* received ever; the last is at this - 1    */

    struct boot_member *members;  /* rank 0 only: [world]                      */
    int njoined;
    int64_t differs_ns;           /* when a digest first differed, or 0        */
    int asked;                    /* rank whose identity is wanted, -1: none   */
    int64_t asked_ns;
    uint64_t majority;            /* the digest that is right, from then on    */
    char *answer;                 /* its identity                              */
};

/* ----------------------------------------------------------- boot_tree.c --- */

int boot_tree_init(struct dtn_boot *boot, struct dtensor_error *err);
int boot_tree_host(const struct dtn_boot *boot, int rank);
int boot_tree_leader(const struct dtn_boot *boot, int rank);
int boot_tree_parent(const struct dtn_boot *boot, int rank);   /* -1: rank 0  */
int boot_tree_grandparent(const struct dtn_boot *boot, int rank);
bool boot_tree_same_host(const struct dtn_boot *boot, int a, int b);
int boot_tree_child_hosts(const struct dtn_boot *boot);   /* of this host   */
int boot_tree_child(const struct dtn_boot *boot, int i);  /* its i-th leader */

/* --------------------------------------------------------- boot_socket.c --- */

void boot_socket_name(struct dtn_boot *boot, const char *job);

/* Open the listeners that this rank needs.  If possible also one at which a
 * leader without child hosts receives the failure of its parent.  *taken:
 * another process has the AF_UNIX name of this one.
 */
int boot_socket_listen(struct dtn_boot *boot, bool *taken,
                  struct dtensor_error *err);
void boot_socket_unlisten(struct dtn_boot *boot);

/* Try again to get a port that was in use, or a socket for which there was no
 * memory, so that children who connect receive the failure of this rank.
 */
void boot_socket_relisten(struct dtn_boot *boot);

/* The next connection, -1: none now, or *rc is the failure.  A foreign user's
 * is dropped.
 */
int boot_socket_accept(struct dtn_boot *boot, bool local,
                       struct dtensor_error *err, int *rc);

/* Begin to connect; *fdp may still be connecting.  EAGAIN: try again later.
 * *pid is the process that listens.
 */
int boot_socket_connect_local(const struct dtn_boot *boot, int *fdp,
                         uint32_t *pid, struct dtensor_error *err);
int boot_socket_connect_tcp(struct dtn_boot *boot, struct boot_route *route,
                       int *fdp, struct dtensor_error *err);

/* 0: connected; EAGAIN: it did not come about. */
int boot_socket_connected(int fd);

/* Has that process of this host ended?  False if that is not known. */
bool boot_socket_dead(uint32_t pid);

/* ---------------------------------------------------------- boot_owner.c --- */

/* Which process listens on our port at this address?  Words in `buf`, "" for an
 * unknown one.  Blocks: BOOT_OWNER_NS
 */
enum boot_owner { OWNER_STRANGER, OWNER_OTHER_JOB, OWNER_THIS_JOB };
enum boot_owner boot_owner_ask(const struct dtn_boot *boot,
                               const struct boot_addr *at, char *buf,
                               size_t size);

/* ---------------------------------------------------------- boot_route.c --- */

void boot_route_init(struct boot_route *route, int target, int64_t now);
void boot_route_turn(struct dtn_boot *boot, struct boot_route *route);

/* The same for a route down, which ends when the leader there has the failure.
 */
void boot_route_down(struct dtn_boot *boot, struct boot_route *route);

/* This rank cannot take part: send that to its neighbours in the tree, up and
 * down.  Between hosts, connect to those that have not connected here.
 */
void boot_route_fail(struct dtn_boot *boot);

/* The body of a HELLO; its size. */
size_t boot_route_hello(const struct dtn_boot *boot, bool detour,
                        unsigned char body[]);
void boot_route_close(struct boot_route *route);
int64_t boot_route_wake(const struct dtn_boot *boot,
                        const struct boot_route *route);

/* Send a frame the way up. */
void boot_route_post(struct dtn_boot *boot, enum frame_type type,
                     const void *body, size_t size);

/* ---------------------------------------------------------- boot_child.c --- */

void boot_child_accept(struct dtn_boot *boot);
void boot_child_turn(struct dtn_boot *boot, struct boot_link *link);
void boot_child_sweep(struct dtn_boot *boot, int64_t now);

/* A child in the tree has connected, or knows that it need not connect. */
void boot_child_arrived(struct dtn_boot *boot, int rank);
void boot_child_keep_tree(struct dtn_boot *boot);   /* drop all others      */

/* --------------------------------------------------------- boot_gather.c --- */

#define ENTRY_HAS_FD 1u
#define ENTRY_DETOUR 2u

struct boot_entry {
    uint32_t rank;
    unsigned flags;
    size_t size;
    const unsigned char *bytes;
};

/* Take the next entry from *p, *left bytes; false: malformed. */
bool boot_entry_next(const unsigned char **p, size_t *left,
                     struct boot_entry *entry);

/* Begin a round with the own entry; `mine` NULL: round 0. */
int boot_gather_start(struct dtn_boot *boot, const struct dtn_blob *mine,
                      struct dtensor_error *err);

/* What may come over this link in this round. */
void boot_gather_limits(const struct dtn_boot *boot, struct boot_link *link);
void boot_gather_forward(struct dtn_boot *boot);

/* The entry that is in a HELLO; `link` NULL: the own one. */
bool boot_gather_who(struct dtn_boot *boot, const struct boot_link *link,
                     uint32_t pid, uint64_t digest);
void boot_gather_entries(struct dtn_boot *boot, struct boot_link *link,
                         const struct frame *frame);
void boot_gather_all(struct dtn_boot *boot, struct boot_link *link,
                     const struct frame *frame);
void boot_gather_done(struct dtn_boot *boot);
void boot_gather_unpack(struct dtn_boot *boot, struct dtn_blob all[]);
void boot_gather_close_fds(struct dtn_boot *boot);

/* ---------------------------------------------------------- boot_judge.c --- */

/* The member of that rank is here: from the ranks' own tree, or a detour. */
void boot_judge_member(struct dtn_boot *boot, int rank, bool detour,
                       uint32_t pid, uint64_t digest);
void boot_judge_turn(struct dtn_boot *boot, int64_t now);
int64_t boot_judge_wake(const struct dtn_boot *boot);

/* ----------------------------------------------------------- boot_fail.c --- */

/* This failure is known here: the first one stays.  Below rank 0 it is
 * proposed upward, so that all ranks hear the same.
 */
void boot_fail_condemn(struct dtn_boot *boot,
                       const struct dtensor_error *error);

/* These are the words for good: pass them on downward, and part. */
void boot_fail_final(struct dtn_boot *boot, const struct dtensor_error *error);
void boot_fail_send(struct dtn_boot *boot, struct boot_link *link);
void boot_fail_post(struct frame_stream *io, uint32_t seq,
                    const struct dtensor_error *error);
bool boot_fail_parse(const struct frame *frame, struct dtensor_error *error);
void boot_fail_expire(struct dtn_boot *boot, int64_t now);

/* This rank cannot take part: its neighbours receive its error and send it to
 * all others.
 */
void boot_fail_own(struct dtn_boot *boot, const struct dtensor_error *error);

void boot_fail_alone(struct dtn_boot *boot);

/* How long after the deadline a verdict is waited for. */
int64_t boot_fail_patience(const struct dtn_boot *boot);

/* The words. */
void boot_fail_closed(struct dtn_boot *boot, int rank);
void boot_fail_garbage(struct dtn_boot *boot, int rank);
void boot_fail_nomem(struct dtn_boot *boot);
void boot_fail_nofds(struct dtn_boot *boot);
void boot_fail_foreign(const struct dtn_boot *boot, struct frame_stream *io,
                       uint32_t rank, const char *host, const char *job);
void boot_fail_twice(struct dtn_boot *boot, int rank, uint32_t pid1,
                     uint32_t pid2);
void boot_fail_missing(struct dtn_boot *boot, const int ranks[], int n);
char *boot_fail_ranks_text(const struct dtn_boot *boot, const int ranks[],
                           int n, char *buf, size_t size);
char *boot_fail_rank_name(const struct dtn_boot *boot, int rank, char *buf,
                          size_t size);
int boot_fail_fd_limit(const struct dtn_boot *boot, struct dtensor_error *err);

#endif
