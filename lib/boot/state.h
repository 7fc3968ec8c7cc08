/* state.h - the parts of the bootstrap; private to this room */
#ifndef DTN_BOOT_STATE_H
#define DTN_BOOT_STATE_H

#include "base/seal.h"
#include "boot/auth.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/pulse.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_bypass;
struct dtn_late;
struct dtn_heart;
struct dtn_host;
struct dtn_log;
struct dtn_peer_call_report;
struct dtn_frame;
struct dtn_table;

#define DTN_BOOT_ENTRY_HEAD 8     /* rank, flags, size of the bytes behind    */
#define DTN_BOOT_WHO_BYTES 12     /* pid, digest: the entry of round 0        */
#define DTN_BOOT_MAX_ADDRS 4
#define DTN_BOOT_FIXED_POLLS 6    /* two listeners, four routes               */

/* Times, in ns. */
#define DTN_BOOT_MS INT64_C(1000000)
#define DTN_BOOT_RETRY_FIRST_NS (DTN_BOOT_MS / 2)
#define DTN_BOOT_RETRY_LAST_NS (20 * DTN_BOOT_MS)
#define DTN_BOOT_STALL_NS DTN_BOOT_MS
#define DTN_BOOT_HANDSHAKE_NS (2000 * DTN_BOOT_MS) /* for HELLO, for a SYN    */
#define DTN_BOOT_ANSWER_NS (300 * DTN_BOOT_MS) /* for leaders to answer       */
#define DTN_BOOT_SETTLE_NS (500 * DTN_BOOT_MS) /* after the first difference  */
#define DTN_BOOT_VERDICT_NS (400 * DTN_BOOT_MS) /* late: for a verdict      */
#define DTN_BOOT_STEP_NS (20 * DTN_BOOT_MS) /* ... and more for each level    */
#define DTN_BOOT_DRAIN_NS (150 * DTN_BOOT_MS) /* late: to pass it on          */
#define DTN_BOOT_EARLY_NS (1000 * DTN_BOOT_MS) /* either, before the deadline */
#define DTN_BOOT_OWN_NS (2500 * DTN_BOOT_MS) /* ... for an own failure        */
#define DTN_BOOT_OWNER_NS (200 * DTN_BOOT_MS) /* to say whose a port is       */
#define DTN_BOOT_OTHER_NS (1000 * DTN_BOOT_MS) /* for a job to leave a port   */

enum dtn_link_state {
    DTN_LINK_IDLE, DTN_LINK_CONNECTING,
    DTN_LINK_KNOCKING,            /* between hosts: who is there?             */
    DTN_LINK_GREETING,            /* HELLO is awaited, or WELCOME             */
    DTN_LINK_JOINED
};

/* A connection to another rank. */
struct dtn_boot_link {
    struct dtn_frame_stream io;   /* its socket and frames                    */
    enum dtn_link_state state;    /* of the handshake                         */
    unsigned char nonce[DTN_SECRET_BYTES]; /* random bytes of this side, then */
                                  /* the digest of what both have said        */
    int rank;                     /* of the other side; -1: not known yet     */
    uint32_t pid;                 /* of the other side; 0: not known yet      */
    bool known;                   /* it has said HELLO: a FAIL is for it too  */
    bool counted;                 /* a child in the tree                      */
    bool detour;                  /* only while its parent is unreachable,    */
                                  /* or to report that it cannot take part;   */
                                  /* afterwards: around a silent link         */
    int64_t since_ns;             /* when it entered this state               */
    size_t forwarded;             /* bytes of `gathered` given to it          */
    int64_t silent_ns;            /* between hosts: since the last frame      */
    uint32_t segments_first;      /* received in all when ours were no longer */
                                  /* acknowledged; 0: they are acknowledged   */
    uint32_t segments;            /* received in all at the last heartbeat    */
};

struct dtn_boot_addrs {
    int n;                        /* addresses found                          */
    struct dtn_boot_addr {
        unsigned len;             /* bytes of the sockaddr                    */
        int family;               /* AF_INET or AF_INET6                      */
        union {                   /* a sockaddr, aligned as one               */
            uint64_t align;       /* never read                               */
            unsigned char bytes[128]; /* the sockaddr                         */
        } u;                      /* passed to connect() and bind()           */
    } addr[DTN_BOOT_MAX_ADDRS];   /* [n]                                      */
};

/* A connection toward rank 0, with the attempts to make it. */
struct dtn_boot_route {
    struct dtn_boot_link link;    /* the connection                           */
    int target;                   /* rank to connect to; -1: no such route    */
    int resolved;                 /* rank that addrs belong to; -1: none      */
    struct dtn_boot_addrs addrs;  /* of the host of that rank                 */
    unsigned attempts;            /* attempts made: selects the address       */
    int64_t next_ns;              /* when the next attempt is due             */
    int64_t pause_ns;             /* after the next attempt                   */
};

/* What rank 0 knows of a rank. */
enum dtn_member_state {
    DTN_MEMBER_MISSING, DTN_MEMBER_SEEN, DTN_MEMBER_JOINED
};
struct dtn_boot_member {
    enum dtn_member_state state;  /* in this round; SEEN: by a detour only    */
    bool around;                  /* it was seen by a detour, too             */
    bool answered;                /* a leader: that the deadline has passed   */
    uint32_t pid;                 /* of its process                           */
    uint64_t digest;              /* of its identity                          */
};

struct dtn_boot_bytes {
    unsigned char *mem;           /* allocated                                */
    size_t size;                  /* bytes in use                             */
    size_t capacity;              /* bytes allocated                          */
};

enum dtn_boot_state {
    DTN_BOOT_GATHERING,           /* ranks join, or their entries come        */
    DTN_BOOT_FAILING,             /* a failure was proposed; rank 0 decides   */
    DTN_BOOT_DRAINING,            /* the outcome is known and is passed on    */
    DTN_BOOT_OVER /* the round has ended */
};

/* Leader `from` has heard nothing of leader `of` for dead_after. */
struct dtn_silence {
    int from;                     /* who says so                              */
    int of;                       /* who is silent                            */
};
#define DTN_BOOT_SILENCES 8       /* that are kept; the first one decides     */

struct dtn_boot {
    const struct dtensor_cluster *cluster; /* of the world                    */
    struct dtn_log *log;          /* where messages go                        */
    const char *identity;         /* valid while opening                      */
    uint64_t digest;              /* of the identity                          */
    const struct dtn_host **hosts; /* those with ranks                        */
    int nhosts;                   /* hosts with ranks                         */
    int host;                     /* own index in hosts                       */
    int rank;                     /* own rank                                 */
    int depth;                    /* in the tree; rank 0 is at 0              */
    bool root;                    /* rank 0                                   */
    struct dtn_boot_auth auth;    /* between hosts                            */
    char job[DTN_FRAME_JOB_MAX];  /* what all ranks of the job have in common */
    int port;                     /* TCP port of the first rank of each host  */
    char name[108];               /* AF_UNIX, abstract: without the NUL byte  */

    int unix_fd;                  /* listens for ranks of this host, or -1    */
    int tcp_fd;                   /* listens for leaders of hosts, or -1      */
    int spare_fd;                 /* closed when no other is left; or -1      */
    struct dtn_boot_route up;     /* to the parent                            */
    struct dtn_boot_route aside;  /* around the parent, to an ancestor        */
    struct dtn_boot_route down[2]; /* to child hosts, while this rank fails   */
    struct dtn_boot_link *children; /* [nchildren] those who connected here   */
    int nchildren;                /* in use                                   */
    int capacity;                 /* allocated                                */
    struct pollfd *polls;         /* [capacity + DTN_BOOT_FIXED_POLLS]        */
    int nexpected;                /* children in the tree                     */
    bool *arrived;                /* [ranks of this host + 2 child hosts]     */
    int narrived;                 /* how many of arrived are set              */
    unsigned strangers;           /* connections dropped: no rank of this job */
    unsigned refused[DTN_NREFUSALS]; /* of them: refused, by reason           */
    int64_t foreign_ns;           /* another job, or who has another key, is  */
                                  /* where the parent should be, since then;  */
                                  /* 0: it is not                             */

    uint32_t seq;                 /* number of this round; 0: opening         */
    enum dtn_boot_state state;    /* of this round                            */
    int64_t deadline_ns;          /* of this round                            */
    int64_t until_ns;             /* end of the state, or of expiry           */
    uint64_t drained;             /* bytes that children had taken ...        */
    int64_t drained_ns;           /* ... when they last took some             */
    bool expired;                 /* the deadline passed here or below        */
    bool unfit;                   /* this rank cannot take part               */
    struct dtensor_error failure; /* code != 0: failing, or failed            */
    struct dtn_boot_bytes gathered; /* entries of this subtree, then of all   */
    struct dtn_table *table;      /* of this round; NULL: not complete        */
    int mine_fd;                  /* own blob's descriptor, not owned; or -1  */
    int *local_fds;               /* [ranks of this host] received, or -1     */

    bool watching;                /* the last round is over                   */
    pthread_mutex_t lock;         /* of this struct, while it is watching     */
    struct dtn_heart *heart;      /* makes heartbeats; NULL: none yet         */
    struct dtn_pulse pulse;       /* the ranks of this host                   */
    bool bridges;                 /* it has links to other hosts              */
    struct dtn_silence silences[DTN_BOOT_SILENCES]; /* see silence.c          */
    int nsilences;                /* that were said                           */
    struct dtn_bypass *bypass;    /* NULL: there is no way around a link      */
    struct dtn_late *late;        /* NULL: this rank has none, see late.c     */
    uint32_t repaired;            /* of npeer_failures, see repair.c          */
    bool answered;                /* since a host is silent, the kernel of    */
                                  /* another has refused a connection         */
    int64_t beat_ns;              /* when the next beats over them are due    */
    int64_t watch_ns;             /* when the next look is due                */
    struct {                      /* of this rank and of others               */
        dtn_boot_status_f *tell;  /* that of this rank; NULL: unknown         */
        void *arg;                /* of tell()                                */
        bool queried;             /* this rank has not answered yet           */
        int64_t waited_ns;        /* last look of the program in a wait       */
        struct dtn_rank_status last[8];  /* answers of other ranks            */
    } status;                     /* see status.c                             */
    struct dtn_peer_failure *peer_failures; /* [world]                        */
    _Atomic uint32_t npeer_failures; /* ranks known to be gone                */
    _Atomic int asked_for;        /* 1 + the loss for which a rank asked whom */
                                  /* all name; 0: none has                    */
    _Atomic int verdict;          /* 1 + the rank that all name; 0: not known */
    enum dtn_loss verdict_loss;   /* how that one was lost                    */
    bool hurries;                 /* one of them is lost: news is urgent      */
    int failed;                   /* code of the last call that has failed on */
                                  /* this rank alone; 0: none               */
    int64_t failed_ns;            /* when                                     */
    struct dtn_peer_call_report *reports; /* ring of the last ones received   */
    uint32_t report_capacity;     /* size of the ring                         */
    uint32_t nreports;            /* received ever; the last is at this - 1   */

    struct dtn_boot_member *members; /* rank 0 only: [world]                  */
    int njoined;                  /* members in state JOINED                  */
    int64_t differs_ns;           /* when a digest first differed, or 0       */
    int asked;                    /* rank whose identity is wanted, -1: none  */
    int64_t asked_ns;             /* when it was asked                        */
    uint64_t majority;            /* the digest that is right, from then on   */
    char *answer;                 /* the identity it sent; NULL: none yet     */
};

#endif
