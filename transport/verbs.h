/* verbs.h - private to the verbs transport
 *
 * verbs_device.c  which device, port and GID, and why
 * verbs_memory.c  memory regions, registered once
 * verbs_meet.c    two ranks meet: queue pair numbers by datagram
 * verbs_queue.c   queue pairs, posting, completions
 * verbs_words.c   completion statuses as words
 * verbs.c         the table
 */
#ifndef DTN_VERBS_H
#define DTN_VERBS_H

#include "transport/transport.h"

#include <infiniband/verbs.h>

/* -------------------------------------------------------------- devices --- */

struct verbs_device {
    struct ibv_context *context;
    char name[IBV_SYSFS_NAME_MAX];
    int port;
    bool ethernet;                /* RoCE: addressed by GID; else by LID       */
    uint16_t lid;
    int gid_index;
    union ibv_gid gid;
    enum ibv_mtu mtu;             /* active                                    */
    int max_inline;               /* learnt from the first queue pair          */
    int max_cqe;
};

/* Open `want` ("mlx5_0" or "mlx5_0:1"; NULL: the first active port there is)
 * and choose a GID (`gid_index` -1: find one).   Errors: ENODEV, ESYS
 */
int verbs_device_open(const char *want, int gid_index,
                      const struct dtn_log *log, struct verbs_device *device,
                      struct dtensor_error *err);
void verbs_device_close(struct verbs_device *device);

/* "fe80::1" or "10.1.2.3" of a GID. */
char *verbs_gid_text(const union ibv_gid *gid, char *buf, size_t size);

/* --------------------------------------------------------------- memory --- */

/* A range that the device knows. */
struct verbs_region {
    unsigned char *start;
    size_t size;
    struct ibv_mr *mr;
    uint64_t used;                /* clock of the last use                     */
};

struct verbs_memory {
    struct ibv_pd *pd;
    struct dtn_arena *arena;
    uint64_t clock;
    int n, capacity;
    struct verbs_region *regions; /* sorted by start                           */
    unsigned long registered;     /* counters, for the log and tests           */
    unsigned long hits;
};

/* The region that holds [mem, mem + size) of the arena, registered now if it
 * is new; NULL with errno EFAULT for memory elsewhere, else why it failed.
 * Valid until the next call.
 */
struct verbs_region *verbs_memory_get(struct verbs_memory *memory,
                                      const void *mem, size_t size);
void verbs_memory_fini(struct verbs_memory *memory);

/* ------------------------------------------------------------ transport --- */

/* What one peer writes into our memory. */
struct verbs_lane {
    struct dtn_signal line[DTN_QUEUE_DEPTH];
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t acked;    /* of our signals     */
    _Atomic uint64_t aborted;     /* VERBS_ABORT_SET | code << 32 | culprit    */
    _Atomic uint64_t beat;        /* a sign that writes arrive; never read     */
    unsigned char apart[DTN_CACHE_LINE];
};
#define VERBS_ABORT_SET (UINT64_C(1) << 63)

/* Where a rank is met: its address blob. */
struct verbs_address {
    uint64_t magic;
    uint64_t cookie;              /* datagrams to it must bear it              */
    union ibv_gid gid;
    uint32_t datagram_qpn;
    uint16_t lid;
    uint8_t mtu;
    uint8_t ethernet;
    char device[IBV_SYSFS_NAME_MAX];
};

/* What one rank tells another so that their queue pairs can be joined. */
struct verbs_greeting {
    uint64_t magic;
    uint64_t cookie;              /* of the receiver                           */
    uint64_t lane;                /* address of the receiver's lane here       */
    uint32_t lane_key;
    uint32_t qpn;
    uint32_t psn;
    int32_t rank;
    uint32_t ready;               /* the sender's queue pair can receive       */
    uint32_t seen;                /* it knows that the receiver's can          */
};

struct verbs_peer {
    struct ibv_qp *qp;
    struct ibv_ah *way;           /* for datagrams                             */
    struct verbs_address address;
    uint32_t psn;                 /* ours, random                              */
    bool called;                  /* connect() was called for it               */
    bool greeted;                 /* its greeting is in `greeting`             */
    bool ready;                   /* our queue pair is up                      */
    bool joined;                  /* and its is, too                           */
    bool in_order;                /* the last byte of a write lands last       */
    int64_t next_greeting_ns;
    struct verbs_greeting greeting;
    struct verbs_lane *lane;      /* ours, for it                              */
    uint64_t sent, consumed, acked_sent;   /* signals                          */
    uint64_t posted, completed;   /* work requests                             */
    uint64_t last_put;            /* `posted` after the newest put             */
    int64_t next_beat_ns;
    enum ibv_wc_status error;     /* first bad completion; 0: none             */
    uint32_t vendor_error;
};

struct verbs {
    struct dtn_transport base;
    struct dtn_open_args args;    /* pointers borrowed                         */
    struct verbs_device device;
    struct verbs_memory memory;
    struct ibv_cq *cq;
    struct ibv_qp *datagram;
    struct ibv_cq *datagram_cq;
    struct verbs_datagrams *datagrams;
    struct ibv_mr *lanes_mr;
    struct verbs_lane *lanes;     /* [nranks] in the arena                     */
    unsigned char *stage;         /* for sources outside the arena             */
    struct ibv_mr *stage_mr;
    struct verbs_peer *stage_user;    /* whose put still reads it, or NULL     */
    unsigned turns;
    uint64_t cookie;
    uint64_t copied_bytes;        /* by this CPU, into the stage               */
    struct verbs_peer peers[];    /* [nranks]                                  */
};

enum {
    VERBS_DEPTH = 128,            /* work requests of a queue pair             */
    VERBS_SIGNALLED_EVERY = 16,
    VERBS_STAGE_BYTES = 1 << 20,
    VERBS_MESSAGE_MAX = 1 << 23
};

/* Datagrams: set up, keep meeting `peer` until both sides are joined (0, or
 * EAGAIN), answer whoever greets.
 */
int verbs_meet_open(struct verbs *verbs, struct dtensor_error *err);
void verbs_meet_close(struct verbs *verbs);
int verbs_meet(struct verbs *verbs, int peer, struct dtensor_error *err);
int verbs_meet_progress(struct verbs *verbs);

/* Make our end of the queue pair for a peer; join it to what it greeted with. */
int verbs_queue_create(struct verbs *verbs, int peer,
                       struct dtensor_error *err);
int verbs_queue_join(struct verbs *verbs, int peer, struct dtensor_error *err);

/* Post one write; inline when mr is NULL.  EAGAIN: the queue is full. */
int verbs_post(struct verbs *verbs, struct verbs_peer *peer, uint64_t to,
               uint32_t key, const void *from, size_t size,
               const struct ibv_mr *mr);

/* Post an empty write that asks for a completion: all before it are done when
 * it is.
 */
int verbs_post_mark(struct verbs *verbs, struct verbs_peer *peer);

/* Take completions. */
int verbs_poll(struct verbs *verbs);

/* Words for a bad completion: what it means and what to look at. */
char *verbs_words(const struct verbs *verbs, int peer, char *buf, size_t size);

#endif
